//! How long turns are. It depends on the run alone, and a turn that a snapshot interrupts is one
//! with its rest, so that what happens between turns does so at the same instruction.

use serde::{Deserialize, Serialize};

/// The first turns are short, so that a guest that strays into empty memory is found before IP
/// reaches its end.
pub(super) const FIRST_TURN: u64 = 1 << 10;
/// About 10 ms.
pub(super) const LONGEST_TURN: u64 = 1 << 20;

/// Where a run is in its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    length: u64,
    is_single: bool,
    /// What is left of the turn; 0 if a new one begins.
    rest: u64,
    /// How many there were, this one included.
    number: u64,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { length: FIRST_TURN, is_single: false, rest: 0, number: 0 }
    }
}

impl Turns {
    /// Does a new one begin?
    pub(super) fn is_between(self) -> bool {
        self.rest == 0
    }

    /// How many there were, one that has begun included.
    pub(super) fn number(self) -> u64 {
        self.number
    }

    /// A turn begins, or goes on.
    pub(super) fn begin(&mut self) {
        if self.is_between() {
            self.number = self.number.saturating_add(1);
        }
    }

    /// The budget of this turn, or of what is left of it.
    pub(super) fn budget(self) -> u64 {
        match (self.rest, self.is_single) {
            // Long turns alternate with single steps, which find an instruction that jumps to
            // itself.
            (0, true) => 1,
            (0, false) => self.length,
            (rest, _) => rest,
        }
    }

    /// So much of the turn is left.
    pub(super) fn interrupt(&mut self, rest: u64) {
        self.rest = rest;
    }

    /// The turn is over.
    pub(super) fn next(&mut self) {
        self.rest = 0;
        self.is_single = !self.is_single;
        self.length = LONGEST_TURN.min(self.length * 2);
    }

    /// Can it have come about?
    pub(super) fn is_sound(self) -> bool {
        (FIRST_TURN..=LONGEST_TURN).contains(&self.length) && self.rest <= self.length
    }
}
