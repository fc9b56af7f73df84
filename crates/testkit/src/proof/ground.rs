//! The emulator's memory: the arena, and the tables that a processor at level 3 looks at.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::arch::paging::{PTE_A, PTE_D, PTE_NX, PTE_P, PTE_U, PTE_W};
use realmode::{Access, Bus, Control, Phys, Prepared};

use super::case::{Case, Mode, Paging};
use super::layout::{ARENA_SIZE, CODE, DATA, Kind, Layout, PAGES, RETURN};
use super::memory::Memory;

/// Linear address of the tables in 64-bit code and wherever there are page tables. No value that
/// cases like is near it.
const FAR: u64 = 0x0195_A3C7_6000;
/// Linear address of the tables elsewhere, which no segment reaches; physical address of the tables
/// where there are page tables.
const NEAR: u64 = 0xF000_0000;

/// Where the local table begins; the global table is at 0.
pub(super) const LOCAL: u64 = 0x1000;
/// Where the task state begins.
pub(super) const TASK: u64 = 0x300;
/// Where the interrupt table begins; its gates are for level 0, as the host's are.
pub(super) const GATES: u64 = 0x800;
/// Where the page tables begin: behind the local table.
const TABLES: u64 = LOCAL + 0x1_0000;
/// Bytes of all of them: the global table's page, the local table, and seven pages of page tables.
const SIZE: u64 = TABLES + 7 * 0x1000;

/// Pages of the page tables, by their number behind [`TABLES`].
const TOP: u64 = 0;
/// Those that lead to the arena.
const ARENA: [u64; 3] = [1, 2, 3];
/// Those that lead to the tables.
const SYSTEM: [u64; 3] = [4, 5, 6];

/// What [`Emulated`](super::emulate::Emulated) works on.
pub struct Ground {
    pub(super) memory: Memory,
    tables: Vec<AtomicU8>,
    layout: Layout,
}

impl Ground {
    /// The memory of the arena at `layout`.
    pub fn new(layout: Layout) -> Ground {
        let tables = (0..SIZE).map(|_| AtomicU8::new(0)).collect();
        let ground = Ground { memory: Memory::new(), tables, layout };
        // The host's: kernel code and data, then what is for level 3.
        const GLOBAL: [(u64, u64); 5] = [
            (0x10, 0x00AF_9B00_0000_FFFF),
            (0x18, 0x00CF_9300_0000_FFFF),
            (0x20, 0x00CF_FB00_0000_FFFF),
            (0x28, 0x00CF_F300_0000_FFFF),
            (0x30, 0x00AF_FB00_0000_FFFF),
        ];
        for (at, descriptor) in GLOBAL {
            ground.put(at, descriptor);
        }
        for kind in Kind::ALL {
            let selector = layout.selector(kind);
            ground.put(LOCAL + u64::from(selector & !7), layout.descriptor(kind));
        }
        // Interrupt gates of level 0; nothing is ever delivered through them.
        for vector in 0..256 {
            ground.put(GATES + 8 * vector, 0x0000_8E00_0010_0000);
        }
        // No I/O bitmap within the limit of the task.
        ground.put(TASK + 0x60, u64::MAX);
        ground.put_page_tables();
        ground
    }

    fn put(&self, at: u64, word: u64) {
        let cells = self.tables[at as usize..].iter();
        cells.zip(word.to_le_bytes()).for_each(|(cell, byte)| cell.store(byte, Relaxed));
    }

    /// Long mode's: the arena where it is, for level 3, and the tables for level 0.
    fn put_page_tables(&self) {
        const LEADS: u64 = PTE_P | PTE_W | PTE_U | PTE_A | PTE_D;
        for (linear, tables) in [(u64::from(self.layout.base), ARENA), (FAR, SYSTEM)] {
            let mut from = TOP;
            for (level, to) in (1..4).rev().zip(tables) {
                let next = NEAR + TABLES + to * 0x1000;
                self.put(entry(from, linear, level), next | LEADS);
                from = to;
            }
        }
        (0..PAGES as u64).for_each(|page| self.put_page(page, LEADS));
        for at in (0..TABLES).step_by(4096) {
            let flags = PTE_P | PTE_W | PTE_A | PTE_D | PTE_NX;
            self.put(entry(SYSTEM[2], FAR + at, 0), (NEAR + at) | flags);
        }
    }

    /// Says what may be done with a page of the arena. Data is never executed.
    fn put_page(&self, page: u64, flags: u64) {
        let linear = u64::from(self.layout.base) + 4096 * page;
        let nx = if page < u64::from(DATA) / 4096 { 0 } else { PTE_NX };
        self.put(entry(ARENA[2], linear, 0), linear | flags | nx);
    }

    /// Makes the odd page odd, or like the others.
    pub(super) fn set_odd(&self, paging: Paging, is_odd: bool) {
        const USED: u64 = PTE_U | PTE_A | PTE_D;
        let (page, odd) = match paging {
            Paging::Off | Paging::Even => return,
            Paging::Absent(page) => (page, PTE_W),
            Paging::ReadOnly(page) => (page, PTE_P),
        };
        self.put_page(page.into(), USED | if is_odd { odd } else { PTE_P | PTE_W });
    }
}

/// Where the entry for a linear address is, in a page of the page tables.
fn entry(table: u64, linear: u64, level: u64) -> u64 {
    TABLES + table * 0x1000 + 8 * (linear >> (12 + 9 * level) & 511)
}

/// The root of the page tables: what CR3 holds.
pub(super) const ROOT: u64 = NEAR + TABLES + TOP * 0x1000;

/// The linear address of the tables.
pub(super) fn linear_tables(case: &Case) -> u64 {
    if case.mode == Mode::Bits64 || case.paging != Paging::Off { FAR } else { NEAR }
}

/// Memory with the tables, as the emulator sees it.
pub(super) struct World<'m> {
    ground: &'m Ground,
    /// The physical address of the tables for the case.
    tables_at: u64,
    pub(super) has_strayed: bool,
}

impl<'m> World<'m> {
    pub(super) fn new(ground: &'m Ground) -> World<'m> {
        World { ground, tables_at: 0, has_strayed: false }
    }

    pub(super) fn memory(&self) -> &'m Memory {
        &self.ground.memory
    }

    pub(super) fn base(&self) -> u64 {
        self.ground.layout.base.into()
    }

    /// Gets ready for a case.
    pub(super) fn begin(&mut self, case: &Case) {
        self.has_strayed = false;
        self.tables_at = if case.paging == Paging::Off { linear_tables(case) } else { NEAR };
        self.ground.set_odd(case.paging, true);
    }

    /// After the case.
    pub(super) fn end(&self, case: &Case) {
        self.ground.set_odd(case.paging, false);
    }

    /// Is it an address of the arena, or one past it where the host has nothing?
    pub(super) fn is_known(&self, linear: u64) -> bool {
        linear.checked_sub(self.base()).is_some_and(|at| at < RETURN.into())
    }
}

impl<'m> Bus<'m> for World<'m> {
    fn prepare(&mut self, page: Phys, access: Access, _: &mut Control) -> Prepared<'m> {
        let in_arena = page.0.checked_sub(self.base()).filter(|at| *at < u64::from(ARENA_SIZE));
        let in_tables = page.0.checked_sub(self.tables_at).filter(|at| *at < SIZE);
        match (in_arena, in_tables) {
            (Some(at), _) if access != Access::Execute || at < u64::from(CODE) + 0x1_0000 => {
                Prepared::Ram(self.ground.memory.host_page((at / 4096) as usize))
            }
            (_, Some(at)) => Prepared::in_ram(&self.ground.tables, Phys(at)),
            _ => {
                self.has_strayed = true;
                Prepared::Unmapped
            }
        }
    }
}
