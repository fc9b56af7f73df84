//! What enters a run from outside, where in the run, and who gives it.

use std::time::Duration;

use realmode_pc::{Held, Key};

/// One piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A key of the keyboard, while others are held down.
    Press(Key, Held),
    /// Bytes for COM1.
    Serial(Vec<u8>),
    /// There will be no more.
    End,
}

/// A place between two turns of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    /// After so many turns.
    pub(super) turn: u64,
    /// After so many instructions.
    pub(super) instructions: u64,
}

/// Where input comes from. It is asked at least once before each turn, until it has said `End`.
pub(super) trait Source {
    /// What has come since it was last asked, no more pieces than there is room for.
    fn take(&mut self, now: When, room: usize) -> Result<Vec<Input>, String>;

    /// Sleeps until something has come, or `most` is over.
    fn wait(&mut self, most: Duration);
}

/// Nobody gives anything.
pub(super) struct Nobody;

impl Source for Nobody {
    fn take(&mut self, _now: When, _room: usize) -> Result<Vec<Input>, String> {
        Ok(vec![Input::End])
    }

    fn wait(&mut self, _most: Duration) {}
}
