//! The instruction set as data: every encoding that decode knows, in the manual's words.
//!
//! For tools that want to see each instruction once: case generators, coverage tables, fuzzers.
//!
//! ```
//! use realmode::UndefinedFlags::{Amd, Intel};
//! use realmode::encodings::{self, FlagRule, Map};
//! use realmode::arch::rflags::{AF, CF};
//!
//! let shld = encodings::all().find(|e| e.map() == Map::TwoByte && e.opcode() == 0xA4).unwrap();
//! assert_eq!(shld.to_string(), "0F A4 SHLD Ev,Gv,Ib");
//! assert_eq!((shld.family(), shld.is_implemented()), ("shift", true));
//! assert_eq!(shld.changes() & CF, CF);
//! assert_eq!(shld.undefined() & AF, AF);
//! assert_eq!(shld.undefined_flag(AF, Intel), Some(FlagRule::Cleared));
//! assert_eq!(shld.undefined_flag(AF, Amd), Some(FlagRule::Set));
//! ```

use core::ops::RangeInclusive;

use crate::arch::cpuid::Features;
use crate::isa::FAMILIES;
use crate::isa::operand::Plan;
use crate::isa::row::{Exec, NO_DIGIT, Traits};
use crate::isa::table::{self, Entry, ROWS};
use crate::profile::{Generation, UndefinedFlags, Vendor};

pub use crate::isa::operand::Operand;
pub use crate::isa::row::{Form, Map, Modes, Prefix};
pub use crate::isa::undefined::FlagRule;

/// An encoding: an opcode with what its prefixes and ModRM byte must say.
#[derive(Clone, Copy)]
pub struct Encoding {
    number: u16,
    entry: &'static Entry,
}

/// Every encoding, those of a family one after the other.
pub fn all() -> impl ExactSizeIterator<Item = Encoding> + DoubleEndedIterator {
    ROWS.iter().enumerate().map(|(i, entry)| Encoding { number: i as u16, entry })
}

impl Encoding {
    pub(crate) fn numbered(number: u16) -> Option<Encoding> {
        ROWS.get(usize::from(number)).map(|entry| Encoding { number, entry })
    }

    /// Its number, below that of [`all`] there are. It means nothing to another version.
    pub const fn number(&self) -> usize {
        self.number as usize
    }

    /// The instruction's name, in capitals; `cc` stands for sixteen conditions.
    pub fn name(&self) -> &'static str {
        self.entry.name()
    }

    /// The family it belongs to: the file of its handlers.
    pub fn family(&self) -> &'static str {
        let mut end = 0;
        let family = FAMILIES.iter().find(|family| {
            end += family.rows.len();
            self.number() < end
        });
        family.map_or("", |family| family.name)
    }

    /// The opcode map.
    pub fn map(&self) -> Map {
        table::opcode(self.number).0
    }

    /// The opcode, the first one if it has several.
    pub fn opcode(&self) -> u8 {
        table::opcode(self.number).1
    }

    /// How many consecutive opcodes it has: 8 for a register in the opcode, 16 for a condition.
    pub const fn opcodes(&self) -> u8 {
        self.entry.span
    }

    /// What ModRM.reg must be, if it is part of the opcode.
    pub const fn digit(&self) -> Option<u8> {
        if self.entry.digit == NO_DIGIT { None } else { Some(self.entry.digit) }
    }

    /// What ModRM.mod must say.
    pub const fn form(&self) -> Form {
        self.entry.form
    }

    /// What the mandatory prefix must be.
    pub const fn prefix(&self) -> Prefix {
        self.entry.prefix
    }

    /// The modes it exists in.
    pub const fn modes(&self) -> Modes {
        self.entry.modes
    }

    /// The VEX or EVEX vector lengths it has: bit i for 128 << i bits.
    pub const fn vector_lengths(&self) -> u8 {
        self.entry.vector.lengths
    }

    /// The values of W it has: bit 0 for W = 0, bit 1 for W = 1.
    pub const fn w(&self) -> u8 {
        self.entry.vector.w
    }

    /// Its operands.
    pub fn operands(&self) -> impl Iterator<Item = Operand> {
        self.entry.operands.into_iter().filter(|operand| *operand != Operand::None)
    }

    /// Does a ModRM byte follow the opcode?
    pub const fn has_modrm(&self) -> bool {
        self.entry.plan.has(Plan::MODRM)
    }

    /// Is LOCK legal before it, if its operand is memory?
    pub fn is_lockable(&self) -> bool {
        self.entry.takes_lock(true)
    }

    /// The CPUID features it needs, all of them.
    pub fn features(&self) -> Features {
        self.entry.features()
    }

    /// The generations that have it.
    pub const fn generations(&self) -> RangeInclusive<Generation> {
        self.entry.since..=self.entry.until
    }

    /// The only maker whose processors have it, if there is only one.
    pub const fn vendor(&self) -> Option<Vendor> {
        if self.entry.has(Traits::INTEL) {
            Some(Vendor::Intel)
        } else if self.entry.has(Traits::AMD) {
            Some(Vendor::Amd)
        } else {
            None
        }
    }

    /// The arithmetic flags it defines, as an RFLAGS mask.
    pub fn changes(&self) -> u64 {
        self.entry.effect().changes
    }

    /// The arithmetic flags it leaves undefined.
    pub fn undefined(&self) -> u64 {
        self.entry.effect().undefined
    }

    /// What becomes of a flag that it leaves undefined, on one kind of silicon; `None` if it is
    /// not undefined or that silicon does not have the instruction.
    pub fn undefined_flag(&self, flag: u64, silicon: UndefinedFlags) -> Option<FlagRule> {
        let effect = self.entry.effect();
        let is_early = silicon == UndefinedFlags::Early;
        let exists = if is_early {
            self.entry.since < Generation::Modern
        } else {
            self.entry.until == Generation::Modern
        };
        let is_undefined = flag.is_power_of_two() && effect.undefined & flag != 0;
        (exists && is_undefined).then(|| effect.rules.on(silicon).of(flag))
    }

    /// Does the emulator execute it? Otherwise it stops as
    /// [`Unimplemented`](crate::Stop::Unimplemented).
    pub fn is_implemented(&self) -> bool {
        !matches!(self.entry.exec(), Exec::Unimplemented) && !self.entry.has(Traits::NOT_EXECUTED)
    }
}

impl PartialEq for Encoding {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Encoding {}

/// The mandatory prefix, map, opcode, digit, name and operands: different for every encoding of
/// one processor, and the same in every version that has it.
impl core::fmt::Display for Encoding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.prefix() {
            Prefix::Any | Prefix::NotRepeat => "",
            Prefix::None => "NP ",
            Prefix::P66 => "66 ",
            Prefix::F3 | Prefix::F3WithoutB | Prefix::OnlyF3 => "F3 ",
            Prefix::F2 => "F2 ",
        })?;
        f.write_str(match self.map() {
            Map::One => "",
            Map::TwoByte => "0F ",
            Map::M0F38 => "0F38 ",
            Map::M0F3A => "0F3A ",
            Map::Vex1 => "VEX.0F ",
            Map::Vex2 => "VEX.0F38 ",
            Map::Vex3 => "VEX.0F3A ",
            Map::Vex7 => "VEX.MAP7 ",
            Map::Evex1 => "EVEX.0F ",
            Map::Evex2 => "EVEX.0F38 ",
            Map::Evex3 => "EVEX.0F3A ",
            Map::Evex5 => "EVEX.MAP5 ",
            Map::Evex6 => "EVEX.MAP6 ",
            Map::Xop8 => "XOP.8 ",
            Map::Xop9 => "XOP.9 ",
            Map::XopA => "XOP.A ",
            Map::Now3d => "0F0F ",
        })?;
        write!(f, "{:02X}", self.opcode())?;
        match self.form() {
            Form::Exact(byte) => write!(f, " {byte:02X}")?,
            Form::RegisterZero => f.write_str(" 11:rrr:000")?,
            Form::Any | Form::Memory | Form::Register => {}
        }
        if let Some(digit) = self.digit() {
            write!(f, " /{digit}")?;
        }
        write!(f, " {}", self.name())?;
        for (i, operand) in self.operands().enumerate() {
            write!(f, "{}{operand:?}", if i == 0 { " " } else { "," })?;
        }
        Ok(())
    }
}

impl core::fmt::Debug for Encoding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Encoding({self})")
    }
}
