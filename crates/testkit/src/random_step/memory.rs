//! The host memory of the random guests: a few pages, with a copy of what they held before.
//!
//! The one place of this crate with `unsafe`: the pages are words, so that comparing them all
//! after every run takes microseconds, and `HostPage` takes words only as a raw pointer.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use realmode::{HostPage, PAGE_SIZE};

use super::paging::TABLES;

/// Pages that the guest may write.
pub(crate) const RAM_PAGES: usize = 6;
/// All pages; those past the RAM are read-only wherever they appear.
pub(crate) const PAGES: usize = 8;
/// The first pages carry a dirty bit wherever they appear.
pub(crate) const DIRTY_PAGES: usize = 2;

/// And those that hold page tables.
const STORED: usize = PAGES + TABLES;

const WORDS: usize = PAGE_SIZE / 8;
/// What lies around the pages.
const CANARY: u64 = 0xC0FF_EE15_BAD0_1DEA;

/// The pages. `pristine` is what a case starts from.
pub(crate) struct Arena {
    /// The pages lie in here from `start` on.
    words: Vec<AtomicU64>,
    start: usize,
    pub(crate) dirty: AtomicU64,
    pristine: Vec<Cell<u64>>,
    /// The pages behind the others hold page tables.
    pub(crate) has_tables: Cell<bool>,
}

/// Pages that a run changed, with what they hold now.
#[derive(Default)]
pub(crate) struct Changes {
    /// Bit n for page n.
    pub(crate) mask: u32,
    words: Vec<u64>,
}

impl Arena {
    /// Pages of zeros, `skew` words off their natural alignment: host pages need none.
    pub(crate) fn new(skew: usize) -> Arena {
        let words: Vec<_> = (0..(STORED + 2) * WORDS).map(|_| AtomicU64::new(CANARY)).collect();
        let aligned = (words.as_ptr() as usize).wrapping_neg() % PAGE_SIZE / 8;
        let arena = Arena {
            words,
            start: aligned + skew % WORDS,
            dirty: AtomicU64::new(0),
            pristine: vec![Cell::new(0); STORED * WORDS],
            has_tables: Cell::new(false),
        };
        (0..STORED).for_each(|page| arena.restore(page));
        arena
    }

    /// Is what lies around the pages as it was? Nobody was given it.
    pub(crate) fn is_margin_whole(&self) -> bool {
        let (before, rest) = self.words.split_at(self.start);
        let mut margin = before.iter().chain(&rest[STORED * WORDS..]);
        margin.all(|word| word.load(Relaxed) == CANARY)
    }

    /// Fills all pages before a case.
    pub(crate) fn fill(&self, background: &[u64]) {
        for (word, &from) in self.pristine.iter().zip(background) {
            word.set(from);
        }
        (0..PAGES).for_each(|page| self.restore(page));
    }

    /// What a page holds now.
    fn live(&self, page: usize) -> &[AtomicU64] {
        &self.words[self.start + page * WORDS..][..WORDS]
    }

    /// What a page holds before a case.
    fn before(&self, page: usize) -> &[Cell<u64>] {
        &self.pristine[page * WORDS..][..WORDS]
    }

    /// A page as the emulator takes it.
    pub(crate) fn host_page(&self, page: usize) -> HostPage<'_> {
        let base = NonNull::from(self.live(page)).cast();
        // SAFETY: `live` is 4096 bytes of atomics, which the HostPage borrows through `self`, and
        // which everyone else accesses as atomics.
        let host = unsafe { HostPage::from_raw(base) };
        if page < DIRTY_PAGES { host.with_dirty_bit(&self.dirty, page as u32) } else { host }
    }

    /// Puts bytes into a page before a case; they become part of what it starts from.
    pub(crate) fn poke(&self, page: usize, offset: usize, bytes: &[u8]) {
        for (i, &byte) in bytes.iter().enumerate().take(PAGE_SIZE - offset) {
            let at = page * PAGE_SIZE + offset + i;
            let shift = 8 * (at % 8);
            let word = &self.pristine[at / 8];
            word.set(word.get() & !(0xFF << shift) | u64::from(byte) << shift);
            self.live(page)[at / 8 % WORDS].store(word.get(), Relaxed);
        }
    }

    /// What the case starts from, at `offset` of a page.
    pub(crate) fn peek(&self, page: usize, offset: usize) -> u8 {
        let at = page * PAGE_SIZE + offset;
        (self.pristine[at / 8].get() >> (8 * (at % 8))) as u8
    }

    /// What a run changed; forgets it again.
    pub(crate) fn take_changes(&self) -> Changes {
        let mut changes = Changes::default();
        for page in 0..STORED {
            if !self.is_changed(page) {
                continue;
            }
            changes.mask |= 1 << page;
            changes.words.extend(self.live(page).iter().map(|word| word.load(Relaxed)));
            self.restore(page);
        }
        changes
    }

    fn is_changed(&self, page: usize) -> bool {
        // Without an early exit the loop is faster: most pages are unchanged.
        let pairs = self.live(page).iter().zip(self.before(page));
        pairs.fold(0, |bits, (now, then)| bits | (now.load(Relaxed) ^ then.get())) != 0
    }

    fn restore(&self, page: usize) {
        for (now, then) in self.live(page).iter().zip(self.before(page)) {
            now.store(then.get(), Relaxed);
        }
    }
}

impl Changes {
    /// Where two runs left different memory: page, offset, and the two bytes.
    pub(crate) fn first_difference(
        &self,
        other: &Changes,
        arena: &Arena,
    ) -> Option<(usize, usize, u8, u8)> {
        if self.mask == other.mask && self.words == other.words {
            return None;
        }
        (0..STORED * PAGE_SIZE).find_map(|at| {
            let (page, offset) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let (here, there) = (self.byte(arena, page, offset), other.byte(arena, page, offset));
            (here != there).then_some((page, offset, here, there))
        })
    }

    fn byte(&self, arena: &Arena, page: usize, offset: usize) -> u8 {
        if self.mask >> page & 1 == 0 {
            return arena.peek(page, offset);
        }
        let before = (self.mask & ((1 << page) - 1)).count_ones() as usize;
        let at = before * PAGE_SIZE + offset;
        (self.words[at / 8] >> (8 * (at % 8))) as u8
    }
}
