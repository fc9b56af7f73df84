//! Observation: hooks that cost nothing when absent, and counters.

use crate::bus::{Access, Phys};
use crate::fault::Fault;
use crate::state::Cpu;

/// Sees what the guest does, instruction by instruction. Given to
/// [`Emulator::run_observed`](crate::Emulator::run_observed).
///
/// ```
/// use realmode::{Cpu, Observer};
///
/// /// Keeps where the last instructions were.
/// #[derive(Default)]
/// struct Trace(std::collections::VecDeque<u64>);
///
/// impl Observer for Trace {
///     fn decoded(&mut self, cpu: &Cpu, _bytes: &[u8]) {
///         self.0.truncate(15);
///         self.0.push_front(cpu.rip);
///     }
/// }
/// ```
pub trait Observer {
    /// An instruction is about to execute; RIP is its own.
    fn decoded(&mut self, cpu: &Cpu, bytes: &[u8]) {
        let _ = (cpu, bytes);
    }

    /// Data was read or written. A locked update is a read and a write.
    fn access(&mut self, access: Access, address: Phys, bytes: &[u8]) {
        let _ = (access, address, bytes);
    }

    /// An instruction has completed.
    fn retired(&mut self, cpu: &Cpu) {
        let _ = cpu;
    }

    /// An exception is about to be delivered.
    fn fault(&mut self, cpu: &Cpu, fault: Fault) {
        let _ = (cpu, fault);
    }
}

/// What happened since the emulator was created, for a VMM to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Instructions completed.
    pub instructions: u64,
    /// Budget used up: instructions, exceptions and slices of REP. What a call of `run` left of
    /// its budget is the budget less what this grew by.
    pub spent: u64,
    /// Blocks decoded.
    pub blocks_built: u64,
    /// Blocks compared with memory and found unchanged.
    pub blocks_proved: u64,
    /// Blocks retired because the guest stored into them.
    pub blocks_retired: u64,
    /// Epochs begun.
    pub epochs: u64,
    /// Instructions executed alone with every access recorded: devices, code lines, odd pages.
    pub careful: u64,
    /// Exceptions raised.
    pub faults: u64,
    /// Events delivered, exceptions included.
    pub events: u64,
}
