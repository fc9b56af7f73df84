//! Errors of KVM with devices: what they see, how often and in which order.

use realmode::arch::rflags::RF;
use realmode::{Direction, PAGE_SIZE, Reg, Request, SegReg};

use super::super::case::SystemCase;
use super::super::outcome::{DeviceAccess, SystemEnd};
use super::super::ram::{Ram, background};
use super::{Difference, Kind, Known};

pub(super) const KNOWN: &[Known] = &[
    Known {
        name: "device-far-pointer",
        kvm: "a far pointer is read from a device as one operand",
        manual: "SDM vol. 1, Pointer Data Types: how it is read is not said",
        kind: Kind::Differs(|met, difference| {
            *difference == Difference::Accesses
                && is_far_pointer(met.case)
                && bytes(&met.kvm.accesses) == bytes(&met.emulator.accesses)
        }),
    },
    Known {
        name: "device-last-write",
        kvm: "of several operands that an instruction writes to a device, it sees the last one",
        manual: "SDM vol. 2, INT n, CALL, PUSHA, Operation: all are pushed",
        kind: Kind::Differs(|met, difference| {
            let (kvm, emulator) = (writes(&met.kvm.accesses), writes(&met.emulator.accesses));
            *difference == Difference::Accesses
                && matches!(met.case.opcode(), [0x60 | 0x9A | 0xCC | 0xCD | 0xCE | 0xFF, ..])
                && kvm.len() < emulator.len()
                && emulator.ends_with(&kvm)
                && reads(&met.kvm.accesses) == reads(&met.emulator.accesses)
        }),
    },
    Known {
        name: "device-popa",
        kvm: "POPA starts anew after each read of a device, with the registers it has loaded and \
              moved SP",
        manual: "SDM vol. 2, POPA, Operation",
        kind: Kind::Differs(|met, difference| {
            met.case.opcode().first() == Some(&0x61)
                && stack_page_is_device(met.case, 0, 32)
                && match difference {
                    Difference::Register { name, .. } => {
                        matches!(
                            *name,
                            "rax" | "rcx" | "rdx" | "rbx" | "rsp" | "rbp" | "rsi" | "rdi"
                        )
                    }
                    Difference::Accesses => writes(&met.kvm.accesses).is_empty(),
                    _ => false,
                }
        }),
    },
    Known {
        name: "device-pop-again",
        kvm: "a far RET that reads a device moves SP once more for each read after the first",
        manual: "SDM vol. 2, RET, Operation",
        kind: Kind::Differs(|met, difference| match difference {
            Difference::Register { name: "rsp", kvm, emulator } => {
                let size = if met.case.code.bytes[0] == 0x66 { 4 } else { 2 };
                matches!(met.case.opcode(), [0xCB | 0xCA, ..])
                    && stack_page_is_device(met.case, 0, 8)
                    && *kvm == emulator + size
            }
            _ => false,
        }),
    },
    Known {
        name: "device-table",
        kvm: "LGDT, LIDT, SGDT and SIDT do not work with a device",
        manual: "SDM vol. 2, LGDT and SGDT: any memory",
        kind: Kind::Differs(|met, difference| {
            const NAMES: &[&str] = &["rip", "gdtr.base", "gdtr.limit", "idtr.base", "idtr.limit"];
            let is_table = matches!(
                met.case.opcode(),
                [0x0F, 0x01, modrm, ..] if modrm >> 3 & 7 < 4
            );
            is_table
                && !met.emulator.accesses.is_empty()
                && match difference {
                    Difference::Accesses => true,
                    Difference::Memory { address, kvm, .. } => background(*address) == Some(*kvm),
                    _ => met.is_unchanged(NAMES, difference),
                }
        }),
    },
    Known {
        name: "device-frame",
        kvm: "the delivery of an exception to a stack that is a device is a triple fault",
        manual: "SDM vol. 3A, Interrupt and Exception Handling in Real-Address Mode",
        kind: Kind::Differs(|met, difference| {
            const NAMES: &[&str] = &["rsp", "rip", "rflags", "cs.selector", "cs.base"];
            met.kvm.end == SystemEnd::Shutdown
                && met.emulator.end == SystemEnd::Stepped
                && stack_page_is_device(met.case, -12, 0)
                && match difference {
                    Difference::End { .. } => true,
                    Difference::Accesses => met.emulator.accesses.starts_with(&met.kvm.accesses),
                    // Of the frame, or of what the instruction pushed.
                    Difference::Memory { address, .. } => {
                        let top = met.case.cpu.segment(SegReg::Ss).base
                            + (met.case.cpu.gpr[Reg::Rsp] & 0xFFFF);
                        (top.saturating_sub(12)..top).contains(&(*address as u64))
                    }
                    Difference::Register { name: "rflags", kvm, .. } => {
                        *kvm == met.case.cpu.rflags | RF
                    }
                    _ => met.is_unchanged(NAMES, difference),
                }
        }),
    },
    Known {
        name: "device-early-read",
        kvm: "a device is read before the check that makes the instruction fault",
        manual: "SDM vol. 3A, Program or Task Restart: a fault leaves all as before",
        kind: Kind::Differs(|met, difference| {
            let (kvm, emulator) = (&met.kvm.accesses, &met.emulator.accesses);
            let extra = kvm.strip_prefix(emulator.as_slice());
            *difference == Difference::Accesses
                && (met.kvm_raised(12) || met.kvm_raised(13))
                && extra.is_some_and(|extra| writes(extra).is_empty())
        }),
    },
    Known {
        name: "ins-block",
        kvm: "REP INS into a device reads ahead from the port, and may lose what it has read",
        manual: "SDM vol. 2, REP: iteration by iteration",
        kind: Kind::Differs(|met, difference| {
            let (kvm, emulator) = (&met.kvm.accesses, &met.emulator.accesses);
            let (cpu, reach) = (&met.case.cpu, 4 * 7);
            let target = cpu.segment(SegReg::Es).base + (cpu.gpr[Reg::Rdi] & 0xFFFF);
            met.case.is_repeated()
                && matches!(met.case.opcode(), [0x6C | 0x6D, ..])
                && reads(kvm).starts_with(&reads(emulator))
                && places(&writes(kvm)) == places(&writes(emulator))
                && !writes(kvm).is_empty()
                && match difference {
                    Difference::Accesses => true,
                    // Half of the block lies in memory.
                    Difference::Memory { address, .. } => target.abs_diff(*address as u64) <= reach,
                    _ => false,
                }
        }),
    },
    Known {
        name: "device-pop-sreg",
        kvm: "POP of a segment register with a 32-bit operand reads two bytes",
        manual: "SDM vol. 2, POP: the operand size says how much is popped, not how much is read",
        kind: Kind::Differs(|met, difference| {
            let (kvm, emulator) = (bytes(&met.kvm.accesses), bytes(&met.emulator.accesses));
            *difference == Difference::Accesses
                && matches!(met.case.opcode(), [0x07 | 0x17 | 0x1F, ..] | [0x0F, 0xA1 | 0xA9, ..])
                && emulator.starts_with(&kvm)
                && emulator.len() <= kvm.len() + 2
        }),
    },
];

fn is_far_pointer(case: &SystemCase) -> bool {
    match case.opcode() {
        [0xC4 | 0xC5, ..] | [0x0F, 0xB2 | 0xB4 | 0xB5, ..] => true,
        [0xFF, modrm, ..] => matches!(modrm >> 3 & 7, 3 | 5),
        _ => false,
    }
}

fn request(access: &DeviceAccess) -> &Request {
    let (DeviceAccess::Port(request) | DeviceAccess::Memory(request)) = access;
    request
}

fn only(accesses: &[DeviceAccess], direction: Direction) -> Vec<DeviceAccess> {
    let is_it = |access: &&DeviceAccess| request(access).direction == direction;
    accesses.iter().filter(is_it).copied().collect()
}

fn reads(accesses: &[DeviceAccess]) -> Vec<DeviceAccess> {
    only(accesses, Direction::Read)
}

fn writes(accesses: &[DeviceAccess]) -> Vec<DeviceAccess> {
    only(accesses, Direction::Write)
}

/// The addresses of all bytes.
fn places(accesses: &[DeviceAccess]) -> Vec<u64> {
    bytes(accesses).iter().map(|(_, address, _)| *address).collect()
}

/// The accesses to memory byte by byte: direction, address, data.
fn bytes(accesses: &[DeviceAccess]) -> Vec<(Direction, u64, u8)> {
    let bytes = accesses.iter().flat_map(|access| {
        let Request { address, size, direction, data } = *request(access);
        (0..u64::from(size)).map(move |i| (direction, address + i, (data >> (8 * i)) as u8))
    });
    bytes.collect()
}

/// Does the stack from `first` to `end` bytes above its pointer touch a device?
fn stack_page_is_device(case: &SystemCase, first: i64, end: i64) -> bool {
    let base = case.cpu.segment(SegReg::Ss).base;
    let sp = case.cpu.gpr[Reg::Rsp] & 0xFFFF;
    [first, end].into_iter().any(|above| {
        let at = base + (sp.wrapping_add_signed(above) & 0xFFFF);
        !Ram::is_backed(at as usize / PAGE_SIZE)
    })
}
