//! The text of an instruction: prefixes, the exact name, the list of operands.

use core::fmt::{Display, Formatter, Result, Write};

use super::Instruction;
use crate::decode::CodeSize;
use crate::decode::vector::{EVEX_AAA, EVEX_B, EVEX_Z};
use crate::isa::operand::Operand as O;
use crate::isa::row::{Size64, Vector};
use crate::isa::table::Entry;

/// Condition codes: of the manual's spellings the shorter ones.
const CONDITIONS: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
/// The only spellings that CMPccXADD has.
const CMP_CONDITIONS: [&str; 16] =
    ["o", "no", "b", "nb", "z", "nz", "be", "nbe", "s", "ns", "p", "np", "l", "nl", "le", "nle"];

/// Names that depend on the operand size: 16, 32, 64 bits.
const SIZED: [(&str, [&str; 3]); 14] = [
    ("CBW", ["cbw", "cwde", "cdqe"]),
    ("CWD", ["cwd", "cdq", "cqo"]),
    ("PUSHA", ["pusha", "pushad", "pushad"]),
    ("POPA", ["popa", "popad", "popad"]),
    ("PUSHF", ["pushf", "pushfd", "pushfq"]),
    ("POPF", ["popf", "popfd", "popfq"]),
    ("IRET", ["iret", "iretd", "iretq"]),
    ("INCSSP", ["incsspd", "incsspd", "incsspq"]),
    ("RDSSP", ["rdsspd", "rdsspd", "rdsspq"]),
    ("WRSS", ["wrssd", "wrssd", "wrssq"]),
    ("WRUSS", ["wrussd", "wrussd", "wrussq"]),
    ("CMPXCHG8B", ["cmpxchg8b", "cmpxchg8b", "cmpxchg16b"]),
    ("SYSRET", ["sysret", "sysret", "sysretq"]),
    ("SYSEXIT", ["sysexit", "sysexit", "sysexitq"]),
];

/// Names whose operand size shows in no operand.
const SIZELESS: [&str; 12] = [
    "RET", "RETF", "ENTER", "LEAVE", "PUSH", "POP", "LGDT", "LIDT", "FLDENV", "FNSTENV", "FRSTOR",
    "FNSAVE",
];

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Some(row) = self.details.row.filter(|_| !self.is_undefined()) else {
            return f.write_str("undefined");
        };
        self.write_prefixes(f, row)?;
        if self.exchanges_nothing(row) {
            return f.write_str("nop");
        }
        self.write_name(f, row)?;
        if is_string(row) {
            return Ok(());
        }
        let mut separator = " ";
        for (i, operand) in row.operands.iter().enumerate() {
            if *operand == O::None {
                break;
            }
            let is_last = row.operands.get(i + 1).is_none_or(|next| !next.is_register_or_memory());
            f.write_str(separator)?;
            self.write_operand(f, row, i)?;
            if i == 0 {
                self.write_mask(f)?;
            }
            if is_last && operand.is_register_or_memory() {
                self.write_rounding(f, row)?;
            }
            separator = ", ";
        }
        self.write_implicit(f, row)
    }
}

/// Does it name its operands by its suffix alone?
fn is_string(row: &Entry) -> bool {
    row.operands.iter().any(|o| matches!(o, O::Xb | O::Xv | O::Yb | O::Yv))
}

impl Instruction {
    fn write_prefixes(&self, f: &mut Formatter<'_>, row: &Entry) -> Result {
        let details = &self.details;
        if details.lock {
            f.write_str("lock ")?;
        }
        let is_string = is_string(row);
        let compares = matches!(row.name(), "CMPS" | "SCAS");
        match details.repeat {
            0xF3 if is_string && compares => f.write_str("repe ")?,
            0xF3 if is_string => f.write_str("rep ")?,
            0xF2 if is_string => f.write_str("repne ")?,
            _ => {}
        }
        match details.segment {
            Some(segment) if is_string || row.name() == "XLATB" => {
                write!(f, "{} ", super::operand::SEGMENTS[segment as usize])?;
            }
            _ => {}
        }
        let address = self.details.address_size;
        let is_implicit = is_string || row.name() == "XLATB";
        if is_implicit && address != self.usual_address() {
            write!(f, "a{} ", u32::from(address) * 8)?;
        }
        let shows_size = row.operands.iter().any(|o| matches!(o, O::Zv | O::Ev | O::Rv));
        let size = details.operand_size;
        let is_sizeless = SIZELESS.contains(&row.name())
            || row.operands.iter().any(|o| matches!(o, O::Jb | O::Jz));
        if !shows_size && is_sizeless && size != self.usual_size(row) {
            write!(f, "o{} ", u32::from(size) * 8)?;
        }
        Ok(())
    }

    /// Is it 90, XCHG of rAX with itself?
    fn exchanges_nothing(&self, row: &Entry) -> bool {
        self.details.opcode == 0x90 && self.op.reg == 0 && row.operands.contains(&O::Zv)
    }

    /// What is no operand of the row: VPERMIL2's low four bits, LOOP's counter if it is not the
    /// usual one.
    fn write_implicit(&self, f: &mut Formatter<'_>, row: &Entry) -> Result {
        if row.operands.contains(&O::Li) {
            return write!(f, ", {:#x}", self.op.imm & 15);
        }
        if row.name().starts_with("LOOP") && self.details.address_size != self.usual_address() {
            f.write_str(", ")?;
            return super::operand::write_general(f, 1, self.details.address_size);
        }
        Ok(())
    }

    /// The address size without prefixes.
    fn usual_address(&self) -> u8 {
        2 << self.size as u8
    }

    /// The operand size without prefixes.
    fn usual_size(&self, row: &Entry) -> u8 {
        match self.size {
            CodeSize::Bits16 => 2,
            CodeSize::Bits32 => 4,
            CodeSize::Bits64 if row.size64 == Size64::Normal => 4,
            CodeSize::Bits64 => 8,
        }
    }

    /// The name: the row's, made exact, in small letters.
    fn write_name(&self, f: &mut Formatter<'_>, row: &Entry) -> Result {
        let name = row.name();
        let size = match self.details.operand_size {
            2 => 0,
            4 => 1,
            _ => 2,
        };
        if let Some((_, names)) = SIZED.iter().find(|(general, _)| *general == name) {
            return f.write_str(names[size]);
        }
        if name == "JCXZ" {
            return f.write_str(match self.details.address_size {
                2 => "jcxz",
                4 => "jecxz",
                _ => "jrcxz",
            });
        }
        if let Some((before, after)) = name.split_once("cc").filter(|_| row.span == 16) {
            write_small(f, before)?;
            let table = if after.is_empty() { CONDITIONS } else { CMP_CONDITIONS };
            f.write_str(table[usize::from(self.details.opcode & 15)])?;
            return write_small(f, after);
        }
        write_small(f, name)?;
        if is_string(row) {
            let is_port = row.operands.contains(&O::Dx);
            let suffix = match self.op.width {
                1 => 'b',
                2 => 'w',
                // Ports have at most 32 bits.
                8 if !is_port => 'q',
                _ => 'd',
            };
            f.write_char(suffix)?;
        }
        Ok(())
    }

    /// `{k1}{z}`, after the destination.
    fn write_mask(&self, f: &mut Formatter<'_>) -> Result {
        let evex = self.details.evex;
        if evex & EVEX_AAA != 0 {
            write!(f, "{{k{}}}", evex & EVEX_AAA)?;
        }
        if evex & EVEX_Z != 0 {
            f.write_str("{z}")?;
        }
        Ok(())
    }

    /// `{rd-sae}` or `{sae}`, after the last operand that is no immediate.
    fn write_rounding(&self, f: &mut Formatter<'_>, row: &Entry) -> Result {
        const MODES: [&str; 4] = ["rn", "rd", "ru", "rz"];
        if self.details.is_memory || self.details.evex & EVEX_B == 0 {
            return Ok(());
        }
        if row.vector.evex & Vector::ROUNDING != 0 {
            let mode = MODES[usize::from(self.details.vector_length & 3)];
            return write!(f, ", {{{mode}-sae}}");
        }
        f.write_str(", {sae}")
    }
}

fn write_small(f: &mut Formatter<'_>, name: &str) -> Result {
    name.chars().try_for_each(|letter| f.write_char(letter.to_ascii_lowercase()))
}
