//! The host's processor as a profile, for comparing the emulator with it.

use realmode::Profile;

/// The profile of the host's processor: its vendor, signature, brand and widths, and the features
/// that programs can use. Where the host is no x86-64, and under Miri, it is the default profile.
pub fn host_profile() -> Profile {
    profile()
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn profile() -> Profile {
    Profile::INTEL
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use silicon::profile;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod silicon {
    use core::arch::x86_64::__cpuid_count;
    use std::sync::OnceLock;

    use realmode::{CpuidResult, Features, Profile};

    /// Its number among profiles: the first that is not the library's.
    const ID: u8 = 128;
    /// What needs the upper halves of the AVX registers.
    const AVX: Features = Features::AVX
        .union(Features::AVX2)
        .union(Features::FMA)
        .union(Features::F16C)
        .union(Features::VAES)
        .union(Features::VPCLMULQDQ)
        .union(Features::XOP)
        .union(Features::FMA4)
        .union(Features::AVX_VNNI)
        .union(Features::AVX_IFMA)
        .union(Features::AVX_NE_CONVERT)
        .union(Features::AVX_VNNI_INT8)
        .union(Features::AVX_VNNI_INT16)
        .union(Features::SHA512)
        .union(Features::SM3)
        .union(Features::SM4);
    /// What needs masks and registers of 512 bits.
    const AVX512: Features = Features::AVX512F
        .union(Features::AVX512_FP16)
        .union(Features::AVX512PF)
        .union(Features::AVX512_VP2INTERSECT);

    fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
        let r = __cpuid_count(leaf, subleaf);
        CpuidResult { eax: r.eax, ebx: r.ebx, ecx: r.ecx, edx: r.edx }
    }

    pub(super) fn profile() -> Profile {
        // "Auth" and "Hygo", of the two makers that follow AMD's manual.
        let is_amd = matches!(&cpuid(0, 0).ebx.to_le_bytes(), b"Auth" | b"Hygo");
        let nearest = if is_amd { Profile::AMD } else { Profile::INTEL };
        let mut profile = Profile {
            name: "host",
            id: ID,
            features: usable_features(),
            signature: cpuid(1, 0).eax,
            ..nearest
        };
        let highest_extended = cpuid(0x8000_0000, 0).eax;
        if highest_extended >= 0x8000_0004 {
            profile.brand = brand();
        }
        if highest_extended >= 0x8000_0008 {
            profile.physical_bits = cpuid(0x8000_0008, 0).eax as u8;
        }
        profile
    }

    fn brand() -> &'static [u8; 48] {
        static BRAND: OnceLock<[u8; 48]> = OnceLock::new();
        BRAND.get_or_init(|| {
            let leaves = [2, 3, 4].map(|leaf| cpuid(0x8000_0000 | leaf, 0));
            let words = leaves.iter().flat_map(|r| [r.eax, r.ebx, r.ecx, r.edx]);
            let mut brand = [0; 48];
            for (place, byte) in brand.iter_mut().zip(words.flat_map(u32::to_le_bytes)) {
                *place = byte;
            }
            brand
        })
    }

    /// What the processor has, without what the operating system has left off.
    fn usable_features() -> Features {
        let mut features = Features::from_cpuid(cpuid);
        // The standard library looks at XCR0 too.
        if !std::is_x86_feature_detected!("avx") {
            features.remove(AVX | AVX512);
        }
        if !std::is_x86_feature_detected!("avx512f") {
            features.remove(AVX512);
        }
        // Linux gives the tiles to processes that ask for them.
        features.remove(Features::AMX);
        let has = |bits: u32, bit: u32| bits >> bit & 1 != 0;
        if !has(cpuid(1, 0).ecx, 27) {
            features.remove(Features::XSAVE | Features::XSAVEOPT);
            features.remove(Features::XSAVEC | Features::XSAVES);
        }
        // OSPKE
        if features.contains(Features::PKU) && !has(cpuid(7, 0).ecx, 4) {
            features.remove(Features::PKU);
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use realmode::Features;

    #[test]
    fn the_host_has_what_its_architecture_demands() {
        let profile = host_profile();
        assert!(profile.has(Features::X87 | Features::SSE2 | Features::LM | Features::SYSCALL));
        assert!(profile.physical_bits >= 32, "{profile:?}");
        assert_ne!(profile.signature, 0);
    }

    #[test]
    fn its_cpuid_says_what_the_host_says() {
        let profile = host_profile();
        let features = Features::from_cpuid(|leaf, subleaf| profile.cpuid(leaf, subleaf));
        // Those of leaves above the ones that profiles have are lost.
        assert!(profile.features.contains(features));
        assert!(features.contains(profile.features & Profile::AMD.features));
    }
}
