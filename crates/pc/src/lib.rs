//! A small PC that boots real software, as a [`Bus`](realmode::Bus) for the emulator.
//!
//! | where | what |
//! |---|---|
//! | 00000-9FFFF | RAM |
//! | A0000-B7FFF | nothing: reads all ones |
//! | B8000-BFFFF | VGA text memory, read back through [`Screen`] |
//! | C0000-FFFFF | with a BIOS, RAM that ends with a copy; else pages an image was loaded to |
//! | 100000 up | RAM, as much as the caller gave |
//! | to FFFFFFFF | the BIOS, which cannot be written |
//! | ports 20h, A0h, 4D0h | two 8259 interrupt controllers |
//! | ports 40h-43h, 61h | 8254 timer: IRQ 0, and a counter with a gate |
//! | ports 60h, 64h | 8042 and keyboard: IRQ 1 |
//! | ports 70h, 71h | clock and CMOS memory: IRQ 8 |
//! | port 80h | self test codes |
//! | port 92h | A20 gate (bit 1), fast reset (bit 0) |
//! | port E9h, 402h | debug output; reads E9h |
//! | ports 1F0h-1F7h, 3F6h | an ATA disk, if there is one: IRQ 14 |
//! | ports 3B0h-3DFh | VGA registers |
//! | ports 3F8h-3FFh | COM1, a 16550: IRQ 4 |
//! | port 501h, or another | a write of v ends the run with process status `(v << 1) \| 1` |
//! | port 508h | starts the kernel, if one waits |
//! | ports 510h, 511h | firmware configuration: files for the BIOS |
//! | port 604h | a write of 2000h powers off |
//! | port CF9h | a write with bit 2 resets the machine |
//!
//! Every other port reads all ones: no PCI, no DMA, no floppy controller, no APIC. Without a BIOS,
//! a vector that the guest has not set leads to a page with nothing in it, where
//! [`Pc::missing_handler`] tells which one was called.
//!
//! Time is virtual unless the caller has a clock: see [`Clock`]. [`Pc::run`] runs the emulator so
//! that interrupts come when they are due. The crate has no clock, no file and no terminal of its
//! own: output goes to a [`Console`], memory and [`Disk`] are the caller's.
#![no_std]
#![forbid(unsafe_code)]

mod ata;
mod ata_address;
mod ata_identify;
mod board;
mod boot;
mod bus;
mod calendar;
mod chipset_port;
mod clock;
mod command_line;
mod console;
mod disk;
mod elf;
mod error;
mod firmware_config;
mod io_apic;
mod kernel;
mod key;
mod keyboard;
mod keyboard_controller;
mod keymap;
mod little_endian;
mod local_apic;
mod memory;
mod msr;
mod multiboot;
mod multiboot_info;
mod pc;
mod pic;
mod pit;
mod pit_counter;
mod power;
mod queue;
mod rtc;
mod run;
mod screen;
mod serial;
mod state;
mod system_port;
mod vga;

pub use clock::{Clock, NS_PER_INSTRUCTION};
pub use console::{Channel, Console};
pub use disk::{Disk, DiskError, SECTOR};
pub use error::Error;
pub use kernel::is_bzimage;
pub use key::{Held, Key, has_key};
pub use memory::MAX_RAM;
pub use multiboot::is_multiboot;
pub use pc::Pc;
pub use power::Ending;
pub use screen::{Cell, Screen};
pub use state::{STATE_VERSION, State};
