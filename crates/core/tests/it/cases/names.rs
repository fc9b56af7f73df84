//! The names that a case can set or expect: registers, their parts, flags, memory.

use crate::cases::bus::Image;
use crate::cases::file::{address, bytes, flag, flags, hex};
use crate::cases::tables::{ACCESSED, BUSY, load};
use realmode::arch::rflags::ARITH;
use realmode::{Cpu, Profile, Reg, SegReg, Segment, TableRegister};

/// A name and its value.
#[derive(Clone, Debug)]
pub enum Assign {
    /// Bits of a general-purpose register: number, shift, mask, value.
    Reg(u8, u32, u64, u64),
    Ip(u64),
    /// A selector, and what loading it leaves: in a `protected` case what its descriptor says,
    /// else the base that real mode gives it.
    Selector(Place, u16),
    /// The visible part alone.
    Visible(Place, u16),
    Base(Place, u64),
    Limit(Place, u32),
    Attributes(Place, u32),
    /// Flags in a mask.
    Flags(u64, u64),
    Memory(u64, Vec<u8>),
    /// Bits that are set in the descriptor of a selector in memory.
    Marked(u16, u64),
    Gdtr(TableRegister),
    Idtr(TableRegister),
    /// The vector of a maskable interrupt that waits.
    Interrupt(u8),
    /// Another part of the state.
    Other(Other, u64),
}

/// A register with a selector and a hidden part.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Segment(SegReg),
    Ldtr,
    Tr,
}

impl Place {
    fn named(name: &str) -> Option<Place> {
        match name {
            "ldtr" => Some(Place::Ldtr),
            "tr" => Some(Place::Tr),
            _ => {
                let i = SEGMENTS.iter().position(|n| *n == name)?;
                Some(Place::Segment(SegReg::ALL[i]))
            }
        }
    }

    fn of(self, cpu: &mut Cpu) -> &mut Segment {
        match self {
            Place::Segment(reg) => cpu.segment_mut(reg),
            Place::Ldtr => &mut cpu.ldtr,
            Place::Tr => &mut cpu.tr,
        }
    }
}

/// Parts of the state that are plain numbers.
#[derive(Clone, Copy, Debug)]
pub enum Other {
    Cr0,
    Cr2,
    Cr3,
    Cr4,
    Cr8,
    Xcr0,
    Dr(usize),
    Dr6,
    Dr7,
    Efer,
    DebugCtl,
    TscAux,
    SysenterCs,
    SysenterEsp,
    SysenterEip,
    A20,
    Sti,
    MovSs,
    Nmi,
    NmiBlocked,
    Debug,
    Fcw,
    Fip,
    Fsw,
    Ftw,
    Mxcsr,
}

const OTHERS: [(&str, Other); 29] = [
    ("cr0", Other::Cr0),
    ("cr2", Other::Cr2),
    ("cr3", Other::Cr3),
    ("cr4", Other::Cr4),
    ("cr8", Other::Cr8),
    ("xcr0", Other::Xcr0),
    ("dr0", Other::Dr(0)),
    ("dr1", Other::Dr(1)),
    ("dr2", Other::Dr(2)),
    ("dr3", Other::Dr(3)),
    ("dr6", Other::Dr6),
    ("dr7", Other::Dr7),
    ("efer", Other::Efer),
    ("debugctl", Other::DebugCtl),
    ("tsc_aux", Other::TscAux),
    ("sysenter_cs", Other::SysenterCs),
    ("sysenter_esp", Other::SysenterEsp),
    ("sysenter_eip", Other::SysenterEip),
    ("a20", Other::A20),
    ("shadow.sti", Other::Sti),
    ("shadow.movss", Other::MovSs),
    ("nmi", Other::Nmi),
    ("nmi.blocked", Other::NmiBlocked),
    ("pending.debug", Other::Debug),
    ("fcw", Other::Fcw),
    ("fsw", Other::Fsw),
    ("ftw", Other::Ftw),
    ("fip", Other::Fip),
    ("mxcsr", Other::Mxcsr),
];

const BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "ah", "ch", "dh", "bh"];
const WORDS: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
const SEGMENTS: [&str; 6] = ["es", "cs", "ss", "ds", "fs", "gs"];

/// Reads `NAME=VALUE` or `[ADDRESS]=BYTES`.
pub fn parse_assign(word: &str) -> Result<Assign, String> {
    let (name, value) =
        word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=VALUE"))?;
    if let Some(at) = name.strip_prefix('[') {
        let at = at.strip_suffix(']').ok_or_else(|| format!("`{name}` lacks its `]`"))?;
        return Ok(Assign::Memory(address(at)?, bytes(value)?));
    }
    match name {
        "flags" => return Ok(Assign::Flags(ARITH, flags(value)?)),
        "gdtr" => return table(value).map(Assign::Gdtr),
        "idtr" => return table(value).map(Assign::Idtr),
        _ => {}
    }
    let number = hex(value)?;
    assign(name, number)
        .ok_or_else(|| format!("nothing is called `{name}`, or it cannot be {value}"))
}

fn table(value: &str) -> Result<TableRegister, String> {
    let (base, limit) = value.split_once(':').ok_or("a table register is BASE:LIMIT")?;
    Ok(TableRegister { base: hex(base)?, limit: hex(limit)? as u16 })
}

fn assign(name: &str, value: u64) -> Option<Assign> {
    if let Some((name, part)) = name.split_once('.')
        && let Some(reg) = Place::named(name)
    {
        return match part {
            "sel" => u16::try_from(value).ok().map(|v| Assign::Visible(reg, v)),
            "base" => Some(Assign::Base(reg, value)),
            "limit" => u32::try_from(value).ok().map(|v| Assign::Limit(reg, v)),
            "attr" => u32::try_from(value).ok().map(|v| Assign::Attributes(reg, v)),
            _ => None,
        };
    }
    if let Some(place) = Place::named(name) {
        return u16::try_from(value).ok().map(|v| Assign::Selector(place, v));
    }
    if let Some(mask) = flag(name) {
        let shift = mask.trailing_zeros();
        return (value <= mask >> shift).then_some(Assign::Flags(mask, value << shift));
    }
    if let Some((_, other)) = OTHERS.iter().find(|(n, _)| *n == name) {
        return Some(Assign::Other(*other, value));
    }
    match name {
        "ip" | "eip" | "rip" => Some(Assign::Ip(value)),
        "eflags" => Some(Assign::Flags(u64::MAX, value)),
        "accessed" => u16::try_from(value).ok().map(|v| Assign::Marked(v, ACCESSED)),
        "busy" => u16::try_from(value).ok().map(|v| Assign::Marked(v, BUSY)),
        "intr" => u8::try_from(value).ok().map(Assign::Interrupt),
        _ => {
            let (number, shift, bits) = register(name)?;
            let mask = u64::MAX >> (64 - bits);
            (value <= mask).then_some(Assign::Reg(number, shift, mask, value))
        }
    }
}

/// Number, shift and bits of a register name.
fn register(name: &str) -> Option<(u8, u32, u32)> {
    let index = |list: &[&str], name: &str| list.iter().position(|n| *n == name);
    if let Some(i) = index(&BYTES, name) {
        return Some((i as u8 & 3, if i < 4 { 0 } else { 8 }, 8));
    }
    if let Some(i) = index(&WORDS, name) {
        return Some((i as u8, 0, 16));
    }
    if let Some(i) = name.strip_prefix('e').and_then(|n| index(&WORDS, n)) {
        return Some((i as u8, 0, 32));
    }
    if let Some(i) = name.strip_prefix('r').and_then(|n| index(&WORDS, n)) {
        return Some((i as u8, 0, 64));
    }
    let i = name.strip_prefix('r')?.parse::<u8>().ok()?;
    (8..16).contains(&i).then_some((i, 0, 64))
}

const REGISTERS: [Reg; 16] = [
    Reg::Rax,
    Reg::Rcx,
    Reg::Rdx,
    Reg::Rbx,
    Reg::Rsp,
    Reg::Rbp,
    Reg::Rsi,
    Reg::Rdi,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

impl Assign {
    /// The selector of a segment register.
    pub fn selector(reg: SegReg, selector: u16) -> Assign {
        Assign::Selector(Place::Segment(reg), selector)
    }

    /// Puts the value in a processor. Memory is not a processor's; that of a `protected` case is
    /// where its descriptors are.
    pub fn apply(&self, cpu: &mut Cpu, profile: &Profile, tables: Option<&Image>) {
        match *self {
            Assign::Reg(number, shift, mask, value) => {
                let reg = &mut cpu.gpr[REGISTERS[usize::from(number)]];
                *reg = *reg & !(mask << shift) | value << shift;
            }
            Assign::Ip(value) => cpu.rip = value,
            Assign::Selector(place, selector) => {
                let loaded = match tables {
                    Some(image) => load(cpu, image, selector),
                    None => {
                        let base = u64::from(selector) << 4;
                        Segment { selector, base, ..*place.of(cpu) }
                    }
                };
                *place.of(cpu) = loaded;
            }
            Assign::Visible(place, selector) => place.of(cpu).selector = selector,
            Assign::Base(place, base) => place.of(cpu).base = base,
            Assign::Limit(place, limit) => place.of(cpu).limit = limit,
            Assign::Attributes(place, bits) => {
                place.of(cpu).attributes = realmode::Attributes(bits);
            }
            Assign::Flags(mask, value) => {
                let flags = cpu.rflags & !mask | value & mask;
                cpu.rflags = flags | profile.flags_set;
            }
            Assign::Memory(..) | Assign::Marked(..) => {}
            Assign::Gdtr(table) => cpu.gdtr = table,
            Assign::Idtr(table) => cpu.idtr = table,
            Assign::Interrupt(_) => cpu.pending.interrupt = true,
            Assign::Other(other, value) => other.apply(cpu, value),
        }
    }
}

impl Other {
    fn apply(self, cpu: &mut Cpu, value: u64) {
        let on = value != 0;
        match self {
            Other::Cr0 => cpu.cr0 = value,
            Other::Cr2 => cpu.cr2 = value,
            Other::Cr3 => cpu.cr3 = value,
            Other::Cr4 => cpu.cr4 = value,
            Other::Cr8 => cpu.cr8 = value,
            Other::Xcr0 => cpu.xcr0 = value,
            Other::Dr(n) => cpu.dr[n] = value,
            Other::Dr6 => cpu.dr6 = value,
            Other::Dr7 => cpu.dr7 = value,
            Other::Efer => cpu.msr.efer = value,
            Other::DebugCtl => cpu.msr.debugctl = value,
            Other::TscAux => cpu.msr.tsc_aux = value,
            Other::SysenterCs => cpu.msr.sysenter_cs = value,
            Other::SysenterEsp => cpu.msr.sysenter_esp = value,
            Other::SysenterEip => cpu.msr.sysenter_eip = value,
            Other::A20 => cpu.a20 = on,
            Other::Sti => cpu.shadow.sti = on,
            Other::MovSs => cpu.shadow.mov_ss = on,
            Other::Nmi => cpu.pending.nmi = on,
            Other::NmiBlocked => cpu.nmi_blocked = on,
            Other::Debug => cpu.pending.debug = value as u32,
            Other::Fcw => cpu.fpu.control = value as u16,
            Other::Fip => cpu.fpu.instruction_pointer = value,
            Other::Fsw => cpu.fpu.status = value as u16,
            Other::Ftw => cpu.fpu.tags = value as u8,
            Other::Mxcsr => cpu.fpu.mxcsr = value as u32,
        }
    }
}
