//! One run of a guest: slices of instructions, and between them the user's side of things.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use realmode::{Counters, Cpu, Emulator, Phys, SegReg, Stop, Unimplemented, UnimplementedReason};
use realmode_pc::Pc;

use super::console::Output;
use super::display::Display;
use super::outcome::Outcome;
use super::trace::Trace;

/// Instructions between two looks at the screen, the output and the clock. The first slices are
/// short, so that a guest that strays into empty memory is found before IP reaches its end.
const FIRST_SLICE: u64 = 1 << 10;
/// About 10 ms.
const LONGEST_SLICE: u64 = 1 << 20;
/// A run longer than this shows that it is alive.
const LONG: Duration = Duration::from_secs(1);
/// So many zero bytes at CS:IP are no program.
const ZEROS: u64 = 32;

/// What bounds a run.
pub(super) struct Bounds<'a> {
    /// Instructions.
    pub(super) limit: Option<u64>,
    /// The text that ends it if it is on the screen. `Output` watches the ports for it.
    pub(super) until: Option<&'a str>,
}

/// A run that is over.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) cpu: Cpu,
    pub(super) elapsed: Duration,
    pub(super) instructions: u64,
    /// Did the guest's output end with a line?
    pub(super) at_line_start: bool,
    /// The emulator's own counters, by name.
    pub(super) counters: Vec<(&'static str, u64)>,
}

/// Runs the guest until it ends, gets nowhere, or reaches a bound.
pub(super) fn run<'m>(
    emulator: &mut Emulator<'m>,
    pc: &mut Pc<'m, Output>,
    mut cpu: Cpu,
    bounds: &Bounds<'_>,
    mut trace: Option<Trace<'_>>,
) -> Result<Finished, String> {
    let started = Instant::now();
    let mut progress = Progress { bar: None, started, at_line_start: true };
    // Slices alternate with single steps, which find an instruction that jumps to itself.
    let (mut slice, mut single) = (FIRST_SLICE, false);
    let outcome = loop {
        let before = (cpu.clone(), *emulator.counters());
        let left = bounds.limit.map_or(u64::MAX, |limit| limit.saturating_sub(spent(&before.1)));
        let budget = left.min(if single { 1 } else { slice });
        let stop = match &mut trace {
            Some(trace) => emulator.run_observed(&mut cpu, pc, budget, trace),
            None => emulator.run(&mut cpu, pc, budget),
        };
        let stop = stop.map_err(|error| error.to_string())?;
        progress.show(&pc.console_mut().take_fresh())?;
        if let Some(seen) = seen(pc, bounds.until) {
            break seen;
        }
        if stop != Stop::Budget {
            break stopped(stop, &cpu, pc);
        }
        let now = emulator.counters();
        if budget == 1 && cpu == before.0 {
            break Outcome::Loop;
        }
        if budget >= FIRST_SLICE && only_faults(&before.1, now) {
            break Outcome::FaultLoop;
        }
        if is_in_zeros(&cpu, pc) {
            break Outcome::EmptyMemory;
        }
        if bounds.limit.is_some_and(|limit| spent(now) >= limit) {
            break Outcome::Limit(now.instructions);
        }
        single = !single;
        slice = LONGEST_SLICE.min(slice * 2);
        progress.tick(emulator.counters().instructions);
    };
    progress.clear();
    trace.as_mut().map_or(Ok(()), Trace::flush)?;
    Ok(Finished {
        outcome,
        cpu,
        elapsed: started.elapsed(),
        instructions: emulator.counters().instructions,
        at_line_start: progress.at_line_start,
        counters: counters(emulator),
    })
}

/// What `--limit` counts. Exceptions are in it, since a guest may raise nothing else.
fn spent(counters: &Counters) -> u64 {
    counters.instructions + counters.faults
}

/// Did exceptions lead to exceptions, and nothing else happen?
fn only_faults(before: &Counters, now: &Counters) -> bool {
    now.instructions == before.instructions && now.faults > before.faults
}

/// Did the text that `--until` names appear?
fn seen(pc: &Pc<'_, Output>, until: Option<&str>) -> Option<Outcome> {
    let text = until?;
    if let Some(channel) = pc.console().seen() {
        return Some(Outcome::SeenOn(channel));
    }
    Display::of_vga(pc)?.shows(text).then_some(Outcome::SeenOnScreen)
}

/// What a stop means for this machine, which has no device that interrupts.
fn stopped(stop: Stop, cpu: &Cpu, pc: &Pc<'_, Output>) -> Outcome {
    match stop {
        Stop::Halt | Stop::Idle => Outcome::Idle,
        Stop::Shutdown => Outcome::Shutdown,
        Stop::Requested => pc.ending().map_or(Outcome::Other(stop), Outcome::Ended),
        Stop::Unimplemented(what) => unimplemented(what, cpu, pc),
        other => Outcome::Other(other),
    }
}

fn unimplemented(what: Unimplemented, cpu: &Cpu, pc: &Pc<'_, Output>) -> Outcome {
    match pc.missing_handler(cpu) {
        Some(vector) if what.reason == UnimplementedReason::FetchFromMmio => {
            Outcome::MissingHandler(vector)
        }
        _ => Outcome::Unimplemented(what),
    }
}

/// Is nothing but zeros ahead? They decode as ADD [BX+SI], AL, so a guest that went astray into
/// empty memory would run there for ever.
fn is_in_zeros(cpu: &Cpu, pc: &Pc<'_, Output>) -> bool {
    let at = cpu.segment(SegReg::Cs).base.wrapping_add(cpu.rip);
    cpu.is_real_mode() && (0..ZEROS).all(|i| pc.byte(Phys(at.wrapping_add(i))) == 0)
}

/// What the emulator counted, instructions apart.
fn counters(emulator: &Emulator<'_>) -> Vec<(&'static str, u64)> {
    let counters = emulator.counters();
    vec![
        ("blocks_built", counters.blocks_built),
        ("blocks_proved", counters.blocks_proved),
        ("blocks_retired", counters.blocks_retired),
        ("epochs", counters.epochs),
        ("careful", counters.careful),
        ("faults", counters.faults),
        ("events", counters.events),
    ]
}

/// The guest's output, and a spinner when a run is long, on a terminal.
struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    at_line_start: bool,
}

impl Progress {
    /// Writes what the guest printed.
    fn show(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(last) = bytes.last() else { return Ok(()) };
        self.at_line_start = *last == b'\n';
        self.clear();
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(|error| format!("cannot write the guest's output: {error}"))
    }

    /// Moves the spinner, unless it would write into a line of the guest's.
    fn tick(&mut self, instructions: u64) {
        let elapsed = self.started.elapsed();
        if elapsed < LONG || !self.at_line_start || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.bar.get_or_insert_with(ProgressBar::new_spinner);
        let millions = instructions / 1_000_000;
        let rate = millions as f64 / elapsed.as_secs_f64();
        bar.set_message(format!("{millions} million instructions, {rate:.0} MIPS"));
        bar.tick();
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
