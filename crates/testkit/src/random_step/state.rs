//! Random processors: real mode, big real mode, protected mode and the states between them, on
//! every profile, with whatever can wait or be cached in odd ways.

use realmode::arch::control::{
    CR0_EM, CR0_MP, CR0_NE, CR0_PE, CR0_TS, EFER_LMA, EFER_LME, EFER_SCE,
};
use realmode::arch::rflags::{RF, TF, VM};
use realmode::{
    Activity, Attributes, Cpu, Event, Fault, Features, Generation, Profile, Reg, SegReg, Segment,
    Shadow, TableRegister,
};

use super::code::Code;
use super::memory::{Arena, PAGES};
use super::tables::Tables;
use super::world::{Kind, Map};
use super::{paging, protected};
use crate::prng::Prng;

/// A case: everything that decides how it runs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) cpu: Cpu,
    /// Instructions to run.
    pub(crate) budget: u64,
    pub(crate) map: Map,
    /// Decides what devices answer and disturb.
    pub(crate) salt: u64,
    /// The page execution begins in.
    pub(crate) code_page: u64,
}

/// Numbers at which something changes.
const BOUNDARIES: &[u64] = &[
    0,
    1,
    2,
    0xFF,
    0x7F,
    0x80,
    0xFFF,
    0x1000,
    0x7FFF,
    0x8000,
    0xFFFE,
    0xFFFF,
    0x1_0000,
    0x1_0001,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
    0x1_0000_0000,
    u64::MAX,
];

/// Devices among 64 pages, usually.
pub(crate) const DEVICES: [u64; 3] = [0, 4, 16];

/// Makes a case, and puts its code into memory.
pub(crate) fn case(random: &mut Prng, profile: &Profile, arena: &Arena, devices: &[u64]) -> Case {
    let devices = random.pick(devices);
    let mut map = Map { salt: random.next(), devices };
    let (mut cpu, tables) = processor(random, profile, arena);
    let linear = cpu.segment(SegReg::Cs).base.wrapping_add(cpu.rip) & linear_mask(&cpu, profile);
    let code_page = paging::page(&cpu, arena, linear >> 12).unwrap_or(linear >> 12);
    let code_page = gated(&cpu, code_page);
    for _ in 0..8 {
        if matches!(map.kind(code_page), Kind::Ram(_) | Kind::Rom(_)) {
            break;
        }
        map.salt = random.next();
    }
    let level = level(&cpu);
    let mut code = Code::new(cpu.rip, code_bits(&cpu), level);
    if let Some(level) = level
        && !random.one_in(16)
    {
        // Before anything faults and leads elsewhere.
        code.with_selector(random, level);
    }
    code.fill(random, 48);
    poke(&cpu, map, arena, linear, &code.bytes);
    if let Some(tables) = tables {
        protected::place(random, &mut cpu, &tables, map, arena);
    }
    // Long enough for a loop to be followed from block to block, now and then.
    let most = if random.one_in(24) { 250 } else { 20 };
    Case { cpu, budget: 1 + random.below(most), map, salt: random.next(), code_page }
}

/// The size of the code: 16, 32 or 64.
pub(crate) fn code_bits(cpu: &Cpu) -> u8 {
    match (cpu.is_64_bit_code(), cpu.segment(SegReg::Cs).attributes.is_big()) {
        (true, _) => 64,
        (_, true) => 32,
        _ => 16,
    }
}

/// The privilege level, in protected mode.
fn level(cpu: &Cpu) -> Option<u8> {
    (cpu.cr0 & CR0_PE != 0).then(|| cpu.cpl())
}

pub(crate) fn linear_mask(cpu: &Cpu, profile: &Profile) -> u64 {
    if cpu.is_64_bit_code() { u64::MAX } else { profile.linear_mask }
}

pub(crate) fn gated(cpu: &Cpu, page: u64) -> u64 {
    if cpu.a20 { page } else { page & !(1 << 8) }
}

/// Writes bytes at a linear address, as far as there is memory.
pub(crate) fn poke(cpu: &Cpu, map: Map, arena: &Arena, linear: u64, bytes: &[u8]) {
    let offset = linear as usize % 4096;
    let (head, tail) = bytes.split_at(bytes.len().min(4096 - offset));
    let page = linear >> 12;
    for (page, offset, bytes) in [(page, offset, head), (page.wrapping_add(1), 0, tail)] {
        let Some(page) = paging::page(cpu, arena, page) else { continue };
        if let Kind::Ram(n) | Kind::Rom(n) = map.kind(gated(cpu, page))
            && n < PAGES
        {
            arena.poke(n, offset, bytes);
        }
    }
}

/// A processor, and the tables it needs if it has to do with protected mode.
fn processor(random: &mut Prng, profile: &Profile, arena: &Arena) -> (Cpu, Option<Tables>) {
    let mut cpu = Cpu::reset_as(profile);
    cpu.rip = match random.below(8) {
        0 => random.next() & 0xFFFF_FFFF,
        1 => random.pick(BOUNDARIES),
        2 => random.next() & 0xFFFF | 0xFF0,
        _ => random.next() & 0xFFFF,
    };
    for number in 0..6 {
        cpu.seg[number] = segment(random, profile);
    }
    if random.one_in(3) {
        cpu.seg[SegReg::Ds as usize] = *cpu.segment(SegReg::Cs);
    }
    if random.one_in(3) {
        cpu.seg[SegReg::Ss as usize] = *cpu.segment(SegReg::Cs);
    }
    if !random.one_in(16) {
        usable_code(random, &mut cpu);
    }
    let mut values = [0; 16];
    for value in &mut values {
        *value = number(random, cpu.rip);
    }
    cpu.gpr = values.into();
    cpu.gpr[Reg::Rsp] = stack_pointer(random, cpu.segment(SegReg::Ss).limit);
    if random.one_in(2) {
        cpu.gpr[Reg::Rcx] = random.below(6);
    }
    flags(random, profile, &mut cpu);
    tables(random, &mut cpu);
    debug_registers(random, &mut cpu);
    if random.one_in(4) {
        modes(random, profile, &mut cpu);
    }
    if random.one_in(4) {
        waiting(random, &mut cpu);
    }
    cpu.a20 = !random.one_in(4);
    let is_paged = arena.has_tables.get() && !random.one_in(4);
    if is_paged && profile.has(Features::LM) && random.one_in(2) {
        long_mode(random, &mut cpu);
    }
    let is_long = cpu.cr0 & CR0_PE != 0;
    let can = profile.generation >= Generation::I80286;
    let wanted = if is_paged { 8 } else { 6 };
    let tables = (is_long || can && random.below(8) < wanted).then(|| {
        let tables = protected::enter(random, profile, &mut cpu);
        usable_code(random, &mut cpu);
        tables
    });
    if is_paged && cpu.cr0 & CR0_PE != 0 {
        paging::enter(random, profile, &mut cpu);
    }
    (cpu, tables)
}

/// A number for a register: an address in the code, a boundary, or anything.
fn number(random: &mut Prng, rip: u64) -> u64 {
    match random.below(10) {
        0 => random.next(),
        1 => random.next() & 0xFFFF_FFFF,
        2 => random.pick(BOUNDARIES),
        3 | 4 => rip.wrapping_add(random.below(96)).wrapping_sub(16),
        5 => random.below(16),
        6 => random.pick(BOUNDARIES).wrapping_sub(random.below(8)),
        _ => random.next() & 0xFFFF,
    }
}

fn segment(random: &mut Prng, profile: &Profile) -> Segment {
    let selector = random.next() as u16;
    let mut segment = Segment::real(selector);
    match random.below(8) {
        0 => segment = Segment::big_real(selector),
        1..4 => {
            segment.base = random.next() & profile.linear_mask;
            segment.limit = match random.below(4) {
                0 => random.next() as u32,
                1 => random.pick(BOUNDARIES) as u32,
                2 => 0xFFFF_FFFF,
                _ => random.next() as u32 & 0xFFFF,
            };
        }
        _ => {}
    }
    if random.one_in(4) {
        // Any type, present or not, usable or not.
        segment.attributes = Attributes(random.next() as u32 & 0xF0FF);
        if random.one_in(8) {
            segment.attributes.0 |= Attributes::UNUSABLE;
        }
    } else if random.one_in(4) {
        segment.attributes.0 |= Attributes::DB;
    }
    if profile.generation < Generation::I80386 && !random.one_in(64) {
        segment.attributes.0 &= !(Attributes::DB | Attributes::G);
    }
    if random.one_in(256) {
        segment.base = random.next();
    }
    segment
}

/// Makes it likely that RIP lies inside CS, often just inside.
fn usable_code(random: &mut Prng, cpu: &mut Cpu) {
    let rip = cpu.rip;
    let cs = cpu.segment_mut(SegReg::Cs);
    if u64::from(cs.limit) < rip {
        cs.limit = cs.limit.max(0xFFFF);
        cpu.rip = rip & 0xFFFF;
    }
    let cs = cpu.segment_mut(SegReg::Cs);
    if random.one_in(16) {
        let limit = u64::from(cs.limit);
        cpu.rip = limit.saturating_sub(random.below(24));
    }
}

fn stack_pointer(random: &mut Prng, limit: u32) -> u64 {
    let low = match random.below(8) {
        0 => random.below(12),
        1 => u64::from(limit).wrapping_sub(random.below(12)).wrapping_add(2),
        2 => random.next() & 0xFFFF,
        3 => 0x1_0000 - random.below(12),
        _ => random.next() & 0xFFFE,
    };
    if random.one_in(4) { low ^ random.next() << 16 } else { low }
}

fn flags(random: &mut Prng, profile: &Profile, cpu: &mut Cpu) {
    let mut flags = random.next() & !(TF | RF | VM);
    if random.one_in(10) {
        flags |= TF;
    }
    if random.one_in(12) {
        flags |= RF;
    }
    // Bits that the processor does not have should not matter either.
    cpu.rflags = if random.one_in(64) { flags } else { profile.canonical_flags(flags) };
}

fn tables(random: &mut Prng, cpu: &mut Cpu) {
    if random.one_in(8) {
        let base = random.next() & 0xFFFF_FFFF;
        cpu.idtr = TableRegister { base, limit: random.next() as u16 };
        if random.one_in(2) {
            cpu.idtr.limit &= 0x7F;
        }
    }
    let base = random.next() & 0xFFFF_FFFF;
    cpu.gdtr = TableRegister { base, limit: random.next() as u16 };
    if random.one_in(2) {
        let attributes = Attributes(random.next() as u32 & 0x1_F0FF);
        cpu.ldtr = Segment { base, selector: 8, limit: random.next() as u32, attributes };
    }
}

fn debug_registers(random: &mut Prng, cpu: &mut Cpu) {
    if !random.one_in(10) {
        return;
    }
    cpu.dr7 = random.next() & 0xFFFF_FFFF;
    if random.one_in(2) {
        cpu.dr7 &= !(1 << 13);
    }
    for n in 0..4 {
        let near = cpu.segment(SegReg::Cs).base.wrapping_add(number(random, cpu.rip));
        cpu.dr[n] = if random.one_in(4) { random.next() } else { near & 0xFFFF_FFFF };
    }
}

/// Control registers in states that software passes through or should never be in.
fn modes(random: &mut Prng, profile: &Profile, cpu: &mut Cpu) {
    let fpu = CR0_MP | CR0_EM | CR0_TS | CR0_NE;
    cpu.cr0 ^= random.next() & fpu;
    cpu.cr4 = if random.one_in(2) { random.next() & 0x01FF_FFFF } else { 0 };
    if profile.generation == Generation::Modern && random.one_in(8) {
        long_mode(random, cpu);
    }
}

/// Long mode; most of its code has 64 bits.
fn long_mode(random: &mut Prng, cpu: &mut Cpu) {
    cpu.cr0 |= CR0_PE;
    cpu.msr.efer = EFER_LMA | EFER_LME | random.next() & EFER_SCE;
    cpu.rflags &= !VM;
    if !random.one_in(4) {
        let cs = cpu.segment_mut(SegReg::Cs);
        cs.attributes.0 = cs.attributes.0 & !Attributes::DB | Attributes::L;
    }
}

/// Shadows, sleep, and events that wait.
fn waiting(random: &mut Prng, cpu: &mut Cpu) {
    cpu.shadow = Shadow { sti: random.one_in(4), mov_ss: random.one_in(4) };
    cpu.nmi_blocked = random.one_in(4);
    cpu.smm = random.one_in(32);
    cpu.activity = match random.below(32) {
        0..4 => Activity::Halted,
        4 => Activity::WaitForSipi,
        5 => Activity::Shutdown,
        _ => Activity::Running,
    };
    let pending = &mut cpu.pending;
    pending.interrupt = random.one_in(3);
    pending.nmi = random.one_in(6);
    pending.smi = random.one_in(64);
    pending.init = random.one_in(64);
    pending.sipi = random.one_in(16).then_some(random.next() as u8);
    if random.one_in(4) {
        pending.debug = random.next() as u32 & 0xE00F;
    }
    let vector = random.next() as u8;
    pending.event = match random.below(16) {
        0 => Some(Event::Nmi),
        1 => Some(Event::Interrupt(vector)),
        2 | 3 => Some(Event::Exception(Fault::with_code(vector & 31, random.next() as u16))),
        _ => None,
    };
}
