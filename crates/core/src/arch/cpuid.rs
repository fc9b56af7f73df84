//! CPU features: what a profile offers, and where CPUID reports it (SDM vol. 2A, "CPUID").

use bitflags::bitflags;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $place:expr;)*) => {
        bitflags! {
            /// A set of features, named as the manuals' CPUID tables name them.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
            pub struct Features: u128 {
                $($(#[$doc])* #[allow(missing_docs)] const $name = 1 << $bit;)*
            }
        }
        /// Where CPUID reports each feature.
        const PLACES: &[(Features, Place)] = &[$((Features::$name, $place)),*];
    };
}

/// A bit of a CPUID leaf.
#[derive(Clone, Copy, Debug)]
struct Place {
    leaf: u32,
    subleaf: u32,
    output: Output,
    bit: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

impl Output {
    fn of(self, result: CpuidResult) -> u32 {
        match self {
            Output::Eax => result.eax,
            Output::Ebx => result.ebx,
            Output::Ecx => result.ecx,
            Output::Edx => result.edx,
        }
    }
}

const fn place(leaf: u32, output: Output, bit: u8) -> Place {
    Place { leaf, subleaf: 0, output, bit }
}
const fn sub(leaf: u32, subleaf: u32, output: Output, bit: u8) -> Place {
    Place { leaf, subleaf, output, bit }
}

use Output::{Eax, Ebx, Ecx, Edx};
/// The first of the extended leaves, and the one with features.
const EXTENDED: u32 = 0x8000_0000;
const EXT: u32 = 0x8000_0001;

features! {
    X87 = 0, place(1, Edx, 0);
    VME = 1, place(1, Edx, 1);
    DE = 2, place(1, Edx, 2);
    PSE = 3, place(1, Edx, 3);
    TSC = 4, place(1, Edx, 4);
    MSR = 5, place(1, Edx, 5);
    PAE = 6, place(1, Edx, 6);
    CX8 = 7, place(1, Edx, 8);
    APIC = 8, place(1, Edx, 9);
    SEP = 9, place(1, Edx, 11);
    MTRR = 10, place(1, Edx, 12);
    PGE = 11, place(1, Edx, 13);
    CMOV = 12, place(1, Edx, 15);
    PAT = 13, place(1, Edx, 16);
    PSE36 = 14, place(1, Edx, 17);
    CLFSH = 15, place(1, Edx, 19);
    MMX = 16, place(1, Edx, 23);
    FXSR = 17, place(1, Edx, 24);
    SSE = 18, place(1, Edx, 25);
    SSE2 = 19, place(1, Edx, 26);
    SSE3 = 20, place(1, Ecx, 0);
    PCLMULQDQ = 21, place(1, Ecx, 1);
    MONITOR = 22, place(1, Ecx, 3);
    VMX = 23, place(1, Ecx, 5);
    SSSE3 = 24, place(1, Ecx, 9);
    FMA = 25, place(1, Ecx, 12);
    CX16 = 26, place(1, Ecx, 13);
    PCID = 27, place(1, Ecx, 17);
    SSE4_1 = 28, place(1, Ecx, 19);
    SSE4_2 = 29, place(1, Ecx, 20);
    MOVBE = 30, place(1, Ecx, 22);
    POPCNT = 31, place(1, Ecx, 23);
    AES = 32, place(1, Ecx, 25);
    XSAVE = 33, place(1, Ecx, 26);
    AVX = 34, place(1, Ecx, 28);
    F16C = 35, place(1, Ecx, 29);
    RDRAND = 36, place(1, Ecx, 30);
    FSGSBASE = 37, place(7, Ebx, 0);
    BMI1 = 38, place(7, Ebx, 3);
    AVX2 = 39, place(7, Ebx, 5);
    SMEP = 40, place(7, Ebx, 7);
    BMI2 = 41, place(7, Ebx, 8);
    INVPCID = 42, place(7, Ebx, 10);
    RTM = 43, place(7, Ebx, 11);
    AVX512F = 44, place(7, Ebx, 16);
    RDSEED = 45, place(7, Ebx, 18);
    ADX = 46, place(7, Ebx, 19);
    SMAP = 47, place(7, Ebx, 20);
    CLFLUSHOPT = 48, place(7, Ebx, 23);
    CLWB = 49, place(7, Ebx, 24);
    SHA = 50, place(7, Ebx, 29);
    UMIP = 51, place(7, Ecx, 2);
    PKU = 52, place(7, Ecx, 3);
    WAITPKG = 53, place(7, Ecx, 5);
    CET_SS = 54, place(7, Ecx, 7);
    GFNI = 55, place(7, Ecx, 8);
    VAES = 56, place(7, Ecx, 9);
    VPCLMULQDQ = 57, place(7, Ecx, 10);
    LA57 = 58, place(7, Ecx, 16);
    RDPID = 59, place(7, Ecx, 22);
    CLDEMOTE = 60, place(7, Ecx, 25);
    MOVDIRI = 61, place(7, Ecx, 27);
    MOVDIR64B = 62, place(7, Ecx, 28);
    ENQCMD = 63, place(7, Ecx, 29);
    PKS = 64, place(7, Ecx, 31);
    UINTR = 65, place(7, Edx, 5);
    SERIALIZE = 66, place(7, Edx, 14);
    CET_IBT = 67, place(7, Edx, 20);
    AMX = 68, place(7, Edx, 24);
    PTWRITE = 69, sub(0x14, 0, Ebx, 4);
    LKGS = 70, sub(7, 1, Eax, 18);
    HRESET = 71, sub(7, 1, Eax, 22);
    XSAVEOPT = 72, sub(0xD, 1, Eax, 0);
    XSAVEC = 73, sub(0xD, 1, Eax, 1);
    XSAVES = 74, sub(0xD, 1, Eax, 3);
    LAHF64 = 75, place(EXT, Ecx, 0);
    SVM = 76, place(EXT, Ecx, 2);
    CR8_LEGACY = 77, place(EXT, Ecx, 4);
    LZCNT = 78, place(EXT, Ecx, 5);
    SSE4A = 79, place(EXT, Ecx, 6);
    PREFETCHW = 80, place(EXT, Ecx, 8);
    XOP = 81, place(EXT, Ecx, 11);
    FMA4 = 82, place(EXT, Ecx, 16);
    TBM = 83, place(EXT, Ecx, 21);
    SYSCALL = 84, place(EXT, Edx, 11);
    NX = 85, place(EXT, Edx, 20);
    GBPAGES = 86, place(EXT, Edx, 26);
    RDTSCP = 87, place(EXT, Edx, 27);
    LM = 88, place(EXT, Edx, 29);
    THREEDNOW = 89, place(EXT, Edx, 31);
    CLZERO = 90, place(0x8000_0008, Ebx, 0);
    RDPRU = 91, place(0x8000_0008, Ebx, 4);
    WBNOINVD = 92, place(0x8000_0008, Ebx, 9);
    AVX_VNNI = 93, sub(7, 1, Eax, 4);
    SMX = 94, place(1, Ecx, 6);
    FXSR_OPT = 95, place(EXT, Edx, 25);
    MISALIGN_SSE = 96, place(EXT, Ecx, 7);
    MONITORX = 97, place(EXT, Ecx, 29);
    INVLPGB = 98, place(0x8000_0008, Ebx, 3);
    SNP = 99, place(0x8000_001F, Eax, 4);
    MPX = 100, place(7, Ebx, 14);
    KEYLOCKER = 101, place(7, Ecx, 23);
    PREFETCHI = 102, sub(7, 1, Edx, 14);
    CMPCCXADD = 103, sub(7, 1, Eax, 7);
    RAO_INT = 104, sub(7, 1, Eax, 3);
    MSRLIST = 105, sub(7, 1, Eax, 27);
    WRMSRNS = 106, sub(7, 1, Eax, 19);
    FRED = 107, sub(7, 1, Eax, 17);
    MCOMMIT = 108, place(0x8000_0008, Ebx, 8);
    SKINIT = 109, place(EXT, Ecx, 12);
    LWP = 110, place(EXT, Ecx, 15);
    APX = 111, sub(7, 1, Edx, 21);
    SGX = 112, place(7, Ebx, 2);
    PCONFIG = 113, place(7, Edx, 18);
    TSXLDTRK = 114, place(7, Edx, 16);
    USER_MSR = 115, sub(7, 1, Edx, 15);
    PBNDKB = 116, sub(7, 1, Ebx, 1);
    AVX_IFMA = 117, sub(7, 1, Eax, 23);
    AVX_NE_CONVERT = 118, sub(7, 1, Edx, 5);
    AVX_VNNI_INT8 = 119, sub(7, 1, Edx, 4);
    AVX_VNNI_INT16 = 120, sub(7, 1, Edx, 10);
    SHA512 = 121, sub(7, 1, Eax, 0);
    SM3 = 122, sub(7, 1, Eax, 1);
    SM4 = 123, sub(7, 1, Eax, 2);
    AVX512_FP16 = 124, place(7, Edx, 23);
    // Xeon Phi has it alone, with exponentials and four-iteration FMA.
    AVX512PF = 125, place(7, Ebx, 26);
    AVX512_VP2INTERSECT = 126, place(7, Edx, 8);
    MSR_IMM = 127, sub(7, 1, Ecx, 5);
}

/// What CPUID returns for one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)] // the manual's names say it
pub struct CpuidResult {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

impl Features {
    /// The features of the processor that answers CPUID so: the leaf and the subleaf are asked
    /// for, as EAX and ECX would. What only CPUID knows is not looked at, as whether the operating
    /// system has turned a feature on.
    ///
    /// ```
    /// use realmode::{CpuidResult, Features, Profile};
    /// let features = Features::from_cpuid(|leaf, subleaf| Profile::AMD.cpuid(leaf, subleaf));
    /// assert_eq!(features, Profile::AMD.features);
    ///
    /// // A processor that knows leaf 1 and nothing above.
    /// let features = Features::from_cpuid(|leaf, _| match leaf {
    ///     0 => CpuidResult { eax: 1, ..CpuidResult::default() },
    ///     _ => CpuidResult { edx: 1, ..CpuidResult::default() },
    /// });
    /// assert_eq!(features, Features::X87);
    /// ```
    pub fn from_cpuid(mut cpuid: impl FnMut(u32, u32) -> CpuidResult) -> Features {
        let highest_basic = cpuid(0, 0).eax;
        let highest_extended = cpuid(EXTENDED, 0).eax;
        let highest_of_7 = if highest_basic >= 7 { cpuid(7, 0).eax } else { 0 };
        let is_there = |place: &Place| match place.leaf {
            // Without extended leaves the answer is a basic one's.
            EXTENDED.. => highest_extended >= EXTENDED && place.leaf <= highest_extended,
            7 => highest_basic >= 7 && place.subleaf <= highest_of_7,
            leaf => leaf <= highest_basic,
        };
        let mut features = Features::empty();
        for (feature, place) in PLACES.iter().filter(|(_, place)| is_there(place)) {
            if place.output.of(cpuid(place.leaf, place.subleaf)) >> place.bit & 1 != 0 {
                features.insert(*feature);
            }
        }
        features
    }
}

/// The feature bits of `leaf` and `subleaf` for a processor with `features`.
pub(crate) fn feature_bits(features: Features, leaf: u32, subleaf: u32) -> CpuidResult {
    let mut result = CpuidResult::default();
    for (feature, place) in PLACES {
        if place.leaf == leaf && place.subleaf == subleaf && features.contains(*feature) {
            let bit = 1 << place.bit;
            match place.output {
                Output::Eax => result.eax |= bit,
                Output::Ebx => result.ebx |= bit,
                Output::Ecx => result.ecx |= bit,
                Output::Edx => result.edx |= bit,
            }
        }
    }
    result
}
