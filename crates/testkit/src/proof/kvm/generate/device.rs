//! Ports, and memory that is a device's.

use realmode::{PAGE_SIZE, Reg, SegReg};

use super::Maker;
use crate::proof::kvm::ram::{HOLE, HOLE_END};

/// IN and OUT.
pub(super) fn port(m: &mut Maker) {
    m.operand_size();
    let opcode = m.pick(&[0xE4, 0xE5, 0xE6, 0xE7, 0xEC, 0xED, 0xEE, 0xEF]);
    m.code(&[opcode]);
    if opcode < 0xE8 {
        let port = m.random.next() as u8;
        m.code(&[port]);
    }
}

/// INS and OUTS.
pub(super) fn port_string(m: &mut Maker) {
    m.operand_size();
    let is_wide = m.one_in(4);
    if is_wide {
        m.code(&[0x67]);
    }
    if m.one_in(4) {
        let segment = m.pick(&[0x26, 0x2E, 0x36, 0x64, 0x65]);
        m.code(&[segment]);
    }
    if m.one_in(2) {
        let repeat = m.pick(&[0xF3, 0xF3, 0xF2]);
        m.code(&[repeat]);
    }
    let opcode = m.pick(&[0x6C, 0x6D, 0x6E, 0x6F]);
    m.code(&[opcode]);
    let count = m.pick(&[0, 1, 2, 3, 7]);
    let rcx = &mut m.case.cpu.gpr[Reg::Rcx];
    *rcx = if is_wide { count } else { *rcx & 0xFFFF_0000 | count };
    for register in [Reg::Rsi, Reg::Rdi] {
        let offset = match m.random.below(6) {
            0 => 0xFFE0 + m.random.below(32),
            1 => m.random.below(16),
            2 => 0x7FE0 + m.random.below(32),
            _ => m.random.below(0x1_0000),
        };
        // SDM vol. 3A, "Limit Checking": what wraps at 4 GiB may or may not fault.
        m.case.cpu.gpr[register] = if is_wide { offset.max(32) } else { offset };
    }
    if opcode < 0x6E {
        // KVM stores what it has read in one piece, which ends in its segment.
        let rdi = &mut m.case.cpu.gpr[Reg::Rdi];
        *rdi = (*rdi).min(0x1_0000 - 7 * 4);
    }
}

/// Loads, stores and more where a device is, or half of it.
pub(super) fn memory(m: &mut Maker) {
    // One segment that begins in front of the hole, in it, or before its end.
    let (first, end) = ((HOLE * PAGE_SIZE) as u64, (HOLE_END * PAGE_SIZE) as u64);
    let segment = m.pick(&[SegReg::Ds, SegReg::Ds, SegReg::Es, SegReg::Ss, SegReg::Ss]);
    let edge = m.pick(&[first, first + 0x1000, first + 0x3450, first + 0x8000, end]);
    let offset = 0x100 + m.random.below(0x1000);
    let selector = (edge - offset) >> 4;
    let near = (edge - (selector << 4)).wrapping_sub(6) + m.random.below(12);
    let register = m.case.cpu.segment_mut(segment);
    (register.selector, register.base, register.limit) = (selector as u16, selector << 4, 0xFFFF);
    let gpr = &mut m.case.cpu.gpr;
    for pointer in [Reg::Rbx, Reg::Rsi, Reg::Rdi, Reg::Rbp] {
        gpr[pointer] = near;
    }
    if segment == SegReg::Ss {
        gpr[Reg::Rsp] = near;
        return stacked(m);
    }
    if m.one_in(4) {
        return strings(m);
    }
    m.operand_size();
    if segment == SegReg::Es {
        m.code(&[0x26]);
    }
    let reg = m.random.below(8) as u8;
    let mut lock = false;
    let opcode: &[u8] = match m.random.below(4) {
        0 => m.pick(&[
            &[0x8A],
            &[0x8B],
            &[0x88],
            &[0x89],
            &[0x0F, 0xB6],
            &[0x0F, 0xBF],
            &[0x8E],
            &[0x8C],
        ]),
        1 => m.pick(&[
            &[0x02],
            &[0x13],
            &[0x38],
            &[0x3B],
            &[0x84],
            &[0x85],
            &[0x62],
            &[0xC4],
            &[0xC5],
        ]),
        2 => {
            lock = m.one_in(4);
            m.pick(&[
                &[0x00],
                &[0x11],
                &[0x29],
                &[0x31],
                &[0x86],
                &[0x87],
                &[0x0F, 0xC1],
                &[0x0F, 0xB1],
            ])
        }
        _ => m.pick(&[&[0xFF], &[0xFE], &[0xF7], &[0xF6], &[0x0F, 0x01], &[0x8F], &[0xD1]]),
    };
    if lock {
        m.code(&[0xF0]);
    }
    m.code(opcode);
    let digits: &[u8] = match opcode {
        [0xFF] => &[0, 1, 2, 3, 4, 5, 6],
        [0xFE] => &[0, 1],
        [0xF7 | 0xF6] => &[2, 3, 4, 5],
        [0x0F, 0x01] => &[0, 1, 2, 3, 4],
        [0x8F] => &[0],
        [0xD1] => &[0, 1, 2, 3, 4, 5, 7],
        [0x8E | 0x8C] => &[0, 2, 3, 4, 5],
        _ => return m.code(&[0x07 | reg << 3]),
    };
    let digit = m.pick(digits);
    m.code(&[0x07 | digit << 3]);
}

/// A stack in a device.
fn stacked(m: &mut Maker) {
    if m.one_in(12) {
        // INT3, where another operand size should mean nothing.
        return m.code(&[0xCC]);
    }
    m.operand_size();
    let code: &[u8] = m.pick(&[
        &[0x50],
        &[0x58],
        &[0x60],
        &[0x61],
        &[0x06],
        &[0x07],
        &[0x9C],
        &[0xC9],
        &[0x68, 1, 2, 3, 4],
        &[0x8F, 0x46, 0],
        &[0xFF, 0x76, 0],
        &[0xE8, 1, 0, 0, 0],
        &[0xC3],
        &[0xCB],
        &[0x9A, 1, 2, 3, 0, 5, 6],
        &[0x01, 0x46, 0],
        &[0x8B, 0x46, 0],
    ]);
    m.code(code);
}

/// String instructions that read or write a device.
fn strings(m: &mut Maker) {
    m.operand_size();
    if m.one_in(2) {
        m.code(&[0xF3]);
        m.case.cpu.gpr[Reg::Rcx] = m.random.below(5);
    }
    let opcode = m.pick(&[0xA4, 0xA5, 0xAA, 0xAB, 0xAC, 0xAD, 0xA6, 0xA7, 0xAE, 0xAF, 0x6D, 0x6F]);
    m.code(&[opcode]);
}
