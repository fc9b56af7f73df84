//! Proof against silicon: cases made from the instruction rows, executed by the emulator and by
//! an oracle, which have to end alike.
//!
//! A [`Case`] is one instruction and everything it can see: registers, segments, memory. A
//! [`Form`] is what it is an instance of, and a number makes one case out of a form, the same on
//! every machine.

mod case;
pub mod kvm;
mod layout;
mod outcome;

pub use case::{Case, Code, Mode, Poke};
pub use layout::{
    ARENA_SIZE, ARENA_STRIDE, CODE, DATA, EXTRA, FS_DATA, GS_DATA, Kind, Layout, PAGES, STACK,
};
pub use outcome::{End, Outcome};
