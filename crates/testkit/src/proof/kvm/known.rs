//! What KVM is known to do otherwise than the manuals say.

use realmode::arch::msr;
use realmode::arch::rflags::{IF, RF};
use realmode::{Cpu, Direction, Reg, Request, SegReg};

use super::case::{HANDLERS, SystemCase};
use super::compare::{Difference, values};
use super::outcome::{DeviceAccess, SystemEnd, SystemOutcome};
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

/// The entries that explain all the differences, or the differences that none explains.
pub(super) fn explain(met: &Met<'_>, found: &[Difference]) -> Result<Vec<usize>, Vec<Difference>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(entry) = KNOWN.iter().position(|known| known.completes(met)) {
        return Ok(vec![entry]);
    }
    let (mut entries, mut rest) = (Vec::new(), Vec::new());
    for difference in found {
        let explains = |known: &Known| match known.kind {
            Kind::Differs(differs) => differs(met, difference),
            _ => false,
        };
        match KNOWN.iter().position(explains) {
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
    let may = KNOWN.iter().enumerate().filter_map(|(entry, known)| match known.kind {
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

/// The table.
pub const KNOWN: &[Known] = &[
    Known {
        name: "exception-esp",
        kvm: "the delivery of an exception clears bits 31 to 16 of ESP",
        manual: "SDM vol. 3A, Interrupt and Exception Handling in Real-Address Mode: SP moves",
        kind: Kind::Repeats(Quirk::CutStack, |case| case.cpu.gpr[Reg::Rsp] > 0xFFFF),
    },
    Known {
        name: "exception-stack-limit",
        kvm: "the delivery of an exception does not check the limit of SS",
        manual: "SDM vol. 2, INT n: #SS if the stack has no room for 6 bytes",
        kind: Kind::Repeats(Quirk::NoStackLimit, |_| true),
    },
    Known {
        name: "interrupt-table-limit",
        kvm: "the limit of the interrupt table is not checked",
        manual: "SDM vol. 2, INT n: #GP if the vector is not within the limit of IDTR",
        kind: Kind::Repeats(Quirk::NoTableLimit, |case| case.cpu.idtr.limit < 0x3FF),
    },
    Known {
        name: "interrupt-80h",
        kvm: "INT n takes n as signed: from 80h on the entry is read 400h bytes too low",
        manual: "SDM vol. 2, INT n: the vector is an unsigned byte",
        kind: Kind::Repeats(Quirk::BelowTable, |case| matches!(case.opcode(), [0xCD, n, ..] if *n >= 0x80)),
    },
    Known {
        name: "cr4-bits",
        kvm: "MOV CR4 sets bits whose features CPUID does not offer",
        manual: "SDM vol. 3A, Control Registers: #GP if a reserved bit of CR4 is set",
        kind: Kind::Repeats(Quirk::ControlBits, |case| matches!(case.opcode(), [0x0F, 0x22, ..])),
    },
    Known {
        name: "efer-ffxsr",
        kvm: "EFER.FFXSR cannot be set although CPUID offers it",
        manual: "APM vol. 2, Extended Feature Enable Register",
        kind: Kind::Repeats(Quirk::NoFastFxsave, |case| writes(case, msr::EFER)),
    },
    Known {
        name: "mov-sreg-order",
        kvm: "MOV to CS or to a register that does not exist reads its operand before it is #UD",
        manual: "SDM vol. 3A, Priority Among Concurrent Events: #UD comes with decode",
        kind: Kind::Repeats(Quirk::ReadsFirst, |case| matches!(case.opcode(), [0x8E, ..])),
    },
];

/// Is it a WRMSR of this register?
fn writes(case: &SystemCase, index: u32) -> bool {
    case.opcode() == [0x0F, 0x30] && case.cpu.gpr[Reg::Rcx] as u32 == index
}
