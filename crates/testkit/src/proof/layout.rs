//! Where everything lies that a case can see.
//!
//! An arena is 640 KiB: code, four segments of data, a stack. Cases of 16- and 32-bit code reach it
//! through segments that end inside it, cases of 64-bit code by linear address. Several arenas lie
//! side by side, one a thread.

use realmode::arch::descriptor::{Attributes, Segment};

/// From one arena to the next.
pub const ARENA_STRIDE: u32 = 0x10_0000;
/// Linear address of arena 0.
pub const FIRST_ARENA: u32 = 0x1000_0000;
/// How many arenas there are: as many as have selectors.
pub const ARENAS: u16 = 512;
/// Bytes of an arena that belong to cases; the rest of its stride is the oracle's.
pub const ARENA_SIZE: u32 = 0xA_0000;
/// Pages of an arena.
pub const PAGES: usize = ARENA_SIZE as usize / 4096;

/// Offset of the code. All of it is INT3 but the instruction under test.
pub const CODE: u32 = 0x0_0000;
/// Offset of what DS addresses.
pub const DATA: u32 = 0x2_0000;
/// Offset of what ES addresses.
pub const EXTRA: u32 = 0x4_0000;
/// Offset of the stack.
pub const STACK: u32 = 0x6_0000;
/// Offset of what FS addresses.
pub const FS_DATA: u32 = 0x8_0000;
/// Offset of what GS addresses.
pub const GS_DATA: u32 = 0x9_0000;
/// Offset of where a case that is over jumps to: in the oracle's part of the stride.
pub const RETURN: u32 = 0xB_0000;

/// The segments there are. Each is a descriptor of the local descriptor table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The null selector.
    Null,
    /// 16-bit code, readable.
    Code16,
    /// 32-bit code, readable.
    Code32,
    /// 16-bit code that can only be executed.
    ExecuteOnly,
    /// 64 KiB.
    Data,
    /// 64 KiB elsewhere.
    Extra,
    /// A stack addressed by SP.
    Stack16,
    /// The same stack addressed by ESP.
    Stack32,
    /// Data of FFFh bytes: its limit is even.
    Short,
    /// Data that grows down from FFFFh to 1000h.
    Down,
    /// Data that cannot be written.
    ReadOnly,
    /// The whole arena, with a limit in pages.
    Wide,
    /// Data that is not present: only for loads of its selector.
    Missing,
    /// FS.
    Fs,
    /// GS.
    Gs,
}

impl Kind {
    /// Every one, in the order of the table.
    pub const ALL: [Kind; 15] = [
        Kind::Null,
        Kind::Code16,
        Kind::Code32,
        Kind::ExecuteOnly,
        Kind::Data,
        Kind::Extra,
        Kind::Stack16,
        Kind::Stack32,
        Kind::Short,
        Kind::Down,
        Kind::ReadOnly,
        Kind::Wide,
        Kind::Missing,
        Kind::Fs,
        Kind::Gs,
    ];

    /// Offset of the base in the arena, limit in bytes, access byte of the descriptor with DPL 3,
    /// and its G and D/B bits.
    pub const fn shape(self) -> (u32, u32, u32) {
        const DB: u32 = Attributes::DB;
        match self {
            Kind::Null => (0, 0, Attributes::UNUSABLE),
            Kind::Code16 => (CODE, 0xFFFF, 0xFB),
            Kind::Code32 => (CODE, 0xFFFF, 0xFB | DB),
            Kind::ExecuteOnly => (CODE, 0xFFFF, 0xF9),
            Kind::Data => (DATA, 0xFFFF, 0xF3),
            Kind::Extra => (EXTRA, 0xFFFF, 0xF3),
            Kind::Stack16 => (STACK, 0xFFFF, 0xF3),
            Kind::Stack32 => (STACK, 0xFFFF, 0xF3 | DB),
            Kind::Short => (DATA, 0xFFE, 0xF3),
            Kind::Down => (DATA, 0xFFF, 0xF7),
            Kind::ReadOnly => (DATA, 0xFFFF, 0xF1),
            Kind::Wide => (0, ARENA_SIZE - 1, 0xF3 | DB | Attributes::G),
            Kind::Missing => (DATA, 0xFFFF, 0x73),
            Kind::Fs => (FS_DATA, 0xFFFF, 0xF3),
            Kind::Gs => (GS_DATA, 0xFFFF, 0xF3),
        }
    }
}

/// Where an arena lies, which decides addresses and selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Linear address of the arena.
    pub base: u32,
    /// Its number: the first selector of its segments is this times sixteen.
    pub number: u16,
}

impl Layout {
    /// The arena with a number, below 4 GiB and above what programs use. Recorded cases have number
    /// 0.
    pub const fn native(number: u16) -> Layout {
        Layout { base: FIRST_ARENA + number as u32 * ARENA_STRIDE, number }
    }

    /// The arena in real mode, above the interrupt table.
    pub const REAL: Layout = Layout { base: 0x1_0000, number: 0 };

    /// The selector of a segment in protected mode: of the local table, for level 3.
    pub const fn selector(self, kind: Kind) -> u16 {
        match kind {
            Kind::Null => 0,
            _ => (self.number * 16 + kind as u16) << 3 | 7,
        }
    }

    /// A segment register with this segment in protected mode.
    pub const fn segment(self, kind: Kind) -> Segment {
        let (offset, limit, attributes) = kind.shape();
        let base = if matches!(kind, Kind::Null) { 0 } else { self.base + offset };
        Segment {
            selector: self.selector(kind),
            base: base as u64,
            limit,
            attributes: Attributes(attributes),
        }
    }

    /// The descriptor of a segment.
    pub const fn descriptor(self, kind: Kind) -> u64 {
        let Segment { base, limit, attributes, .. } = self.segment(kind);
        if matches!(kind, Kind::Null) {
            return 0;
        }
        let limit = if attributes.0 & Attributes::G != 0 { limit >> 12 } else { limit } as u64;
        let attributes = (attributes.0 & 0xF0FF) as u64;
        limit & 0xFFFF
            | (base & 0xFF_FFFF) << 16
            | attributes << 40
            | (limit & 0xF_0000) << 32
            | (base >> 24) << 56
    }
}
