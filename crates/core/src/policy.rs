//! What a VMM decides about the emulator's conduct.

use crate::stop::Intercepted;

/// A set of instructions that the VMM wants to see before they execute.
///
/// ```
/// use realmode::{Intercepted, Intercepts};
/// let set = Intercepts::NONE.with(Intercepted::Cpuid).with(Intercepted::Hlt);
/// assert!(set.contains(Intercepted::Hlt));
/// assert!(!set.contains(Intercepted::Invd));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Intercepts(u32);

impl Intercepts {
    /// Nothing is intercepted.
    pub const NONE: Intercepts = Intercepts(0);

    /// This set with one more.
    pub const fn with(self, what: Intercepted) -> Intercepts {
        Intercepts(self.0 | 1 << what as u32)
    }

    /// Is it in the set?
    pub const fn contains(self, what: Intercepted) -> bool {
        self.0 >> what as u32 & 1 != 0
    }
}

/// What a locked access does that no atomic operation of the host covers: one that crosses an
/// aligned 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SplitLock {
    /// A read and a write, atomic only if no other processor runs.
    #[default]
    Plain,
    /// `run` stops as `Unimplemented`, so that the VMM can pause the other processors.
    Stop,
    /// #AC, as with split-lock detection enabled.
    AlignmentCheck,
}

/// Policies of an emulator. The default intercepts nothing.
///
/// ```
/// use realmode::{Emulator, Intercepted, Intercepts, Profile, arch::vector};
/// let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
/// let policy = emulator.policy_mut();
/// policy.intercepts = Intercepts::NONE.with(Intercepted::Cpuid);
/// policy.exceptions = 1 << vector::UD;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Policy {
    /// Instructions that stop before they execute.
    pub intercepts: Intercepts,
    /// Exceptions that stop before they are delivered: bit n for vector n. An instruction that
    /// faulted has changed nothing; after a trap (#DB) it is complete and DR6 is set; a double
    /// fault takes the place of the exception that could not be delivered. To let the guest have
    /// it, put it into `cpu.pending.event`: injected events are always delivered.
    pub exceptions: u32,
    /// Locked accesses that no host operation covers.
    pub split_lock: SplitLock,
}
