//! Page tables for random processors: one page for each level, in ROM, where a guest cannot change
//! them and the processor's own flags vanish, so that whatever the TLB has kept is what a walk
//! would find. Most entries are what software would write, some are anything.

use realmode::arch::control::{
    CR0_PE, CR0_PG, CR0_WP, CR4_LA57, CR4_PAE, CR4_PKE, CR4_PSE, CR4_SMAP, CR4_SMEP, EFER_LMA,
    EFER_NXE,
};
use realmode::arch::paging::{PTE_A, PTE_D, PTE_NX, PTE_P, PTE_PS, PTE_U, PTE_W};
use realmode::{Cpu, Features, Profile};

use super::memory::{Arena, PAGES};
use crate::prng::{Prng, mix};

/// Pages of tables, behind all others of the arena: page tables, directories, their pointers,
/// their maps, and so on for 8-byte entries; then the two levels of 4-byte ones.
pub(crate) const TABLES: usize = 7;
/// The physical page of the first. Bit 20 of its address is clear: the A20 gate does not matter.
const WINDOW: u64 = 0xF_EC00;
/// Where those with 4-byte entries begin.
const SHORT: u64 = 5;

/// The page of the arena that a physical page is, if it holds tables.
pub(crate) fn table(page: u64) -> Option<usize> {
    let n = page.wrapping_sub(WINDOW);
    (n < TABLES as u64).then(|| PAGES + n as usize)
}

/// Fills the tables of a group of cases. Where PSE is not offered, PS is ignored, and an entry with
/// it would lead to a table anywhere.
pub(crate) fn place(arena: &Arena, profile: &Profile, salt: u64) {
    let has_large = profile.has(Features::PSE);
    arena.has_tables.set(true);
    for level in 0..SHORT {
        let entries = (0..512).flat_map(|i| long_entry(salt, level, i).to_le_bytes());
        arena.poke(PAGES + level as usize, 0, &entries.collect::<Vec<_>>());
    }
    for level in 0..2 {
        let entries = (0..1024).flat_map(|i| short_entry(salt, level, i, has_large).to_le_bytes());
        arena.poke(PAGES + (SHORT + level) as usize, 0, &entries.collect::<Vec<_>>());
    }
}

/// Bits for an entry.
fn bits(salt: u64, level: u64, index: u64) -> u64 {
    mix(salt ^ mix(level << 32 | index))
}

/// P, W, U, A, D, and G, most of the time what lets an access through.
fn flags(bits: u64) -> u64 {
    let often = |at: u64, flag: u64| if bits >> at & 7 != 0 { flag } else { 0 };
    let rare = if bits >> 9 & 31 != 0 { PTE_P } else { 0 };
    rare | often(14, PTE_W) | often(17, PTE_U) | often(20, PTE_A | PTE_D) | bits & 0xF18
}

/// What most entries above the page tables allow: a walk passes several.
const ALL: u64 = PTE_P | PTE_W | PTE_U | PTE_A | PTE_D;

/// An entry of 8 bytes. Level 0 is that of page tables.
fn long_entry(salt: u64, level: u64, index: u64) -> u64 {
    let bits = bits(salt, level, index);
    let more = mix(bits);
    let nx = if more & 15 == 0 { PTE_NX } else { 0 };
    let key = more & 0xF << 59;
    let reserved = if more >> 8 & 127 == 0 { 1 << (more >> 16 & 63) } else { 0 };
    let is_plain = level != 0 && more >> 32 & 7 != 0;
    let flags = if is_plain { ALL } else { flags(bits) | nx | key | reserved };
    // In PAE paging bits 52 to 62 are reserved.
    let flags = if more >> 4 & 1 != 0 { flags & !(0x7FF << 52) } else { flags };
    let is_large = matches!(level, 1 | 2) && more >> 24 & 7 == 0;
    match level {
        0 => more & 0xFFFF_F000 | flags,
        _ if is_large => more & 0xFFE0_0000 << (9 * (level - 1)) & 0xFFFF_FFFF | flags | PTE_PS,
        _ => (WINDOW + level - 1) << 12 | flags,
    }
}

/// An entry of 4 bytes.
fn short_entry(salt: u64, level: u64, index: u64, has_large: bool) -> u32 {
    let bits = bits(salt, SHORT + level, index);
    let more = mix(bits);
    let flags = if level != 0 && more >> 32 & 7 != 0 { ALL } else { flags(bits) };
    let entry = match level {
        0 => more & 0xFFFF_F000 | flags,
        _ if has_large && more >> 24 & 7 == 0 => more & 0xFFC0_0000 | flags | PTE_PS,
        _ => (WINDOW + SHORT) << 12 | flags,
    };
    entry as u32
}

/// Turns paging on, in one of the ways that the processor has. `cpu` is in protected mode.
pub(crate) fn enter(random: &mut Prng, profile: &Profile, cpu: &mut Cpu) {
    cpu.cr0 |= CR0_PG | CR0_PE;
    if random.one_in(2) {
        cpu.cr0 ^= CR0_WP;
    }
    let offered =
        [(CR4_SMEP, Features::SMEP), (CR4_SMAP, Features::SMAP), (CR4_PKE, Features::PKU)];
    cpu.cr4 &= !(CR4_PAE | CR4_LA57);
    for (bit, feature) in offered {
        cpu.cr4 &= !bit;
        if profile.has(feature) && random.one_in(2) {
            cpu.cr4 |= bit;
        }
    }
    if profile.has(Features::NX) && random.one_in(2) {
        cpu.msr.efer |= EFER_NXE;
    }
    if profile.has(Features::PSE) {
        cpu.cr4 |= CR4_PSE;
    }
    cpu.pkru = if random.one_in(2) { random.next() as u32 & random.next() as u32 } else { 0 };
    let top = if cpu.msr.efer & EFER_LMA != 0 {
        let deep = profile.has(Features::LA57) && random.one_in(2);
        cpu.cr4 |= CR4_PAE | if deep { CR4_LA57 } else { 0 };
        if deep { 4 } else { 3 }
    } else if profile.has(Features::PAE) && random.one_in(2) {
        cpu.cr4 |= CR4_PAE;
        let present = || (WINDOW + 1) << 12 | PTE_P;
        cpu.pdpte = core::array::from_fn(|_| if random.one_in(16) { 0 } else { present() });
        2
    } else {
        SHORT + 1
    };
    cpu.cr3 = (WINDOW + top) << 12;
}

/// The physical page that a linear page leads to. What a table allows does not matter to whoever
/// puts a case into memory.
pub(crate) fn page(cpu: &Cpu, arena: &Arena, page: u64) -> Option<u64> {
    if cpu.cr0 & CR0_PG == 0 {
        return Some(page);
    }
    let long = cpu.msr.efer & EFER_LMA != 0;
    let pae = cpu.cr4 & CR4_PAE != 0;
    let (bits, mut level) = match (long, pae) {
        (true, _) if cpu.cr4 & CR4_LA57 != 0 => (9, 4),
        (true, _) => (9, 3),
        (_, true) => (9, 1),
        _ => (10, 1),
    };
    let first = if bits == 10 { SHORT } else { 0 };
    loop {
        let index = page >> (bits * level) & ((1 << bits) - 1);
        let size = if bits == 10 { 4 } else { 8 };
        let at = PAGES + (first + level) as usize;
        let raw = (0..size).fold(0, |raw, i| {
            raw | u64::from(arena.peek(at, (index * size + i) as usize)) << (8 * i)
        });
        let frame = raw >> 12 & 0xF_FFFF;
        let large = level != 0 && raw & PTE_PS != 0;
        if raw & PTE_P == 0 {
            return None;
        }
        if level == 0 || large {
            let low = (1 << (bits * level)) - 1;
            return Some(frame & !low | page & low);
        }
        level -= 1;
    }
}
