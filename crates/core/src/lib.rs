//! An x86 instruction emulator for virtual machine monitors.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

pub mod arch;
mod bus;
mod error;
mod fault;
mod flags;
mod mem;
mod profile;
mod state;
mod stop;
mod width;

pub use arch::cpuid::{CpuidResult, Features};
pub use arch::descriptor::{Attributes, Segment, TableRegister};
pub use arch::registers::{Reg, Registers, SegReg};
pub use bus::{Access, Bus, Control, Linear, Phys, Prepared, Reply};
pub use error::Error;
pub use fault::Fault;
pub use mem::host::{HostPage, PAGE_SIZE};
pub use profile::{Generation, Profile, Vendor};
pub use state::{Activity, Cpu, Fpu, Msrs, Pending, Shadow};
pub use stop::{Direction, Intercepted, Request, Stop, Unimplemented, UnimplementedReason};
