//! Bits of CR0, CR4 and EFER, by the manual's names (SDM vol. 3A, "Control Registers").

/// Protection enable.
pub const CR0_PE: u64 = 1 << 0;
/// Monitor coprocessor: WAIT obeys TS.
pub const CR0_MP: u64 = 1 << 1;
/// Emulation: no x87.
pub const CR0_EM: u64 = 1 << 2;
/// Task switched.
pub const CR0_TS: u64 = 1 << 3;
/// Extension type, always one on a 486 or later.
pub const CR0_ET: u64 = 1 << 4;
/// Numeric error: #MF instead of an external interrupt.
pub const CR0_NE: u64 = 1 << 5;
/// Write protect.
pub const CR0_WP: u64 = 1 << 16;
/// Alignment mask.
pub const CR0_AM: u64 = 1 << 18;
/// Not write-through.
pub const CR0_NW: u64 = 1 << 29;
/// Cache disable.
pub const CR0_CD: u64 = 1 << 30;
/// Paging.
pub const CR0_PG: u64 = 1 << 31;

/// Virtual-8086 mode extensions.
pub const CR4_VME: u64 = 1 << 0;
/// Protected-mode virtual interrupts.
pub const CR4_PVI: u64 = 1 << 1;
/// Time stamp disable.
pub const CR4_TSD: u64 = 1 << 2;
/// Debugging extensions.
pub const CR4_DE: u64 = 1 << 3;
/// Page size extensions.
pub const CR4_PSE: u64 = 1 << 4;
/// Physical address extension.
pub const CR4_PAE: u64 = 1 << 5;
/// Machine-check enable.
pub const CR4_MCE: u64 = 1 << 6;
/// Page global enable.
pub const CR4_PGE: u64 = 1 << 7;
/// RDPMC at any privilege level.
pub const CR4_PCE: u64 = 1 << 8;
/// Operating system supports FXSAVE and FXRSTOR.
pub const CR4_OSFXSR: u64 = 1 << 9;
/// Operating system handles unmasked SIMD exceptions.
pub const CR4_OSXMMEXCPT: u64 = 1 << 10;
/// User-mode instruction prevention.
pub const CR4_UMIP: u64 = 1 << 11;
/// 57-bit linear addresses.
pub const CR4_LA57: u64 = 1 << 12;
/// VMX enable.
pub const CR4_VMXE: u64 = 1 << 13;
/// SMX enable.
pub const CR4_SMXE: u64 = 1 << 14;
/// RDFSBASE and its family.
pub const CR4_FSGSBASE: u64 = 1 << 16;
/// Process-context identifiers.
pub const CR4_PCIDE: u64 = 1 << 17;
/// XSAVE and XGETBV.
pub const CR4_OSXSAVE: u64 = 1 << 18;
/// Supervisor-mode execution prevention.
pub const CR4_SMEP: u64 = 1 << 20;
/// Supervisor-mode access prevention.
pub const CR4_SMAP: u64 = 1 << 21;
/// Protection keys for user pages.
pub const CR4_PKE: u64 = 1 << 22;
/// Control-flow enforcement.
pub const CR4_CET: u64 = 1 << 23;
/// Protection keys for supervisor pages.
pub const CR4_PKS: u64 = 1 << 24;

/// SYSCALL enable.
pub const EFER_SCE: u64 = 1 << 0;
/// Long mode enable.
pub const EFER_LME: u64 = 1 << 8;
/// Long mode active.
pub const EFER_LMA: u64 = 1 << 10;
/// No-execute enable.
pub const EFER_NXE: u64 = 1 << 11;
/// SVM enable.
pub const EFER_SVME: u64 = 1 << 12;
/// Long mode segment limit enable (AMD).
pub const EFER_LMSLE: u64 = 1 << 13;
/// Fast FXSAVE and FXRSTOR (AMD).
pub const EFER_FFXSR: u64 = 1 << 14;

/// DR6: single step.
pub const DR6_BS: u64 = 1 << 14;
/// DR6: debug registers accessed.
pub const DR6_BD: u64 = 1 << 13;
/// DR6: task switch.
pub const DR6_BT: u64 = 1 << 15;
/// DR6: 0 if a breakpoint was met in a transaction, on processors with RTM.
pub const DR6_RTM: u64 = 1 << 16;
/// DR6 after reset: the bits that read as one.
pub const DR6_RESET: u64 = 0xFFFF_0FF0;
/// DR7 after reset.
pub const DR7_RESET: u64 = 0x400;
/// DR7: breakpoints may end a transaction, on processors with RTM.
pub const DR7_RTM: u64 = 1 << 11;
/// DR7: general detect.
pub const DR7_GD: u64 = 1 << 13;
/// DR7: any of the four breakpoints enabled.
pub const DR7_ENABLE: u64 = 0xFF;
