//! The software TLB: linear pages to host pages.

use crate::bus::Phys;
use crate::mem::host::HostPage;

/// Entries; a power of two.
const ENTRIES: usize = 256;

/// The tag of an entry that no linear address matches: a page whose entry is another one.
const fn invalid(index: usize) -> u64 {
    ((index ^ 1) << 12) as u64
}

/// Where a linear page leads, and what the TLB may keep of it.
#[derive(Clone, Copy)]
pub(crate) struct Translation {
    /// The physical page, after the A20 gate.
    pub(crate) phys: Phys,
    /// Stores need no further walk: they are allowed, and the page is dirty already.
    pub(crate) writable: bool,
    /// Fetches are allowed.
    pub(crate) executable: bool,
    /// The answer holds until a translation is changed or invalidated.
    pub(crate) lasts: bool,
}

/// One linear page. `page ^ linear` is the offset into the page if the tag matches, and a number
/// above 4095 if not, so one comparison proves the page and that the access does not leave it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry<'m> {
    /// Linear page that may be read here, or `invalid`.
    pub(crate) read: u64,
    /// Linear page that may be written here without further ado, or `invalid`.
    pub(crate) write: u64,
    pub(crate) host: HostPage<'m>,
    /// The physical page.
    pub(crate) phys: Phys,
    /// The slot of the code map that tells which lines hold code.
    pub(crate) slot: u16,
    /// Code may be fetched from it.
    pub(crate) executable: bool,
}

impl Entry<'_> {
    fn forget(&mut self, index: usize) {
        self.read = invalid(index);
        self.write = invalid(index);
    }
}

/// The table of one privilege: supervisor or user.
pub(crate) struct Tlb<'m> {
    entries: [Entry<'m>; ENTRIES],
    /// Something was entered since the last flush.
    is_used: bool,
}

impl<'m> Tlb<'m> {
    pub(crate) fn new() -> Self {
        let entry = |index| Entry {
            read: invalid(index),
            write: invalid(index),
            host: HostPage::nothing(),
            phys: Phys(0),
            slot: 0,
            executable: false,
        };
        Tlb { entries: core::array::from_fn(entry), is_used: false }
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
        translation: &Translation,
        host: HostPage<'m>,
        slot: u16,
    ) {
        let index = (linear >> 12) as usize % ENTRIES;
        let page = linear & !0xFFF;
        let write = if translation.writable { page } else { invalid(index) };
        let Translation { phys, executable, .. } = *translation;
        self.entries[index] = Entry { read: page, write, host, phys, slot, executable };
        self.is_used = true;
    }

    pub(crate) fn flush(&mut self) {
        if !core::mem::take(&mut self.is_used) {
            return;
        }
        for (index, entry) in self.entries.iter_mut().enumerate() {
            entry.forget(index);
        }
    }

    /// Forgets the page of one linear address.
    pub(crate) fn flush_page(&mut self, linear: u64) {
        let index = (linear >> 12) as usize % ENTRIES;
        self.entries[index].forget(index);
    }

    /// Forgets what lies in a physical range.
    pub(crate) fn withdraw(&mut self, start: Phys, len: u64) {
        let end = start.0.saturating_add(len);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.phys.0 < end && entry.phys.0 + 0xFFF >= start.0 {
                entry.forget(index);
                entry.host = HostPage::nothing();
            }
        }
    }
}

/// Both tables of a processor, and what their entries were made with.
pub(crate) struct Tlbs<'m> {
    pub(crate) supervisor: Tlb<'m>,
    pub(crate) user: Tlb<'m>,
    pub(crate) basis: Basis,
}

/// What decides all translations. The VMM may change it between two runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// The A20 gate is open.
    pub(crate) a20: bool,
    pub(crate) paged: bool,
}

impl<'m> Tlbs<'m> {
    pub(crate) fn new() -> Self {
        let basis = Basis { a20: true, paged: false };
        Tlbs { supervisor: Tlb::new(), user: Tlb::new(), basis }
    }

    pub(crate) fn flush(&mut self) {
        self.supervisor.flush();
        self.user.flush();
    }

    pub(crate) fn withdraw(&mut self, start: Phys, len: u64) {
        self.supervisor.withdraw(start, len);
        self.user.withdraw(start, len);
    }

    /// Begins a run. While the processor ran elsewhere it may have changed its page tables, and
    /// have invalidated translations that are kept here.
    pub(crate) fn begin(&mut self, basis: Basis) {
        if self.basis != basis || basis.paged {
            self.flush();
        }
        self.basis = basis;
    }
}
