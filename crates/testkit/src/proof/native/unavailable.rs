//! Why there is no native oracle.

use std::io;

use crate::proof::layout::ARENAS;

/// There is no native oracle here. Tests print it and go on without.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The program was not built for it.
    #[error("cases run natively on x86-64 Linux, not under Miri or anywhere else")]
    OtherHost,
    /// The number is too large.
    #[error("there is no arena {number}: take one of 0 to {}", ARENAS - 1)]
    NoSuchArena {
        /// The number.
        number: u16,
    },
    /// The thread has an arena already.
    #[error("this thread has an arena already: drop it first or take another thread")]
    ThreadIsTaken,
    /// Somebody has the memory of the arena.
    #[error("the memory of arena {number}, from {base:#x}, cannot be taken: {source}")]
    Memory {
        /// The number.
        number: u16,
        /// Its address.
        base: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// The kernel keeps RDFSBASE and WRFSBASE to itself.
    #[error("the kernel does not let programs use WRFSBASE: Linux 5.9 and later do")]
    NoFsGsBase,
    /// A system call was refused.
    #[error("{call}: {source}")]
    Refused {
        /// The call.
        call: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
