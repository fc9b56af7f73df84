//! What entered a run from outside, as text: which machine it was, and then one event a line.
//!
//! ```text
//! realmode record 1
//! machine bios 131072 bytes, CRC-32 5f3c8a11
//! machine memory 16 MiB
//! date 1700000000
//! clock 51234 48790 51002
//! press 17 204811 control+alt Delete
//! serial 19 207002 6c 73 0d
//! close 24 300120
//! end 25 310001
//! ```
//!
//! An event enters between two turns of the run: its first number says after how many turns, its
//! second how many instructions had been executed by then, so that a replay that goes another way
//! is noticed. After `close` nothing can enter any more. `clock` has the readings of a real clock
//! in the order in which they were taken, each as nanoseconds after the one before it.

use realmode_pc::{Held, Key};

use super::input::{Input, When};

/// What the first line says; the number is the version of the format.
const FIRST_LINE: &str = "realmode record 1";
const FIRST_WORDS: &str = "realmode record ";

/// What a machine is: names, and what the record says of each.
pub(super) type Summary = Vec<(&'static str, String)>;

/// A line after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Machine(String),
    Date(i64),
    Clock(Vec<u64>),
    Input(When, Input),
    End(When),
}

/// An entry of a summary as it stands in a line.
pub(super) fn machine(name: &str, what: &str) -> Line {
    Line::Machine(format!("{name} {}", what.escape_debug()))
}

/// The first lines of a record.
pub(super) fn head(summary: &Summary, date: i64) -> String {
    let machine = summary.iter().map(|(name, what)| format!("{}\n", machine(name, what)));
    format!("{FIRST_LINE}\n{}{}\n", machine.collect::<String>(), Line::Date(date))
}

/// Reads a whole record. The error names the line, counted from 1.
pub(super) fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = text.split_inclusive('\n').enumerate();
    let first = lines.next().map_or("", |(_, line)| line.trim_end_matches('\n'));
    match first.strip_prefix(FIRST_WORDS) {
        None => return Err(format!("it does not begin with `{FIRST_WORDS}`, as a record does")),
        Some(_) if first == FIRST_LINE => {}
        Some(version) => {
            return Err(format!("it has version {version}, and this realmode reads version 1"));
        }
    }
    let mut parsed = Vec::new();
    let mut last = When { turn: 0, instructions: 0 };
    for (at, line) in lines {
        let number = at + 1;
        let Some(line) = line.strip_suffix('\n') else {
            return Err(format!("line {number} is cut off: `{line}`"));
        };
        let line = of_text(line).ok_or_else(|| format!("line {number} is damaged: `{line}`"))?;
        if let Line::Input(when, _) | Line::End(when) = line {
            if when.turn < last.turn || when.instructions < last.instructions {
                return Err(format!("line {number} is damaged: it is before the one above it"));
            }
            last = when;
        }
        if matches!(parsed.last(), Some(Line::End(_))) {
            return Err(format!("line {number} is damaged: it comes after the end"));
        }
        parsed.push(line);
    }
    Ok(parsed)
}

fn of_text(text: &str) -> Option<Line> {
    let (kind, rest) = text.split_once(' ')?;
    match kind {
        "machine" => Some(Line::Machine(rest.to_owned())),
        "date" => rest.parse().ok().map(Line::Date),
        "clock" => rest.split(' ').map(number).collect::<Option<_>>().map(Line::Clock),
        "press" => {
            let (when, rest) = when(rest)?;
            let (held, key) = rest?.split_once(' ')?;
            Some(Line::Input(when, Input::Press(key_of(key)?, held_of(held)?)))
        }
        "serial" => {
            let (when, rest) = when(rest)?;
            let bytes = rest?.split(' ').map(byte).collect::<Option<_>>()?;
            Some(Line::Input(when, Input::Serial(bytes)))
        }
        "close" => alone(rest).map(|when| Line::Input(when, Input::End)),
        "end" => alone(rest).map(Line::End),
        _ => None,
    }
}

/// Two numbers, and what follows them.
fn when(text: &str) -> Option<(When, Option<&str>)> {
    let mut parts = text.splitn(3, ' ');
    let when = When { turn: number(parts.next()?)?, instructions: number(parts.next()?)? };
    Some((when, parts.next()))
}

/// Two numbers.
fn alone(text: &str) -> Option<When> {
    when(text).filter(|(_, rest)| rest.is_none()).map(|(when, _)| when)
}

/// Digits and nothing else; `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

fn byte(text: &str) -> Option<u8> {
    let is_hex = text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(text, 16).ok())?
}

/// The keys that are not characters.
const KEYS: [(&str, Key); 10] = [
    ("Up", Key::Up),
    ("Down", Key::Down),
    ("Left", Key::Left),
    ("Right", Key::Right),
    ("Home", Key::Home),
    ("End", Key::End),
    ("PageUp", Key::PageUp),
    ("PageDown", Key::PageDown),
    ("Insert", Key::Insert),
    ("Delete", Key::Delete),
];
const HELD: [(&str, Held); 3] =
    [("shift", Held::SHIFT), ("control", Held::CONTROL), ("alt", Held::ALT)];
const NOTHING_HELD: &str = "alone";

/// `U+0041`, `F7` or a name.
fn key_of(text: &str) -> Option<Key> {
    if let Some(code) = text.strip_prefix("U+") {
        let code = u32::from_str_radix(code, 16).ok()?;
        return char::from_u32(code).map(Key::Character);
    }
    let function = text.strip_prefix('F').and_then(number).filter(|key| (1..=12).contains(key));
    let function = function.map(|number| Key::Function(number as u8));
    function.or_else(|| KEYS.iter().find(|(name, _)| *name == text).map(|(_, key)| *key))
}

fn held_of(text: &str) -> Option<Held> {
    if text == NOTHING_HELD {
        return Some(Held::empty());
    }
    text.split('+')
        .map(|word| HELD.iter().find(|(name, _)| *name == word).map(|(_, held)| *held))
        .try_fold(Held::empty(), |all, held| Some(all | held?))
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.turn, self.instructions)
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Line::Machine(what) => write!(f, "machine {what}"),
            Line::Date(seconds) => write!(f, "date {seconds}"),
            Line::Clock(readings) => {
                f.write_str("clock")?;
                readings.iter().try_for_each(|reading| write!(f, " {reading}"))
            }
            Line::Input(when, Input::Press(key, held)) => {
                write!(f, "press {when} {} {}", held_name(*held), key_name(*key))
            }
            Line::Input(when, Input::Serial(bytes)) => {
                write!(f, "serial {when}")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
            Line::Input(when, Input::End) => write!(f, "close {when}"),
            Line::End(when) => write!(f, "end {when}"),
        }
    }
}

fn key_name(key: Key) -> String {
    match key {
        Key::Character(character) => format!("U+{:04X}", u32::from(character)),
        Key::Function(number) => format!("F{number}"),
        named => KEYS
            .iter()
            .find(|(_, key)| *key == named)
            .map(|(name, _)| (*name).to_owned())
            .unwrap_or_default(),
    }
}

fn held_name(held: Held) -> String {
    let names: Vec<&str> =
        HELD.iter().filter(|(_, key)| held.contains(*key)).map(|(name, _)| *name).collect();
    if names.is_empty() { NOTHING_HELD.to_owned() } else { names.join("+") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: When = When { turn: 3, instructions: 400 };

    #[test]
    fn every_line_reads_back_as_it_was_written() {
        let inputs = [
            Input::Press(Key::Character(' '), Held::empty()),
            Input::Press(Key::Character('\n'), Held::SHIFT),
            Input::Press(Key::Function(12), Held::all()),
            Input::Serial(vec![0, 0x0D, 0xFF]),
            Input::End,
        ];
        let named = KEYS.map(|(_, key)| Input::Press(key, Held::CONTROL | Held::ALT));
        let events = inputs.into_iter().chain(named).map(|input| Line::Input(AT, input));
        let others = [machine("append", "a\nb"), Line::Date(-1), Line::Clock(vec![0, 17])];
        let mut lines: Vec<Line> = others.into_iter().chain(events).collect();
        lines.push(Line::End(AT));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(parse(&format!("{FIRST_LINE}\n{text}")), Ok(lines));
    }

    #[test]
    fn the_head_says_what_was_booted() {
        let summary = vec![("append", "a\nb".to_owned()), ("memory", "16 MiB".to_owned())];
        let expected = "machine append a\\nb\nmachine memory 16 MiB\ndate 7\n";
        assert_eq!(head(&summary, 7), format!("{FIRST_LINE}\n{expected}"));
    }

    #[test]
    fn a_damaged_line_is_named() {
        for (text, word) in [
            ("", "does not begin with"),
            ("realmode record\n", "does not begin with"),
            ("realmode record 2\n", "version 2"),
            ("realmode record 1\ndate 1\nwhat 1 2\n", "line 3 is damaged: `what 1 2`"),
            ("realmode record 1\nserial 1 2 0\n", "line 2"),
            ("realmode record 1\nserial 1 2\n", "line 2"),
            ("realmode record 1\nserial 1 2 +1\n", "line 2"),
            ("realmode record 1\npress 1 2 alone Hyper\n", "line 2"),
            ("realmode record 1\npress 1 2 alone F13\n", "line 2"),
            ("realmode record 1\npress 1 2 meta Up\n", "line 2"),
            ("realmode record 1\npress 1 2 Up\n", "line 2"),
            ("realmode record 1\nclock 1 -2\n", "line 2"),
            ("realmode record 1\nclock \n", "line 2"),
            ("realmode record 1\nclock 1 2", "line 2 is cut off"),
            ("realmode record 1\nend 1 2 3\n", "line 2"),
            ("realmode record 1\nend 1 2\ndate 1\n", "line 3 is damaged: it comes after the end"),
            ("realmode record 1\nserial 2 9 00\nserial 1 9 00\n", "line 3"),
            ("realmode record 1\nserial 2 9 00\nserial 2 8 00\n", "line 3"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }
}
