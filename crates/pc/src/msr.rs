//! Registers of the machine around the processor that firmware and kernels look at without asking
//! CPUID: they read as this machine's constants, and what is written is dropped.

/// IA32_PLATFORM_ID, IA32_BIOS_SIGN_ID (SDM vol. 4): no microcode was loaded.
const PLATFORM_ID: u32 = 0x17;
const BIOS_SIGN_ID: u32 = 0x8B;
/// IA32_MISC_ENABLE: fast strings; neither BTS nor PEBS.
const MISC_ENABLE: u32 = 0x1A0;
const MISC_ENABLE_VALUE: u64 = 1 | 1 << 11 | 1 << 12;
/// AMD's SYSCFG, HWCR, NB_CFG and configuration of the core's parts (APM vol. 2, "SYSCFG MSR",
/// "HWCR MSR"; the others are in the processors' own manuals).
const SYSCFG: u32 = 0xC001_0010;
const HWCR: u32 = 0xC001_0015;
const NB_CFG: u32 = 0xC001_001F;
const LS_CFG: u32 = 0xC001_1020;
const DE_CFG: u32 = 0xC001_1029;
/// DE_CFG: LFENCE serialises.
const DE_CFG_VALUE: u64 = 1 << 1;

/// RDMSR; `None` where there is no such register.
pub(crate) fn read(index: u32) -> Option<u64> {
    match index {
        MISC_ENABLE => Some(MISC_ENABLE_VALUE),
        DE_CFG => Some(DE_CFG_VALUE),
        PLATFORM_ID | BIOS_SIGN_ID | SYSCFG | HWCR | NB_CFG | LS_CFG..DE_CFG => Some(0),
        _ => None,
    }
}

/// WRMSR: is there such a register?
pub(crate) fn write(index: u32) -> bool {
    index != PLATFORM_ID && read(index).is_some()
}
