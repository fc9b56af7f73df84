//! The host processor's own name for itself.

/// The brand string (SDM vol. 2A, "CPUID", leaves 8000_0002 to 8000_0004) with family, model and
/// stepping in hexadecimal.
#[cfg(target_arch = "x86_64")]
pub fn processor_name() -> String {
    use core::arch::x86_64::__cpuid;
    let signature = __cpuid(1).eax;
    let mut brand = Vec::new();
    if __cpuid(0x8000_0000).eax >= 0x8000_0004 {
        for leaf in 0x8000_0002..=0x8000_0004 {
            let r = __cpuid(leaf);
            [r.eax, r.ebx, r.ecx, r.edx].iter().for_each(|word| brand.extend(word.to_le_bytes()));
        }
    }
    let brand = String::from_utf8_lossy(&brand);
    let brand = brand.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    format!("{brand}, signature {signature:x}")
}

/// None that executes x86 code.
#[cfg(not(target_arch = "x86_64"))]
pub fn processor_name() -> String {
    String::new()
}
