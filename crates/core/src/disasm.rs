//! Decode without execution: one instruction's length, name and text.
//!
//! The text is Intel syntax: operand sizes spelled out, numbers in hexadecimal, nothing
//! abbreviated. It is meant for people who read traces; no assembler's grammar is promised.

mod memory;
mod operand;
mod text;

use crate::arch::cpuid::Features;
use crate::arch::registers::{RIP_SLOT, SegReg};
use crate::decode::{CodeSize, Context, Details, Incomplete, decode};
use crate::encodings::Encoding;
use crate::isa::operand::Operand;
use crate::isa::row::{Exec, Traits};
use crate::isa::table::Entry;
use crate::op::Op;
use crate::profile::{Generation, Profile};

/// Whether segments are real-mode ones, which decides what exists: VEX does not in real and
/// virtual-8086 mode, and neither does LAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// Real and virtual-8086 mode.
    Real,
    /// Protected mode and long mode.
    Protected,
}

/// Why bytes are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// They end too early.
    #[error("the instruction is not complete: at least {missing} more byte(s) are needed")]
    Short {
        /// How many bytes are missing at least; what they are can ask for more.
        missing: usize,
    },
    /// There are more prefixes than an instruction has room for, or than leave room for its rest:
    /// #GP.
    #[error("the instruction is longer than the processor takes")]
    TooLong,
}

/// A decoded instruction. Bytes that raise #UD are one too, called `undefined`.
///
/// `Display` writes it in Intel syntax.
#[derive(Clone, Copy)]
pub struct Instruction {
    op: Op,
    details: Details,
    size: CodeSize,
    ip: Option<u64>,
    is_undefined: bool,
}

/// Decodes the instruction at the start of `bytes`, as a processor with this profile would.
///
/// ```
/// use realmode::{CodeSize, DecodeError, Profile, Segmentation, decode_one};
///
/// let decode = |bytes: &[u8]| {
///     decode_one(bytes, CodeSize::Bits16, &Profile::INTEL, Segmentation::Real)
/// };
/// let jump = decode(&[0xEA, 0x5B, 0xE0, 0x00, 0xF0])?;
/// assert_eq!((jump.len(), jump.mnemonic()), (5, "JMP"));
/// assert_eq!(jump.to_string(), "jmp 0xf000:0xe05b");
///
/// let branch = decode(&[0x75, 0xFE])?;
/// assert_eq!(branch.at(0x7C00).to_string(), "jne 0x7c00");
/// assert_eq!(decode(&[0x0F, 0x0B])?.to_string(), "ud2");
/// assert!(decode(&[0xF0, 0x89, 0xD8])?.is_undefined());
/// assert_eq!(decode(&[0x66, 0xB8, 1]).err(), Some(DecodeError::Short { missing: 3 }));
/// # Ok::<(), DecodeError>(())
/// ```
///
/// # Errors
/// [`DecodeError::Short`] if the bytes end before the instruction does, and
/// [`DecodeError::TooLong`] if it cannot end within the processor's limit.
pub fn decode_one(
    bytes: &[u8],
    size: CodeSize,
    profile: &Profile,
    segmentation: Segmentation,
) -> Result<Instruction, DecodeError> {
    let context = Context { size, real: segmentation == Segmentation::Real, profile };
    let (op, details) = decode(bytes, context).map_err(|why| match why {
        Incomplete::TooLong => DecodeError::TooLong,
        Incomplete::Short => missing(bytes, context)
            .map_or(DecodeError::TooLong, |missing| DecodeError::Short { missing }),
    })?;
    let is_undefined = details.row.is_none_or(|row| {
        let is_lockable = row.takes_lock(details.is_memory);
        let is_taken = row.has(Traits::NO_COPROCESSOR) && profile.has(Features::X87);
        is_taken
            || details.lock && !is_lockable && profile.generation >= Generation::I80386
            || !registers_exist(row, &op, &details)
    });
    Ok(Instruction { op, details, size, ip: None, is_undefined })
}

/// Is there a register for every number? Handlers check this, in their order.
fn registers_exist(row: &Entry, op: &Op, details: &Details) -> bool {
    row.operands.iter().enumerate().all(|(i, operand)| match operand {
        // CS can be read, not written.
        Operand::Sw => op.reg < 6 && (i == 1 || op.reg != SegReg::Cs as u8),
        // LOCK makes CR0 AMD's CR8.
        Operand::Cd if details.lock => op.reg == 0,
        Operand::Cd => matches!(op.reg, 0 | 2 | 3 | 4 | 8),
        Operand::Dd => op.reg < 8,
        // Bounds have no 16-bit addresses either, and their tables none that RIP has a part in.
        Operand::Bnd => {
            let is_table = row.operands.contains(&Operand::M);
            let is_address = details.address_size != 2 && !(is_table && op.rm == RIP_SLOT);
            op.reg < 4 && (is_address || !details.is_memory)
        }
        Operand::Bnde => details.is_memory || op.rm < 4,
        _ => true,
    })
}

/// How many bytes `bytes` lacks at least; `None` if with every end they are too long.
#[cold]
fn missing(bytes: &[u8], context: Context<'_>) -> Option<usize> {
    const LONGEST: usize = 15;
    // The shortest ends there are: a byte that is an instruction, ModRM bytes without more, opcodes
    // without operands behind 0F and behind VEX. Group 3 has an immediate with C0 and none with D0.
    let ends = [0x90, 0x00, 0xA2, 0xC0, 0xD0, 0x77];
    let len = bytes.len().min(LONGEST);
    (1..=LONGEST - len).find(|more| {
        ends.iter().any(|end| {
            let mut padded = [*end; LONGEST];
            padded[..len].copy_from_slice(&bytes[..len]);
            decode(&padded[..len + more], context).is_ok()
        })
    })
}

impl Instruction {
    /// Its length in bytes.
    #[allow(clippy::len_without_is_empty)] // no instruction is empty
    pub const fn len(&self) -> usize {
        self.op.len as usize
    }

    /// Its name in the manual, in capitals; `undefined` if it raises #UD. The text is more exact
    /// where the manual's name covers several: `Jcc`, `CBW`, `MOVS`.
    pub fn mnemonic(&self) -> &'static str {
        match self.details.row {
            Some(row) if !self.is_undefined => row.name(),
            _ => "undefined",
        }
    }

    /// Its encoding, unless it is undefined.
    pub fn encoding(&self) -> Option<Encoding> {
        self.details
            .row
            .filter(|_| !self.is_undefined)
            .and_then(|_| Encoding::numbered(self.op.row))
    }

    /// Do these bytes raise #UD for want of a definition?
    pub const fn is_undefined(&self) -> bool {
        self.is_undefined
    }

    /// Would the emulator execute it, given that nothing faults?
    pub fn is_implemented(&self) -> bool {
        let unimplemented = self.details.row.is_some_and(|row| {
            matches!(row.exec(), Exec::Unimplemented) || row.has(Traits::NOT_EXECUTED)
        });
        !unimplemented
    }

    /// Does ModRM or the opcode name a memory operand?
    pub const fn is_memory(&self) -> bool {
        self.details.is_memory
    }

    /// The segment of that operand: the prefix's, or the one that its base register has.
    pub fn segment(&self) -> Option<SegReg> {
        self.details.is_memory.then(|| SegReg::from_number(self.op.seg)).flatten()
    }

    /// Its operand size in bytes: 1, 2, 4 or 8.
    pub const fn operand_size(&self) -> u8 {
        self.op.width
    }

    /// Its address size in bytes: 2, 4 or 8.
    pub const fn address_size(&self) -> u8 {
        self.details.address_size
    }

    /// Has it a LOCK prefix?
    pub const fn is_locked(&self) -> bool {
        self.details.lock
    }

    /// The same instruction at `ip`, so that the text shows where branches go.
    #[must_use]
    pub const fn at(mut self, ip: u64) -> Instruction {
        self.ip = Some(ip);
        self
    }
}

impl core::fmt::Debug for Instruction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Instruction({} bytes: {self})", self.len())
    }
}
