//! The software TLB: linear pages to host pages.

use crate::bus::Phys;
use crate::mem::host::HostPage;

/// Entries; a power of two.
const ENTRIES: usize = 256;

/// The tag of an entry that no linear address matches: in no canonical page, which is all that
/// hot accesses ask for, and not page-aligned, so that it equals no page at all.
const INVALID: u64 = 1 << 63 | 1 << 62 | 1;

/// One linear page. `page ^ linear` is the offset into the page if the tag matches, and a number
/// above 4095 if not, so one comparison proves the page and that the access does not leave it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry<'m> {
    /// Linear page that may be read here, or `INVALID`.
    pub(crate) read: u64,
    /// Linear page that may be written here without further ado, or `INVALID`.
    pub(crate) write: u64,
    pub(crate) host: HostPage<'m>,
    /// The physical page.
    pub(crate) phys: Phys,
    /// The slot of the code map that tells which lines hold code.
    pub(crate) slot: u16,
}

/// The table.
pub(crate) struct Tlb<'m> {
    entries: [Entry<'m>; ENTRIES],
    /// The state of the A20 gate that the entries were made with.
    a20: bool,
}

impl<'m> Tlb<'m> {
    pub(crate) fn new() -> Self {
        let empty = Entry {
            read: INVALID,
            write: INVALID,
            host: HostPage::nothing(),
            phys: Phys(0),
            slot: 0,
        };
        Tlb { entries: [empty; ENTRIES], a20: true }
    }

    /// The only entry that can hold `linear`.
    #[inline(always)]
    pub(crate) fn entry(&self, linear: u64) -> &Entry<'m> {
        &self.entries[(linear >> 12) as usize % ENTRIES]
    }

    /// Replaces the entry of `linear`'s page.
    pub(crate) fn fill(
        &mut self,
        linear: u64,
        phys: Phys,
        host: HostPage<'m>,
        slot: u16,
        writable: bool,
    ) {
        let page = linear & !0xFFF;
        let write = if writable { page } else { INVALID };
        self.entries[(linear >> 12) as usize % ENTRIES] =
            Entry { read: page, write, host, phys, slot };
    }

    pub(crate) fn flush(&mut self) {
        for entry in &mut self.entries {
            entry.read = INVALID;
            entry.write = INVALID;
        }
    }

    /// Forgets everything if the A20 gate is not as it was, whoever moved it. Returns whether it
    /// has moved.
    pub(crate) fn follow_gate(&mut self, open: bool) -> bool {
        let moved = self.a20 != open;
        if moved {
            self.a20 = open;
            self.flush();
        }
        moved
    }

    /// Forgets the page of one linear address.
    pub(crate) fn flush_page(&mut self, linear: u64) {
        let entry = &mut self.entries[(linear >> 12) as usize % ENTRIES];
        entry.read = INVALID;
        entry.write = INVALID;
    }

    /// Forgets what lies in a physical range.
    pub(crate) fn withdraw(&mut self, start: Phys, len: u64) {
        let end = start.0.saturating_add(len);
        for entry in &mut self.entries {
            if entry.phys.0 < end && entry.phys.0 + 0xFFF >= start.0 {
                entry.read = INVALID;
                entry.write = INVALID;
                entry.host = HostPage::nothing();
            }
        }
    }
}
