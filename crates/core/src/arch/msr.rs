//! Model-specific registers that the modes need, by address (SDM vol. 4).

/// Time stamp counter.
pub const IA32_TIME_STAMP_COUNTER: u32 = 0x10;
/// Base of the local APIC; bit 8 tells the bootstrap processor.
pub const IA32_APIC_BASE: u32 = 0x1B;
/// SMM base.
pub const IA32_SMBASE: u32 = 0x9E;
/// SYSENTER: CS.
pub const IA32_SYSENTER_CS: u32 = 0x174;
/// SYSENTER: ESP.
pub const IA32_SYSENTER_ESP: u32 = 0x175;
/// SYSENTER: EIP.
pub const IA32_SYSENTER_EIP: u32 = 0x176;
/// Miscellaneous features.
pub const IA32_MISC_ENABLE: u32 = 0x1A0;
/// Debug control: BTF is bit 1.
pub const IA32_DEBUGCTL: u32 = 0x1D9;
/// IA32_DEBUGCTL: TF traps taken branches only.
pub const DEBUGCTL_BTF: u64 = 1 << 1;
/// Page attribute table.
pub const IA32_PAT: u32 = 0x277;
/// Rights of the protection keys of supervisor pages.
pub const IA32_PKRS: u32 = 0x6E1;
/// Supervisor CET controls.
pub const IA32_S_CET: u32 = 0x6A2;
/// User CET controls.
pub const IA32_U_CET: u32 = 0x6A0;
/// Shadow stack pointers of privilege levels 0 to 3 begin here.
pub const IA32_PL0_SSP: u32 = 0x6A4;
/// Interrupt SSP table.
pub const IA32_INTERRUPT_SSP_TABLE: u32 = 0x6A8;
/// Supervisor state for XSAVES.
pub const IA32_XSS: u32 = 0xDA0;
/// Extended features: SCE, LME, LMA, NXE.
pub const EFER: u32 = 0xC000_0080;
/// SYSCALL target and selectors.
pub const STAR: u32 = 0xC000_0081;
/// SYSCALL target in 64-bit mode.
pub const LSTAR: u32 = 0xC000_0082;
/// SYSCALL target in compatibility mode.
pub const CSTAR: u32 = 0xC000_0083;
/// SYSCALL flag mask.
pub const FMASK: u32 = 0xC000_0084;
/// FS base.
pub const FS_BASE: u32 = 0xC000_0100;
/// GS base.
pub const GS_BASE: u32 = 0xC000_0101;
/// What SWAPGS exchanges with the GS base.
pub const KERNEL_GS_BASE: u32 = 0xC000_0102;
/// What RDTSCP and RDPID return.
pub const TSC_AUX: u32 = 0xC000_0103;
