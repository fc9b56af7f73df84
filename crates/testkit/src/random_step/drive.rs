//! Runs one case in one of several ways that must all come to the same end.

use core::sync::atomic::Ordering::Relaxed;

use realmode::{
    CacheLine, Cpu, Emulator, Error, Observer, Phys, Policy, Profile, Reg, SegReg, Stop,
};

use super::Tally;
use super::census::{Census, End};
use super::from_bytes::Carry;
use super::memory::{Arena, Changes};
use super::state::Case;
use super::world::{Entry, Seen, World};
use crate::prng::{Prng, mix};

/// A way to run a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// No decode cache, the whole budget in one call: what the others are compared with.
    Uncached,
    /// With a decode cache that also holds what earlier cases left.
    Cached,
    /// One instruction a call, pages withdrawn in between.
    Single,
    /// A few instructions a call, every cache dropped in between.
    Flushed,
    /// Every device access answered by the VMM after a stop, half of them on another emulator
    /// that gets nothing but the `Cpu` and the restart record.
    Pending,
    /// With an observer.
    Observed,
}

impl Way {
    /// All ways but the first.
    pub(crate) const OTHERS: [Way; 5] =
        [Way::Cached, Way::Single, Way::Flushed, Way::Pending, Way::Observed];
}

/// How a run ended.
pub(crate) struct Outcome {
    pub(crate) cpu: Cpu,
    pub(crate) end: Result<Stop, Error>,
    /// Budget used.
    pub(crate) spent: u64,
    /// Instructions completed.
    pub(crate) retired: u64,
    pub(crate) log: Vec<Entry>,
    pub(crate) changes: Changes,
    /// Dirty bits at the end.
    pub(crate) dirty: u64,
    /// Requests that the VMM answered.
    pub(crate) requests: u64,
}

/// Emulators that serve case after case.
pub(crate) struct Bench<'g> {
    pub(crate) arena: &'g Arena,
    pub(crate) world: World<'g>,
    pub(crate) uncached: Emulator<'g>,
    pub(crate) cached: Emulator<'g>,
    pub(crate) spare: Emulator<'g>,
    /// What observers saw.
    pub(crate) census: Census,
    /// Observers that also tell a person what happens.
    pub(crate) is_loud: bool,
    /// What every processor that waits for a device goes through.
    pub(crate) carry: Option<Carry>,
}

/// Calls of `run` that a case may take per instruction and request; more is a hang.
const MOST_CALLS: u64 = 2_000;

struct Run {
    cpu: Cpu,
    spent: u64,
    retired: u64,
    requests: u64,
}

/// The decode caches of a bench.
pub(crate) struct Caches {
    cached: Vec<CacheLine>,
    spare: Vec<CacheLine>,
}

impl Caches {
    /// One of a random size, and one of the spare emulator's.
    pub(crate) fn new(random: &mut Prng) -> Caches {
        let lines = |count| vec![CacheLine::EMPTY; count];
        Caches { cached: lines(random.pick(&[1, 4, 64])), spare: lines(16) }
    }
}

impl<'g> Bench<'g> {
    /// Emulators of a VMM with this policy.
    pub(crate) fn new(
        arena: &'g Arena,
        profile: &Profile,
        caches: &'g mut Caches,
        policy: Policy,
    ) -> Bench<'g> {
        let emulator = |lines| {
            let mut emulator = Emulator::new(profile, lines);
            *emulator.policy_mut() = policy;
            emulator
        };
        Bench {
            arena,
            world: World::new(arena),
            uncached: emulator(&mut []),
            cached: emulator(&mut caches.cached),
            spare: emulator(&mut caches.spare),
            census: Census::default(),
            is_loud: false,
            carry: None,
        }
    }

    /// Adds what the emulators have counted.
    pub(crate) fn count(&self, tally: &mut Tally) {
        for emulator in [&self.cached, &self.spare] {
            tally.blocks_retired += emulator.counters().blocks_retired;
        }
        tally.census = self.census;
        tally.faults = self.uncached.counters().faults;
    }

    /// Runs a case one way, from memory as the arena keeps it, and restores that memory.
    pub(crate) fn drive(&mut self, case: &Case, way: Way) -> Result<Outcome, String> {
        if self.is_loud {
            println!("{way:?}:");
        }
        self.world.begin(case, way == Way::Pending);
        let emulator = match way {
            Way::Uncached | Way::Observed => &mut self.uncached,
            _ => &mut self.cached,
        };
        emulator.cancel();
        emulator.withdraw(Phys(0), u64::MAX);
        let mut run = Run { cpu: case.cpu.clone(), spent: 0, retired: 0, requests: 0 };
        let end = self.until_end(case, way, &mut run);
        let dirty = self.arena.dirty.load(Relaxed);
        let changes = self.arena.take_changes();
        let end = end?;
        if !self.arena.is_margin_whole() {
            return Err("memory changed that is no page of the guest's".into());
        }
        Ok(Outcome {
            cpu: run.cpu,
            end,
            spent: run.spent,
            retired: run.retired,
            log: core::mem::take(&mut self.world.log),
            changes,
            dirty,
            requests: run.requests,
        })
    }

    fn until_end(
        &mut self,
        case: &Case,
        way: Way,
        run: &mut Run,
    ) -> Result<Result<Stop, Error>, String> {
        for call in 0..MOST_CALLS {
            let left = case.budget - run.spent;
            let chunk = match way {
                Way::Single => left.min(1),
                Way::Flushed => left.min(1 + (mix(case.salt ^ call) & 3)),
                _ => left,
            };
            let (end, used) = self.call(way, run, chunk)?;
            self.check(case, run)?;
            match end {
                Ok(Stop::Budget) if used != chunk => {
                    return Err(format!("stopped for its budget after {used} of {chunk}"));
                }
                Ok(Stop::Budget) if run.spent == case.budget => return Ok(end),
                Ok(Stop::Budget) if way == Way::Flushed => self.cached.flush(),
                Ok(Stop::Budget) if way == Way::Single && mix(call) & 3 == 0 => {
                    self.cached.withdraw(Phys(case.code_page << 12), 1);
                }
                Ok(Stop::Budget) => {}
                Ok(Stop::Requested) => {}
                Ok(Stop::Mmio(_) | Stop::Port(_)) if way == Way::Pending => {
                    self.answer(case, run, end)?;
                }
                _ => return Ok(end),
            }
        }
        Err(format!("no end after {MOST_CALLS} calls of run"))
    }

    /// One call of `run`: how it ended and what it used of its budget.
    fn call(
        &mut self,
        way: Way,
        run: &mut Run,
        chunk: u64,
    ) -> Result<(Result<Stop, Error>, u64), String> {
        let emulator = match way {
            Way::Uncached | Way::Observed => &mut self.uncached,
            _ => &mut self.cached,
        };
        let before = *emulator.counters();
        self.world.clock = run.retired.wrapping_sub(before.instructions);
        let end = if way == Way::Observed {
            let lines = if self.is_loud { MOST_LINES } else { 0 };
            let mut watcher = Watcher { retired: 0, lines, census: &mut self.census };
            let end = emulator.run_observed(&mut run.cpu, &mut self.world, chunk, &mut watcher);
            let counted = emulator.counters().instructions - before.instructions;
            if watcher.retired != counted {
                return Err(format!("observed {} of {counted} completed", watcher.retired));
            }
            if matches!(end, Ok(Stop::Unimplemented(_))) {
                self.census.end(End::Unimplemented);
            }
            end
        } else {
            emulator.run(&mut run.cpu, &mut self.world, chunk)
        };
        let after = *emulator.counters();
        let used = after.spent - before.spent;
        if self.is_loud {
            let cpu = &run.cpu;
            let (cs, rcx) = (cpu.segment(SegReg::Cs).selector, cpu.gpr[Reg::Rcx]);
            println!("  {used} of {chunk}, at {cs:04x}:{:x}, rcx {rcx:x}, {end:x?}", cpu.rip);
        }
        if used > chunk {
            return Err(format!("used {used} of a budget of {chunk}"));
        }
        run.spent += used;
        run.retired += after.instructions - before.instructions;
        Ok((end, used))
    }

    /// What holds after every call of `run`.
    fn check(&self, case: &Case, run: &Run) -> Result<(), String> {
        let (profile, before, after) = (self.cached.profile(), case.cpu.rflags, run.cpu.rflags);
        // A processor that was given other flags keeps them until it loads some.
        let set = profile.flags_set & before;
        let clear = !profile.canonical_flags(!0) & !before;
        if after & set != set || after & clear != 0 {
            return Err(format!("flags {before:#x} became {after:#x}, which there are not"));
        }
        Ok(())
    }

    /// The VMM's part of a device access.
    fn answer(
        &mut self,
        case: &Case,
        run: &mut Run,
        end: Result<Stop, Error>,
    ) -> Result<(), String> {
        run.requests += 1;
        let asked = self.world.log.last().map(|&(_, seen)| seen);
        let is_asked = match (end, asked) {
            (Ok(Stop::Mmio(stop)), Some(Seen::Mmio(request)))
            | (Ok(Stop::Port(stop)), Some(Seen::Port(request))) => stop == request,
            _ => false,
        };
        if !is_asked {
            return Err(format!("asked for {asked:?}, stopped with {end:?}"));
        }
        let bits = mix(case.salt ^ run.requests);
        if bits & 7 == 0 {
            // Without an answer nothing moves.
            let again = self.cached.run(&mut run.cpu, &mut self.world, 1);
            if again != end {
                return Err(format!("without an answer {end:?} became {again:?}"));
            }
        }
        let reply_first = bits & 16 != 0;
        if reply_first {
            self.reply()?;
        }
        if bits & 8 != 0 || self.carry.is_some() {
            self.move_to_spare(run)?;
        }
        if !reply_first {
            self.reply()?;
        }
        Ok(())
    }

    fn reply(&mut self) -> Result<(), String> {
        self.cached.reply(self.world.reply).map_err(|e| e.to_string())?;
        match self.cached.reply(0) {
            Err(Error::NoRequest) => Ok(()),
            other => Err(format!("a second reply gave {other:?}")),
        }
    }

    /// Saves the processor and restores it on the other emulator.
    fn move_to_spare(&mut self, run: &mut Run) -> Result<(), String> {
        let record = self.cached.in_flight().ok_or("nothing in flight after a request")?;
        let (cpu, record) = match self.carry {
            Some(carry) => carry(&run.cpu, record),
            None => (run.cpu.clone(), record.clone()),
        };
        self.spare.flush();
        self.spare.restore_in_flight(&record).map_err(|e| e.to_string())?;
        run.cpu = cpu;
        self.cached.cancel();
        core::mem::swap(&mut self.cached, &mut self.spare);
        Ok(())
    }
}

/// Lines that a watcher prints at most: repetitions are long.
const MOST_LINES: u32 = 400;

/// Counts what it sees, and prints the beginning of it.
struct Watcher<'c> {
    retired: u64,
    census: &'c mut Census,
    /// Lines to print.
    lines: u32,
}

impl Watcher<'_> {
    fn print(&mut self, line: impl FnOnce() -> String) {
        if self.lines != 0 {
            self.lines -= 1;
            println!("  {}", line());
        }
    }
}

impl Observer for Watcher<'_> {
    fn decoded(&mut self, cpu: &Cpu, bytes: &[u8]) {
        self.census.begin(cpu, bytes);
        self.print(|| {
            let selector = cpu.segment(SegReg::Cs).selector;
            format!("{selector:04x}:{:08x} {bytes:02x?}", cpu.rip)
        });
    }

    fn access(&mut self, access: realmode::Access, address: Phys, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.print(|| format!("  {access:?} {:x} {bytes:02x?}", address.0));
        }
    }

    fn retired(&mut self, _: &Cpu) {
        self.retired += 1;
        self.census.end(End::Completed);
    }

    fn fault(&mut self, _: &Cpu, fault: realmode::Fault) {
        self.census.end(End::Faulted);
        self.print(|| format!("  {fault}"));
    }
}
