//! Plain memory ahead of a string instruction: how many elements it can reach without another
//! check, so that they can be moved in one go.

use crate::arch::registers::Reg;
use crate::arch::rflags::DF;
use crate::bus::Access;
use crate::machine::{Machine, Road};
use crate::mem::code_map::lines_of;
use crate::mem::host::{HostPage, PAGE_SIZE};
use crate::op::Op;
use crate::width::Width;

/// How the offsets of a string instruction move.
#[derive(Clone, Copy)]
pub(crate) struct Stride {
    /// The bits of an offset and of the count: the address size.
    pub(crate) mask: u64,
    /// Bytes from one element to the next: negative if DF is set.
    pub(crate) step: i64,
}

impl Stride {
    pub(crate) fn is_down(self) -> bool {
        self.step < 0
    }
}

/// Plain memory from one element on.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'m> {
    pub(crate) page: HostPage<'m>,
    /// Where in its page the first element lies.
    pub(crate) within: usize,
    /// Elements, the first included, before the page, the segment or the address size ends, or
    /// a store would meet code.
    pub(crate) elements: u64,
}

/// The first element of a stretch, and the offsets that its segment offers.
struct Start<'m> {
    page: HostPage<'m>,
    slot: u16,
    within: usize,
    offsets: (u64, u64),
}

impl<'m> Machine<'_, 'm> {
    /// The stride of elements of `size` bytes.
    #[inline(always)]
    pub(crate) fn stride(&self, op: &Op, size: usize) -> Stride {
        let size = size as i64;
        let step = if self.cpu.rflags & DF != 0 { -size } else { size };
        Stride { mask: u64::MAX >> (op.address_shift & 63), step }
    }

    /// The offset or count in a register.
    #[inline(always)]
    pub(crate) fn string_register(&self, reg: Reg, stride: Stride) -> u64 {
        self.cpu.gpr[reg] & stride.mask
    }

    /// Replaces the offset or count in a register, as a write of the address size does: 16 bits
    /// keep the rest, 32 bits clear the upper half.
    #[inline(always)]
    pub(crate) fn set_string_register(&mut self, reg: Reg, stride: Stride, value: u64) {
        let keep = if stride.mask == 0xFFFF { !0xFFFF } else { 0 };
        let place = &mut self.cpu.gpr[reg];
        *place = *place & keep | value & stride.mask;
    }

    /// Moves an offset on by `elements`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, reg: Reg, stride: Stride, elements: u64) {
        let distance = (stride.step as u64).wrapping_mul(elements);
        let offset = self.cpu.gpr[reg].wrapping_add(distance);
        self.set_string_register(reg, stride, offset);
    }

    /// The plain memory from the element at `offset` on. `None` on the careful road, and where
    /// that element itself is not plain: executing it alone then finds out what it is.
    pub(crate) fn stretch<W: Width>(
        &mut self,
        seg: u8,
        offset: u64,
        stride: Stride,
        access: Access,
    ) -> Option<Stretch<'m>> {
        if self.road != Road::Block {
            return None;
        }
        let start = self.plain_element::<W>(seg, offset, access)?;
        let mut elements = reach::<W>(offset, start.within, start.offsets, stride);
        if access == Access::Write {
            elements = self.before_code::<W>(&start, elements, stride);
        }
        (elements != 0).then_some(Stretch { page: start.page, within: start.within, elements })
    }

    /// How many elements upwards from `offset` a device can be given at once.
    pub(crate) fn room<W: Width>(
        &mut self,
        seg: u8,
        offset: u64,
        stride: Stride,
        access: Access,
    ) -> Option<u64> {
        let linear = self.check_segment(seg, offset, W::BYTES, access).ok()?;
        let within = linear as usize % PAGE_SIZE;
        Some(reach::<W>(offset, within, self.offsets(seg), stride))
    }

    fn plain_element<W: Width>(
        &mut self,
        seg: u8,
        offset: u64,
        access: Access,
    ) -> Option<Start<'m>> {
        let write = access == Access::Write;
        let window = &self.windows[usize::from(seg & 7)];
        let end = if write { window.write_end } else { window.read_end };
        if offset.wrapping_add(W::BYTES as u64 - 1) < end {
            let linear = window.base.wrapping_add(offset) & self.linear_mask;
            let entry = self.tlb.entry(linear);
            let within = if write { entry.write } else { entry.read } ^ linear;
            if within <= (PAGE_SIZE - W::BYTES) as u64 {
                let (page, slot, within) = (entry.host, entry.slot, within as usize);
                return Some(Start { page, slot, within, offsets: (0, end - 1) });
            }
        }
        // The page is taken from the operand and not from the TLB, where the two operands of
        // MOVS may be evicting each other.
        let operand = self.prepare(seg, offset, W::BYTES, access).ok()?;
        let (page, within, slot) = operand.is_one_host_page()?;
        Some(Start { page: *page, slot, within, offsets: self.offsets(seg) })
    }

    /// How many of `elements` can be stored before one touches a line that holds code.
    fn before_code<W: Width>(&self, start: &Start<'m>, elements: u64, stride: Stride) -> u64 {
        let code = self.code_map.lines(start.slot);
        if code == 0 || elements == 0 {
            return elements;
        }
        let (size, within) = (W::BYTES, start.within);
        if code & lines_of(within, size) != 0 {
            return 0;
        }
        let len = elements as usize * size;
        let before = if stride.is_down() {
            let hit = code & lines_of(within + size - len, len);
            let end = 64 * (64 - hit.leading_zeros() as usize);
            (hit != 0).then(|| (within - end) / size + 1)
        } else {
            let hit = code & lines_of(within, len);
            let from = 64 * hit.trailing_zeros() as usize;
            (hit != 0).then(|| (from - within) / size)
        };
        before.map_or(elements, |n| n as u64)
    }
}

/// How many elements from the one at `offset`, `within` its page, lie in that page and in a
/// segment's first to last offset. The first one does, unless it crosses the page.
fn reach<W: Width>(offset: u64, within: usize, offsets: (u64, u64), stride: Stride) -> u64 {
    let size = W::BYTES as u64;
    let (first, last) = offsets;
    let Some(to_page_end) = (PAGE_SIZE - W::BYTES).checked_sub(within) else {
        return 0;
    };
    let distance = if stride.is_down() {
        (within as u64).min(offset.saturating_sub(first))
    } else {
        let last = last.min(stride.mask);
        (to_page_end as u64).min(last.saturating_sub(offset.saturating_add(size - 1)))
    };
    distance / size + 1
}
