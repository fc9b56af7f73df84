//! The text of a memory operand.

use core::fmt::{Formatter, Result};

use super::Instruction;
use super::operand::{SEGMENTS, write_general};
use crate::arch::registers::{RIP_SLOT, ZERO_SLOT};
use crate::decode::vector::EVEX_B;
use crate::isa::row::Vector;
use crate::isa::table::Entry;

/// Bytes to the word for them.
fn size_word(bytes: u16) -> &'static str {
    match bytes {
        1 => "byte ",
        2 => "word ",
        4 => "dword ",
        8 => "qword ",
        10 => "tword ",
        16 => "xmmword ",
        32 => "ymmword ",
        64 => "zmmword ",
        _ => "",
    }
}

impl Instruction {
    /// A memory operand of `bytes`, or of no size of its own (0).
    pub(super) fn write_memory(&self, f: &mut Formatter<'_>, row: &Entry, bytes: u16) -> Result {
        let broadcast = row.vector.evex & Vector::BROADCAST;
        if self.details.evex & EVEX_B == 0 || broadcast == 0 || bytes == 0 {
            f.write_str(size_word(bytes))?;
            return self.write_address(f, None);
        }
        let element = 1 << (broadcast >> 5);
        f.write_str(size_word(element))?;
        self.write_address(f, None)?;
        write!(f, "{{1to{}}}", bytes / element)
    }

    /// Memory at a vector of addresses, whose index register has this name.
    pub(super) fn write_vector_address(&self, f: &mut Formatter<'_>, kind: &str) -> Result {
        self.write_address(f, Some(kind))
    }

    /// Memory at an offset in the instruction.
    pub(super) fn write_offset(&self, f: &mut Formatter<'_>, bytes: u16) -> Result {
        f.write_str(size_word(bytes))?;
        f.write_str("[")?;
        self.write_segment(f)?;
        write!(f, "{:#x}]", self.op.imm)
    }

    fn write_segment(&self, f: &mut Formatter<'_>) -> Result {
        match self.details.segment {
            Some(segment) => write!(f, "{}:", SEGMENTS[segment as usize]),
            None => Ok(()),
        }
    }

    fn write_address(&self, f: &mut Formatter<'_>, vector: Option<&str>) -> Result {
        let op = &self.op;
        f.write_str("[")?;
        self.write_segment(f)?;
        if op.rm == RIP_SLOT {
            return self.write_relative(f);
        }
        let has_base = op.rm != ZERO_SLOT;
        if has_base {
            write_general(f, op.rm, self.details.address_size)?;
        }
        let mut has_index = op.index != ZERO_SLOT;
        let plus = if has_base { "+" } else { "" };
        if let Some(kind) = vector {
            has_index = true;
            // No index in SIB is index 4 here; V' extends it.
            let low = if op.index == ZERO_SLOT { 4 } else { op.index };
            write!(f, "{plus}{kind}{}", low | self.details.vvvv & 16)?;
        } else if has_index {
            f.write_str(plus)?;
            write_general(f, op.index, self.details.address_size)?;
        }
        if has_index && op.scale != 0 {
            write!(f, "*{}", 1 << op.scale)?;
        }
        self.write_displacement(f, has_base || has_index)?;
        f.write_str("]")
    }

    fn write_displacement(&self, f: &mut Formatter<'_>, follows: bool) -> Result {
        let disp = match self.details.address_size {
            2 => i64::from(self.op.disp as i16),
            _ => i64::from(self.op.disp),
        };
        if !follows {
            let mask = u64::MAX >> (64 - u32::from(self.details.address_size) * 8);
            return write!(f, "{:#x}", disp as u64 & mask);
        }
        match disp {
            0 => Ok(()),
            1.. => write!(f, "+{disp:#x}"),
            _ => write!(f, "-{:#x}", disp.unsigned_abs()),
        }
    }

    /// A RIP-relative address, absolute if it is known where the instruction is.
    fn write_relative(&self, f: &mut Formatter<'_>) -> Result {
        let Some(ip) = self.ip else {
            let name = if self.details.address_size == 8 { "rip" } else { "eip" };
            f.write_str(name)?;
            self.write_displacement(f, true)?;
            return f.write_str("]");
        };
        let next = ip.wrapping_add(u64::from(self.op.len));
        let mask = u64::MAX >> (64 - u32::from(self.details.address_size) * 8);
        write!(f, "rel {:#x}]", next.wrapping_add(self.op.disp as u64) & mask)
    }
}
