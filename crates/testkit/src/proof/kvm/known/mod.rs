//! What KVM is known to do otherwise than the manuals say.

mod device;
mod instruction;
mod system;

use realmode::Cpu;

use super::case::SystemCase;
use super::compare::{Difference, values};
use super::outcome::{SystemEnd, SystemOutcome};
use super::probe::has_raised;
use super::quirk::Quirk;
use super::ram::Ram;

/// A known error of KVM.
pub struct Known {
    /// A name for the tally.
    pub name: &'static str,
    /// What KVM does.
    pub kvm: &'static str,
    /// The section of the manual that says otherwise, or that is silent.
    pub manual: &'static str,
    kind: Kind,
}

/// How an error shows. Always narrowly: another difference of the same instruction still counts.
enum Kind {
    /// It makes some differences, and these alone.
    Differs(fn(&Met<'_>, &Difference) -> bool),
    /// The emulator repeats it, in cases it can concern.
    Repeats(Quirk, fn(&SystemCase) -> bool),
    /// The instruction completes with this processor, and does nothing else.
    Completes(fn(&SystemCase) -> Option<Cpu>),
}

/// A case and its two ends, with the memory that KVM left.
#[derive(Clone, Copy)]
pub(super) struct Met<'c> {
    pub(super) case: &'c SystemCase,
    pub(super) kvm: &'c SystemOutcome,
    pub(super) emulator: &'c SystemOutcome,
    pub(super) ram: &'c Ram,
}

impl Met<'_> {
    /// Is the difference that KVM left one of these registers as it was?
    fn is_unchanged(&self, names: &[&str], difference: &Difference) -> bool {
        let Difference::Register { name, kvm, .. } = difference else { return false };
        names.contains(name) && values(&self.case.cpu).contains(&(*name, *kvm))
    }

    /// Did KVM end in the handler of this vector?
    fn kvm_raised(&self, vector: u64) -> bool {
        has_raised(self.kvm, vector)
    }
}

/// Every known error: of the system, of single instructions, of devices.
pub fn all() -> impl Iterator<Item = &'static Known> {
    [system::KNOWN, instruction::KNOWN, device::KNOWN].into_iter().flatten()
}

/// The entries that explain all the differences, or the differences that none explains.
pub(super) fn explain(met: &Met<'_>, found: &[Difference]) -> Result<Vec<usize>, Vec<Difference>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(entry) = all().position(|known| known.completes(met)) {
        return Ok(vec![entry]);
    }
    let (mut entries, mut rest) = (Vec::new(), Vec::new());
    for difference in found {
        let explains = |known: &Known| match known.kind {
            Kind::Differs(differs) => differs(met, difference),
            _ => false,
        };
        match all().position(explains) {
            Some(entry) => entries.push(entry),
            None => rest.push(difference.clone()),
        }
    }
    entries.sort_unstable();
    entries.dedup();
    if rest.is_empty() { Ok(entries) } else { Err(rest) }
}

/// The errors that the emulator can repeat and that may concern a case, with their entries.
pub(super) fn repeatable(case: &SystemCase) -> Vec<(usize, Quirk)> {
    let may = all().enumerate().filter_map(|(entry, known)| match known.kind {
        Kind::Repeats(quirk, concerns) if concerns(case) => Some((entry, quirk)),
        _ => None,
    });
    may.collect()
}

impl Known {
    fn completes(&self, met: &Met<'_>) -> bool {
        let Kind::Completes(completes) = self.kind else { return false };
        let Some(cpu) = completes(met.case) else { return false };
        let kvm = met.kvm;
        kvm.end == SystemEnd::Stepped
            && kvm.accesses.is_empty()
            && met.ram.is_as_begun(met.case)
            && values(&kvm.cpu) == values(&cpu)
    }
}

/// A difference of a register.
fn register(name: &'static str, kvm: u64, emulator: u64) -> Difference {
    Difference::Register { name, kvm, emulator }
}
