//! What KVM is known to do otherwise than the manuals say.

use super::case::SystemCase;
use super::compare::Difference;
use super::outcome::SystemOutcome;

/// A known error of KVM.
pub struct Known {
    /// A name for the tally.
    pub name: &'static str,
    /// What KVM does.
    pub kvm: &'static str,
    /// The section of the manual that says otherwise.
    pub manual: &'static str,
    /// Does it explain a difference? To be asked narrowly: another difference of the same
    /// instruction still counts.
    explains: fn(&Met<'_>, &Difference) -> bool,
}

/// A case and its two ends.
pub(super) struct Met<'c> {
    pub(super) case: &'c SystemCase,
    pub(super) kvm: &'c SystemOutcome,
    pub(super) emulator: &'c SystemOutcome,
}

impl Known {
    pub(super) fn explains(&self, met: &Met<'_>, difference: &Difference) -> bool {
        (self.explains)(met, difference)
    }
}

/// The table.
pub const KNOWN: &[Known] = &[];
