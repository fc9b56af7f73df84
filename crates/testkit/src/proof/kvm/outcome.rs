//! How a case of the system ended.

use realmode::{Cpu, Request};

/// What ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemEnd {
    /// One instruction is done; or an exception leads to its handler, of which the first instruction
    /// may be done too.
    Stepped,
    /// It halted.
    Halted,
    /// A triple fault.
    Shutdown,
    /// KVM says that it cannot emulate the instruction.
    NotOffered,
    /// It did not end in the time it was given.
    Hung,
    /// Anything else, for people.
    Other(String),
}

/// A device access, as a naturally sized piece. The data of a read is what the device answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAccess {
    /// IN or OUT.
    Port(Request),
    /// A load or a store.
    Memory(Request),
}

/// The state that a case leaves. Memory stays with who executed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemOutcome {
    /// What ended it.
    pub end: SystemEnd,
    /// The processor.
    pub cpu: Cpu,
    /// What devices saw.
    pub accesses: Vec<DeviceAccess>,
}

/// The naturally sized pieces of a device access: address and size.
pub(super) fn pieces(address: u64, len: usize) -> impl Iterator<Item = (u64, u8)> {
    let end = address + len as u64;
    let mut at = address;
    core::iter::from_fn(move || {
        let rest = end - at;
        let size = 1 << at.trailing_zeros().min(rest.checked_ilog2()?).min(3);
        at += size;
        Some((at - size, size as u8))
    })
}
