//! The memory of the emulator's side: an arena of words, and what it held before.
//!
//! Words, so that comparing a page takes a tenth of what bytes take; `HostPage` takes words only as
//! a raw pointer.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use realmode::HostPage;

use super::background;
use super::layout::PAGES;

/// Words of a page.
pub const PAGE_WORDS: usize = 512;

/// An arena.
pub struct Memory {
    words: Vec<Cell<u64>>,
    background: Vec<u64>,
    /// A bit a page that was stored to.
    pub(super) dirty: [AtomicU64; PAGES.div_ceil(64)],
}

impl Memory {
    /// An arena with the background of every case.
    pub(super) fn new() -> Memory {
        let background = background::words();
        let words = background.iter().map(|word| Cell::new(*word)).collect();
        Memory { words, background, dirty: Default::default() }
    }

    /// What a page holds now.
    pub fn page(&self, page: usize) -> &[Cell<u64>] {
        &self.words[page * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// What a page holds before any case.
    pub fn background(&self, page: usize) -> &[u64] {
        &self.background[page * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// A page as the emulator takes it.
    pub(super) fn host_page(&self, page: usize) -> HostPage<'_> {
        let base = NonNull::from(self.page(page)).cast();
        // SAFETY: 4096 bytes of cells, which the HostPage borrows through `self`. An arena belongs
        // to one thread (a Cell is not Sync), so that nobody else accesses them while an emulator
        // runs, and Cells are accessed through raw pointers only, as a HostPage is.
        let host = unsafe { HostPage::from_raw(base) };
        host.with_dirty_bit(&self.dirty[page / 64], page as u32 % 64)
    }

    /// A byte; 0 where there is none.
    pub(super) fn byte(&self, at: u32) -> u8 {
        let word = self.words.get(at as usize / 8).map_or(0, Cell::get);
        (word >> (8 * (at % 8))) as u8
    }

    /// Stores bytes.
    pub(super) fn put(&self, at: u32, bytes: &[u8]) {
        for (at, byte) in (at as usize..).zip(bytes) {
            if let Some(word) = self.words.get(at / 8) {
                let shift = 8 * (at % 8);
                word.set(word.get() & !(0xFF << shift) | u64::from(*byte) << shift);
            }
        }
    }

    /// Makes words what they were.
    pub(super) fn restore_words(&self, range: Range<usize>) {
        restore(&self.words[range.clone()], &self.background[range]);
    }

    /// Some words.
    pub(super) fn words(&self, range: Range<usize>) -> &[Cell<u64>] {
        &self.words[range]
    }

    /// Makes a page what it was.
    pub(super) fn restore(&self, page: usize) {
        restore(self.page(page), self.background(page));
    }
}

/// Makes words what they were.
pub(super) fn restore(words: &[Cell<u64>], background: &[u64]) {
    words.iter().zip(background).for_each(|(word, before)| word.set(*before));
}

/// Are two pages alike? Without an early exit the loop is faster: most of them are.
pub(super) fn are_alike(ours: &[Cell<u64>], theirs: &[Cell<u64>]) -> bool {
    ours.iter().zip(theirs).fold(0, |bits, (a, b)| bits | (a.get() ^ b.get())) == 0
}
