//! Cases at edges: of segments of every kind, of the canonical addresses, of pages.

use realmode::{Reg, SegReg};

use super::Plan;
use crate::proof::case::{Mode, Paging};
use crate::proof::form::Setting;
use crate::proof::layout::{ARENA_SIZE, CODE, DATA, Kind, STACK};

/// What DS, ES, FS and GS can be loaded with.
const DATA_KINDS: [Kind; 20] = [
    Kind::Data,
    Kind::Short,
    Kind::Down,
    Kind::ReadOnly,
    Kind::Wide,
    Kind::Paged,
    Kind::Byte,
    Kind::DownBig,
    Kind::DownBytes,
    Kind::DownNothing,
    Kind::DownReadOnly,
    Kind::ShortStack16,
    Kind::ShortStack32,
    Kind::DownStack,
    Kind::Code16,
    Kind::Code32,
    Kind::ShortCode16,
    Kind::ShortCode32,
    Kind::PagedCode32,
    Kind::Null,
];

/// What SS can be loaded with.
const STACK_KINDS: [Kind; 13] = [
    Kind::Stack16,
    Kind::Stack32,
    Kind::ShortStack16,
    Kind::ShortStack32,
    Kind::DownStack,
    Kind::DownBig,
    Kind::DownBytes,
    Kind::DownNothing,
    Kind::Down,
    Kind::Wide,
    Kind::Short,
    Kind::Paged,
    Kind::Byte,
];

impl Plan<'_> {
    pub(super) fn is_usual(&self) -> bool {
        self.form.setting == Setting::Usual
    }

    /// Segments of every kind.
    pub(super) fn choose_odd_segments(&mut self) {
        if self.form.setting != Setting::Segments || self.is_long() {
            return;
        }
        let random = &mut self.random;
        for i in [0, 3, 4, 5] {
            if !random.one_in(3) {
                self.segments[i] = random.pick(&DATA_KINDS);
            }
        }
        if random.one_in(2) {
            self.segments[SegReg::Ss as usize] = random.pick(&STACK_KINDS);
        }
        if self.form.mode == Mode::Bits32 && random.one_in(4) {
            let kind = random.pick(&[Kind::PagedCode32, Kind::ExecuteOnly32]);
            self.segments[SegReg::Cs as usize] = kind;
        }
    }

    /// An offset in a segment, where it begins or ends more often than not.
    pub(super) fn edge(&mut self, segment: SegReg) -> u64 {
        let (low, high) = self.segments[segment as usize].offsets();
        let inside = high.saturating_sub(low).min(0xFFFF) + 1;
        let random = &mut self.random;
        let near = random.below(24);
        match random.below(8) {
            0..3 => (high + 8).wrapping_sub(near) & 0xFFFF_FFFF,
            3 | 4 => (low + 8).wrapping_sub(near) & 0xFFFF_FFFF,
            5 => (low + random.below(inside)) & !7,
            _ => low + random.below(inside),
        }
    }

    /// In 64-bit code, an address at an edge of the canonical ones, now and then.
    pub(super) fn edge_of_canonical(&mut self) -> Option<u64> {
        const EDGES: [u64; 3] = [1 << 47, u64::MAX << 47, 1 << 63];
        if self.form.setting != Setting::Segments || !self.is_long() || !self.random.one_in(3) {
            return None;
        }
        let edge = self.random.pick(&EDGES);
        Some(edge.wrapping_add(24).wrapping_sub(self.random.below(48)))
    }

    /// An offset in the arena at the edge of a page of data, as often as not.
    pub(super) fn edge_of_page(&mut self) -> u64 {
        let page = 1 + self.random.below(14);
        if self.random.one_in(4) {
            return 0x1000 * page + self.random.below(0x1000);
        }
        0x1000 * page + 8 - self.random.below(24)
    }

    /// Which page is odd: one that the instruction accesses.
    pub(super) fn choose_paging(&mut self) -> Paging {
        match self.form.setting {
            Setting::Usual => return Paging::Off,
            Setting::Segments => return Paging::Even,
            Setting::Pages => {}
        }
        let mut places = Vec::new();
        places.extend(self.operand_target());
        let stack = self.stack_offset();
        places.extend(self.arena_offset(SegReg::Ss, stack));
        if self.form.family == "string" {
            let mask = u64::MAX >> (64 - 8 * self.draft.address);
            let source = self.gpr[Reg::Rsi as usize] & mask;
            let destination = self.gpr[Reg::Rdi as usize] & mask;
            let segment = self.draft.segment.unwrap_or(SegReg::Ds);
            places = Vec::from_iter(self.arena_offset(segment, source));
            places.extend(self.arena_offset(SegReg::Es, destination));
        }
        // The page that the instruction ends in: the way back begins in another one, if any.
        let last = CODE + self.entry + u32::from(self.draft.code.len) - 1;
        if places.is_empty() || self.random.one_in(16) {
            return Paging::Absent((last / 4096) as u8);
        }
        let near = self.random.below(24) as u32;
        let place = (self.random.pick(&places) + 12).saturating_sub(near);
        let page = (place.min(ARENA_SIZE - 1) / 4096) as u8;
        let is_way_back = u32::from(page) == last / 4096 + 1;
        if self.random.one_in(2) && !is_way_back {
            return Paging::Absent(page);
        }
        Paging::ReadOnly(page)
    }

    /// What the stack pointer says.
    pub(super) fn stack_offset(&self) -> u64 {
        let rsp = self.gpr[Reg::Rsp as usize];
        match (self.is_long(), self.segments[SegReg::Ss as usize].is_big()) {
            (true, _) => rsp,
            (false, true) => rsp & 0xFFFF_FFFF,
            (false, false) => rsp & 0xFFFF,
        }
    }

    /// A linear address in the stack at the edge of a page, or of the canonical addresses.
    pub(super) fn edge_of_long_stack(&mut self) -> Option<u64> {
        let edge = self.edge_of_canonical();
        if edge.is_some() || self.form.setting != Setting::Pages {
            return edge;
        }
        Some(u64::from(self.layout.base + STACK) + self.edge_of_page())
    }

    /// Where a branch goes that is not to lead to code: to data, or to what is not canonical.
    pub(super) fn edge_of_code(&mut self) -> Option<u64> {
        if self.is_usual() || !self.is_long() || !self.random.one_in(8) {
            return None;
        }
        let edge = self.edge_of_canonical();
        Some(edge.unwrap_or(u64::from(self.layout.base + DATA) + self.random.below(0x1_0000)))
    }
}
