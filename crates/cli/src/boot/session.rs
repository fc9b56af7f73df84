//! One run of a guest: turns of instructions, and between them the user's side of things.
//!
//! How long a turn is depends on the run alone, and all that comes from outside comes between two
//! turns: the same input before the same turns makes the same run, on the virtual clock.

use std::rc::Rc;
use std::time::{Duration, Instant};

use realmode::arch::rflags;
use realmode::{Activity, Counters, Cpu, Phys, SegReg, Stop, Unimplemented, UnimplementedReason};

use super::disk::DiskErrors;
use super::inbox::Inbox;
use super::machine::Machine;
use super::options::ClockKind;
use super::outcome::Outcome;
use super::place;
use super::progress::Progress;
use super::script::Script;
use super::sinks::{Sinks, Taken};
use super::trace::Trace;

/// Instructions between two looks at the screen, the output and the clock. The first turns are
/// short, so that a guest that strays into empty memory is found before IP reaches its end.
const FIRST_TURN: u64 = 1 << 10;
/// About 10 ms.
const LONGEST_TURN: u64 = 1 << 20;
/// How long a halted guest sleeps at most before input is looked at.
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// So many zero bytes at CS:IP are no program.
const ZEROS: u64 = 32;

/// A run, and all that takes part in it.
pub(super) struct Session<'a, 'm> {
    pub(super) machine: &'a mut Machine<'m>,
    pub(super) clock: ClockKind,
    /// Instructions, if they are bounded.
    pub(super) limit: Option<u64>,
    pub(super) script: Script,
    pub(super) inbox: Inbox,
    pub(super) sinks: Sinks<'a>,
    pub(super) trace: Option<Trace<'a>>,
    pub(super) disk_errors: Rc<DiskErrors>,
    pub(super) progress: Progress,
    /// How many turns there were.
    pub(super) turns: u64,
}

/// A run that is over.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) elapsed: Duration,
    pub(super) instructions: u64,
    pub(super) guest_seconds: f64,
    pub(super) resets: u64,
    pub(super) disk_errors: u64,
    /// The text that was still waited for.
    pub(super) awaited: Option<String>,
    /// Did the guest's output end with a line, on stdout and on stderr?
    pub(super) at_line_start: bool,
    pub(super) stderr_at_line_start: bool,
    /// The emulator's own counters, by name.
    pub(super) counters: Vec<(&'static str, u64)>,
}

/// The machine before a turn.
struct Before {
    cpu: Cpu,
    counters: Counters,
    budget: u64,
}

impl Session<'_, '_> {
    /// Runs the guest until it ends, gets nowhere, or reaches a bound.
    pub(super) fn run(mut self) -> Result<Finished, String> {
        let started = Instant::now();
        let result = self.run_to_end();
        self.progress.clear();
        self.trace.as_mut().map_or(Ok(()), Trace::flush)?;
        let Machine { pc, emulator, .. } = &*self.machine;
        Ok(Finished {
            outcome: result?,
            elapsed: started.elapsed(),
            instructions: emulator.counters().instructions,
            guest_seconds: pc.now() as f64 / 1e9,
            resets: pc.resets(),
            disk_errors: self.disk_errors.count(),
            awaited: self.script.awaited().map(str::to_owned),
            at_line_start: self.sinks.at_line_start,
            stderr_at_line_start: self.sinks.stderr_at_line_start,
            counters: by_name(emulator.counters()),
        })
    }

    fn run_to_end(&mut self) -> Result<Outcome, String> {
        // Long turns alternate with single steps, which find an instruction that jumps to itself.
        let (mut length, mut is_single) = (FIRST_TURN, false);
        loop {
            self.inbox.feed(&mut self.machine.pc, self.turns);
            let before = self.before(if is_single { 1 } else { length });
            let stop = self.turn(before.budget)?;
            self.trace.as_mut().map_or(Ok(()), Trace::check)?;
            if self.show()? == Taken::Closed {
                return Ok(Outcome::OutputClosed);
            }
            if let Some(seen) = self.script.look(&mut self.machine.pc, &mut self.inbox) {
                return Ok(seen);
            }
            let over = match stop {
                Stop::Budget => self.astray(&before),
                Stop::Halt => self.wait(),
                // The script's text appeared.
                Stop::Requested if self.machine.pc.ending().is_none() => None,
                stop => Some(stopped(stop, self.machine)),
            };
            if let Some(outcome) = over {
                return Ok(outcome);
            }
            let now = self.machine.emulator.counters();
            if self.limit.is_some_and(|limit| spent(now) >= limit) {
                return Ok(Outcome::Limit(now.instructions));
            }
            is_single = !is_single;
            length = LONGEST_TURN.min(length * 2);
            if self.sinks.at_line_start {
                self.progress.tick(now.instructions);
            }
        }
    }

    fn before(&self, length: u64) -> Before {
        let counters = *self.machine.emulator.counters();
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(spent(&counters)));
        Before { cpu: self.machine.cpu.clone(), counters, budget: left.min(length) }
    }

    fn turn(&mut self, budget: u64) -> Result<Stop, String> {
        self.turns += 1;
        let Machine { pc, cpu, emulator } = &mut *self.machine;
        let stop = match &mut self.trace {
            Some(trace) => pc.run_observed(emulator, cpu, budget, trace),
            None => pc.run(emulator, cpu, budget),
        };
        stop.map_err(|error| error.to_string())
    }

    /// Shows what the turn has brought.
    fn show(&mut self) -> Result<Taken, String> {
        let printed = self.machine.pc.console_mut().take_fresh();
        let error = self.disk_errors.take();
        if !printed.is_empty() || error.is_some() {
            self.progress.clear();
        }
        let taken = self.sinks.write(&printed)?;
        if let Some(error) = error {
            self.sinks.say(&error);
        }
        Ok(taken)
    }

    /// The guest waits. Returns when it may go on, or that nothing will wake it.
    fn wait(&mut self) -> Option<Outcome> {
        let pc = &mut self.machine.pc;
        // What has just been typed may have woken it, so this comes first.
        while !self.inbox.feed(pc, self.turns) {
            let due = pc.next_event().filter(|_| self.clock == ClockKind::Real);
            if due.is_none() && !self.inbox.is_open() {
                return Some(Outcome::Idle);
            }
            let most = due.map(|at| Duration::from_nanos(at.saturating_sub(pc.now())));
            self.inbox.wait(most.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT));
            if due.is_some() {
                break;
            }
        }
        None
    }

    /// A turn has used up its budget: did it lead anywhere?
    fn astray(&self, before: &Before) -> Option<Outcome> {
        let Machine { pc, cpu, emulator } = &*self.machine;
        let now = emulator.counters();
        let is_running = cpu.activity == Activity::Running;
        let has_executed = now.instructions != before.counters.instructions;
        let can_be_interrupted =
            cpu.rflags & rflags::IF != 0 && (pc.next_event().is_some() || self.inbox.is_open());
        if before.budget == 1 && is_running && *cpu == before.cpu && !can_be_interrupted {
            return Some(Outcome::Loop);
        }
        if before.budget >= FIRST_TURN && !has_executed && now.faults > before.counters.faults {
            return Some(Outcome::FaultLoop);
        }
        // It was woken a million times, and each time by an interrupt that is masked.
        let is_idle = !is_running && !has_executed && before.budget == LONGEST_TURN;
        if is_idle && !self.inbox.is_open() {
            return Some(Outcome::Idle);
        }
        (is_running && is_in_zeros(self.machine)).then_some(Outcome::EmptyMemory)
    }
}

/// What `--limit` counts. Exceptions are in it, since a guest may raise nothing else.
fn spent(counters: &Counters) -> u64 {
    counters.instructions + counters.faults
}

/// What a stop means for this machine.
fn stopped(stop: Stop, machine: &Machine<'_>) -> Outcome {
    let Machine { pc, cpu, .. } = machine;
    match stop {
        Stop::Halt | Stop::Idle => Outcome::Idle,
        Stop::Shutdown => Outcome::Shutdown,
        Stop::Requested => pc
            .ending()
            .map_or(Outcome::Other(stop), |ending| Outcome::of_ending(ending, pc.exit_port())),
        Stop::Unimplemented(what) => unimplemented(what, pc.missing_handler(cpu)),
        other => Outcome::Other(other),
    }
}

fn unimplemented(what: Unimplemented, missing: Option<u8>) -> Outcome {
    match missing {
        Some(vector) if what.reason == UnimplementedReason::FetchFromMmio => {
            Outcome::MissingHandler(vector)
        }
        _ => Outcome::Unimplemented(what),
    }
}

/// Is nothing but zeros ahead? They decode as ADD [BX+SI], AL, so a guest that went astray into
/// empty memory would run there for ever.
fn is_in_zeros(machine: &Machine<'_>) -> bool {
    let Machine { pc, cpu, .. } = machine;
    let at = cpu.segment(SegReg::Cs).base.wrapping_add(cpu.rip);
    let byte = |i| pc.byte(Phys(place::masked(cpu, at.wrapping_add(i))));
    cpu.is_real_mode() && (0..ZEROS).all(|i| byte(i) == 0)
}

/// What the emulator counted, instructions apart.
fn by_name(counters: &Counters) -> Vec<(&'static str, u64)> {
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
