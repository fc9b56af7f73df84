//! Unpaged protected mode for random processors: tables that mostly make sense, segment registers
//! that were loaded from them, and a stack that returns somewhere. Most entries are what software
//! would put there, so that loads and transfers succeed and go on; some are anything.

use realmode::arch::control::{CR0_PE, CR4_VME, EFER_LMA};
use realmode::arch::rflags::{IOPL, NT, VIF, VIP, VM};
use realmode::{Attributes, Cpu, Generation, Profile, Reg, SegReg, Segment};

use super::memory::Arena;
use super::state::poke;
use super::tables::{Aim, CODE, DATA, DOWN, LDT_DATA, TI, Tables, select};
use super::world::Map;
use crate::prng::Prng;

/// Puts a processor into protected mode, or into a state on the way there or back. The tables
/// have yet to be placed.
pub(crate) fn enter(random: &mut Prng, profile: &Profile, cpu: &mut Cpu) -> Tables {
    let level = random.pick(&[0, 0, 1, 2, 3, 3]);
    let tables = Tables::new(random, profile, cpu, level);
    tables.describe(random, cpu);
    cpu.cr0 |= CR0_PE;
    if cpu.msr.efer & EFER_LMA != 0 {
        let is_64_bit = cpu.is_64_bit_code();
        cpu.rflags |= if random.one_in(2) { IOPL } else { 0 };
        load_all(random, cpu, &tables, level);
        let cs = &mut cpu.segment_mut(SegReg::Cs).attributes;
        cs.0 &= !Attributes::L;
        if is_64_bit {
            cs.0 = cs.0 & !Attributes::DB | Attributes::L;
        }
        return tables;
    }
    let real = cpu.seg;
    flags(random, profile, cpu);
    match random.below(8) {
        _ if cpu.rflags & VM != 0 => virtual_8086(random, cpu, &real),
        // As software that has just set PE: real-mode segments, of level 0 or 3.
        0 => {
            let level = random.pick(&[0, 0, 0x60]);
            cpu.segment_mut(SegReg::Cs).attributes.0 = random.pick(&[0x93, 0x9B]) | level;
            cpu.segment_mut(SegReg::Ss).attributes.0 = 0x93 | level;
        }
        // As software that has just cleared it.
        1 => {
            load_all(random, cpu, &tables, level);
            cpu.cr0 &= !CR0_PE;
        }
        _ => load_all(random, cpu, &tables, level),
    }
    if profile.generation < Generation::I80386 && !random.one_in(16) {
        for segment in &mut cpu.seg {
            segment.attributes.0 &= !(Attributes::DB | Attributes::G);
        }
    }
    for reg in REGISTERS {
        if random.one_in(3) {
            let reg = &mut cpu.gpr[reg];
            *reg = *reg & !0xFFFF | u64::from(select(random, level, Aim::Data));
        }
    }
    tables
}

/// Registers that may hold a selector.
const REGISTERS: [Reg; 7] = [Reg::Rax, Reg::Rcx, Reg::Rdx, Reg::Rbx, Reg::Rbp, Reg::Rsi, Reg::Rdi];

/// Virtual-8086 mode, mostly with the segments that it has, with and without its extensions.
fn virtual_8086(random: &mut Prng, cpu: &mut Cpu, real: &[Segment; 6]) {
    for (segment, real) in cpu.seg.iter_mut().zip(real) {
        let base = u64::from(real.selector) << 4;
        let attributes = Attributes(0xF3);
        *segment = Segment { selector: real.selector, base, limit: 0xFFFF, attributes };
    }
    if random.one_in(16) {
        cpu.seg = *real;
    }
    cpu.rip &= 0xFFFF;
    if random.one_in(2) {
        cpu.cr4 |= CR4_VME;
        cpu.rflags |= random.pick(&[0, VIF, VIP, VIF]);
    }
}

/// IRET mostly returns within its task.
fn flags(random: &mut Prng, profile: &Profile, cpu: &mut Cpu) {
    if !random.one_in(16) {
        cpu.rflags &= !NT;
    }
    if profile.generation >= Generation::I80386 && random.one_in(14) {
        cpu.rflags |= VM;
    }
    if random.one_in(2) {
        cpu.rflags |= IOPL;
    }
}

/// Loads the segment registers from the tables.
fn load_all(random: &mut Prng, cpu: &mut Cpu, tables: &Tables, level: u8) {
    let own = u64::from(level);
    let global = |entry: u64| tables.load((entry << 3) as u16 | u16::from(level));
    let local = |entry: u64| tables.load((entry << 3) as u16 | TI | u16::from(level));
    // CPL is SS.DPL, whatever a random entry of the table says.
    let of_level = |mut segment: Segment| {
        segment.attributes.0 = segment.attributes.0 & !0x60 | u32::from(level) << 5;
        segment
    };
    let code = if random.one_in(8) { local(own) } else { global(CODE + own) };
    *cpu.segment_mut(SegReg::Cs) = of_level(code);
    *cpu.segment_mut(SegReg::Ss) = of_level(match random.below(8) {
        0 => local(LDT_DATA + own),
        1 => global(DOWN),
        _ => global(DATA + own),
    });
    for reg in [SegReg::Es, SegReg::Ds, SegReg::Fs, SegReg::Gs] {
        *cpu.segment_mut(reg) = match random.below(12) {
            0 => tables.load(random.below(4) as u16),
            1 => global(DOWN + 1),
            // What real mode left.
            2 => continue,
            3 => local(LDT_DATA + own),
            4 => global(CODE + own),
            _ => global(DATA + own),
        };
    }
    let ss = *cpu.segment(SegReg::Ss);
    if ss.attributes.is_expand_down() {
        // Just above the limit, or well above it.
        let room = random.pick(&[1, 4, 6, 8, 0x200, 0x2000]);
        cpu.gpr[Reg::Rsp] = u64::from(ss.limit) + random.below(room);
    }
}

/// Puts the tables into memory, and something to return to on the stack.
pub(crate) fn place(random: &mut Prng, cpu: &mut Cpu, tables: &Tables, map: Map, arena: &Arena) {
    tables.place(random, cpu, map, arena);
    let ss = *cpu.segment(SegReg::Ss);
    let mask = if ss.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
    let top = ss.base.wrapping_add(cpu.gpr[Reg::Rsp] & mask) & 0xFFFF_FFFF;
    poke(cpu, map, arena, top, &tables.frame);
}
