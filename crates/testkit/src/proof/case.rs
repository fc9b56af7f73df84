//! One instruction and everything it can see.

use realmode::CodeSize;

use super::layout::{Kind, Layout, WAY_BACK};

/// The mode a case runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Real mode.
    Real,
    /// 16-bit code at level 3.
    Bits16,
    /// 32-bit code at level 3.
    Bits32,
    /// 64-bit code at level 3.
    Bits64,
}

impl Mode {
    /// The size that code has by default.
    pub const fn code_size(self) -> CodeSize {
        match self {
            Mode::Real | Mode::Bits16 => CodeSize::Bits16,
            Mode::Bits32 => CodeSize::Bits32,
            Mode::Bits64 => CodeSize::Bits64,
        }
    }
}

/// Up to fifteen bytes, and one that makes them too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Code {
    /// The bytes; those past `len` are zero.
    pub bytes: [u8; 16],
    /// How many there are.
    pub len: u8,
}

impl Code {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Appends a byte, unless there is no room.
    pub fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
            *place = byte;
            self.len += 1;
        }
    }
}

/// Bytes that a case puts into its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Poke {
    /// Offset in the arena; the bytes lie inside it.
    pub at: u32,
    /// The bytes; those past `len` are zero.
    pub bytes: [u8; 32],
    /// How many there are; 0 for no poke.
    pub len: u8,
}

impl Poke {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// One instruction and everything it can see.
///
/// Memory is the arena's background, which is the same for all cases, then the pokes in their
/// order, then the code with what returns from it. The x87, SSE and AVX registers are as FNINIT
/// leaves them, zero, and MXCSR is 1F80h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The mode.
    pub mode: Mode,
    /// The arena.
    pub layout: Layout,
    /// The instruction.
    pub code: Code,
    /// Its offset in the code segment; in 64-bit code, from the base of the arena's code.
    pub entry: u32,
    /// RAX to R15 in the manual's order; outside 64-bit code the low halves of the first eight
    /// count.
    pub gpr: [u64; 16],
    /// The flags, with bit 1, IF and nothing privileged.
    pub rflags: u64,
    /// ES, CS, SS, DS, FS, GS. In 64-bit code only FS and GS count, by their bases; in real mode
    /// bases alone count.
    pub segments: [Kind; 6],
    /// What it puts into memory.
    pub pokes: [Poke; 3],
}

impl Case {
    /// What follows the instruction: a far jump to where the oracle waits, in 64-bit code a near
    /// one. Nothing can tell whether the instruction after a case is reached but going there.
    pub fn way_back(&self) -> Code {
        let to = self.layout.base + WAY_BACK;
        let mut code = Code::default();
        let mut push = |bytes: &[u8]| bytes.iter().for_each(|byte| code.push(*byte));
        match self.mode {
            Mode::Bits64 => {
                push(&[0xFF, 0x25, 0, 0, 0, 0]);
                push(&u64::from(to).to_le_bytes());
                return code;
            }
            Mode::Real | Mode::Bits16 => push(&[0x66, 0xEA]),
            Mode::Bits32 => push(&[0xEA]),
        }
        push(&to.to_le_bytes());
        push(&[0x33, 0]);
        code
    }
}
