//! The memory of the emulator's side: an arena of words, and what it held before.
//!
//! Words, so that comparing a page takes a tenth of what bytes take; `HostPage` takes words only as
//! a raw pointer.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use realmode::HostPage;

use super::background;
use super::layout::PAGES;

/// Words of a page.
pub const PAGE_WORDS: usize = 512;

/// An arena.
pub struct Memory {
    words: Vec<AtomicU64>,
    background: Vec<u64>,
    /// A bit a page that was stored to.
    pub(super) dirty: [AtomicU64; PAGES.div_ceil(64)],
}

impl Memory {
    /// An arena with the background of every case.
    pub(super) fn new() -> Memory {
        let background = background::words();
        let words = background.iter().map(|word| AtomicU64::new(*word)).collect();
        Memory { words, background, dirty: Default::default() }
    }

    /// What a page holds now.
    pub fn page(&self, page: usize) -> &[AtomicU64] {
        &self.words[page * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// What a page holds before any case.
    pub fn background(&self, page: usize) -> &[u64] {
        &self.background[page * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// A page as the emulator takes it.
    pub(super) fn host_page(&self, page: usize) -> HostPage<'_> {
        let base = NonNull::from(self.page(page)).cast();
        // SAFETY: 4096 bytes of atomics, which the HostPage borrows through `self`, and which
        // everyone else accesses as atomics.
        let host = unsafe { HostPage::from_raw(base) };
        host.with_dirty_bit(&self.dirty[page / 64], page as u32 % 64)
    }

    /// A byte; 0 where there is none.
    pub(super) fn byte(&self, at: u32) -> u8 {
        let word = self.words.get(at as usize / 8).map_or(0, |word| word.load(Relaxed));
        (word >> (8 * (at % 8))) as u8
    }

    /// Stores bytes, and marks their pages.
    pub(super) fn poke(&self, at: u32, bytes: &[u8]) {
        for page in (at as usize / 4096)..=(at as usize + bytes.len()).saturating_sub(1) / 4096 {
            if let Some(word) = self.dirty.get(page / 64) {
                word.fetch_or(1 << (page % 64), Relaxed);
            }
        }
        for (at, byte) in (at as usize..).zip(bytes) {
            if let Some(word) = self.words.get(at / 8) {
                let shift = 8 * (at % 8);
                word.store(
                    word.load(Relaxed) & !(0xFF << shift) | u64::from(*byte) << shift,
                    Relaxed,
                );
            }
        }
    }

    /// Makes a page what it was.
    pub(super) fn restore(&self, page: usize) {
        for (word, before) in self.page(page).iter().zip(self.background(page)) {
            word.store(*before, Relaxed);
        }
    }
}
