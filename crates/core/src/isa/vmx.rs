//! Monitors and enclaves: VMX, SMX, SVM, SEV-SNP, SGX, TDX, and the extensions that need an
//! operating system in protected mode: user interrupts, FRED, transactions. Rows only: no
//! profile offers their features, so each is #UD; a profile that does stops as `Unimplemented`.
//! VMCALL and VMMCALL, which a guest executes, are in `system.rs`.

use crate::arch::cpuid::Features;
use crate::isa::operand::Operand::{self, Ew, Ey, Ga, Gy, Ib, Jz, Mdq, Mdqq, Mq, Rd, Rv};
use crate::isa::row::{Map, Modes, Prefix, Row, Size64, one, row, two};

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // VMX and SMX.
    vmx("VMLAUNCH", 0xC2),
    vmx("VMRESUME", 0xC3),
    vmx("VMXOFF", 0xC4),
    vmx("VMFUNC", 0xD4),
    guest("VMREAD", 0x78, &[Ey, Gy], Prefix::None, Features::VMX).size64(Size64::Force64),
    guest("VMWRITE", 0x79, &[Gy, Ey], Prefix::None, Features::VMX).size64(Size64::Force64),
    guest("VMPTRLD", 0xC7, &[Mq], Prefix::None, Features::VMX).digit(6),
    guest("VMCLEAR", 0xC7, &[Mq], Prefix::P66, Features::VMX).digit(6),
    guest("VMXON", 0xC7, &[Mq], Prefix::F3, Features::VMX).digit(6),
    guest("VMPTRST", 0xC7, &[Mq], Prefix::None, Features::VMX).digit(7),
    table("INVEPT", 0x80, &[Gy, Mdq], Prefix::P66, Features::VMX).size64(Size64::Force64),
    table("INVVPID", 0x81, &[Gy, Mdq], Prefix::P66, Features::VMX).size64(Size64::Force64),
    guest("GETSEC", 0x37, &[], Prefix::None, Features::SMX),
    // TDX and SEAM.
    exact("TDCALL", 0xCC, Prefix::P66, Features::VMX),
    exact("SEAMRET", 0xCD, Prefix::P66, Features::VMX).modes(Modes::Only64),
    exact("SEAMOPS", 0xCE, Prefix::P66, Features::VMX).modes(Modes::Only64),
    exact("SEAMCALL", 0xCF, Prefix::P66, Features::VMX).modes(Modes::Only64),
    // SGX and memory encryption.
    exact("ENCLV", 0xC0, Prefix::None, Features::SGX),
    exact("ENCLS", 0xCF, Prefix::None, Features::SGX),
    exact("ENCLU", 0xD7, Prefix::None, Features::SGX),
    exact("PCONFIG", 0xC5, Prefix::None, Features::PCONFIG),
    exact("PBNDKB", 0xC7, Prefix::None, Features::PBNDKB).modes(Modes::Only64),
    // SVM.
    exact("VMRUN", 0xD8, Prefix::Any, Features::SVM),
    exact("VMLOAD", 0xDA, Prefix::Any, Features::SVM),
    exact("VMSAVE", 0xDB, Prefix::Any, Features::SVM),
    exact("STGI", 0xDC, Prefix::Any, Features::SVM),
    exact("CLGI", 0xDD, Prefix::Any, Features::SVM),
    exact("SKINIT", 0xDE, Prefix::Any, Features::SKINIT),
    exact("INVLPGA", 0xDF, Prefix::Any, Features::SVM),
    exact("INVLPGB", 0xFE, Prefix::None, Features::INVLPGB),
    exact("TLBSYNC", 0xFF, Prefix::None, Features::INVLPGB),
    exact("MCOMMIT", 0xFA, Prefix::F3, Features::MCOMMIT),
    // SEV-SNP.
    exact("RMPREAD", 0xFD, Prefix::F2, Features::SNP).modes(Modes::Only64),
    exact("RMPQUERY", 0xFD, Prefix::F3, Features::SNP).modes(Modes::Only64),
    exact("RMPUPDATE", 0xFE, Prefix::F2, Features::SNP).modes(Modes::Only64),
    exact("RMPADJUST", 0xFE, Prefix::F3, Features::SNP).modes(Modes::Only64),
    exact("PVALIDATE", 0xFF, Prefix::F2, Features::SNP),
    exact("PSMASH", 0xFF, Prefix::F3, Features::SNP).modes(Modes::Only64),
    // User interrupts, FRED, user MSRs.
    exact("UIRET", 0xEC, Prefix::F3, Features::UINTR).modes(Modes::Only64),
    exact("TESTUI", 0xED, Prefix::F3, Features::UINTR).modes(Modes::Only64),
    exact("CLUI", 0xEE, Prefix::F3, Features::UINTR).modes(Modes::Only64),
    exact("STUI", 0xEF, Prefix::F3, Features::UINTR).modes(Modes::Only64),
    long("SENDUIPI", 0xC7, 6, Prefix::F3, Features::UINTR),
    exact("ERETS", 0xCA, Prefix::F2, Features::FRED).modes(Modes::Only64),
    exact("ERETU", 0xCA, Prefix::F3, Features::FRED).modes(Modes::Only64),
    two("LKGS", 0x00, &[Ew]).digit(6).prefix(Prefix::F2).needs(Features::LKGS).modes(Modes::Only64),
    table("URDMSR", 0xF8, &[Rd, Gy], Prefix::F2, Features::USER_MSR)
        .register()
        .modes(Modes::Only64),
    table("UWRMSR", 0xF8, &[Gy, Rd], Prefix::F3, Features::USER_MSR)
        .register()
        .modes(Modes::Only64),
    // Transactions.
    exact("XEND", 0xD5, Prefix::None, Features::RTM),
    exact("XTEST", 0xD6, Prefix::None, Features::RTM),
    one("XABORT", 0xC6, &[Ib]).modrm(0xF8).needs(Features::RTM),
    one("XBEGIN", 0xC7, &[Jz]).modrm(0xF8).needs(Features::RTM),
    exact("XSUSLDTRK", 0xE8, Prefix::F2, Features::TSXLDTRK),
    exact("XRESLDTRK", 0xE9, Prefix::F2, Features::TSXLDTRK),
    // Work queues, history.
    row(Map::M0F38, "ENQCMD", 0xF8, &[Ga, Mdqq]).prefix(Prefix::F2).needs(Features::ENQCMD),
    row(Map::M0F38, "ENQCMDS", 0xF8, &[Ga, Mdqq]).prefix(Prefix::F3).needs(Features::ENQCMD),
    row(Map::M0F3A, "HRESET", 0xF0, &[Ib]).modrm(0xC0).prefix(Prefix::F3).needs(Features::HRESET),
];

/// 0F 01 with a ModRM byte that is opcode.
const fn exact(name: &'static str, modrm: u8, prefix: Prefix, feature: Features) -> Row {
    two(name, 0x01, &[]).modrm(modrm).prefix(prefix).needs(feature)
}

const fn vmx(name: &'static str, modrm: u8) -> Row {
    exact(name, modrm, Prefix::None, Features::VMX).modes(Modes::Protected)
}

/// 0F map; does not exist in real and virtual-8086 mode.
const fn guest(
    name: &'static str,
    opcode: u8,
    operands: &[Operand],
    prefix: Prefix,
    feature: Features,
) -> Row {
    two(name, opcode, operands).prefix(prefix).needs(feature).modes(Modes::Protected)
}

/// 0F 38 map, likewise.
const fn table(
    name: &'static str,
    opcode: u8,
    operands: &[Operand],
    prefix: Prefix,
    feature: Features,
) -> Row {
    row(Map::M0F38, name, opcode, operands).prefix(prefix).needs(feature).modes(Modes::Protected)
}

/// A register form of 64-bit code.
const fn long(name: &'static str, opcode: u8, digit: u8, prefix: Prefix, feature: Features) -> Row {
    two(name, opcode, &[Rv])
        .register()
        .digit(digit)
        .prefix(prefix)
        .needs(feature)
        .modes(Modes::Only64)
        .size64(Size64::Force64)
}
