//! The 8254 interval timer: three counters of 1.193182 MHz. What a counter does is in
//! `pit_counter.rs`.
//!
//! Nothing is counted down: a counter knows when it was started, and works out its value and its
//! output when it is asked.

use crate::pit_counter::Counter;

/// Its first port: three counters and the control word.
pub(crate) const PIT: u16 = 0x40;

/// 315/22 MHz over 12: 21 ticks in 17600 ns.
const TICKS: u64 = 21;
const NANOSECONDS: u64 = 17_600;

/// Ticks that have begun by `now`.
pub(crate) fn ticks(now: u64) -> u64 {
    (u128::from(now) * u128::from(TICKS) / u128::from(NANOSECONDS)) as u64
}

/// The first nanosecond of a tick.
fn begin(tick: u64) -> u64 {
    let begin = (u128::from(tick) * u128::from(NANOSECONDS)).div_ceil(u128::from(TICKS));
    u64::try_from(begin).unwrap_or(u64::MAX)
}

/// The three counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pit {
    counters: [Counter; 3],
    /// The tick up to which the edges of counter 0 have been seen.
    seen: u64,
}

impl Pit {
    /// Counters 0 and 1 have their gates tied high; that of 2 is bit 0 of port 61h.
    pub(crate) const RESET: Pit =
        Pit { counters: [Counter::new(true), Counter::new(true), Counter::new(false)], seen: 0 };

    /// IN of a counter; the control word cannot be read.
    pub(crate) fn read(&mut self, register: u16, now: u64) -> u8 {
        match self.counters.get_mut(usize::from(register)) {
            Some(counter) => counter.read(ticks(now)),
            None => 0xFF,
        }
    }

    /// OUT to a counter or of a control word.
    pub(crate) fn write(&mut self, register: u16, value: u8, now: u64) {
        let tick = ticks(now);
        if let Some(counter) = self.counters.get_mut(usize::from(register)) {
            counter.write(value, tick);
            return;
        }
        match self.counters.get_mut(usize::from(value >> 6)) {
            Some(counter) => counter.control(value, tick),
            None => self.read_back(value, tick),
        }
    }

    /// Read-back: bits 1 to 3 choose counters, a clear bit 5 latches counts, a clear bit 4 status.
    fn read_back(&mut self, value: u8, tick: u64) {
        let chosen = (1..).map(|bit| value >> bit & 1 != 0);
        for (counter, _) in self.counters.iter_mut().zip(chosen).filter(|(_, chosen)| *chosen) {
            if value & 0x20 == 0 {
                counter.latch_count(tick);
            }
            if value & 0x10 == 0 {
                counter.latch_status(tick);
            }
        }
    }

    /// The output of counter 0 to 2.
    pub(crate) fn output(&mut self, counter: usize, now: u64) -> bool {
        self.counters.get_mut(counter).is_some_and(|counter| counter.output(ticks(now)))
    }

    /// The gate of counter 2.
    pub(crate) fn set_gate_2(&mut self, high: bool, now: u64) {
        self.counters[2].set_gate(high, ticks(now));
    }

    /// When the output of counter 0 next rises.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.counters[0].next_rise(self.seen).map(begin)
    }

    /// Has the output of counter 0 risen by itself since the last call?
    pub(crate) fn take_rise(&mut self, now: u64) -> bool {
        let tick = ticks(now);
        let rise = self.counters[0].next_rise(self.seen).is_some_and(|rise| rise <= tick);
        self.seen = tick;
        self.counters[0].settle(tick);
        rise
    }

    /// Can it have come to this by `now`?
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        let tick = ticks(now);
        self.seen <= tick && self.counters.iter().all(|counter| counter.is_sound(tick))
    }
}

#[cfg(test)]
#[path = "pit_tests.rs"]
mod tests;
