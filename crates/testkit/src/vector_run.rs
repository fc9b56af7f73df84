//! Runs a vector on the emulator and says what differs.
//!
//! Set the registers and the listed bytes of memory, run until HLT, compare the registers and
//! all of memory: what a test does not list is unchanged, so a stray store is a difference too.
//! Nothing here knows an instruction or a processor: what a processor does is the business of
//! the profile, and which flags are undefined is what the suite says.

mod compare;
mod memory;
mod pool;
mod registers;
mod worker;

pub use compare::{Ending, Failure, MemoryDifference, RegisterDifference};
pub use memory::{MEMORY_BYTES, VectorMemory};
pub use pool::{FileReport, RunError, RunOptions, run_files};
pub use registers::profile_for;
pub use worker::{BUDGET, Contradiction, VectorWorker};
