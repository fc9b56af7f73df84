//! Views: numbered contexts in which blocks have been proved. Two instructions in the same view
//! see code through the same CS, mode and map, and nobody but the guest itself has changed it.

use core::sync::atomic::{AtomicU64, Ordering};

/// Stamps tell the blocks of different emulators and flushes apart, so that cache memory can be
/// handed on without being cleared.
static NEXT_STAMP: AtomicU64 = AtomicU64::new(1);

pub(crate) fn new_stamp() -> u64 {
    NEXT_STAMP.fetch_add(1, Ordering::Relaxed)
}

/// What decides how code is seen.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Context {
    pub(crate) cs_base: u64,
    pub(crate) cs_limit: u32,
    pub(crate) key: u32,
}

/// How many contexts of one epoch are remembered: code that calls between a few segments finds
/// its blocks proved.
const REMEMBERED: usize = 8;

/// The views of the running epoch.
pub(crate) struct Views {
    table: [(Context, u64); REMEMBERED],
    next_slot: usize,
    next_view: u64,
}

impl Views {
    /// `stamp` makes the numbers unique among all users of one cache memory.
    pub(crate) fn new(stamp: u64) -> Views {
        Views {
            table: [(Context::default(), 0); REMEMBERED],
            next_slot: 0,
            next_view: stamp << 32 | 1,
        }
    }

    /// Begins an epoch: every block has to be proved again.
    pub(crate) fn begin_epoch(&mut self) {
        for (_, view) in &mut self.table {
            *view = 0;
        }
    }

    /// The view of a context.
    pub(crate) fn view(&mut self, context: Context) -> u64 {
        for (known, view) in &self.table {
            if *view != 0 && *known == context {
                return *view;
            }
        }
        let view = self.next_view;
        self.next_view += 1;
        if self.next_view as u32 == 0 {
            // Numbers of another stamp would follow.
            self.next_view = new_stamp() << 32 | 1;
        }
        self.table[self.next_slot % REMEMBERED] = (context, view);
        self.next_slot = (self.next_slot + 1) % REMEMBERED;
        view
    }
}
