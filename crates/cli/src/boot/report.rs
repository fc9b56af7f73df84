//! What is said about a run that is over: on the terminal, or as one JSON object.

use realmode_pc::Channel;
use serde_json::{Map, Value, json};

use super::display::Display;
use super::machine::Machine;
use super::outcome::Outcome;
use super::place::Place;
use super::session::Finished;

/// Where a report points: at the caller of a handler that is not there, at the HLT, else where
/// the run stopped.
pub(super) fn place(finished: &Finished, machine: &Machine<'_>) -> Place {
    match finished.outcome {
        Outcome::MissingHandler(vector) => Place::of_caller(machine, vector),
        Outcome::Unimplemented(what) => {
            Place::of_bytes(machine, &what.bytes[..usize::from(what.len.min(15))])
        }
        Outcome::Idle => Place::of_halt(machine),
        _ => Place::of(machine),
    }
}

/// The lines for a run that got nowhere.
pub(super) fn reason(message: &str, place: &Place) -> String {
    let mut text = format!("{message}\n  at {}, {}", place.address(), place.mode);
    if !place.bytes.is_empty() {
        text.push_str(&format!(": {}", place.hex()));
    }
    if let Some(instruction) = &place.text {
        text.push_str(&format!("  {instruction}"));
    }
    text
}

/// The lines of `--stats`.
pub(super) fn stats(finished: &Finished) -> String {
    let mut lines = vec![
        ("instructions".to_owned(), grouped(finished.instructions)),
        ("seconds".to_owned(), format!("{:.3}", finished.elapsed.as_secs_f64())),
        ("MIPS".to_owned(), format!("{:.1}", mips(finished))),
        ("seconds of the guest's".to_owned(), format!("{:.3}", finished.guest_seconds)),
        ("resets".to_owned(), grouped(finished.resets)),
        ("disk errors".to_owned(), grouped(finished.disk_errors)),
    ];
    for (name, value) in &finished.counters {
        lines.push((name.replace('_', " "), grouped(*value)));
    }
    lines.iter().map(|(name, value)| format!("{name:<24}{value:>18}\n")).collect()
}

/// The object of `--json`.
pub(super) fn json(
    finished: &Finished,
    place: &Place,
    exit_code: u8,
    machine: &Machine<'_>,
    screen: Option<&Display>,
) -> Value {
    let pc = &machine.pc;
    let awaited = finished.awaited.as_deref();
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("result", json!(finished.outcome.name()));
    put("message", json!(finished.outcome.message(awaited)));
    put("exit_code", json!(exit_code));
    if let Outcome::Exit { value, .. } = finished.outcome {
        put("exit_value", json!(value));
    }
    put("cs", json!(place.cs));
    put("ip", json!(place.ip));
    put("mode", json!(place.mode));
    put("bytes", json!(place.hex()));
    put("instruction", json!(place.text));
    put("instructions", json!(finished.instructions));
    put("seconds", json!(finished.elapsed.as_secs_f64()));
    put("mips", json!(mips(finished)));
    put("guest_seconds", json!(finished.guest_seconds));
    put("resets", json!(finished.resets));
    put("post_code", json!(pc.post_code()));
    put("disk_errors", json!(finished.disk_errors));
    let counters = finished.counters.iter().map(|(name, value)| ((*name).into(), json!(value)));
    put("counters", Value::Object(counters.collect()));
    for (name, channel) in [("serial", Channel::Serial), ("debug", Channel::Debug)] {
        let (kept, dropped) = pc.console().kept(channel);
        put(name, json!(String::from_utf8_lossy(kept)));
        if dropped != 0 {
            put(&format!("{name}_bytes_dropped"), json!(dropped));
        }
    }
    put("screen", json!(screen.map(Display::rows)));
    Value::Object(object)
}

fn mips(finished: &Finished) -> f64 {
    let seconds = finished.elapsed.as_secs_f64();
    if seconds == 0.0 { 0.0 } else { finished.executed as f64 / 1e6 / seconds }
}

/// `12345678` as `12,345,678`.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i != 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 12345678].map(grouped), ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn a_reason_names_place_mode_and_bytes() {
        let place = Place {
            cs: 0,
            ip: 0x7C4E,
            mode: "real mode",
            bytes: vec![0xEB, 0xFE],
            text: Some("jmp 7C4E".to_owned()),
        };
        assert_eq!(
            reason(&Outcome::Loop.to_string(), &place),
            "loop: an instruction jumps to itself\n  at 0000:7C4E, real mode: EB FE  jmp 7C4E"
        );
    }
}
