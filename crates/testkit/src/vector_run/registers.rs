//! A suite's registers in the emulator's state, and back.

use realmode::arch::control::{
    CR0_AM, CR0_CD, CR0_EM, CR0_ET, CR0_MP, CR0_NE, CR0_NW, CR0_PE, CR0_PG, CR0_TS, CR0_WP,
};
use realmode::{Cpu, Generation, Profile, Reg, SegReg, Segment};

use crate::moo::{Register, RegisterFile, RegisterMasks, RegisterWidth};

/// CR0 of a 386; what else is read there is what the pins of that day left.
const CR0_386: u64 = CR0_PE | CR0_MP | CR0_EM | CR0_TS | CR0_ET | CR0_PG;
/// CR0 since the 486.
const CR0_486: u64 = CR0_386 | CR0_NE | CR0_WP | CR0_AM | CR0_NW | CR0_CD;

/// The profile of the processor that a MOO file names: `C286` is the 286.
pub fn profile_for(cpu: &str) -> Option<&'static Profile> {
    match cpu {
        "8086" | "8088" => Some(&Profile::I8086),
        _ if cpu.contains("286") => Some(&Profile::I80286),
        _ if cpu.contains("386") => Some(&Profile::I80386),
        _ if cpu.contains("486") => Some(&Profile::I80486),
        _ => None,
    }
}

/// What a register of the suite is in the emulator.
enum Place {
    General(Reg),
    Selector(SegReg),
    Ip,
    Flags,
    Cr0,
    Cr3,
    Dr6,
    Dr7,
}

fn place(register: Register) -> Place {
    match register {
        Register::Cr0 => Place::Cr0,
        Register::Cr3 => Place::Cr3,
        Register::Eax => Place::General(Reg::Rax),
        Register::Ebx => Place::General(Reg::Rbx),
        Register::Ecx => Place::General(Reg::Rcx),
        Register::Edx => Place::General(Reg::Rdx),
        Register::Esi => Place::General(Reg::Rsi),
        Register::Edi => Place::General(Reg::Rdi),
        Register::Ebp => Place::General(Reg::Rbp),
        Register::Esp => Place::General(Reg::Rsp),
        Register::Cs => Place::Selector(SegReg::Cs),
        Register::Ds => Place::Selector(SegReg::Ds),
        Register::Es => Place::Selector(SegReg::Es),
        Register::Fs => Place::Selector(SegReg::Fs),
        Register::Gs => Place::Selector(SegReg::Gs),
        Register::Ss => Place::Selector(SegReg::Ss),
        Register::Eip => Place::Ip,
        Register::Eflags => Place::Flags,
        Register::Dr6 => Place::Dr6,
        Register::Dr7 => Place::Dr7,
    }
}

fn cr0_exists(profile: &Profile) -> u64 {
    if profile.generation <= Generation::I80386 { CR0_386 } else { CR0_486 }
}

/// The state a test starts from: reset, then what the test gives. Bits of FLAGS and CR0 that the
/// processor does not have are not loaded, as they were not when the test was captured.
pub(super) fn load(profile: &Profile, registers: &RegisterFile) -> Cpu {
    let mut cpu = Cpu::reset_as(profile);
    for (register, value) in registers.iter() {
        let value = u64::from(value);
        match place(register) {
            Place::General(reg) => cpu.gpr[reg] = value,
            Place::Selector(reg) => *cpu.segment_mut(reg) = Segment::real(value as u16),
            Place::Ip => cpu.rip = value,
            Place::Flags => cpu.rflags = profile.canonical_flags(value),
            Place::Cr0 => cpu.cr0 = value & cr0_exists(profile),
            Place::Cr3 => cpu.cr3 = value,
            Place::Dr6 => cpu.dr6 = value,
            Place::Dr7 => cpu.dr7 = value,
        }
    }
    cpu
}

/// The value of a register, in the width of the suite's.
pub(super) fn read(cpu: &Cpu, register: Register, width: RegisterWidth) -> u32 {
    let value = match place(register) {
        Place::General(reg) => cpu.gpr[reg],
        Place::Selector(reg) => cpu.segment(reg).selector.into(),
        Place::Ip => cpu.rip,
        Place::Flags => cpu.rflags,
        Place::Cr0 => cpu.cr0,
        Place::Cr3 => cpu.cr3,
        Place::Dr6 => cpu.dr6,
        Place::Dr7 => cpu.dr7,
    };
    match width {
        RegisterWidth::Word => value as u32 & 0xFFFF,
        RegisterWidth::Dword => value as u32,
    }
}

/// The bits of a register that can differ: those that count for the suite and that the processor
/// has. All sixteen of FLAGS are compared; above them, what does not exist reads as anything.
pub(super) fn comparable(
    profile: &Profile,
    masks: &RegisterMasks,
    register: Register,
    width: RegisterWidth,
) -> u32 {
    let exists = match place(register) {
        Place::Selector(_) => 0xFFFF,
        Place::Flags => profile.flags_exist as u32 | 0xFFFF,
        Place::Cr0 => cr0_exists(profile) as u32,
        _ => u32::MAX,
    };
    let wide = match width {
        RegisterWidth::Word => 0xFFFF,
        RegisterWidth::Dword => u32::MAX,
    };
    masks.get(register) & exists & wide
}

/// The value a register has to have afterwards. FLAGS that a test does not list are those that
/// were loaded.
pub(super) fn expected(
    profile: &Profile,
    before: &RegisterFile,
    after: &RegisterFile,
    register: Register,
) -> Option<u32> {
    match (after.get(register), before.get(register)) {
        (Some(value), _) => Some(value),
        (None, Some(value)) if register == Register::Eflags => {
            Some(profile.canonical_flags(value.into()) as u32)
        }
        (None, before) => before,
    }
}
