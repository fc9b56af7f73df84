//! Protected mode for cases: the tables that `protected` lays out, the descriptors that lines put
//! into them, and what a selector loads. Written from the manual (SDM vol. 3A, "Segment
//! Descriptors", "Gate Descriptors"), not from the emulator.

use crate::cases::bus::{Image, get, put};
use crate::cases::file::hex;
use realmode::*;

/// Where the tables lie. The GDT and the IDT have 256 entries, the LDT 32.
pub const GDT: u64 = 0x5000;
pub const IDT: u64 = 0x5800;
pub const TSS: u64 = 0x6000;
pub const LDT: u64 = 0x6800;

/// Selectors of 16-bit code and data of level 0, of the TSS and of the LDT.
const CODE16: u16 = 0x48;
const DATA16: u16 = 0x50;
const TSS_SELECTOR: u16 = 0x58;
const LDT_SELECTOR: u16 = 0x60;

/// The selector of the flat 32-bit code segment of a level; its data segment is the next.
pub fn code_of(level: u8) -> u16 {
    u16::from(level) * 0x11 + 8
}

fn data_of(level: u8) -> u16 {
    code_of(level) + 8
}

/// The accessed bit of a descriptor, and the busy bit of a TSS.
pub const ACCESSED: u64 = 1 << 40;
pub const BUSY: u64 = 1 << 41;

/// Lays out the tables. Every gate leads to a HLT at `handlers` + its vector.
pub fn lay_out(image: &mut Image, handlers: u64) {
    let mut entry = |selector: u16, words: &str| {
        let raw = descriptor(words).expect("a standard descriptor is well formed");
        put(image, GDT + u64::from(selector & !7), &raw.to_le_bytes());
    };
    for level in 0..4 {
        entry(code_of(level), &format!("code32 dpl={level}"));
        entry(data_of(level), &format!("data32 dpl={level}"));
    }
    entry(CODE16, "code16");
    entry(DATA16, "data16");
    entry(TSS_SELECTOR, &format!("busy32 base={TSS:X}"));
    entry(LDT_SELECTOR, &format!("ldt base={LDT:X}"));
    let gate = descriptor(&format!("int32 to={:X}:{handlers:X}", code_of(0)));
    let gate = gate.expect("a standard gate is well formed");
    for vector in 0..256 {
        put(image, IDT + vector * 8, &(gate + vector).to_le_bytes());
    }
    for level in 0..3u8 {
        let top = 0xE00 - 0x100 * u32::from(level);
        put(image, stack_of(level), &top.to_le_bytes());
        put(image, stack_of(level) + 4, &data_of(level).to_le_bytes());
    }
}

/// Where the 32-bit TSS has ESP and SS of a level.
pub fn stack_of(level: u8) -> u64 {
    TSS + 4 + 8 * u64::from(level)
}

/// Puts a processor into protected mode at a level: flat 32-bit segments, all tables in use.
pub fn enter(cpu: &mut Cpu, image: &Image, level: u8) {
    cpu.cr0 |= 1;
    cpu.gdtr = TableRegister { base: GDT, limit: 0x7FF };
    cpu.idtr = TableRegister { base: IDT, limit: 0x7FF };
    cpu.ldtr = load(cpu, image, LDT_SELECTOR);
    cpu.tr = load(cpu, image, TSS_SELECTOR);
    cpu.seg = [load(cpu, image, data_of(level)); 6];
    *cpu.segment_mut(SegReg::Cs) = load(cpu, image, code_of(level));
}

/// What a segment register holds once `selector` has been loaded.
pub fn load(cpu: &Cpu, image: &Image, selector: u16) -> Segment {
    if selector & !3 == 0 {
        let attributes = Attributes(Attributes::UNUSABLE);
        return Segment { selector, base: 0, limit: 0, attributes };
    }
    let table = if selector & 4 == 0 { cpu.gdtr.base } else { cpu.ldtr.base };
    let raw = quad(image, table + u64::from(selector & !7));
    let units = (raw & 0xFFFF | raw >> 32 & 0xF_0000) as u32;
    let limit = if raw >> 55 & 1 != 0 { units << 12 | 0xFFF } else { units };
    let base = raw >> 16 & 0xFF_FFFF | raw >> 32 & 0xFF00_0000;
    let mut attributes = (raw >> 40) as u32 & 0xF0FF;
    attributes |= match attributes & 0x1F {
        0x10..=0x1F => 1,
        1 | 9 => 2,
        _ => 0,
    };
    Segment { selector, base, limit, attributes: Attributes(attributes) }
}

/// Eight bytes of memory.
pub fn quad(image: &Image, at: u64) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| get(image, at + i as u64)))
}

/// The types that a line can name, without their size: type bits, and whether it is a system
/// descriptor of its own size (`Some(type)` for 32 bits).
const SEGMENTS: [(&str, u64); 6] = [
    ("data", 0x13),
    ("readonly", 0x11),
    ("down", 0x17),
    ("code", 0x1B),
    ("execute", 0x19),
    ("conforming", 0x1F),
];
/// TSSs and gates, whose 32-bit form has bit 3 of the type set.
const SYSTEM: [(&str, u64); 5] = [("tss", 1), ("busy", 3), ("call", 4), ("int", 6), ("trap", 7)];

/// Reads a descriptor or gate: `KIND [dpl=N] [base=N] [limit=N] [absent] [fresh]`, or
/// `KIND to=SELECTOR:OFFSET [dpl=N] [count=N] [absent]`.
pub fn descriptor(words: &str) -> Result<u64, String> {
    let mut words = words.split_whitespace();
    let name = words.next().ok_or("a descriptor begins with its kind")?;
    let Kind { bits, limit, is_gate } =
        kind(name).ok_or_else(|| format!("no descriptor is called `{name}`"))?;
    let mut raw = bits | 1 << 47;
    let (mut base, mut limit) = (0, limit);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("absent", "") => raw &= !(1 << 47),
            ("fresh", "") => raw &= !ACCESSED,
            ("dpl", value) => raw |= (hex(value)? & 3) << 45,
            ("base", value) if !is_gate => base = hex(value)?,
            ("limit", value) if !is_gate => limit = hex(value)?,
            ("count", value) if is_gate => raw |= (hex(value)? & 31) << 32,
            ("to", value) if is_gate => {
                let (selector, offset) =
                    value.split_once(':').ok_or("a gate leads to=SELECTOR:OFFSET")?;
                let offset = hex(offset)?;
                raw |= hex(selector)? << 16 | offset & 0xFFFF | offset >> 16 << 48;
            }
            _ => return Err(format!("`{word}` says nothing about a `{name}`")),
        }
    }
    if is_gate {
        return Ok(raw);
    }
    if limit > 0xF_FFFF {
        if limit & 0xFFF != 0xFFF {
            return Err(format!("a limit of {limit:X} is not whole pages"));
        }
        limit >>= 12;
        raw |= 1 << 55;
    }
    Ok(raw | limit & 0xFFFF | limit >> 16 << 48 | (base & 0xFF_FFFF) << 16 | base >> 24 << 56)
}

struct Kind {
    /// Type, and D/B.
    bits: u64,
    limit: u64,
    is_gate: bool,
}

fn kind(name: &str) -> Option<Kind> {
    let system = |kind: u64, limit| Some(Kind { bits: kind << 40, limit, is_gate: false });
    match name {
        "ldt" => return system(2, 0xFF),
        "reserved" => return system(8, 0xFFFF),
        "task" => return Some(Kind { bits: 5 << 40, limit: 0, is_gate: true }),
        _ => {}
    }
    let (stem, is_wide) = match name.strip_suffix("32") {
        Some(stem) => (stem, true),
        None => (name.strip_suffix("16")?, false),
    };
    if let Some((_, kind)) = SEGMENTS.iter().find(|(n, _)| *n == stem) {
        let limit = if is_wide { 0xFFFF_FFFF } else { 0xFFFF };
        return Some(Kind { bits: kind << 40 | u64::from(is_wide) << 54, limit, is_gate: false });
    }
    let (_, kind) = SYSTEM.iter().find(|(n, _)| *n == stem)?;
    let bits = (kind | u64::from(is_wide) << 3) << 40;
    Some(Kind { bits, limit: if is_wide { 0x67 } else { 0x2B }, is_gate: *kind >= 4 })
}
