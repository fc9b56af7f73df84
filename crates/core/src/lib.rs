//! An x86 instruction emulator for virtual machine monitors.
//!
//! A VMM implements [`Bus`], owns a [`Cpu`], and calls [`Emulator::run`], which comes back with a
//! [`Stop`]. The three kinds of failure are never mixed: a [`Fault`] belongs to the guest and is
//! delivered inside `run`, a [`Stop`] is for the VMM to act on, an [`Error`] is misuse by the host.
//!
//! - Memory: [`Bus::prepare`] resolves a page once, to a [`HostPage`] or a device.
//! - Devices that answer later: reply [`Reply::Pending`], get [`Stop::Mmio`] or [`Stop::Port`],
//!   call [`Emulator::reply`], run again. What is in between is an [`InFlight`], which can be
//!   saved.
//! - Caches: memory of the caller ([`CacheLine`]); dropping them changes nothing but time.
//! - Decode alone, without an emulator: [`decode_one`]; every encoding as data: [`encodings`].
//!
//! The core is `no_std`, takes no memory, and does not panic on any guest input.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

pub mod arch;
mod bus;
mod cache;
mod decode;
mod disasm;
pub mod encodings;
mod error;
mod event;
mod fault;
mod flags;
mod flight;
mod isa;
mod machine;
mod mem;
mod observe;
mod op;
mod policy;
mod profile;
mod run;
mod state;
mod stop;
mod view;
mod width;

pub use arch::cpuid::{CpuidResult, Features};
pub use arch::descriptor::{Attributes, Segment, TableRegister};
pub use arch::registers::{Reg, Registers, SegReg};
pub use bus::{Access, Bus, Control, Linear, Phys, Prepared, Reply};
pub use cache::CacheLine;
pub use decode::CodeSize;
pub use disasm::{DecodeError, Instruction, Segmentation, decode_one};
pub use error::Error;
pub use fault::{Event, Fault};
pub use flight::{IN_FLIGHT_VERSION, InFlight, Span, Work};
pub use mem::host::{HostPage, PAGE_SIZE};
pub use observe::{Counters, Observer};
pub use policy::{Intercepts, Policy, SplitLock};
pub use profile::{Generation, Profile, UndefinedFlags, Vendor};
pub use run::Emulator;
pub use state::{Activity, Cpu, Fpu, Msrs, Pending, Shadow};
pub use stop::{Direction, Intercepted, Request, Stop, Unimplemented, UnimplementedReason};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
