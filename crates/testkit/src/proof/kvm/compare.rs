//! What differs between two outcomes.

use realmode::Cpu;

use super::outcome::{SystemEnd, SystemOutcome};
use super::ram::Ram;

/// Something in which KVM and the emulator differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// What ended the case.
    End {
        /// In KVM.
        kvm: SystemEnd,
        /// In the emulator.
        emulator: SystemEnd,
    },
    /// A register or a part of one.
    Register {
        /// Its name: `rax`, `cs.base`, `cr0`.
        name: &'static str,
        /// In KVM.
        kvm: u64,
        /// In the emulator.
        emulator: u64,
    },
    /// A byte of memory.
    Memory {
        /// Its physical address.
        address: usize,
        /// In KVM.
        kvm: u8,
        /// In the emulator.
        emulator: u8,
    },
    /// What devices saw, which the outcomes have.
    Accesses,
}

/// Bytes of memory that are told one by one.
const MOST_BYTES: usize = 64;

/// Everything in which two outcomes differ.
pub(super) fn differences(
    (kvm, kvm_ram): (&SystemOutcome, &Ram),
    (emulator, emulator_ram): (&SystemOutcome, &Ram),
) -> Vec<Difference> {
    let mut found = Vec::new();
    if kvm.end != emulator.end {
        found.push(Difference::End { kvm: kvm.end.clone(), emulator: emulator.end.clone() });
    }
    for ((name, kvm), (_, emulator)) in values(&kvm.cpu).into_iter().zip(values(&emulator.cpu)) {
        if kvm != emulator {
            found.push(Difference::Register { name, kvm, emulator });
        }
    }
    for (address, kvm, emulator) in kvm_ram.differences(emulator_ram).take(MOST_BYTES) {
        found.push(Difference::Memory { address, kvm, emulator });
    }
    if kvm.accesses != emulator.accesses {
        found.push(Difference::Accesses);
    }
    found
}

/// Every register with its name.
pub(super) fn values(cpu: &Cpu) -> Vec<(&'static str, u64)> {
    const GENERAL: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    const SEGMENTS: [[&str; 4]; 6] = [
        ["es.selector", "es.base", "es.limit", "es.attributes"],
        ["cs.selector", "cs.base", "cs.limit", "cs.attributes"],
        ["ss.selector", "ss.base", "ss.limit", "ss.attributes"],
        ["ds.selector", "ds.base", "ds.limit", "ds.attributes"],
        ["fs.selector", "fs.base", "fs.limit", "fs.attributes"],
        ["gs.selector", "gs.base", "gs.limit", "gs.attributes"],
    ];
    let mut values: Vec<_> = GENERAL.into_iter().zip(cpu.gpr.as_array()).collect();
    values.extend([("rip", cpu.rip), ("rflags", cpu.rflags)]);
    for (names, segment) in SEGMENTS.into_iter().zip(&cpu.seg) {
        let parts = [
            u64::from(segment.selector),
            segment.base,
            u64::from(segment.limit),
            u64::from(segment.attributes.0),
        ];
        values.extend(names.into_iter().zip(parts));
    }
    let msr = &cpu.msr;
    values.extend([
        ("gdtr.base", cpu.gdtr.base),
        ("gdtr.limit", cpu.gdtr.limit.into()),
        ("idtr.base", cpu.idtr.base),
        ("idtr.limit", cpu.idtr.limit.into()),
        ("cr0", cpu.cr0),
        ("cr2", cpu.cr2),
        ("cr3", cpu.cr3),
        ("cr4", cpu.cr4),
        ("cr8", cpu.cr8),
        ("dr0", cpu.dr[0]),
        ("dr1", cpu.dr[1]),
        ("dr2", cpu.dr[2]),
        ("dr3", cpu.dr[3]),
        ("dr6", cpu.dr6),
        ("dr7", cpu.dr7),
        ("shadow.sti", cpu.shadow.sti.into()),
        ("shadow.mov_ss", cpu.shadow.mov_ss.into()),
        ("nmi_blocked", cpu.nmi_blocked.into()),
        ("efer", msr.efer),
        ("star", msr.star),
        ("lstar", msr.lstar),
        ("cstar", msr.cstar),
        ("fmask", msr.fmask),
        ("kernel_gs_base", msr.kernel_gs_base),
        ("sysenter_cs", msr.sysenter_cs),
        ("sysenter_esp", msr.sysenter_esp),
        ("sysenter_eip", msr.sysenter_eip),
        ("pat", msr.pat),
        ("tsc_aux", msr.tsc_aux),
        ("debugctl", msr.debugctl),
    ]);
    values
}
