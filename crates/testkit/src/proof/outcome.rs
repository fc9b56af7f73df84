//! How a case ended.

/// What ended a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The instruction after it was reached.
    Returned,
    /// An exception was raised, of the instruction or of where it went.
    Exception {
        /// The vector.
        vector: u8,
        /// The error code; 0 where the exception has none.
        error: u32,
        /// The instruction pointer that was saved.
        rip: u64,
    },
    /// It did not end in the time it was given.
    Hung,
}

/// The state a case leaves. Memory stays with who executed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What ended it.
    pub end: End,
    /// RAX to R15; outside 64-bit code the low halves of the first eight, the rest is zero.
    pub gpr: [u64; 16],
    /// The flags.
    pub rflags: u64,
    /// ES, CS, SS, DS, FS, GS: selectors.
    pub selectors: [u16; 6],
    /// CR2 if the exception was a page fault, or else 0.
    pub cr2: u64,
}
