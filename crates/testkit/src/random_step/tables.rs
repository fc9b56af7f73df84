//! Descriptor tables and task-state segments of random processors.

use realmode::arch::control::{CR0_PE, EFER_LMA};
use realmode::arch::rflags::VM;
use realmode::{Attributes, Cpu, Generation, Profile, SegReg, Segment, TableRegister};

use super::memory::Arena;
use super::paging;
use super::state::{gated, poke};
use super::world::{Kind, Map};
use crate::prng::Prng;

/// Entries of the GDT, of the LDT and of the IDT.
const GDT: u64 = 24;
const LDT: u64 = 8;
pub(crate) const IDT: u64 = 34;
/// Entries of the GDT: code of the four levels, data of the four levels, code that conforms, two
/// that grow down, two of any kind, system segments, and gates to the end.
pub(crate) const CODE: u64 = 1;
pub(crate) const DATA: u64 = 5;
const CONFORMING: u64 = 9;
pub(crate) const DOWN: u64 = 10;
const ANY: u64 = 12;
const LDT_ENTRY: u64 = 14;
const TSS_ENTRY: u64 = 15;
const BUSY_ENTRY: u64 = 16;
const GATES: u64 = 17;
/// The LDT has code of the four levels, then data of the four levels.
pub(crate) const LDT_DATA: u64 = 4;
/// The bit of a selector that means the LDT.
pub(crate) const TI: u16 = 4;

/// What a selector is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To be transferred to.
    Code,
    /// To be returned to.
    Return,
    /// To be loaded.
    Data,
    /// For LLDT, LTR.
    Ldt,
    Tss,
    Any,
}

/// A selector for code that runs at `level`: mostly one that serves its aim.
pub(crate) fn select(random: &mut Prng, level: u8, aim: Aim) -> u16 {
    let own = u64::from(level);
    let aim = if random.one_in(4) { Aim::Any } else { aim };
    let (entry, table) = match (aim, random.below(16)) {
        (Aim::Ldt, _) => (LDT_ENTRY, 0),
        (Aim::Tss, _) => (TSS_ENTRY, 0),
        (Aim::Return, 0..14) | (Aim::Code, 0..8) | (Aim::Any, 0..4) => (CODE + own, 0),
        (Aim::Code, 8..13) => (GATES + random.below(GDT - GATES), 0),
        (Aim::Code, 13) | (Aim::Return, 14) => (own, TI),
        (Aim::Data, 0..12) | (Aim::Any, 4..7) => (DATA + own, 0),
        (Aim::Data, 12..14) => (LDT_DATA + own, TI),
        (Aim::Data, 14) | (Aim::Any, 7) => (DOWN + random.below(2), 0),
        (Aim::Code, 15) => (TSS_ENTRY, 0),
        (Aim::Code | Aim::Return, _) | (Aim::Any, 8) => (CONFORMING, 0),
        (Aim::Any, 9) => (LDT_ENTRY + random.below(3), 0),
        (Aim::Any, 10..13) => (GATES + random.below(GDT - GATES), 0),
        (Aim::Any, 13..15) => (random.below(GDT + 1), random.pick(&[0, 0, TI])),
        _ => return random.below(4) as u16,
    };
    let rpl = if random.one_in(12) { random.below(4) } else { own };
    (entry << 3 | rpl) as u16 | table
}

/// What protected mode needs in memory.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    gdt: Vec<u8>,
    ldt: Vec<u8>,
    idt: Vec<u8>,
    tss: Vec<u8>,
    /// The TSS of another task.
    task: Vec<u8>,
    /// What RETF or IRET would return to.
    pub(crate) frame: Vec<u8>,
    has_wide_tss: bool,
}

impl Tables {
    /// Makes tables for a processor that will run at `level`.
    pub(crate) fn new(random: &mut Prng, profile: &Profile, cpu: &Cpu, level: u8) -> Tables {
        let is_old = profile.generation < Generation::I80386;
        let maker = Maker {
            level: level.into(),
            base: cpu.segment(SegReg::Cs).base & 0xFFFF_FFFF,
            is_wide: !is_old && !random.one_in(3),
            is_old,
            is_long: cpu.msr.efer & EFER_LMA != 0,
        };
        let has_wide_tss = !is_old && !random.one_in(4);
        Tables {
            gdt: (0..GDT).flat_map(|n| maker.entry(random, n)).collect(),
            ldt: (0..LDT)
                .flat_map(|n| maker.segment(random, if n < LDT_DATA { 0x1B } else { 0x13 }, n & 3))
                .collect(),
            idt: (0..IDT)
                .flat_map(|_| maker.whole_gate(random, &[6, 7, 0xE, 0xE, 0xE, 0xF, 0xE, 5]))
                .collect(),
            tss: if maker.is_long { long_stacks(random) } else { stacks(random, has_wide_tss) },
            task: if maker.is_long { Vec::new() } else { maker.task(random, has_wide_tss) },
            frame: frame(random, level, maker.frame_word()),
            has_wide_tss,
        }
    }

    /// Sets the table registers, but for where the tables lie.
    pub(crate) fn describe(&self, random: &mut Prng, cpu: &mut Cpu) {
        let mut limit = |entries: u64| {
            let limit = entries * 8 - 1;
            if random.one_in(16) { random.next() & 0xFF } else { limit }
        };
        cpu.gdtr.limit = limit(GDT) as u16;
        cpu.idtr.limit = limit(self.idt.len() as u64 / 8) as u16;
        let is_long = cpu.msr.efer & EFER_LMA != 0;
        let (ldt, tss) = if self.has_wide_tss || is_long { (0x82, 0x8B) } else { (0x82, 0x83) };
        let unusable = if random.one_in(16) { Attributes::UNUSABLE } else { 0 };
        let system = |entry: u64, limit: usize, attributes: u32| Segment {
            selector: (entry << 3) as u16,
            base: 0,
            limit: limit as u32 - 1,
            attributes: Attributes(attributes),
        };
        cpu.ldtr = system(LDT_ENTRY, self.ldt.len(), ldt | unusable);
        cpu.tr = system(BUSY_ENTRY, self.tss.len(), tss);
        if random.one_in(16) {
            cpu.tr.limit = random.below(32) as u32;
        }
    }

    /// What a load of a selector of these tables leaves.
    pub(crate) fn load(&self, selector: u16) -> Segment {
        if selector & !3 == 0 {
            let attributes = Attributes(Attributes::UNUSABLE);
            return Segment { selector, base: 0, limit: 0, attributes };
        }
        let table = if selector & TI == 0 { &self.gdt } else { &self.ldt };
        let entry = &table[usize::from(selector & !7)..][..8];
        let raw = entry.iter().rev().fold(0, |raw, byte| raw << 8 | u64::from(*byte));
        let units = (raw & 0xFFFF | raw >> 32 & 0xF_0000) as u32;
        Segment {
            selector,
            base: raw >> 16 & 0xFF_FFFF | raw >> 56 << 24,
            limit: if raw >> 55 & 1 != 0 { units << 12 | 0xFFF } else { units },
            attributes: Attributes((raw >> 40) as u32 & 0xF0FF | 1),
        }
    }

    /// A TSS of the same page tables: others would be anywhere, and could change under the TLB.
    fn with_cr3(&self, cpu: &Cpu, tss: &[u8]) -> Vec<u8> {
        let mut tss = tss.to_vec();
        if self.has_wide_tss && !self.task.is_empty() {
            tss[0x1C..0x20].copy_from_slice(&(cpu.cr3 as u32).to_le_bytes());
        }
        tss
    }

    /// Finds memory for the tables and writes them there.
    pub(crate) fn place(&self, random: &mut Prng, cpu: &mut Cpu, map: Map, arena: &Arena) {
        let mut put = |cpu: &Cpu, bytes: &[u8]| {
            let base = room(random, cpu, (map, arena), bytes.len() as u64);
            poke(cpu, map, arena, base, bytes);
            base
        };
        let mut gdt = self.gdt.clone();
        if !self.task.is_empty() {
            let base = put(cpu, &self.with_cr3(cpu, &self.task));
            let [low, middle, high, top, ..] = base.to_le_bytes();
            let entry = &mut gdt[TSS_ENTRY as usize * 8..];
            entry[..2].copy_from_slice(&(self.task.len() as u16 - 1).to_le_bytes());
            entry[2..5].copy_from_slice(&[low, middle, high]);
            entry[5] = entry[5] & 0xF0 | if self.has_wide_tss { 9 } else { 1 };
            entry[6..8].copy_from_slice(&[0, if self.has_wide_tss { top } else { 0 }]);
        }
        cpu.gdtr.base = put(cpu, &gdt);
        cpu.ldtr.base = put(cpu, &self.ldt);
        cpu.tr.base = put(cpu, &self.with_cr3(cpu, &self.tss));
        if cpu.cr0 & CR0_PE != 0 {
            cpu.idtr.base = put(cpu, &self.idt);
        } else {
            cpu.idtr = TableRegister { base: 0, limit: 0x3FF };
        }
    }
}

/// A linear address with RAM for `len` bytes, now and then one with anything.
fn room(random: &mut Prng, cpu: &Cpu, (map, arena): (Map, &Arena), len: u64) -> u64 {
    let mut base = 0;
    for _ in 0..8 {
        let offset = if random.one_in(8) { random.below(4096) } else { random.below(4096 - len) };
        base = random.next() & 0xFF_F000 | offset;
        let page = paging::page(cpu, arena, base >> 12).unwrap_or(0);
        if random.one_in(32) || matches!(map.kind(gated(cpu, page)), Kind::Ram(_)) {
            break;
        }
    }
    base
}

/// What the entries of a case have in common.
struct Maker {
    /// The privilege level that the case begins at.
    level: u64,
    /// Where the code lies that the case begins with.
    base: u64,
    /// 32-bit segments and gates.
    is_wide: bool,
    /// An 80286: the last word of every descriptor is zero.
    is_old: bool,
    /// Long mode: gates of 16 bytes, 64-bit code among the rest.
    is_long: bool,
}

impl Maker {
    /// Bytes of a word of a frame.
    fn frame_word(&self) -> usize {
        match (self.is_long, self.is_wide) {
            (true, _) => 8,
            (_, true) => 4,
            _ => 2,
        }
    }

    /// An entry of the IDT.
    fn whole_gate(&self, random: &mut Prng, kinds: &[u64]) -> Vec<u8> {
        let mut gate = self.gate(random, kinds).to_vec();
        if self.is_long {
            let high = if random.one_in(16) { random.next() } else { 0 };
            gate.extend(high.to_le_bytes());
        }
        gate
    }

    /// An entry of the GDT.
    fn entry(&self, random: &mut Prng, number: u64) -> [u8; 8] {
        let level = random.below(4);
        match number {
            0 => [0; 8],
            _ if random.one_in(32) => random.next().to_le_bytes(),
            CODE..DATA => {
                let kind = random.pick(&[0x1B, 0x1B, 0x1B, 0x19]);
                self.segment(random, kind, number - CODE)
            }
            DATA..CONFORMING => {
                let kind = random.pick(&[0x13, 0x13, 0x13, 0x13, 0x13, 0x11, 0x17]);
                self.segment(random, kind, number - DATA)
            }
            CONFORMING => self.segment(random, 0x1F, level / 2),
            DOWN..ANY => self.segment(random, 0x17, level),
            ANY..LDT_ENTRY => {
                let kind = 0x10 | random.below(16);
                self.segment(random, kind, level)
            }
            LDT_ENTRY => self.segment(random, 2, level),
            TSS_ENTRY => {
                let kind = random.pick(&[1, 9, 9]);
                self.segment(random, kind, level)
            }
            BUSY_ENTRY => {
                let kind = random.pick(&[3, 0xB]);
                self.segment(random, kind, level)
            }
            // The second half of a long one.
            _ if self.is_long && number.is_multiple_of(2) && !random.one_in(8) => [0; 8],
            _ if random.one_in(32) => self.gate(random, &[5]),
            _ => self.gate(random, &[4, 0xC, 0xC]),
        }
    }

    /// The TSS of another task, which mostly can be entered.
    fn task(&self, random: &mut Prng, is_wide: bool) -> Vec<u8> {
        let mut bytes = stacks(random, is_wide);
        let level = random.pick(&[0, 0, self.level, 3]);
        let (pointer, stack) = stack(random, level);
        let data = (DATA + level) << 3 | level;
        let is_virtual = is_wide && random.one_in(8);
        let flags = random.next() & 0xFED7 | if is_virtual { VM } else { 0 };
        let mut words = vec![random.next() & 0xFFFF, flags];
        words.extend((0..8).map(|_| random.next() & 0xFFFF));
        words[6] = pointer;
        words.extend([data, (CODE + level) << 3 | level, stack, data, data, 0]);
        if random.one_in(4) {
            words[10 + random.below(6) as usize] = random.below(GDT) << 3 | level;
        }
        let (from, size) = if is_wide { (0x20, 4) } else { (0x0E, 2) };
        let words = words.iter().take(if is_wide { 16 } else { 14 });
        let saved: Vec<u8> =
            words.flat_map(|word| word.to_le_bytes().into_iter().take(size)).collect();
        bytes[from..from + saved.len()].copy_from_slice(&saved);
        let link = if random.one_in(2) { BUSY_ENTRY } else { random.below(GDT) };
        bytes[..2].copy_from_slice(&((link << 3) as u16).to_le_bytes());
        if is_wide && random.one_in(16) {
            bytes[0x64] = 1;
        }
        bytes
    }

    /// A segment of a type and level.
    fn segment(&self, random: &mut Prng, kind: u64, level: u64) -> [u8; 8] {
        let is_down = kind & 0x1C == 0x14;
        let (limit, granular) = match random.below(8) {
            _ if is_down => (random.next() & 0x7FF, 0),
            0 => (random.next() & 0xFFFF, 0),
            1 => (random.next() & 0xF_FFFF, random.below(2)),
            2 | 3 => (0xFFFF, 0),
            _ => (0xF_FFFF, 1),
        };
        let base = match random.below(8) {
            0 => random.next() & 0xFFFF_FFFF,
            1 | 2 => 0,
            _ => self.base,
        };
        let is_wide = self.is_wide != random.one_in(8);
        let mut access = kind | level << 5 | u64::from(!random.one_in(24)) << 7;
        if kind & 0x10 != 0 && random.one_in(3) {
            // Not accessed yet.
            access &= !1;
        }
        // L with D now and then, which is no code at all.
        let is_64_bit = self.is_long && kind & 0x18 == 0x18 && !random.one_in(3);
        let is_wide = is_wide && (!is_64_bit || random.one_in(16));
        let size = u64::from(is_wide) << 6 | u64::from(is_64_bit) << 5;
        let high = (limit >> 16) | size | granular << 7 | base >> 24 << 8;
        let high = if self.is_old && !random.one_in(16) { 0 } else { high };
        (limit & 0xFFFF | (base & 0xFF_FFFF) << 16 | access << 40 | high << 48).to_le_bytes()
    }

    /// A gate of one of `kinds`. Most lead to code, and can be used.
    fn gate(&self, random: &mut Prng, kinds: &[u64]) -> [u8; 8] {
        let kind = if random.one_in(64) { random.below(32) } else { random.pick(kinds) };
        let level = random.pick(&[3, 3, 3, 2, 1, 0]);
        let access = kind | level << 5 | u64::from(!random.one_in(16)) << 7;
        let count = if random.one_in(4) { random.below(32) } else { random.below(3) };
        let code = match random.below(12) {
            0 => random.below(4),
            1..4 => random.below(self.level + 1),
            _ => 0,
        };
        let selector = match random.below(16) {
            0 => CONFORMING << 3,
            1 => code << 3 | u64::from(TI),
            2 => random.below(GDT) << 3,
            _ => (CODE + code) << 3,
        };
        let selector = if kind == 5 { TSS_ENTRY << 3 } else { selector };
        let high = if random.one_in(32) { random.next() & 0xFFFF } else { 0 };
        let offset = random.next() & 0xFFFF;
        (offset | selector << 16 | count << 32 | access << 40 | high << 48).to_le_bytes()
    }
}

/// A stack pointer and selector of data of a level.
fn stack(random: &mut Prng, level: u64) -> (u64, u64) {
    let entry = match random.below(12) {
        0 => random.below(GDT),
        _ => DATA + level,
    };
    (random.next() & 0xFFFE, entry << 3 | level)
}

/// A TSS with the stacks of the inner levels.
fn stacks(random: &mut Prng, is_wide: bool) -> Vec<u8> {
    let mut bytes = vec![0; if is_wide { 0x68 } else { 0x2C }];
    if is_wide {
        // The bitmap of ports begins somewhere in it or behind.
        bytes[0x66] = random.below(0x70) as u8;
    }
    let size = if is_wide { 4 } else { 2 };
    for level in 0..3 {
        let (pointer, selector) = stack(random, level);
        let at = size + 2 * size * level as usize;
        bytes[at..at + 2].copy_from_slice(&(pointer as u16).to_le_bytes());
        bytes[at + size..at + size + 2].copy_from_slice(&(selector as u16).to_le_bytes());
    }
    bytes
}

/// A 64-bit TSS, with the interrupt stack table.
fn long_stacks(random: &mut Prng) -> Vec<u8> {
    let mut bytes = vec![0; 0x68];
    bytes[0x66] = random.below(0x70) as u8;
    for at in (4..0x1C).step_by(8).chain((0x24..0x5C).step_by(8)) {
        let mask = if random.one_in(16) { u64::MAX } else { 0xFF_FFFF };
        let pointer = random.next() & mask;
        bytes[at..at + 8].copy_from_slice(&pointer.to_le_bytes());
    }
    bytes
}

/// The frame of a RETF or an IRET to this level or an outer one.
fn frame(random: &mut Prng, level: u8, size: usize) -> Vec<u8> {
    let outer = if random.one_in(3) { random.below(4) } else { 0 };
    let level = u64::from(level).max(outer);
    let (pointer, stack) = stack(random, level);
    let flags = random.next() & 0x3ED7;
    let code = (CODE + level) << 3 | level;
    let offset = random.next() & 0xFFFF;
    if level == 0 && size == 4 && random.one_in(3) {
        return virtual_frame(random, offset);
    }
    let values: &[u64] = if random.one_in(2) {
        &[offset, code, pointer, stack]
    } else {
        &[offset, code, flags, pointer, stack]
    };
    values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect()
}

/// The frame of an IRET to virtual-8086 mode.
fn virtual_frame(random: &mut Prng, offset: u64) -> Vec<u8> {
    let flags = random.next() & 0x1F_7ED7 | VM;
    let mut values = [offset, 0, flags, random.next() & 0xFFFF, 0, 0, 0, 0, 0];
    for selector in [1, 4, 5, 6, 7, 8] {
        values[selector] = random.next() & 0xFFFF;
    }
    values.iter().flat_map(|value| (*value as u32).to_le_bytes()).collect()
}
