//! Register numbers, as ModRM and the opcode encode them, and the register file.

use core::ops::{Index, IndexMut};

/// A general-purpose register by its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the manual's names say it
pub enum Reg {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rbx = 3,
    Rsp = 4,
    Rbp = 5,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

/// A segment register by its encoding in `MOV Sreg` and `PUSH Sreg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the manual's names say it
pub enum SegReg {
    Es = 0,
    Cs = 1,
    Ss = 2,
    Ds = 3,
    Fs = 4,
    Gs = 5,
}

impl SegReg {
    /// All six, in encoding order.
    pub const ALL: [SegReg; 6] =
        [SegReg::Es, SegReg::Cs, SegReg::Ss, SegReg::Ds, SegReg::Fs, SegReg::Gs];

    /// The register that `number` encodes, if it encodes one.
    pub const fn from_number(number: u8) -> Option<SegReg> {
        match number {
            0 => Some(SegReg::Es),
            1 => Some(SegReg::Cs),
            2 => Some(SegReg::Ss),
            3 => Some(SegReg::Ds),
            4 => Some(SegReg::Fs),
            5 => Some(SegReg::Gs),
            _ => None,
        }
    }
}

/// Slot of the register file that always reads zero: the absent base or index of an address.
pub(crate) const ZERO_SLOT: u8 = 16;
/// Slot that holds RIP at the end of the running block, for RIP-relative addresses.
pub(crate) const RIP_SLOT: u8 = 17;

/// The sixteen general-purpose registers. Indexed by [`Reg`].
///
/// There are 32 slots so that an operand number masked with 31 needs no bounds check; those
/// past the sixteenth belong to the emulator and take no part in comparisons.
#[derive(Clone, Copy)]
pub struct Registers([u64; 32]);

impl Registers {
    /// All registers zero.
    pub const ZERO: Registers = Registers([0; 32]);

    /// The sixteen registers, in encoding order.
    pub fn as_array(&self) -> [u64; 16] {
        core::array::from_fn(|i| self.0[i])
    }

    /// The value in a slot; `number` is taken modulo 32.
    #[inline(always)]
    pub(crate) fn slot(&self, number: u8) -> u64 {
        self.0[(number & 31) as usize]
    }

    /// The place of a slot; `number` is taken modulo 32.
    #[inline(always)]
    pub(crate) fn slot_mut(&mut self, number: u8) -> &mut u64 {
        &mut self.0[(number & 31) as usize]
    }
}

impl From<[u64; 16]> for Registers {
    fn from(values: [u64; 16]) -> Self {
        Registers(core::array::from_fn(|i| if i < 16 { values[i] } else { 0 }))
    }
}

impl Index<Reg> for Registers {
    type Output = u64;
    #[inline(always)]
    fn index(&self, reg: Reg) -> &u64 {
        &self.0[reg as usize]
    }
}

impl IndexMut<Reg> for Registers {
    #[inline(always)]
    fn index_mut(&mut self, reg: Reg) -> &mut u64 {
        &mut self.0[reg as usize]
    }
}

impl PartialEq for Registers {
    fn eq(&self, other: &Self) -> bool {
        self.0[..16] == other.0[..16]
    }
}
impl Eq for Registers {}

impl core::fmt::Debug for Registers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, value) in self.0[..16].iter().enumerate() {
            write!(f, "{}{value:#x}", if i == 0 { "[" } else { ", " })?;
        }
        f.write_str("]")
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Registers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_array().serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Registers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u64; 16]>::deserialize(deserializer).map(Registers::from)
    }
}

#[cfg(feature = "arbitrary")]
impl<'a> arbitrary::Arbitrary<'a> for Registers {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        <[u64; 16]>::arbitrary(u).map(Registers::from)
    }
}
