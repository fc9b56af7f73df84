//! One instruction and everything it can see.

use std::ops::Range;

use realmode::{CodeSize, Profile, Reg, SegReg, Segmentation, decode_one};

use super::compare::{Flags, Registers};
use super::layout::{Kind, Layout, PAGES};

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

/// The page tables that the emulator has. The host always has some: they are as good as none unless
/// a page of the arena is odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paging {
    /// None, and no long mode outside 64-bit code.
    #[default]
    Off,
    /// Those of long mode, where all of the arena may be read and written.
    Even,
    /// A page of the arena is not present.
    Absent(u8),
    /// A page of the arena cannot be written.
    ReadOnly(u8),
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
    /// Which pages it may use.
    pub paging: Paging,
}

impl Case {
    /// The pages that the stack pointer is in, and the one below, round the end of the stack.
    pub(super) fn stack_pages(&self) -> impl Iterator<Item = usize> {
        let rsp = self.gpr[Reg::Rsp as usize];
        let (base, ..) = self.segments[SegReg::Ss as usize].shape();
        let (base, wrap, end) = match self.mode {
            Mode::Bits64 => (0u64.wrapping_sub(self.layout.base.into()), u64::MAX, u64::MAX),
            _ if self.segments[SegReg::Ss as usize].is_big() => {
                (u64::from(base), 0xFFFF_FFFF, 0xFFFF_FFFF)
            }
            _ => (u64::from(base), 0xFFFF, 0xFFFF_FFFF),
        };
        [0, 1, 0x1000, 0x1_0000 - 0x1000]
            .map(|back| (base.wrapping_add(rsp.wrapping_sub(back) & wrap) & end) / 4096)
            .into_iter()
            .filter(|page| *page < PAGES as u64)
            .map(|page| page as usize)
    }

    /// The words that the pokes lie in, those of a page at a time.
    pub(super) fn poked_words(&self) -> impl Iterator<Item = Range<usize>> {
        let pokes = self.pokes.iter().filter(|poke| poke.len > 0);
        let ranges = pokes.flat_map(|poke| {
            let start = poke.at as usize / 8;
            let end = (poke.at as usize + usize::from(poke.len)).div_ceil(8);
            let boundary = (start | 511) + 1;
            [start..end.min(boundary), boundary..end]
        });
        ranges.filter(|range| !range.is_empty())
    }

    /// Does a poke reach the eight bytes at `at`?
    pub(super) fn is_poked(&self, at: u32) -> bool {
        self.pokes.iter().any(|poke| poke.at < at + 8 && at < poke.at + u32::from(poke.len))
    }

    /// Eight bytes of memory as the case begins with them, out of what they are in any case.
    pub(super) fn word_before(&self, at: u32, background: u64) -> u64 {
        if !self.is_poked(at) {
            return background;
        }
        let mut bytes = background.to_le_bytes();
        for poke in &self.pokes {
            for (i, byte) in poke.as_slice().iter().enumerate() {
                if let Some(place) = (poke.at + i as u32).checked_sub(at)
                    && let Some(place) = bytes.get_mut(place as usize)
                {
                    *place = *byte;
                }
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// For people: the instruction, the registers, and what is in memory.
    pub fn describe(&self, profile: &Profile) -> String {
        let segmentation = match self.mode {
            Mode::Real => Segmentation::Real,
            Mode::Bits16 | Mode::Bits32 | Mode::Bits64 => Segmentation::Protected,
        };
        let bytes = self.code.as_slice();
        let size = self.mode.code_size();
        let text = match decode_one(bytes, size, profile, segmentation) {
            Ok(instruction) => instruction.to_string(),
            Err(why) => why.to_string(),
        };
        let mut lines = format!(
            "{}-bit {bytes:02x?} at {:x}: {text}\n{}\nflags {}\nes cs ss ds fs gs: {:?}",
            size.bits(),
            self.entry,
            Registers(&self.gpr),
            Flags(self.rflags),
            self.segments,
        );
        if self.paging != Paging::Off {
            lines += &format!("\npages: {:?}", self.paging);
        }
        for poke in self.pokes.iter().filter(|poke| poke.len > 0) {
            lines += &format!("\nmemory {:05x}: {:02x?}", poke.at, poke.as_slice());
        }
        lines
    }
}
