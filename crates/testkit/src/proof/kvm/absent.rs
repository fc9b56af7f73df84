//! What stands for KVM where there is none.

use realmode::CpuidResult;

use super::Unavailable;
use super::case::SystemCase;
use super::outcome::SystemOutcome;
use super::ram::Ram;

/// A virtual machine that cannot be made.
pub struct Kvm {
    pub(super) ram: Ram,
    never: core::convert::Infallible,
}

impl Kvm {
    /// Says that there is no KVM.
    ///
    /// # Errors
    /// Always.
    pub fn open() -> Result<Kvm, Unavailable> {
        Err(Unavailable("KVM is used on Linux on x86-64 only".into()))
    }

    pub(super) fn renew(&mut self) {
        match self.never {}
    }

    pub(super) fn cpuid(&self) -> &[(u32, u32, CpuidResult)] {
        match self.never {}
    }

    /// Executes nothing.
    pub fn run(&mut self, _: &SystemCase) -> SystemOutcome {
        match self.never {}
    }
}
