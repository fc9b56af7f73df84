//! The text of one operand.

use core::fmt::{Formatter, Result};

use super::Instruction;
use crate::decode::CodeSize;
use crate::decode::vector::EVEX_B;
use crate::isa::operand::{Imm, Operand as O, Plan};
use crate::isa::row::Size64;
use crate::isa::table::Entry;

/// Segment registers, by their encoding.
pub(super) const SEGMENTS: [&str; 6] = ["es", "cs", "ss", "ds", "fs", "gs"];

const BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];
const HIGH_BYTES: [&str; 4] = ["ah", "ch", "dh", "bh"];
const WORDS: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];

/// A general register of `bytes`.
pub(super) fn write_general(f: &mut Formatter<'_>, number: u8, bytes: u8) -> Result {
    // An 8-bit number has bit 4 set for AH to BH.
    if bytes == 1 && number & 16 != 0 {
        return f.write_str(HIGH_BYTES[usize::from(number & 3)]);
    }
    match (number & 15, bytes) {
        (low @ 0..8, 1) => f.write_str(BYTES[usize::from(low)]),
        (low @ 0..8, 2) => f.write_str(WORDS[usize::from(low)]),
        (low @ 0..8, 4) => write!(f, "e{}", WORDS[usize::from(low)]),
        (low @ 0..8, _) => write!(f, "r{}", WORDS[usize::from(low)]),
        (high, 1) => write!(f, "r{high}b"),
        (high, 2) => write!(f, "r{high}w"),
        (high, 4) => write!(f, "r{high}d"),
        (high, _) => write!(f, "r{high}"),
    }
}

impl Instruction {
    /// ModRM.reg and ModRM.rm as registers: decode exchanges them where the destination is reg.
    fn registers(&self, row: &Entry) -> (u8, u8) {
        if row.plan.has(Plan::REVERSED) && row.plan.has(Plan::MODRM) && !self.details.is_memory {
            (self.op.rm, self.op.reg)
        } else {
            (self.op.reg, self.op.rm)
        }
    }

    fn vvvv(&self) -> u8 {
        if self.size == CodeSize::Bits64 { self.details.vvvv } else { self.details.vvvv & 7 }
    }

    /// Bytes of a vector.
    fn vector_bytes(&self) -> u16 {
        let details = &self.details;
        if details.evex & EVEX_B != 0 && !details.is_memory {
            // L is the rounding mode.
            return 64;
        }
        16 << (details.vector_length & 3)
    }

    /// The size of Rd and Ey: 64 bits where the code or REX.W says so.
    fn wide_size(&self, row: &Entry) -> u8 {
        let is_whole = row.size64 == Size64::Force64 && self.size == CodeSize::Bits64;
        if is_whole || self.details.operand_size == 8 { 8 } else { 4 }
    }

    pub(super) fn write_operand(&self, f: &mut Formatter<'_>, row: &Entry, index: usize) -> Result {
        let operand = row.operands[index];
        let details = &self.details;
        let size = details.operand_size;
        if details.is_memory && operand.is_rm() {
            return self.write_rm_memory(f, row, operand);
        }
        let (reg, rm) = self.registers(row);
        match operand {
            O::Eb => write_general(f, rm, 1),
            O::Ew => write_general(f, rm, 2),
            O::Ed | O::Edb | O::Edw | O::Edd => write_general(f, rm, 4),
            O::Eq => write_general(f, rm, 8),
            O::Ez => write_general(f, rm, size.min(4)),
            O::Ev | O::Evw | O::Rv => write_general(f, rm, size),
            O::Ey | O::Rd => write_general(f, rm, self.wide_size(row)),
            O::Gb => write_general(f, reg, 1),
            O::Gw => write_general(f, reg, 2),
            O::Gd => write_general(f, reg, 4),
            O::Gv => write_general(f, reg, size),
            O::Ga => write_general(f, reg, details.address_size),
            O::Ra => write_general(f, rm, details.address_size),
            O::Gy => write_general(f, reg, self.wide_size(row)),
            O::By => write_general(f, self.vvvv(), self.wide_size(row)),
            O::Zb => write_general(f, self.op.reg, 1),
            O::Zv => write_general(f, self.op.reg, size),
            O::Al => f.write_str("al"),
            O::Ax => f.write_str("ax"),
            O::Cl => f.write_str("cl"),
            O::Dx => f.write_str("dx"),
            // Ports have at most 32 bits.
            O::Rax if matches!(row.name(), "IN" | "OUT") => write_general(f, 0, size.min(4)),
            O::Rax => write_general(f, 0, size),
            O::Sw => f.write_str(SEGMENTS.get(usize::from(reg)).copied().unwrap_or("?")),
            O::Es | O::Cs | O::Ss | O::Ds | O::Fs | O::Gs => {
                f.write_str(SEGMENTS[operand as usize - O::Es as usize])
            }
            O::Cd => write!(f, "cr{reg}"),
            O::Dd if matches!(details.opcode, 0x24 | 0x26) => write!(f, "tr{reg}"),
            O::Dd => write!(f, "dr{reg}"),
            O::Ib | O::Ibs | O::Iw | O::Id | O::Iz | O::Iv | O::One => {
                self.write_immediate(f, row, operand, index)
            }
            O::Jb | O::Jz => self.write_target(f, row),
            O::Ap => {
                let bits = u32::from(size.min(4)) * 8;
                let offset = self.op.imm & ((1 << bits) - 1);
                write!(f, "{:#x}:{offset:#x}", self.op.imm >> bits)
            }
            O::Ob => self.write_offset(f, 1),
            O::Ov => self.write_offset(f, u16::from(size)),
            O::St0 => f.write_str("st0"),
            O::Sti => write!(f, "st{}", rm & 7),
            _ => self.write_vector_register(f, operand, (reg, rm)),
        }
    }

    /// The operand that ModRM.rm makes memory.
    fn write_rm_memory(&self, f: &mut Formatter<'_>, row: &Entry, operand: O) -> Result {
        let size = u16::from(self.details.operand_size);
        let vector = self.vector_bytes();
        if operand.is_vsib() {
            let index = match operand {
                O::Mvh => (vector / 2).max(16),
                O::Mvdq => 16,
                O::Mvqq => 32,
                _ => vector,
            };
            return self.write_vector_address(f, vector_name(index));
        }
        if operand == O::Mp && row.operands[0] == O::Mp {
            f.write_str("far ")?;
            return self.write_memory(f, row, size);
        }
        self.write_memory(f, row, operand.memory_bytes(vector, size))
    }

    fn write_immediate(
        &self,
        f: &mut Formatter<'_>,
        row: &Entry,
        operand: O,
        index: usize,
    ) -> Result {
        let imm = self.op.imm;
        let size = u32::from(self.op.width) * 8;
        // Two immediates share the field; the first is the low one.
        let is_second = index > 0 && matches!(row.operands[index - 1], O::Ib | O::Iw);
        let value = match (row.plan.imm, operand) {
            (Imm::WordByte, O::Iw) => imm & 0xFFFF,
            (Imm::WordByte, _) => imm >> 16 & 0xFF,
            (Imm::ByteByte, _) if is_second => imm >> 8 & 0xFF,
            (_, O::Ib) => imm & 0xFF,
            (_, O::Iw) => imm & 0xFFFF,
            (_, O::Id) => imm,
            _ => imm & (u64::MAX >> (64 - size)),
        };
        write!(f, "{value:#x}")
    }

    /// Where a branch goes, or how far if nobody said where it is.
    fn write_target(&self, f: &mut Formatter<'_>, row: &Entry) -> Result {
        let distance = (self.op.imm).wrapping_add(u64::from(self.op.len));
        let bits = match self.size {
            CodeSize::Bits64 => 64,
            // SDM vol. 2D, "XBEGIN": a 16-bit operand size does not truncate the address.
            _ if row.name() == "XBEGIN" => 32,
            _ => u32::from(self.details.operand_size) * 8,
        };
        match self.ip {
            Some(ip) => write!(f, "{:#x}", ip.wrapping_add(distance) & (u64::MAX >> (64 - bits))),
            None if distance as i64 >= 0 => write!(f, "$+{distance:#x}"),
            None => write!(f, "$-{:#x}", (distance as i64).unsigned_abs()),
        }
    }

    /// MMX, vector, mask, bound and tile registers.
    fn write_vector_register(
        &self,
        f: &mut Formatter<'_>,
        operand: O,
        (reg, rm): (u8, u8),
    ) -> Result {
        let details = &self.details;
        let high = |is_high: bool| if is_high { 16 } else { 0 };
        let reg = reg & 15 | high(details.high_reg);
        // EVEX.X is bit 4 of the register in rm.
        let rm = rm & 15 | high(details.is_evex && details.rex & 2 != 0);
        let vvvv = self.vvvv();
        let last = (self.op.imm >> 4) as u8 & if self.size == CodeSize::Bits64 { 15 } else { 7 };
        let vector = self.vector_bytes();
        let half = (vector / 2).max(16);
        match operand {
            O::P => write!(f, "mm{}", reg & 7),
            O::Q | O::Qd | O::N => write!(f, "mm{}", rm & 7),
            O::V => write!(f, "{}{reg}", vector_name(vector)),
            O::Vh => write!(f, "{}{reg}", vector_name(half)),
            O::Vdq => write!(f, "xmm{reg}"),
            O::H => write!(f, "{}{vvvv}", vector_name(vector)),
            O::Hdq => write!(f, "xmm{vvvv}"),
            O::H4 => write!(f, "{}{vvvv}+3", vector_name(vector)),
            O::H4dq => write!(f, "xmm{vvvv}+3"),
            O::W | O::Wn | O::U => write!(f, "{}{rm}", vector_name(vector)),
            O::Wqq => write!(f, "ymm{rm}"),
            O::Wh => write!(f, "{}{rm}", vector_name(half)),
            O::Wdq | O::Wq | O::Wd | O::Ww | O::Wb | O::Wf | O::We | O::Udq => {
                write!(f, "xmm{rm}")
            }
            O::L | O::Li => write!(f, "{}{last}", vector_name(vector)),
            O::Ldq => write!(f, "xmm{last}"),
            O::Kg => write!(f, "k{}", reg & 7),
            O::Kr | O::Keb | O::Kew | O::Ked | O::Keq => write!(f, "k{}", rm & 7),
            O::Kv => write!(f, "k{}", vvvv & 7),
            O::Bnd => write!(f, "bnd{reg}"),
            O::Bnde => write!(f, "bnd{rm}"),
            O::Tile => write!(f, "tmm{}", reg & 7),
            O::Te => write!(f, "tmm{}", rm & 7),
            O::Tv => write!(f, "tmm{}", vvvv & 7),
            _ => f.write_str("?"),
        }
    }
}

fn vector_name(bytes: u16) -> &'static str {
    match bytes {
        16 => "xmm",
        32 => "ymm",
        _ => "zmm",
    }
}
