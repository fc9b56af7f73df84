//! A small PC that boots real software, as a [`Bus`](realmode::Bus) for the emulator.
//!
//! | where | what |
//! |---|---|
//! | 00000-9FFFF | RAM |
//! | A0000-B7FFF | nothing: reads all ones |
//! | B8000-BFFFF | VGA text memory, read back through [`Screen`] |
//! | C0000-FFFFF | nothing, except pages an image was loaded to, which are RAM |
//! | 100000 up | RAM, as much as the caller gave |
//! | port 92h | A20 gate (bit 1), fast reset (bit 0) |
//! | port E9h, 402h | debug output; reads E9h |
//! | ports 3F8h-3FFh | COM1, output only |
//! | port 501h | a write of v ends the run with process status `(v << 1) \| 1` |
//! | port 604h | a write of 2000h powers off |
//!
//! Every other port reads all ones. There is no BIOS: a vector that the guest has not set leads
//! to a page with nothing in it, where [`Pc::missing_handler`] tells which one was called.
//!
//! The crate has no clock, no file and no terminal: output goes to a [`Console`], memory is the
//! caller's.
#![no_std]
#![forbid(unsafe_code)]

mod boot;
mod console;
mod error;
mod memory;
mod pc;
mod power;
mod screen;
mod serial;
mod system_port;

pub use console::{Channel, Console};
pub use error::Error;
pub use memory::MAX_RAM;
pub use pc::Pc;
pub use power::Ending;
pub use screen::{Cell, Screen};
