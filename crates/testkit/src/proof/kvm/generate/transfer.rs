//! Segment loads, far transfers, interrupts, exceptions.

use realmode::arch::rflags::{FIXED, TF};
use realmode::{Reg, SegReg, Segment};

use super::Maker;

/// Segment registers moved, pushed, popped, and loaded with a pointer.
pub(super) fn segment(m: &mut Maker) {
    let wide = m.operand_size();
    match m.random.below(6) {
        0 | 1 => {
            // CS and the two that do not exist are #UD.
            let reg = m.pick(&[0, 0, 2, 2, 3, 3, 4, 4, 5, 5, 1, 6, 7]);
            let opcode = m.pick(&[0x8E, 0x8C]);
            moved(m, opcode, reg);
        }
        2 => {
            let code: &[u8] =
                m.pick(&[&[0x06], &[0x0E], &[0x16], &[0x1E], &[0x0F, 0xA0], &[0x0F, 0xA8]]);
            m.code(code);
        }
        3 => {
            let code: &[u8] = m.pick(&[&[0x07], &[0x17], &[0x1F], &[0x0F, 0xA1], &[0x0F, 0xA9]]);
            m.code(code);
            let selector = m.value();
            m.on_stack(&[selector], wide);
        }
        _ => {
            let operand = m.pointer();
            let code: &[u8] =
                m.pick(&[&[0xC4], &[0xC5], &[0x0F, 0xB2], &[0x0F, 0xB4], &[0x0F, 0xB5]]);
            m.code(code);
            let reg = m.random.below(8) as u8;
            m.modrm(&operand, reg);
        }
    }
}

fn moved(m: &mut Maker, opcode: u8, reg: u8) {
    if m.one_in(2) {
        let rm = m.random.below(8) as u8;
        m.code(&[opcode, 0xC0 | reg << 3 | rm]);
        return;
    }
    let operand = m.operand();
    m.code(&[opcode]);
    m.modrm(&operand, reg);
}

/// Far transfers, and near ones that leave the segment.
pub(super) fn far(m: &mut Maker) {
    let wide = m.operand_size();
    let (target, selector) = (m.target(), m.random.next() as u16);
    let size = if wide { 4 } else { 2 };
    match m.random.below(8) {
        0 | 1 => {
            let opcode = m.pick(&[0xEA, 0x9A]);
            m.code(&[opcode]);
            m.code(&target.to_le_bytes()[..size]);
            m.code(&selector.to_le_bytes());
        }
        2 | 3 => {
            let operand = m.pointer();
            let digit = m.pick(&[3, 5]);
            m.code(&[0xFF]);
            m.modrm(&operand, digit);
            let mut pointer = target.to_le_bytes()[..size].to_vec();
            pointer.extend(selector.to_le_bytes());
            m.poke(operand.at, &pointer);
        }
        4 | 5 => {
            m.on_stack(&[target, selector.into()], wide);
            let bytes = m.random.next() as u16;
            match m.random.below(2) {
                0 => m.code(&[0xCB]),
                _ => m.code(&[0xCA, bytes as u8, (bytes >> 8) as u8]),
            }
        }
        6 => near(m, target, wide),
        _ => {
            let (digit, rm) = (m.pick(&[2, 4, 3, 5]), m.random.below(8) as u8);
            m.code(&[0xFF, 0xC0 | digit << 3 | rm]);
        }
    }
}

fn near(m: &mut Maker, target: u32, wide: bool) {
    let size = if wide { 4 } else { 2 };
    let bytes = target.to_le_bytes();
    match m.random.below(6) {
        0 => m.code(&[0xEB, bytes[0]]),
        1 | 2 => {
            let opcode = m.pick(&[0xE8, 0xE9]);
            m.code(&[opcode]);
            m.code(&bytes[..size]);
        }
        3 => {
            let opcode = m.pick(&[0x70, 0x75, 0xE2, 0xE3]);
            m.code(&[opcode, bytes[0]]);
        }
        _ => {
            m.on_stack(&[target], wide);
            match m.random.below(2) {
                0 => m.code(&[0xC3]),
                _ => m.code(&[0xC2, bytes[2], bytes[3]]),
            }
        }
    }
}

/// INT n, INT3, INTO, IRET.
pub(super) fn interrupt(m: &mut Maker) {
    if m.one_in(16) {
        return wide_interrupt(m);
    }
    if m.one_in(6) {
        short_table(m);
    }
    match m.random.below(8) {
        0 | 1 => {
            let vector = m.random.next() as u8;
            m.code(&[0xCD, vector]);
        }
        2 => m.code(&[0xCC]),
        3 => m.code(&[0xCE]),
        _ => {
            let wide = m.operand_size();
            let (target, selector) = (m.target(), m.random.next() as u16);
            let image = flags_image(m);
            m.on_stack(&[target, selector.into(), image], wide);
            m.code(&[0xCF]);
        }
    }
}

/// An interrupt with a 32-bit operand, which makes no difference to a processor. KVM's is another,
/// and so that all of it can be looked at, nothing else happens.
fn wide_interrupt(m: &mut Maker) {
    m.case.cpu.idtr.limit = 0x3FF;
    let ss = m.case.cpu.segment_mut(SegReg::Ss);
    *ss = Segment::real(ss.selector);
    m.case.cpu.gpr[Reg::Rsp] = 0x100 + m.random.below(0xFE00);
    let (opcode, vector) = (m.pick(&[0xCC, 0xCD, 0xCE]), m.random.below(0x80) as u8);
    m.code(&[0x66, opcode]);
    if opcode == 0xCD {
        m.code(&[vector]);
    }
}

/// An image of EFLAGS with anything but TF.
pub(super) fn flags_image(m: &mut Maker) -> u32 {
    (m.random.next() & !TF | FIXED) as u32
}

/// An interrupt table that does not hold every vector.
fn short_table(m: &mut Maker) {
    let limit = m.pick(&[0x3FB, 0x1FF, 0x83, 0x37, 0x33, 0x1B, 0x17, 3, 0]);
    m.case.cpu.idtr.limit = limit;
}

/// Exceptions of instructions that any program can execute.
pub(super) fn fault(m: &mut Maker) {
    if m.one_in(12) {
        short_table(m);
    }
    match m.random.below(12) {
        0 => {
            // DIV or IDIV, which often overflow.
            m.operand_size();
            let (opcode, digit, rm) =
                (m.pick(&[0xF6, 0xF7]), m.pick(&[6, 7]), m.random.below(8) as u8);
            m.code(&[opcode, 0xC0 | digit << 3 | rm]);
        }
        1 => m.code(&[0xD4, 0]),
        2 => {
            let code: &[u8] = m.pick(&[
                &[0x0F, 0x0B],
                &[0xF0, 0x90],
                &[0xF0, 0x89, 0x07],
                &[0xF0, 0x01, 0xC0],
                &[0xF0, 0x0F, 0xA3, 0x07],
                &[0xFE, 0xD0],
                &[0xFF, 0xF8],
                &[0xC6, 0xC8, 0],
                &[0x8D, 0xC0],
                &[0x0F, 0xBA, 0xC0, 1],
                &[0x0F, 0xC7, 0xC8],
                &[0x8F, 0xC8],
            ]);
            m.code(code);
        }
        3 => {
            // Sixteen bytes, or fifteen.
            let prefixes = m.pick(&[14, 15]);
            let prefix = m.pick(&[0x66, 0x26, 0x2E]);
            (0..prefixes).for_each(|_| m.code(&[prefix]));
            m.code(&[0x90]);
        }
        4 => {
            // Code that ends beyond the limit of CS.
            let short = 1 + m.random.below(5);
            m.case.cpu.rip = 0x1_0000 - short;
            m.code(&[0x66, 0xB8, 1, 2, 3, 4]);
        }
        5 => {
            let offset = 0xFFF8 + m.random.below(10) as u32;
            m.operand_size();
            let operand = m.operand_at(offset);
            let opcode = m.pick(&[0x89, 0x8B, 0x01, 0x39, 0x87, 0x8F]);
            let reg = if opcode == 0x8F { 0 } else { m.random.below(8) as u8 };
            m.code(&[opcode]);
            m.modrm(&operand, reg);
        }
        6 => {
            m.case.cpu.gpr[Reg::Rbp] = 0xFFF8 + m.random.below(10);
            m.operand_size();
            let opcode = m.pick(&[0x89, 0x8B, 0x01]);
            m.code(&[opcode, 0x46, 0]);
        }
        7..10 => {
            let sp = m.pick(&[0, 1, 2, 3, 0xFFFD, 0xFFFE, 0xFFFF]);
            m.case.cpu.gpr[Reg::Rsp] = sp;
            let ss = m.case.cpu.segment_mut(SegReg::Ss);
            ss.limit = ss.limit.min(0xFFFF);
            m.operand_size();
            let opcode = m.pick(&[0x50, 0x58, 0x60, 0x61, 0x6A, 0xC9, 0x9C]);
            m.code(&[opcode]);
            if opcode == 0x6A {
                m.code(&[1]);
            }
        }
        10 => {
            let string = m.pick(&[0xA4, 0xA5, 0xAA, 0xAB, 0xAC, 0xAD]);
            let [source, target] = [0; 2].map(|_| 0xFFF0 + m.random.below(16));
            let gpr = &mut m.case.cpu.gpr;
            (gpr[Reg::Rsi], gpr[Reg::Rdi], gpr[Reg::Rcx]) = (source, target, 12);
            m.operand_size();
            m.code(&[0xF3, string]);
        }
        _ => {
            // A segment that does not hold its stack.
            m.case.cpu.segment_mut(SegReg::Ss).limit = m.pick(&[0x7FFF, 0xFFE]);
            let opcode = m.pick(&[0x50, 0x58, 0xCC, 0xD4]);
            m.code(&[opcode, 0]);
        }
    }
}
