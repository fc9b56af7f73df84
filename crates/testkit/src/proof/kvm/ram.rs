//! The memory of a case: a megabyte and the 64 KiB above it that real mode reaches, with a hole for
//! devices. Between cases it is the same, whatever they did.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::LazyLock;

use realmode::{HostPage, PAGE_SIZE};

use super::case::{HANDLERS, SystemCase, TABLES, handler};
use crate::prng::mix;

/// Pages, those of the hole included.
pub(super) const PAGES: usize = 0x110;
/// The first page of the hole in which devices are.
pub(super) const HOLE: usize = 0xA0;
/// The first page above it.
pub(super) const HOLE_END: usize = 0xB0;

/// A page as KVM takes memory: aligned.
#[repr(C, align(4096))]
struct Page([AtomicU8; PAGE_SIZE]);

/// What every case begins with: arbitrary bytes, two interrupt tables and what they lead to.
static BACKGROUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (0..(PAGES * PAGE_SIZE / 8) as u64).map(|i| mix(i ^ 0x5EED));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    for (number, (table, handlers)) in TABLES.into_iter().zip(HANDLERS).enumerate() {
        for vector in 0..=255u8 {
            let (selector, offset) = handler(number, vector);
            let [entry, code] = [table, handlers].map(|at| at as usize + usize::from(vector) * 4);
            bytes[entry..entry + 2].copy_from_slice(&offset.to_le_bytes());
            bytes[entry + 2..entry + 4].copy_from_slice(&selector.to_le_bytes());
            // nop; hlt; hlt; hlt
            bytes[code..code + 4].copy_from_slice(&[0x90, 0xF4, 0xF4, 0xF4]);
        }
    }
    bytes
});

/// The byte that every case begins with, if there is memory at `address`.
pub(super) fn background(address: usize) -> Option<u8> {
    BACKGROUND.get(address).copied()
}

/// Memory, with a bit for each page that may not be as the background says.
pub(super) struct Ram {
    pages: Box<[Page]>,
    changed: Box<[AtomicU64]>,
}

impl Ram {
    pub(super) fn new() -> Ram {
        let pages = (0..PAGES).map(|_| Page(core::array::from_fn(|_| AtomicU8::new(0)))).collect();
        let words = PAGES.div_ceil(64);
        let changed = (0..words).map(|_| AtomicU64::new(u64::MAX)).collect();
        let ram = Ram { pages, changed };
        ram.restore();
        ram
    }

    /// Is there memory at this page?
    pub(super) const fn is_backed(page: usize) -> bool {
        page < HOLE || page >= HOLE_END && page < PAGES
    }

    /// The bytes of a page.
    pub(super) fn cells(&self, page: usize) -> &[AtomicU8] {
        &self.pages[page].0
    }

    /// A page as the emulator takes it.
    pub(super) fn host_page(&self, page: usize) -> Option<HostPage<'_>> {
        if !Ram::is_backed(page) {
            return None;
        }
        let host = HostPage::from_cells(self.cells(page)).ok()?;
        Some(host.with_dirty_bit(&self.changed[page / 64], (page % 64) as u32))
    }

    /// Notes that pages have changed: bit n of the words for the page n after `first`.
    pub(super) fn note_changed(&self, first: usize, bitmap: &[u64]) {
        for number in ones(bitmap.iter().copied()) {
            self.mark(first + number);
        }
    }

    fn mark(&self, page: usize) {
        if let Some(word) = self.changed.get(page / 64) {
            word.fetch_or(1 << (page % 64), Relaxed);
        }
    }

    /// Puts bytes somewhere; those outside memory are lost.
    pub(super) fn poke(&self, at: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let at = at as usize + i;
            if Ram::is_backed(at / PAGE_SIZE) {
                self.cells(at / PAGE_SIZE)[at % PAGE_SIZE].store(*byte, Relaxed);
                self.mark(at / PAGE_SIZE);
            }
        }
    }

    /// Begins a case: puts its bytes into memory.
    pub(super) fn begin(&self, case: &SystemCase) {
        for poke in &case.pokes {
            self.poke(poke.at.into(), poke.as_slice());
        }
        self.poke(case.start(), case.code.as_slice());
    }

    /// Ends a case: all is again as the background says.
    pub(super) fn restore(&self) {
        for page in ones(self.changed.iter().map(|word| word.swap(0, Relaxed))) {
            let Some(Page(cells)) = self.pages.get(page) else { continue };
            let before = &BACKGROUND[page * PAGE_SIZE..][..PAGE_SIZE];
            cells.iter().zip(before).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
        }
    }

    /// The addresses at which two memories differ, with the two bytes.
    pub(super) fn differences(&self, other: &Ram) -> impl Iterator<Item = (usize, u8, u8)> {
        let pairs = self.changed.iter().zip(&other.changed);
        let either = pairs.map(|(a, b)| a.load(Relaxed) | b.load(Relaxed));
        ones(either).filter(|page| *page < PAGES).flat_map(|page| {
            let pairs = self.cells(page).iter().zip(other.cells(page)).enumerate();
            pairs.filter_map(move |(offset, (a, b))| {
                let (a, b) = (a.load(Relaxed), b.load(Relaxed));
                (a != b).then_some((page * PAGE_SIZE + offset, a, b))
            })
        })
    }

    /// A little-endian number of `size` bytes; bytes outside memory are 0.
    pub(super) fn number(&self, at: u64, size: u64) -> u64 {
        let byte = |at: usize| match Ram::is_backed(at / PAGE_SIZE) {
            true => self.cells(at / PAGE_SIZE)[at % PAGE_SIZE].load(Relaxed).into(),
            false => 0,
        };
        (0..size).fold(0, |number, i| number | byte((at + i) as usize) << (8 * i))
    }

    /// Is it as it was when the case began?
    pub(super) fn is_as_begun(&self, case: &SystemCase) -> bool {
        let fresh = Ram::new();
        fresh.begin(case);
        self.differences(&fresh).next().is_none()
    }
}

/// The numbers of the bits that are set, counted over all words.
fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(number, word)| {
        (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| number * 64 + bit)
    })
}
