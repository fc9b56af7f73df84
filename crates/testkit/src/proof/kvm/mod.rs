//! KVM as an oracle: one instruction at a time in real mode, for what a program cannot execute
//! itself. Segment loads, interrupts, flags of the system, descriptor tables, control, debug and
//! model-specific registers, HLT, ports, devices in memory.
//!
//! Where a processor has no mode for real-mode guests KVM interprets them, so it is a peer with
//! errors of its own. Where the manuals decide against it, [`known`] says so.

mod case;
mod compare;
mod emulate;
mod generate;
pub mod known;
mod outcome;
mod probe;
mod prove;
mod quirk;
mod ram;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod registers;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod vm;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod watchdog;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod absent;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
use absent as vm;

pub use case::{Family, SystemCase};
pub use compare::Difference;
pub use generate::case;
pub use outcome::{DeviceAccess, SystemEnd, SystemOutcome};
pub use prove::{Extent, FamilyTally, Mismatch, Oracle, Tally, Verdict, prove_kvm, replay};
pub use vm::Kvm;

/// Why there is no oracle here, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);
