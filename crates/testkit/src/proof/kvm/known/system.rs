//! Errors of KVM in the delivery of events, in modes and in model-specific registers.

use realmode::arch::msr;
use realmode::arch::rflags::RF;
use realmode::{Attributes, Cpu, Features, Reg, SegReg, Shadow};

use super::super::case::SystemCase;
use super::super::quirk::Quirk;
use super::{Difference, Kind, Known, Met, register};

pub(super) const KNOWN: &[Known] = &[
    Known {
        name: "exception-esp",
        kvm: "the delivery of an exception works with SP whatever SS.B says, and clears the upper \
              half of ESP",
        manual: "SDM vol. 3A, Interrupt and Exception Handling in Real-Address Mode; vol. 1, \
                 Address-Size Attributes for Stack Accesses",
        kind: Kind::Repeats(Quirk::CutStack, |case| {
            let ss = case.cpu.segment(SegReg::Ss).attributes;
            case.cpu.gpr[Reg::Rsp] > 0xFFFF || ss.0 & Attributes::DB != 0
        }),
    },
    Known {
        name: "exception-stack-limit",
        kvm: "the delivery of an exception does not check the limit of SS",
        manual: "SDM vol. 2, INT n: #SS if the stack has no room for six bytes",
        kind: Kind::Repeats(Quirk::NoStackLimit, |_| true),
    },
    Known {
        name: "interrupt-table-limit",
        kvm: "the limit of the interrupt table is not checked",
        manual: "SDM vol. 2, INT n: #GP if the vector is beyond the limit of IDTR",
        kind: Kind::Repeats(Quirk::NoTableLimit, |case| {
            case.cpu.idtr.limit < 0x3FF && !matches!(case.opcode(), [0x0F, 0x01, ..])
        }),
    },
    Known {
        name: "interrupt-80h",
        kvm: "INT n takes n as signed: from 80h on the entry is read 400h bytes too low",
        manual: "SDM vol. 2, INT n: the vector is an unsigned byte",
        kind: Kind::Repeats(
            Quirk::BelowTable,
            |case| matches!(case.opcode(), [0xCD, n, ..] if *n >= 0x80),
        ),
    },
    Known {
        name: "interrupt-66",
        kvm: "INT n, INT3 and INTO with an operand size of 32 bits push twelve bytes",
        manual: "SDM vol. 2, INT n, Operation: real mode pushes FLAGS, CS and IP of 16 bits",
        kind: Kind::Differs(wide_frame),
    },
    Known {
        name: "sti-shadow",
        kvm: "STI casts a shadow although IF was set",
        manual: "SDM vol. 2, STI: interrupts stay off for one instruction if IF was 0",
        kind: Kind::Differs(|met, difference| {
            met.case.opcode() == [0xFB] && *difference == register("shadow.sti", 1, 0)
        }),
    },
    Known {
        name: "cr4-bits",
        kvm: "MOV CR4 sets bits whose features CPUID does not offer",
        manual: "SDM vol. 3A, Control Registers: #GP if a reserved bit of CR4 is set",
        kind: Kind::Repeats(Quirk::ControlBits, |case| matches!(case.opcode(), [0x0F, 0x22, ..])),
    },
    Known {
        name: "cr0-paging",
        kvm: "MOV CR0 that turns on paging without long mode is #GP",
        manual: "SDM vol. 3A, Paging Modes and Control Bits",
        kind: Kind::Repeats(Quirk::NoPaging, |case| {
            matches!(case.opcode(), [0x0F, 0x22, 0xC0..=0xC7])
        }),
    },
    Known {
        name: "not-there",
        kvm: "LOCK MOV CR0, EFER.FFXSR and CR4.LA57 are refused although CPUID offers them",
        manual: "APM vol. 3, MOV CRn; APM vol. 2, Extended Feature Enable Register; SDM vol. 3A, \
                 Control Registers",
        kind: Kind::Repeats(Quirk::NotThere, |case| {
            matches!(case.opcode(), [0x0F, 0x20 | 0x22, ..]) || writes(case, msr::EFER)
        }),
    },
    Known {
        name: "dr7-bit-11",
        kvm: "MOV DR7 keeps bit 11",
        manual: "SDM vol. 3B, Debug Control Register (DR7); APM vol. 2, Debug-Control Register",
        kind: Kind::Differs(|met, difference| match difference {
            Difference::Register { name: "dr7", kvm, emulator } => {
                matches!(met.case.opcode(), [0x0F, 0x23, ..]) && *kvm == emulator | 1 << 11
            }
            _ => false,
        }),
    },
    Known {
        name: "fmask-width",
        kvm: "WRMSR keeps bits 63 to 32 of SFMASK",
        manual: "APM vol. 2, SYSCALL and SYSRET MSRs: SFMASK has 32 bits; Intel: #GP",
        kind: Kind::Completes(|case, _| {
            let completes = writes(case, msr::FMASK);
            completes.then(|| after(case, |cpu| cpu.msr.fmask = written(case)))
        }),
    },
    Known {
        name: "sysenter-cs-width",
        kvm: "WRMSR keeps bits 63 to 32 of SYSENTER_CS",
        manual: "SDM vol. 4, IA32_SYSENTER_CS: bits 31 to 16 and 63 to 32 are not used",
        kind: Kind::Completes(|case, _| {
            let completes = writes(case, msr::IA32_SYSENTER_CS);
            completes.then(|| after(case, |cpu| cpu.msr.sysenter_cs = written(case)))
        }),
    },
    Known {
        name: "sysenter-canonical",
        kvm: "WRMSR of SYSENTER_ESP and SYSENTER_EIP extends the top bit of a linear address",
        manual: "SDM vol. 2, WRMSR: #GP if the address is not canonical; AMD: 32 bits",
        kind: Kind::Completes(|case, profile| {
            let above = if profile.has(Features::LA57) { 7 } else { 16 };
            let canonical = ((written(case) as i64) << above >> above) as u64;
            if writes(case, msr::IA32_SYSENTER_ESP) {
                return Some(after(case, |cpu| cpu.msr.sysenter_esp = canonical));
            }
            let completes = writes(case, msr::IA32_SYSENTER_EIP);
            completes.then(|| after(case, |cpu| cpu.msr.sysenter_eip = canonical))
        }),
    },
    Known {
        name: "pat-type",
        kvm: "WRMSR of the PAT takes memory types that do not exist",
        manual: "SDM vol. 3A, Programming the PAT: #GP for an undefined type",
        kind: Kind::Completes(|case, _| {
            let completes = writes(case, msr::IA32_PAT);
            completes.then(|| after(case, |cpu| cpu.msr.pat = written(case)))
        }),
    },
    Known {
        name: "debugctl",
        kvm: "WRMSR of DEBUGCTL is ignored, whatever the value",
        manual: "SDM vol. 3B, IA32_DEBUGCTL MSR; APM vol. 2, Debug-Control MSR",
        kind: Kind::Completes(|case, _| {
            writes(case, msr::IA32_DEBUGCTL).then(|| after(case, |_| {}))
        }),
    },
];

/// Is it a WRMSR of this register?
fn writes(case: &SystemCase, index: u32) -> bool {
    case.opcode() == [0x0F, 0x30] && case.cpu.gpr[Reg::Rcx] as u32 == index
}

/// What WRMSR writes.
fn written(case: &SystemCase) -> u64 {
    let half = |register| case.cpu.gpr[register] & 0xFFFF_FFFF;
    half(Reg::Rdx) << 32 | half(Reg::Rax)
}

/// The processor after an instruction that changes nothing else.
fn after(case: &SystemCase, change: impl FnOnce(&mut Cpu)) -> Cpu {
    let mut cpu = Cpu { shadow: Shadow::NONE, ..case.cpu.clone() };
    cpu.rip += u64::from(case.code.len);
    cpu.rflags &= !RF;
    change(&mut cpu);
    cpu
}

/// A frame of EFLAGS, CS and EIP of 32 bits, and a stack pointer below it. All of the frame is
/// looked at.
fn wide_frame(met: &Met<'_>, difference: &Difference) -> bool {
    let case = met.case;
    let is_wide = case.code.bytes[0] == 0x66;
    if !is_wide || !matches!(case.opcode(), [0xCC..=0xCE, ..]) {
        return false;
    }
    let before = &case.cpu;
    let ss = before.segment(SegReg::Ss);
    let rsp = |cpu: &Cpu| cpu.gpr[Reg::Rsp] & 0xFFFF;
    let top = rsp(before).wrapping_sub(12) & 0xFFFF;
    let frame = ss.base + top;
    let next = before.rip + u64::from(case.code.len);
    let holds = |above, value| met.ram.number(frame + above, 4) == value;
    let is_right = holds(0, next)
        && holds(4, before.segment(SegReg::Cs).selector.into())
        && holds(8, before.rflags)
        && rsp(&met.kvm.cpu) == top;
    is_right
        && match difference {
            Difference::Register { name, .. } => *name == "rsp",
            Difference::Memory { address, .. } => (frame..frame + 12).contains(&(*address as u64)),
            _ => false,
        }
}
