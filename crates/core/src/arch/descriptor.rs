//! A segment register with its hidden part, and the two table registers.

/// The attributes of a segment, laid out as in the second word of its descriptor (SDM vol. 3A,
/// "Segment Descriptors"): type in bits 0..3, S in 4, DPL in 5..6, P in 7, AVL in 12, L in 13,
/// D/B in 14, G in 15. Bit 16, outside any descriptor, marks the segment unusable, as VMX does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Attributes(pub u32);

impl Attributes {
    /// A real-mode data or stack segment: present, writable, accessed, 16-bit.
    pub const REAL_DATA: Attributes = Attributes(0x93);
    /// A real-mode code segment as reset leaves it. Writable: in real mode CS may be stored to.
    pub const REAL_CODE: Attributes = Attributes(0x93);
    /// D/B: 32-bit default size, 32-bit stack pointer, or 4 GiB upper bound.
    pub const DB: u32 = 1 << 14;
    /// L: 64-bit code.
    pub const L: u32 = 1 << 13;
    /// G: the limit was given in pages. Informative here: [`Segment::limit`] is in bytes.
    pub const G: u32 = 1 << 15;
    /// The segment cannot be used.
    pub const UNUSABLE: u32 = 1 << 16;

    /// Those of a descriptor.
    pub(crate) const fn of_descriptor(raw: u64) -> Attributes {
        Attributes((raw >> 40) as u32 & 0xF0FF)
    }
    /// The four type bits.
    pub const fn segment_type(self) -> u8 {
        (self.0 & 15) as u8
    }
    /// Is this a code segment?
    pub const fn is_code(self) -> bool {
        self.0 & 0x18 == 0x18
    }
    /// Is this a conforming code segment, which runs at the level of its caller?
    pub(crate) const fn is_conforming(self) -> bool {
        self.0 & 0x1C == 0x1C
    }
    /// Is this a data segment that may be written?
    pub(crate) const fn is_writable_data(self) -> bool {
        self.0 & 0x1A == 0x12
    }
    /// Is this a code or data segment, not one of the system's?
    pub(crate) const fn is_code_or_data(self) -> bool {
        self.0 & 0x10 != 0
    }
    /// Is P set?
    pub(crate) const fn is_present(self) -> bool {
        self.0 & 0x80 != 0
    }
    /// Is this a data segment that grows down?
    pub const fn is_expand_down(self) -> bool {
        self.0 & 0x1C == 0x14
    }
    /// Is bit 1 of the type set: a writable data or readable code segment?
    pub const fn has_write_or_read(self) -> bool {
        self.0 & 2 != 0
    }
    /// Is D/B set?
    pub const fn is_big(self) -> bool {
        self.0 & Self::DB != 0
    }
    /// Is L set?
    pub const fn is_long(self) -> bool {
        self.0 & Self::L != 0
    }
    /// Is the segment present and usable?
    pub const fn is_usable(self) -> bool {
        self.0 & (Self::UNUSABLE | 0x80) == 0x80
    }
    /// Descriptor privilege level.
    pub const fn dpl(self) -> u8 {
        (self.0 >> 5 & 3) as u8
    }
}

impl core::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A segment register: the visible selector and the hidden base, limit and attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Segment {
    /// The visible part.
    pub selector: u16,
    /// Linear address of offset 0.
    pub base: u64,
    /// The last valid offset, in bytes (granularity already applied).
    pub limit: u32,
    /// Type, privilege, size.
    pub attributes: Attributes,
}

impl Segment {
    /// What a load of `selector` in real mode leaves on a fresh processor: base selector * 16,
    /// limit FFFF.
    pub const fn real(selector: u16) -> Segment {
        Segment {
            selector,
            base: (selector as u64) << 4,
            limit: 0xFFFF,
            attributes: Attributes::REAL_DATA,
        }
    }

    /// A flat 4 GiB data segment such as big real mode uses, with real mode's base.
    pub const fn big_real(selector: u16) -> Segment {
        Segment {
            selector,
            base: (selector as u64) << 4,
            limit: 0xFFFF_FFFF,
            attributes: Attributes(Attributes::REAL_DATA.0 | Attributes::G),
        }
    }

    /// A segment register with the descriptor `raw` in its hidden part.
    pub(crate) const fn of_descriptor(selector: u16, raw: u64) -> Segment {
        let limit = (raw & 0xFFFF | raw >> 32 & 0xF_0000) as u32;
        Segment {
            selector,
            base: raw >> 16 & 0xFF_FFFF | raw >> 56 << 24,
            limit: if raw >> 55 & 1 != 0 { limit << 12 | 0xFFF } else { limit },
            attributes: Attributes::of_descriptor(raw),
        }
    }

    /// The same, as a load of a code or data segment leaves it.
    pub(crate) const fn accessed(self) -> Segment {
        Segment { attributes: Attributes(self.attributes.0 | 1), ..self }
    }

    /// A segment of virtual-8086 mode: 64 KiB of data at level 3, also in CS and SS (SDM vol. 3B,
    /// "8086 Emulation").
    pub(crate) const fn virtual_8086(selector: u16) -> Segment {
        let base = (selector as u64) << 4;
        Segment { selector, base, limit: 0xFFFF, attributes: Attributes(0xF3) }
    }

    /// The null selector that SS may hold in 64-bit code inside level 3.
    pub(crate) const fn null_stack(level: u8) -> Segment {
        let mut null = Segment::null(level as u16);
        null.attributes.0 |= (level as u32) << 5;
        null
    }

    /// A null selector in DS, ES, FS, GS or LDTR.
    pub(crate) const fn null(selector: u16) -> Segment {
        Segment { selector, base: 0, limit: 0, attributes: Attributes(Attributes::UNUSABLE) }
    }
}

impl core::fmt::Debug for Segment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{:04x}(base {:x}, limit {:x}, {:x})",
            self.selector, self.base, self.limit, self.attributes.0
        )
    }
}

/// GDTR or IDTR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TableRegister {
    /// Linear address of the table.
    pub base: u64,
    /// Its last valid byte.
    pub limit: u16,
}
