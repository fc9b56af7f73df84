//! Proof against silicon: cases made from the instruction rows, executed by the emulator and by
//! an oracle, which have to end alike.
//!
//! A [`Case`] is one instruction and everything it can see: registers, segments, memory. A
//! [`Form`] is what it is an instance of, and a number makes one case out of a form, the same on
//! every machine.

mod background;
mod case;
pub mod compare;
pub mod emulate;
mod form;
mod fpu;
pub mod generate;
mod ground;
mod host;
pub mod kvm;
mod layout;
mod memory;
mod native;
pub mod oracle;
mod outcome;
mod placed;
pub mod prove;
pub mod record;
pub mod tolerated;

pub use case::{Case, Code, Mode, Paging, Poke};
pub use form::{Form, Operand, Setting, Size};
pub use host::host_profile;
pub use layout::{
    ARENA_SIZE, ARENA_STRIDE, ARENAS, CODE, DATA, EXTRA, FIRST_ARENA, FS_DATA, GS_DATA, Kind,
    Layout, PAGES, RETURN, STACK,
};
pub use memory::{Memory, PAGE_WORDS};
pub use native::{FpuImage, Native, Unavailable};
pub use outcome::{End, Outcome};
pub use placed::{back_len, placed_code, return_code};
