//! Errors of KVM in single instructions that have nothing to do with devices.

use super::super::case::SystemCase;
use super::super::quirk::Quirk;
use super::super::ram::background;
use super::{Difference, Kind, Known, has_raised};

pub(super) const KNOWN: &[Known] = &[
    Known {
        name: "mov-sreg-order",
        kvm: "MOV to CS or to a register that does not exist reads its operand before it is #UD",
        manual: "SDM vol. 3A, Priority Among Concurrent Events: #UD comes with decode",
        kind: Kind::Repeats(Quirk::ReadsFirst, |case| matches!(case.opcode(), [0x8E, ..])),
    },
    Known {
        name: "undefined-length",
        kvm: "the ModRM byte of 0F 00 is fetched, and the limit of CS checked, before it is #UD",
        manual: "SDM vol. 3A, Priority Among Concurrent Events: how much is fetched is not said",
        kind: Kind::Differs(|met, difference| {
            let Difference::Register { name, .. } = difference else { return false };
            let case = met.case;
            matches!(case.opcode(), [0x0F, 0x00, ..])
                && case.cpu.rip + u64::from(case.code.len) > 0x1_0000
                && met.kvm_raised(13)
                && has_raised(met.emulator, 6)
                && matches!(*name, "rip" | "cs.selector" | "cs.base")
        }),
    },
    Known {
        name: "push-sreg",
        kvm: "PUSH of a segment register with a 32-bit operand writes two bytes, as on Intel",
        manual: "APM vol. 3, PUSH: the selector is zero-extended to the operand size",
        kind: Kind::Repeats(Quirk::HalfPush, |case| {
            is_wide(case)
                && matches!(
                    case.opcode(),
                    [0x06 | 0x0E | 0x16 | 0x1E, ..] | [0x0F, 0xA0 | 0xA8, ..]
                )
        }),
    },
    Known {
        name: "pop-sreg",
        kvm: "POP of a segment register with a 32-bit operand reads two bytes",
        manual: "SDM vol. 2, POP: the operand size says how much is popped, not how much is read",
        kind: Kind::Repeats(Quirk::HalfPop, |case| is_wide(case) && pops_segment(case)),
    },
    Known {
        name: "far-return-selector",
        kvm: "a far RET or IRET with a 32-bit operand reads four bytes for CS, as on AMD",
        manual: "SDM vol. 2, RET and IRET, Operation: 32 bits are popped; Raptor Cove reads 16",
        kind: Kind::Repeats(Quirk::WholeSelector, |case| {
            is_wide(case) && matches!(case.opcode(), [0xCA | 0xCB | 0xCF, ..])
        }),
    },
    Known {
        name: "far-target-order",
        kvm: "a far CALL or IRET to an EIP beyond FFFF is #GP before its stack is looked at",
        manual: "SDM vol. 2, CALL and IRET, Operation: #SS comes first",
        kind: Kind::Repeats(Quirk::TargetFirst, |case| {
            is_wide(case) && matches!(case.opcode(), [0x9A | 0xCF | 0xFF, ..])
        }),
    },
    Known {
        name: "lgdt-five-bytes",
        kvm: "LGDT and LIDT with a 16-bit operand read five bytes",
        manual: "SDM vol. 2, LGDT: a 6-byte operand, of which the last byte is not used",
        kind: Kind::Repeats(Quirk::FiveBytes, |case| {
            !is_wide(case) && matches!(case.opcode(), [0x0F, 0x01, ..])
        }),
    },
    Known {
        name: "sgdt-top-byte",
        kvm: "SGDT and SIDT with a 16-bit operand store 0 in place of the base's top byte",
        manual: "APM vol. 3, SGDT and SIDT: operand-size prefixes are ignored",
        kind: Kind::Differs(|met, difference| {
            let case = met.case;
            let table = match case.opcode() {
                [0x0F, 0x01, modrm, ..] if modrm >> 3 & 7 == 0 => case.cpu.gdtr,
                [0x0F, 0x01, modrm, ..] if modrm >> 3 & 7 == 1 => case.cpu.idtr,
                _ => return false,
            };
            let top = (table.base >> 24) as u8;
            match difference {
                Difference::Memory { kvm, emulator, address } => {
                    // Behind the three other bytes.
                    let rest = met.ram.number((*address - 3) as u64, 3);
                    !is_wide(case)
                        && (*kvm, *emulator) == (0, top)
                        && rest == table.base & 0xFF_FFFF
                }
                _ => false,
            }
        }),
    },
    Known {
        name: "rep-ins-limit",
        kvm: "REP INS that meets the end of its segment stores nothing of what it has read",
        manual: "SDM vol. 2, REP: the iterations before the one that faults are complete",
        kind: Kind::Differs(|met, difference| {
            let is_ins = matches!(met.case.opcode(), [0x6C | 0x6D, ..]);
            is_ins
                && met.case.is_repeated()
                && met.kvm_raised(13)
                && match difference {
                    Difference::Memory { address, kvm, .. } => background(*address) == Some(*kvm),
                    _ => met.is_unchanged(&["rcx", "rdi"], difference),
                }
        }),
    },
];

/// Has it the operand-size prefix?
fn is_wide(case: &SystemCase) -> bool {
    let prefixes = usize::from(case.code.len) - case.opcode().len();
    case.code.as_slice()[..prefixes].contains(&0x66)
}

fn pops_segment(case: &SystemCase) -> bool {
    matches!(case.opcode(), [0x07 | 0x17 | 0x1F, ..] | [0x0F, 0xA1 | 0xA9, ..])
}
