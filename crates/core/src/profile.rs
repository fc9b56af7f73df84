//! Profiles: what CPU is this. A profile is data; handlers and decode consult it, none is special.

use crate::arch::cpuid::{CpuidResult, Features, feature_bits};
use crate::arch::rflags;

/// Generations of the architecture, in the order they appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Generation {
    /// 8086 and 8088.
    I8086 = 0,
    /// 80186: shifts by immediate, PUSHA, ENTER, BOUND, INS.
    I80186 = 1,
    /// 80286: protected mode.
    I80286 = 2,
    /// 80386: 32 bits, 0F extensions.
    I80386 = 3,
    /// 80486: CMPXCHG, XADD, BSWAP.
    I80486 = 4,
    /// Everything with CPUID feature bits.
    Modern = 5,
}

/// Who made it: decides the documented differences between Intel and AMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Intel SDM.
    Intel,
    /// AMD APM.
    Amd,
}

/// What happens to the arithmetic flags that the manuals leave undefined. They are a function of
/// the operands on every processor, and there is software that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndefinedFlags {
    /// As microcode leaves them that shifts and adds one bit at a time: the last step decides.
    /// Measured on an 80286; taken for its neighbours up to the 80486.
    Early,
    /// Recent Intel cores, as published measurements describe them: the first step decides.
    Intel,
    /// Recent AMD cores, measured on family 19h.
    Amd,
}

/// A processor model.
///
/// ```
/// use realmode::Profile;
/// assert_eq!(Profile::by_name("286"), Some(&Profile::I80286));
/// assert!(Profile::by_name("z80").is_none());
/// ```
///
/// A guest's own CPUID is a profile of your own, derived from the nearest one. Fields are added
/// as the library grows, so end with `..`:
///
/// ```
/// use realmode::{Features, Profile};
/// let profile = Profile {
///     name: "guest",
///     id: 128,
///     features: Profile::INTEL.features.difference(Features::AVX | Features::AVX512F),
///     ..Profile::INTEL
/// };
/// assert!(!profile.has(Features::AVX));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name `by_name` finds it under.
    pub name: &'static str,
    /// Its number, by which an [`InFlight`](crate::InFlight) record knows the profile it was
    /// made with. Those below 128 are the library's.
    pub id: u8,
    /// Its generation.
    pub generation: Generation,
    /// Its maker.
    pub vendor: Vendor,
    /// Flags that the manuals leave undefined.
    pub undefined_flags: UndefinedFlags,
    /// What CPUID would report.
    pub features: Features,
    /// The longest instruction, prefixes included; 0 for no limit of its own (8086).
    pub max_length: u8,
    /// The bits of FLAGS that always read as one.
    pub flags_set: u64,
    /// The bits of FLAGS that exist, outside `flags_set`.
    pub flags_exist: u64,
    /// The bits of a linear address that exist outside 64-bit mode.
    pub linear_mask: u64,
    /// The physical address width in bits.
    pub physical_bits: u8,
    /// CPUID leaf 1 EAX: family, model, stepping.
    pub signature: u32,
    /// The 48-byte brand string of leaves 8000_0002 to 8000_0004.
    pub brand: &'static [u8; 48],
}

/// FLAGS bits of a 386: up to VM.
const FLAGS_386: u64 = rflags::ARITH
    | rflags::TF
    | rflags::IF
    | rflags::DF
    | rflags::IOPL
    | rflags::NT
    | rflags::RF
    | rflags::VM;

/// The integer and system features of every recent part, Intel or AMD.
const MODERN_BOTH: Features = Features::X87
    .union(Features::VME)
    .union(Features::DE)
    .union(Features::PSE)
    .union(Features::TSC)
    .union(Features::MSR)
    .union(Features::PAE)
    .union(Features::CX8)
    .union(Features::SEP)
    .union(Features::PGE)
    .union(Features::CMOV)
    .union(Features::PAT)
    .union(Features::PSE36)
    .union(Features::CLFSH)
    .union(Features::MMX)
    .union(Features::FXSR)
    .union(Features::SSE)
    .union(Features::SSE2)
    .union(Features::SSE3)
    .union(Features::PCLMULQDQ)
    .union(Features::SSSE3)
    .union(Features::FMA)
    .union(Features::CX16)
    .union(Features::PCID)
    .union(Features::SSE4_1)
    .union(Features::SSE4_2)
    .union(Features::MOVBE)
    .union(Features::POPCNT)
    .union(Features::AES)
    .union(Features::XSAVE)
    .union(Features::AVX)
    .union(Features::F16C)
    .union(Features::RDRAND)
    .union(Features::FSGSBASE)
    .union(Features::BMI1)
    .union(Features::AVX2)
    .union(Features::SMEP)
    .union(Features::BMI2)
    .union(Features::INVPCID)
    .union(Features::AVX512F)
    .union(Features::RDSEED)
    .union(Features::ADX)
    .union(Features::SMAP)
    .union(Features::CLFLUSHOPT)
    .union(Features::CLWB)
    .union(Features::SHA)
    .union(Features::UMIP)
    .union(Features::PKU)
    .union(Features::GFNI)
    .union(Features::VAES)
    .union(Features::VPCLMULQDQ)
    .union(Features::LA57)
    .union(Features::RDPID)
    .union(Features::XSAVEOPT)
    .union(Features::XSAVEC)
    .union(Features::XSAVES)
    .union(Features::LAHF64)
    .union(Features::LZCNT)
    .union(Features::PREFETCHW)
    .union(Features::SYSCALL)
    .union(Features::NX)
    .union(Features::GBPAGES)
    .union(Features::RDTSCP)
    .union(Features::LM)
    .union(Features::WBNOINVD);

const FLAGS_MODERN: u64 = FLAGS_386 | rflags::AC | rflags::VIF | rflags::VIP | rflags::ID;

impl Profile {
    /// 8086 without a coprocessor: everything wraps, no #UD, no instruction length limit.
    pub const I8086: Profile = Profile {
        name: "8086",
        id: 1,
        generation: Generation::I8086,
        vendor: Vendor::Intel,
        undefined_flags: UndefinedFlags::Early,
        features: Features::empty(),
        max_length: 0,
        flags_set: 0xF002,
        flags_exist: rflags::ARITH | rflags::TF | rflags::IF | rflags::DF,
        linear_mask: 0xF_FFFF,
        physical_bits: 20,
        signature: 0,
        brand: &[0; 48],
    };

    /// 80286 without a coprocessor: limits are checked, ten bytes an instruction, FLAGS 12..15
    /// clear in real mode.
    pub const I80286: Profile = Profile {
        name: "286",
        id: 2,
        generation: Generation::I80286,
        vendor: Vendor::Intel,
        undefined_flags: UndefinedFlags::Early,
        features: Features::empty(),
        max_length: 10,
        flags_set: 0x2,
        // IOPL and NT exist in protected mode only; `flags_exist` is what real mode can set.
        flags_exist: rflags::ARITH | rflags::TF | rflags::IF | rflags::DF,
        linear_mask: 0xFF_FFFF,
        physical_bits: 24,
        signature: 0,
        brand: &[0; 48],
    };

    /// 80386.
    pub const I80386: Profile = Profile {
        name: "386",
        id: 3,
        generation: Generation::I80386,
        vendor: Vendor::Intel,
        undefined_flags: UndefinedFlags::Early,
        features: Features::X87,
        max_length: 15,
        flags_set: 0x2,
        flags_exist: FLAGS_386,
        linear_mask: 0xFFFF_FFFF,
        physical_bits: 32,
        signature: 0,
        brand: &[0; 48],
    };

    /// 80486, before CPUID.
    pub const I80486: Profile = Profile {
        name: "486",
        id: 4,
        generation: Generation::I80486,
        vendor: Vendor::Intel,
        undefined_flags: UndefinedFlags::Early,
        features: Features::X87,
        max_length: 15,
        flags_set: 0x2,
        flags_exist: FLAGS_386 | rflags::AC,
        linear_mask: 0xFFFF_FFFF,
        physical_bits: 32,
        signature: 0,
        brand: &[0; 48],
    };

    /// A recent Intel server part. The default.
    pub const INTEL: Profile = Profile {
        name: "intel",
        id: 5,
        generation: Generation::Modern,
        vendor: Vendor::Intel,
        undefined_flags: UndefinedFlags::Intel,
        features: MODERN_BOTH
            .union(Features::CLDEMOTE)
            .union(Features::MOVDIRI)
            .union(Features::MOVDIR64B)
            .union(Features::SERIALIZE)
            .union(Features::WAITPKG)
            .union(Features::PTWRITE)
            .union(Features::AVX_VNNI),
        max_length: 15,
        flags_set: 0x2,
        flags_exist: FLAGS_MODERN,
        linear_mask: 0xFFFF_FFFF,
        physical_bits: 46,
        signature: 0x000C_06F2,
        brand: b"realmode virtual processor (Intel)\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    };

    /// A recent AMD server part.
    pub const AMD: Profile = Profile {
        name: "amd",
        id: 6,
        generation: Generation::Modern,
        vendor: Vendor::Amd,
        undefined_flags: UndefinedFlags::Amd,
        features: MODERN_BOTH
            .union(Features::CR8_LEGACY)
            .union(Features::SSE4A)
            .union(Features::CLZERO)
            .union(Features::RDPRU)
            .union(Features::FXSR_OPT)
            .union(Features::MISALIGN_SSE),
        max_length: 15,
        flags_set: 0x2,
        flags_exist: FLAGS_MODERN,
        linear_mask: 0xFFFF_FFFF,
        physical_bits: 48,
        signature: 0x00A1_0F11,
        brand: b"realmode virtual processor (AMD)\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    };

    /// Every profile the library ships, oldest first.
    pub const ALL: [&'static Profile; 6] = [
        &Profile::I8086,
        &Profile::I80286,
        &Profile::I80386,
        &Profile::I80486,
        &Profile::INTEL,
        &Profile::AMD,
    ];

    /// The profile called `name`: `8086`, `286`, `386`, `486`, `intel`, `amd`.
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        Profile::ALL.into_iter().find(|p| p.name.eq_ignore_ascii_case(name))
    }

    /// Does the processor have all of `features`?
    pub const fn has(&self, features: Features) -> bool {
        self.features.contains(features)
    }

    /// A 386 or later: 32-bit registers, code and stacks.
    #[inline(always)]
    pub const fn has_32_bits(&self) -> bool {
        self.generation as u8 >= Generation::I80386 as u8
    }

    /// Bits of its widest linear address (SDM vol. 3A, "Canonical Addressing").
    pub(crate) fn linear_bits(&self) -> u32 {
        if self.has(Features::LA57) { 57 } else { 48 }
    }

    /// FLAGS as this processor would hold them after a load of `value`.
    pub const fn canonical_flags(&self, value: u64) -> u64 {
        value & self.flags_exist | self.flags_set
    }

    /// What CPUID reports for a leaf (SDM vol. 2A, "CPUID"). Leaves that describe the machine
    /// and not the processor (topology, APIC id) are the bus's to override.
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        let highest_basic = 0x14;
        let highest_extended = 0x8000_0008;
        // SDM vol. 2A: a basic leaf above the highest returns the highest one's data on Intel
        // and zeros on AMD.
        let leaf = match leaf {
            0x8000_0000.. if leaf > highest_extended && self.vendor == Vendor::Amd => {
                return CpuidResult::default();
            }
            0x8000_0000.. if leaf > highest_extended => highest_basic,
            0..0x8000_0000 if leaf > highest_basic && self.vendor == Vendor::Amd => {
                return CpuidResult::default();
            }
            0..0x8000_0000 if leaf > highest_basic => highest_basic,
            _ => leaf,
        };
        let subleaf_matters = matches!(leaf, 4 | 7 | 0xB | 0xD | 0x14);
        let mut r = feature_bits(self.features, leaf, if subleaf_matters { subleaf } else { 0 });
        match leaf {
            0 => (r.eax, (r.ebx, r.edx, r.ecx)) = (highest_basic, self.vendor_words()),
            // CLFLUSH line size (8 * 8 bytes), one logical processor.
            1 => (r.eax, r.ebx) = (self.signature, 0x0001_0800),
            7 if subleaf == 0 => r.eax = 1,
            0xD if subleaf == 0 => {
                // x87, SSE, AVX: the legacy area, the header, 256 bytes of upper halves.
                (r.eax, r.ebx, r.ecx) = (0x7, 0x340, 0x340);
            }
            0xD if subleaf == 1 => r.ebx = 0x340,
            0xD if subleaf == 2 => (r.eax, r.ebx) = (0x100, 0x240),
            0x8000_0000 => {
                r.eax = highest_extended;
                if self.vendor == Vendor::Amd {
                    (r.ebx, r.edx, r.ecx) = self.vendor_words();
                }
            }
            0x8000_0001 if self.vendor == Vendor::Amd => r.eax = self.signature,
            0x8000_0002..=0x8000_0004 => {
                let at = (leaf - 0x8000_0002) as usize * 16;
                let word = |i: usize| {
                    let bytes = &self.brand[at + i * 4..at + i * 4 + 4];
                    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
                };
                (r.eax, r.ebx, r.ecx, r.edx) = (word(0), word(1), word(2), word(3));
            }
            0x8000_0006 => r.ecx = 0x0800_8040,
            0x8000_0008 => {
                r.eax = u32::from(self.physical_bits) | self.linear_bits() << 8;
            }
            _ => {}
        }
        r
    }

    /// EBX, EDX, ECX of leaf 0.
    fn vendor_words(&self) -> (u32, u32, u32) {
        match self.vendor {
            Vendor::Intel => (0x756E_6547, 0x4965_6E69, 0x6C65_746E),
            Vendor::Amd => (0x6874_7541, 0x6974_6E65, 0x444D_4163),
        }
    }
}

impl Default for &Profile {
    fn default() -> Self {
        &Profile::INTEL
    }
}
