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
pub const ARENAS: u16 = 256;
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
    /// Data of two pages, with a limit in pages.
    Paged = 16,
    /// One byte of data.
    Byte,
    /// The last 64 KiB of 4 GiB, with a limit in pages: data that grows down, of 32 bits.
    DownBig,
    /// All from 1000h to the end of 4 GiB, with a limit in bytes.
    DownBytes,
    /// Data that grows down to where it ends: nothing.
    DownNothing,
    /// Data that grows down and cannot be written.
    DownReadOnly,
    /// A stack of FFFh bytes addressed by SP.
    ShortStack16,
    /// A stack of 1000h bytes addressed by ESP.
    ShortStack32,
    /// A stack that grows down from FFFFh to 1000h.
    DownStack,
    /// 16-bit code of 800h bytes.
    ShortCode16,
    /// 32-bit code of 800h bytes.
    ShortCode32,
    /// 32-bit code with a limit in pages.
    PagedCode32,
    /// 32-bit code that can only be executed.
    ExecuteOnly32,
    /// Code that is not present.
    MissingCode,
    /// Conforming code that is not present: the only one that Linux grants.
    MissingConforming,
    /// Data that is neither present nor writable.
    MissingReadOnly,
}

impl Kind {
    /// Every one, in the order of the table.
    pub const ALL: [Kind; 31] = [
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
        Kind::Paged,
        Kind::Byte,
        Kind::DownBig,
        Kind::DownBytes,
        Kind::DownNothing,
        Kind::DownReadOnly,
        Kind::ShortStack16,
        Kind::ShortStack32,
        Kind::DownStack,
        Kind::ShortCode16,
        Kind::ShortCode32,
        Kind::PagedCode32,
        Kind::ExecuteOnly32,
        Kind::MissingCode,
        Kind::MissingConforming,
        Kind::MissingReadOnly,
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
            Kind::Paged => (DATA, 0x1FFF, 0xF3 | Attributes::G),
            Kind::Byte => (DATA + 0x800, 0, 0xF3),
            Kind::DownBig => (DATA + 0x1_0000, 0xFFFE_FFFF, 0xF7 | DB | Attributes::G),
            Kind::DownBytes => (DATA, 0xFFF, 0xF7 | DB),
            Kind::DownNothing => (DATA, 0xFFFF, 0xF7),
            Kind::DownReadOnly => (DATA, 0x7FFF, 0xF5),
            Kind::ShortStack16 => (STACK, 0xFFE, 0xF3),
            Kind::ShortStack32 => (STACK, 0xFFF, 0xF3 | DB),
            Kind::DownStack => (STACK, 0xFFF, 0xF7),
            Kind::ShortCode16 => (CODE, 0x7FF, 0xFB),
            Kind::ShortCode32 => (CODE, 0x7FF, 0xFB | DB),
            Kind::PagedCode32 => (CODE, 0xFFFF, 0xFB | DB | Attributes::G),
            Kind::ExecuteOnly32 => (CODE, 0xFFFF, 0xF9 | DB),
            Kind::MissingCode => (CODE, 0xFFFF, 0x7B),
            Kind::MissingConforming => (CODE, 0xFFFF, 0x7F),
            Kind::MissingReadOnly => (DATA, 0xFFFF, 0x71),
        }
    }

    /// Is its D/B bit set: 32-bit code, a stack addressed by ESP, an upper end at 4 GiB?
    pub const fn is_big(self) -> bool {
        self.shape().2 & Attributes::DB != 0
    }

    /// Is it data that grows down?
    pub const fn is_down(self) -> bool {
        self.shape().2 & 0xC == 4 && !matches!(self, Kind::Null)
    }

    /// The first and the last offset in it.
    pub const fn offsets(self) -> (u64, u64) {
        let (_, limit, _) = self.shape();
        match (self.is_down(), self.is_big()) {
            (true, false) => (limit as u64 + 1, 0xFFFF),
            (true, true) => (limit as u64 + 1, 0xFFFF_FFFF),
            _ if matches!(self, Kind::Null) => (0, 0xFFFF),
            _ => (0, limit as u64),
        }
    }
}

/// Where an arena lies, which decides addresses and selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Linear address of the arena.
    pub base: u32,
    /// Its number: the first entry of its segments in the table is this times
    /// [`Layout::SELECTORS`].
    pub number: u16,
}

impl Layout {
    /// The arena with a number, below 4 GiB and above what programs use. Recorded cases have number
    /// 0.
    pub const fn native(number: u16) -> Layout {
        Layout { base: FIRST_ARENA + number as u32 * ARENA_STRIDE, number }
    }

    /// From the entries of one arena to those of the next.
    pub const SELECTORS: u16 = 32;

    /// The arena in real mode, above the interrupt table.
    pub const REAL: Layout = Layout { base: 0x1_0000, number: 0 };

    /// The selector of a segment in protected mode: of the local table, for level 3.
    pub const fn selector(self, kind: Kind) -> u16 {
        match kind {
            Kind::Null => 0,
            _ => (self.number * Layout::SELECTORS + kind as u16) << 3 | 7,
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
