//! Exceptions of instructions that any program can execute.

use realmode::{Reg, SegReg};

use super::Maker;
use super::transfer::short_table;

/// What is #UD whatever follows.
const UNDEFINED: &[&[u8]] = &[
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
];

/// An instruction that often raises an exception.
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
            let code = m.pick(UNDEFINED);
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
        _ => at_a_limit(m),
    }
}

/// Operands at the end of their segment.
fn at_a_limit(m: &mut Maker) {
    match m.random.below(7) {
        0 => {
            let offset = 0xFFF8 + m.random.below(10) as u32;
            m.operand_size();
            let operand = m.operand_at(offset);
            let opcode = m.pick(&[0x89, 0x8B, 0x01, 0x39, 0x87, 0x8F]);
            let reg = if opcode == 0x8F { 0 } else { m.random.below(8) as u8 };
            m.code(&[opcode]);
            m.modrm(&operand, reg);
        }
        1 => {
            m.case.cpu.gpr[Reg::Rbp] = 0xFFF8 + m.random.below(10);
            m.operand_size();
            let opcode = m.pick(&[0x89, 0x8B, 0x01]);
            m.code(&[opcode, 0x46, 0]);
        }
        2..5 => {
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
        5 => {
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
