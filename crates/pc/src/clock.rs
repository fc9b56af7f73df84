//! Time: nanoseconds since the machine was switched on.
//!
//! The virtual clock is driven by the processor: an instruction takes
//! [`NS_PER_INSTRUCTION`], whatever it does, and a processor that waits in HLT moves time on to
//! the next event. So two runs agree to the instruction, and no wait takes real time.

/// What an instruction takes on the virtual clock: 100 million instructions a second. A REP is
/// one instruction.
pub const NS_PER_INSTRUCTION: u64 = 10;

/// Instructions between two looks at a real clock.
const REAL_SLICE: u64 = 20_000;

/// Where time comes from.
#[derive(Clone, Copy)]
pub enum Clock<'m> {
    /// From the instructions executed.
    Virtual,
    /// From the caller: a function that returns the nanoseconds since the machine was switched on.
    Real(&'m dyn Fn() -> u64),
}

impl core::fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Clock::Virtual => "Virtual",
            Clock::Real(_) => "Real",
        })
    }
}

/// The time, and how it was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time<'m> {
    clock: Clock<'m>,
    now: u64,
    /// The emulator's count of instructions at `now`.
    retired: u64,
}

impl<'m> Time<'m> {
    pub(crate) const fn new(clock: Clock<'m>) -> Self {
        Time { clock, now: 0, retired: 0 }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.clock, Clock::Virtual)
    }

    pub(crate) fn set_clock(&mut self, clock: Clock<'m>) {
        self.clock = clock;
    }

    /// Goes on from `now`. What the emulator has executed before its next run does not count.
    pub(crate) fn go_on(&mut self, now: u64) {
        (self.now, self.retired) = (now, u64::MAX);
    }

    /// The emulator has executed `retired` instructions so far. A count below the last one is
    /// another emulator's; time goes on from where it was.
    pub(crate) fn advance(&mut self, retired: u64) {
        let executed = retired.saturating_sub(self.retired);
        self.retired = retired;
        self.now = match self.clock {
            Clock::Virtual => self.now.saturating_add(executed.saturating_mul(NS_PER_INSTRUCTION)),
            Clock::Real(source) => self.now.max(source()),
        };
    }

    /// The processor waits, so that nothing happens before `at`. A real clock does not jump.
    pub(crate) fn skip_to(&mut self, at: u64) {
        if self.is_virtual() {
            self.now = self.now.max(at);
        }
    }

    /// How many instructions may be executed before the time is `at`, or later by less than one.
    pub(crate) fn instructions_until(&self, at: u64) -> u64 {
        match self.clock {
            Clock::Virtual => at.saturating_sub(self.now).div_ceil(NS_PER_INSTRUCTION).max(1),
            Clock::Real(_) => REAL_SLICE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn virtual_time_is_instructions_and_jumps() {
        let mut time = Time::new(Clock::Virtual);
        time.advance(5);
        assert_eq!(time.now(), 50);
        time.skip_to(1001);
        time.skip_to(7);
        assert_eq!(time.now(), 1001);
        assert_eq!(time.instructions_until(1001 + 11), 2);
        time.advance(7);
        assert_eq!(time.now(), 1021);
    }

    #[test]
    fn a_new_emulator_counts_from_0_and_time_goes_on() {
        let mut time = Time::new(Clock::Virtual);
        time.advance(1000);
        time.advance(0);
        time.advance(1);
        assert_eq!(time.now(), 1001 * NS_PER_INSTRUCTION);
    }

    #[test]
    fn a_real_clock_never_goes_back() {
        let source = Cell::new(500);
        let read = || source.get();
        let mut time = Time::new(Clock::Real(&read));
        time.advance(1_000_000);
        assert_eq!(time.now(), 500);
        source.set(400);
        time.advance(2_000_000);
        time.skip_to(1000);
        assert_eq!(time.now(), 500);
    }
}
