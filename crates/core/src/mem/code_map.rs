//! Which 64-byte lines of which host pages hold decoded code, so that a store into one retires
//! its blocks. By host page, because the same page has several physical addresses (A20, ROM
//! shadows).
//!
//! Slots are shared by pages whose addresses hash alike: a stranger's bit sends a store to the
//! slow road, where it retires what really lies there; it never hides one.

/// Slots of the map.
const SLOTS: usize = 1024;

/// A set of the 64 lines of a page.
pub(crate) type Lines = u64;

/// The lines that offsets `from..from + len` of a page touch. `len` is at least 1.
#[inline(always)]
pub(crate) fn lines_of(from: usize, len: usize) -> Lines {
    let first = (from / 64) & 63;
    let last = ((from + len - 1) / 64) & 63;
    (u64::MAX << first) & (u64::MAX >> (63 - last))
}

/// A request to retire blocks, carried out between instructions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Retire {
    pub(crate) slot: u16,
    pub(crate) lines: Lines,
}

/// Code lines by host page.
pub(crate) struct CodeMap {
    lines: [Lines; SLOTS],
    /// First block of each slot's chain, as a cache index plus one; 0 ends it.
    first: [u32; SLOTS],
    /// Stores into code that the current instruction made.
    retire: [Retire; 4],
    retire_count: usize,
    /// More stores into code than `retire` holds: everything goes.
    pub(crate) retire_all: bool,
}

impl CodeMap {
    pub(crate) const EMPTY: CodeMap = CodeMap {
        lines: [0; SLOTS],
        first: [0; SLOTS],
        retire: [Retire { slot: 0, lines: 0 }; 4],
        retire_count: 0,
        retire_all: false,
    };

    /// The slot of a host page.
    pub(crate) fn slot(host_id: usize) -> u16 {
        let page = (host_id >> 12) as u64;
        // Fibonacci hashing spreads neighbouring and distant pages alike.
        ((page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % SLOTS) as u16
    }

    /// The lines of a slot that hold code.
    #[inline(always)]
    pub(crate) fn lines(&self, slot: u16) -> Lines {
        self.lines[slot as usize % SLOTS]
    }

    /// The first block of a slot's chain.
    #[inline(always)]
    pub(crate) fn first_mut(&mut self, slot: u16) -> &mut u32 {
        &mut self.first[slot as usize % SLOTS]
    }

    pub(crate) fn add(&mut self, slot: u16, lines: Lines) {
        self.lines[slot as usize % SLOTS] |= lines;
    }

    pub(crate) fn set(&mut self, slot: u16, lines: Lines) {
        self.lines[slot as usize % SLOTS] = lines;
    }

    pub(crate) fn clear(&mut self) {
        self.lines = [0; SLOTS];
        self.first = [0; SLOTS];
    }

    /// Notes a store into `lines` of a host page. Returns whether it hit code.
    pub(crate) fn note_store(&mut self, slot: u16, lines: Lines) -> bool {
        let hit = self.lines(slot) & lines;
        if hit == 0 {
            return false;
        }
        if let Some(place) = self.retire.get_mut(self.retire_count) {
            *place = Retire { slot, lines: hit };
            self.retire_count += 1;
        } else {
            self.retire_all = true;
        }
        true
    }

    /// Are there stores into code to carry out?
    #[inline(always)]
    pub(crate) fn has_retired(&self) -> bool {
        self.retire_count != 0 || self.retire_all
    }

    /// Takes one request.
    pub(crate) fn take_retire(&mut self) -> Option<Retire> {
        self.retire_count = self.retire_count.checked_sub(1)?;
        self.retire.get(self.retire_count).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::lines_of;

    #[test]
    fn lines_cover_exactly_the_bytes_touched() {
        for from in 0..4096usize {
            for len in [1usize, 2, 3, 8, 64, 65, 500] {
                if from + len > 4096 {
                    continue;
                }
                let wanted = (from / 64..=(from + len - 1) / 64).fold(0u64, |m, i| m | 1 << i);
                assert_eq!(lines_of(from, len), wanted, "{from} {len}");
            }
        }
    }
}
