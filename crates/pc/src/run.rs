//! Running: slices of instructions that end where a device has something to do, so that an
//! interrupt comes at an instruction that depends on the guest alone.

use realmode::{Cpu, Emulator, Observer, Stop};

use crate::console::Console;
use crate::pc::Pc;
use crate::power::Ending;

impl<'m, C: Console> Pc<'m, C> {
    /// Runs the guest for at most `budget` instructions, exceptions, slices of REP and
    /// awakenings from HLT. Call it again to go on; where the slices end changes nothing.
    ///
    /// Of the emulator's stops some are dealt with here. With a BIOS, a reset or a triple fault
    /// starts it anew. On the virtual clock, HLT moves time on to the next event. What is
    /// returned is
    ///
    /// - `Budget`: call again;
    /// - `Requested`: the console wants it, or the guest has ended: see [`Pc::ending`];
    /// - `Halt`: the guest waits, and only input or, with a real clock, time wakes it: see
    ///   [`Pc::next_event`];
    /// - all else as from the emulator.
    ///
    /// # Errors
    /// As [`Emulator::run`].
    pub fn run(
        &mut self,
        emulator: &mut Emulator<'m>,
        cpu: &mut Cpu,
        budget: u64,
    ) -> Result<Stop, realmode::Error> {
        self.run_slices(emulator, cpu, budget, None)
    }

    /// Runs the guest and shows every instruction to `observer`; otherwise as [`Pc::run`].
    ///
    /// # Errors
    /// As [`Emulator::run`].
    pub fn run_observed(
        &mut self,
        emulator: &mut Emulator<'m>,
        cpu: &mut Cpu,
        budget: u64,
        observer: &mut dyn Observer,
    ) -> Result<Stop, realmode::Error> {
        self.run_slices(emulator, cpu, budget, Some(observer))
    }

    fn run_slices(
        &mut self,
        emulator: &mut Emulator<'m>,
        cpu: &mut Cpu,
        budget: u64,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Stop, realmode::Error> {
        let mut left = budget;
        let result = self.use_up(emulator, cpu, &mut left, observer);
        self.spent = self.spent.saturating_add(budget - left);
        result
    }

    fn use_up(
        &mut self,
        emulator: &mut Emulator<'m>,
        cpu: &mut Cpu,
        left: &mut u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Stop, realmode::Error> {
        while *left > 0 {
            self.catch_up(emulator.counters().instructions, cpu);
            let slice = self.next_slice(*left);
            let spent = emulator.counters().spent;
            let result = match &mut observer {
                Some(observer) => emulator.run_observed(cpu, self, slice, &mut **observer),
                None => emulator.run(cpu, self, slice),
            };
            self.slice_end = 0;
            let stop = result?;
            *left = left.saturating_sub(emulator.counters().spent - spent);
            self.board.time.advance(emulator.counters().instructions);
            let goes_on = match stop {
                Stop::Budget => true,
                Stop::Requested => self.goes_on(emulator, cpu),
                Stop::Halt => {
                    *left = left.saturating_sub(1);
                    self.skip()
                }
                Stop::Shutdown if self.memory.has_bios() => {
                    *left = left.saturating_sub(1);
                    self.restart(emulator, cpu);
                    true
                }
                _ => false,
            };
            if !goes_on {
                return Ok(stop);
            }
        }
        Ok(Stop::Budget)
    }

    /// Brings devices up to the processor, and the INTR pin up to devices.
    fn catch_up(&mut self, retired: u64, cpu: &mut Cpu) {
        self.board.time.advance(retired);
        self.board.settle();
        self.intr = self.board.is_interrupting();
        cpu.pending.interrupt = self.intr;
    }

    /// How many instructions may be run before a device has something to do.
    fn next_slice(&mut self, left: u64) -> u64 {
        let time = &self.board.time;
        let event = self.board.next_event().unwrap_or(u64::MAX);
        // A real clock is looked at again soon, so nothing needs to end a slice.
        self.slice_end = if time.is_virtual() { event } else { 0 };
        time.instructions_until(event).min(left)
    }

    /// A device asked to stop. False if the caller is to know.
    fn goes_on(&mut self, emulator: &mut Emulator<'m>, cpu: &mut Cpu) -> bool {
        let is_broken = core::mem::take(&mut self.is_broken);
        if self.ending == Some(Ending::Reset) && self.memory.has_bios() {
            self.restart(emulator, cpu);
        }
        if let Some(kernel) = self.kernel.filter(|_| core::mem::take(&mut self.wants_kernel)) {
            // That it fits was checked when it was given.
            let _ = kernel.start(&mut self.memory, cpu);
        }
        !is_broken && self.ending.is_none()
    }

    /// The processor waits: moves time on. False if there is nothing to move on to, or if time
    /// does not move by itself.
    fn skip(&mut self) -> bool {
        match self.board.next_event() {
            Some(at) if self.board.time.is_virtual() => {
                self.board.time.skip_to(at);
                true
            }
            // It may be time by now.
            Some(at) => at <= self.board.time.now(),
            None => false,
        }
    }

    /// Resets the processor, and opens the A20 gate as chipsets do then.
    fn restart(&mut self, emulator: &mut Emulator<'m>, cpu: &mut Cpu) {
        self.ending = None;
        self.resets = self.resets.saturating_add(1);
        self.board.a20 = true;
        *cpu = Cpu::reset_as(emulator.profile());
        emulator.flush();
    }
}
