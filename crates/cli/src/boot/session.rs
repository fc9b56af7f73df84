//! One run of a guest: turns of instructions, and between them the user's side of things.
//!
//! How long a turn is depends on the run alone, and all that comes from outside comes between two
//! turns: the same input before the same turns makes the same run, on the virtual clock.

use std::rc::Rc;
use std::time::{Duration, Instant};

use realmode::arch::rflags;
use realmode::{Activity, Counters, Cpu, Phys, SegReg, Stop, Unimplemented, UnimplementedReason};

use realmode_pc::Channel;

use super::disk::DiskErrors;
use super::display::Display;
use super::inbox::Inbox;
use super::input::When;
use super::interrupt::Interrupts;
use super::machine::Machine;
use super::outcome::Outcome;
use super::place;
use super::progress::Progress;
use super::real_clock::RealClock;
use super::saving::{Saving, Turn};
use super::script::Script;
use super::serial_screen::SerialScreen;
use super::sinks::{Sinks, Taken};
use super::trace::Trace;
use super::turns::Executed;
use super::viewer::{View, Viewer};

/// How long a halted guest sleeps at most before input is looked at.
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// The exit code of a process that Ctrl-C killed.
const CTRL_C: u8 = 130;
/// So many zero bytes at CS:IP are no program.
const ZEROS: u64 = 32;

/// A run, and all that takes part in it.
pub(super) struct Session<'a, 'm> {
    pub(super) machine: &'a mut Machine<'m>,
    pub(super) clock: Option<Rc<RealClock>>,
    /// Instructions, if they are bounded.
    pub(super) limit: Option<u64>,
    pub(super) saving: Option<Saving>,
    pub(super) script: Script,
    pub(super) inbox: Inbox<'a>,
    pub(super) interrupts: Interrupts,
    /// The live screen.
    pub(super) viewer: Option<Viewer>,
    pub(super) com1: SerialScreen,
    pub(super) sinks: Sinks<'a>,
    pub(super) trace: Option<Trace<'a>>,
    pub(super) disk_errors: Rc<DiskErrors>,
    pub(super) progress: Progress,
    /// What is to be said once the live screen is over.
    pub(super) notes: Vec<String>,
}

/// A run that is over.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) elapsed: Duration,
    /// From the start of the run.
    pub(super) instructions: u64,
    /// Those of this process.
    pub(super) executed: u64,
    pub(super) turns: u64,
    pub(super) com1: SerialScreen,
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

impl Session<'_, '_> {
    /// Runs the guest until it ends, gets nowhere, or reaches a bound.
    pub(super) fn run(mut self) -> Result<Finished, String> {
        let started = Instant::now();
        let result = self.run_to_end();
        self.progress.clear();
        // The terminal is the user's again.
        self.viewer = None;
        self.notes.iter().for_each(|note| self.sinks.say(note));
        let now = self.now();
        let written = self.trace.as_mut().map_or(Ok(()), Trace::flush);
        written.and(self.inbox.end(now))?;
        let Machine { pc, emulator, .. } = &*self.machine;
        Ok(Finished {
            outcome: result?,
            elapsed: started.elapsed(),
            instructions: now.instructions,
            executed: emulator.counters().instructions,
            turns: now.turn,
            com1: self.com1,
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
        loop {
            self.attend(Duration::ZERO)?;
            if let Some(outcome) = self.interrupted() {
                return Ok(outcome);
            }
            if self.is_saved_here() {
                return self.save();
            }
            if self.machine.run.turns.is_between() {
                self.feed()?;
            }
            let before = self.machine.cpu.clone();
            let executed = self.executed();
            self.machine.run.turns.begin(executed);
            let Turn::Over(stop) = self.turn()? else {
                self.show()?;
                return self.save();
            };
            self.trace.as_mut().map_or(Ok(()), Trace::check)?;
            if self.show()? == Taken::Closed {
                return Ok(Outcome::OutputClosed);
            }
            let pc = &mut self.machine.pc;
            if let Some(seen) = self.script.look(pc, &self.com1, &mut self.inbox) {
                return Ok(seen);
            }
            let over = match stop {
                // It goes on to wait when it is loaded.
                Stop::Halt if self.is_saved_here() => None,
                Stop::Budget => self.astray(&before),
                Stop::Halt => self.wait()?,
                // The script's text appeared.
                Stop::Requested if self.machine.pc.ending().is_none() => None,
                stop => Some(stopped(stop, self.machine)),
            };
            if let Some(outcome) = over {
                return Ok(outcome);
            }
            if self.left_to_limit() == 0 && !self.is_saved_here() {
                return Ok(Outcome::Limit(self.instructions()));
            }
            self.machine.run.turns.next();
            if self.sinks.at_line_start {
                self.progress.tick(self.instructions());
            }
        }
    }

    /// From the start of the run, whichever process executed it.
    pub(super) fn executed(&self) -> Executed {
        let (before, now) = (self.machine.run.executed, self.machine.emulator.counters());
        Executed {
            instructions: before.instructions.saturating_add(now.instructions),
            faults: before.faults.saturating_add(now.faults),
        }
    }

    /// Instructions from the start of the run.
    pub(super) fn instructions(&self) -> u64 {
        self.executed().instructions
    }

    /// How much `--limit` leaves. Exceptions count, since a guest may raise nothing else.
    pub(super) fn left_to_limit(&self) -> u64 {
        let Executed { instructions, faults } = self.executed();
        let spent = instructions.saturating_add(faults);
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(spent))
    }

    fn now(&self) -> When {
        When { turn: self.machine.run.turns.number(), instructions: self.instructions() }
    }

    fn feed(&mut self) -> Result<bool, String> {
        let now = self.now();
        self.inbox.feed(now, &mut self.machine.pc)
    }

    pub(super) fn step(&mut self, budget: u64) -> Result<Stop, String> {
        let Machine { pc, cpu, emulator, .. } = &mut *self.machine;
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
        let is_serial = |(channel, _): &&(Channel, u8)| *channel == Channel::Serial;
        let serial: Vec<u8> = printed.iter().filter(is_serial).map(|(_, byte)| *byte).collect();
        self.com1.take(&serial);
        let taken = self.sinks.write(&printed)?;
        match error {
            Some(error) if self.viewer.is_some() => self.notes.push(error),
            Some(error) => self.sinks.say(&error),
            None => {}
        }
        Ok(taken)
    }

    /// Has the user or a signal had enough?
    fn interrupted(&self) -> Option<Outcome> {
        let left = self.viewer.as_ref().filter(|viewer| viewer.is_leaving());
        let code = self.interrupts.exit_code().or(left.map(|_| CTRL_C));
        code.map(Outcome::Interrupted)
    }

    /// Draws what there is to see, if it is time, and heeds what the user does within `most`.
    fn attend(&mut self, most: Duration) -> Result<(), String> {
        let instructions = self.instructions();
        let Some(viewer) = &mut self.viewer else { return Ok(()) };
        if viewer.is_due() {
            let pc = &self.machine.pc;
            viewer.draw(&View {
                screen: Display::of_vga(pc).as_ref(),
                com1: &self.com1.display(),
                is_com1_used: self.com1.is_used(),
                instructions,
                guest_seconds: pc.now() as f64 / 1e9,
            })?;
        }
        viewer.attend(most)
    }

    /// Sleeps until there is input, or `most` is over.
    fn sleep(&mut self, most: Duration) -> Result<(), String> {
        if self.viewer.is_some() {
            return self.attend(most);
        }
        // A record has its own time.
        if self.clock.as_ref().is_none_or(|clock| clock.is_host_time()) {
            self.inbox.wait(most);
        }
        Ok(())
    }

    /// The guest waits. Returns when it may go on, or that nothing will wake it.
    fn wait(&mut self) -> Result<Option<Outcome>, String> {
        // What has just been typed may have woken it, so this comes first.
        while !self.feed()? {
            let pc = &self.machine.pc;
            let due = pc.next_event().filter(|_| self.clock.is_some());
            if due.is_none() && !self.inbox.is_open() {
                return Ok(Some(Outcome::Idle));
            }
            let most = due.map(|at| Duration::from_nanos(at.saturating_sub(pc.now())));
            self.sleep(most.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT))?;
            if due.is_some() {
                break;
            }
            if let Some(outcome) = self.interrupted() {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// A turn has used up its budget: did it lead anywhere? `before` is the processor before it,
    /// or before what a snapshot has left of it.
    fn astray(&self, before: &Cpu) -> Option<Outcome> {
        let Machine { pc, cpu, run, .. } = &*self.machine;
        let (start, now) = (run.turns.start(), self.executed());
        let is_running = cpu.activity == Activity::Running;
        let can_be_interrupted =
            cpu.rflags & rflags::IF != 0 && (pc.next_event().is_some() || self.inbox.is_open());
        let (is_single, has_executed) =
            (run.turns.is_single(), now.instructions != start.instructions);
        let is_loop = is_single && has_executed && is_running && cpu == before;
        if is_loop && !can_be_interrupted {
            return Some(Outcome::Loop);
        }
        // A turn that the limit ended says nothing of those.
        let got_nowhere = self.left_to_limit() > 0 && !has_executed;
        if got_nowhere && !is_single && now.faults > start.faults {
            return Some(Outcome::FaultLoop);
        }
        // It was woken a million times, and each time by an interrupt that is masked.
        let is_idle = got_nowhere && !is_running && run.turns.is_longest();
        if is_idle && !self.inbox.is_open() {
            return Some(Outcome::Idle);
        }
        (is_running && is_in_zeros(self.machine)).then_some(Outcome::EmptyMemory)
    }
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
