//! Segmentation: limit and type checks, and loads of segment registers.

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::SegReg;
use crate::bus::Access;
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Road, Step, Window};
use crate::profile::Generation;

/// The fault that a bad access through a segment register raises: #SS through SS, else #GP.
/// A 286 in real mode raises interrupt 13 for the stack too (shown by `shared/sst286`).
#[cold]
fn segment_fault(m: &Machine<'_, '_>, seg: u8) -> Leave {
    let early = m.profile.generation <= Generation::I80286 && m.cpu.is_real_mode();
    if seg == SegReg::Ss as u8 && !early { Fault::SS.into() } else { Fault::GP.into() }
}

/// The offsets a segment offers, first and last; the manual's rule for both directions of growth
/// (SDM vol. 3A, "Limit Checking").
fn bounds(segment: &Segment) -> (u64, u64) {
    if segment.attributes.is_expand_down() {
        let top = if segment.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
        (u64::from(segment.limit) + 1, top)
    } else {
        (0, u64::from(segment.limit))
    }
}

impl Machine<'_, '_> {
    /// The first and last offset that a segment offers.
    pub(crate) fn offsets(&self, seg: u8) -> (u64, u64) {
        if self.cpu.is_64_bit_code() {
            return (0, u64::MAX);
        }
        if self.profile.generation < Generation::I80286 {
            return (0, 0xFFFF);
        }
        self.cpu.seg.get(usize::from(seg)).map_or((0, 0), bounds)
    }

    /// Checks an access of `size` bytes at `offset` and returns its linear address. `size` is at
    /// least 1.
    pub(crate) fn check_segment(
        &mut self,
        seg: u8,
        offset: u64,
        size: usize,
        access: Access,
    ) -> Result<u64, Leave> {
        if self.cpu.is_64_bit_code() {
            return self.check_flat(seg, offset, size);
        }
        let Some(segment) = self.cpu.seg.get(usize::from(seg)).copied() else {
            return Err(Fault::UD.into());
        };
        let linear = segment.base.wrapping_add(offset) & self.linear_mask;
        if self.profile.generation < Generation::I80286 {
            // 8086: no limits; offsets wrap, which the operand's parts take care of.
            self.open_window(seg, segment.base, true, true, 0xFFFF);
            return Ok(linear);
        }
        let linear = self.check_offsets(&segment, offset, size, access);
        let linear = linear.ok_or_else(|| segment_fault(self, seg))?;
        let (readable, writable) = rights(segment.attributes, self.is_real());
        let (first, last) = bounds(&segment);
        if first == 0 {
            self.open_window(seg, segment.base, readable, writable, last);
        }
        Ok(linear)
    }

    /// The linear address of `size` bytes at `offset` of a segment that may not be in a register
    /// yet; `None` if its limit or type forbids the access.
    pub(crate) fn check_offsets(
        &self,
        segment: &Segment,
        offset: u64,
        size: usize,
        access: Access,
    ) -> Option<u64> {
        let (readable, writable) = rights(segment.attributes, self.is_real());
        let allowed = match access {
            Access::Read => readable,
            Access::Write => writable,
            Access::Execute => self.is_real() || segment.attributes.is_usable(),
        };
        let (first, last) = bounds(segment);
        let end = offset + (size as u64 - 1);
        let inside = allowed && offset >= first && end <= last;
        inside.then(|| segment.base.wrapping_add(offset) & self.linear_mask)
    }

    /// 64-bit code: no limits, only FS and GS have a base, and the whole range must be canonical.
    fn check_flat(&mut self, seg: u8, offset: u64, size: usize) -> Result<u64, Leave> {
        let linear = self.flat_base(seg).wrapping_add(offset);
        let end = linear.wrapping_add(size as u64 - 1);
        if !self.is_canonical(linear) || !self.is_canonical(end) {
            return Err(segment_fault(self, seg));
        }
        // Addresses that are not canonical miss the TLB.
        self.open_window(seg, self.flat_base(seg), true, true, u64::MAX - 1);
        Ok(linear)
    }

    /// Where a segment begins in 64-bit code.
    pub(crate) fn flat_base(&self, seg: u8) -> u64 {
        match self.cpu.seg.get(usize::from(seg)) {
            Some(segment) if seg >= SegReg::Fs as u8 => segment.base,
            _ => 0,
        }
    }

    /// Lets the hot path use a segment that has just been checked.
    fn open_window(&mut self, seg: u8, base: u64, readable: bool, writable: bool, last: u64) {
        if self.road != Road::Block {
            return;
        }
        if let Some(window) = self.windows.get_mut(usize::from(seg)) {
            *window = Window {
                base,
                read_end: if readable { last + 1 } else { 0 },
                write_end: if writable { last + 1 } else { 0 },
            };
        }
    }

    /// Loads DS, ES, FS, GS or SS, as MOV, POP and LDS do.
    pub(crate) fn load_segment(&mut self, reg: SegReg, selector: u16) -> Step {
        let segment = self.segment_for_load(reg, selector)?;
        self.commit_segment(reg, segment);
        Ok(())
    }

    /// What a load of `selector` will leave in `reg`, with every check made, so that the load
    /// itself cannot fail any more.
    pub(crate) fn segment_for_load(
        &mut self,
        reg: SegReg,
        selector: u16,
    ) -> Result<Segment, Leave> {
        if self.is_real() {
            Ok(real_segment(self.cpu.segment(reg), selector))
        } else {
            let incoming = self.read_data_segment(reg, selector)?;
            self.mark_accessed(&incoming)?;
            Ok(incoming.segment)
        }
    }

    /// Puts a segment in place.
    pub(crate) fn commit_segment(&mut self, reg: SegReg, segment: Segment) {
        *self.cpu.segment_mut(reg) = segment;
        self.windows[reg as usize] = Window::default();
        match reg {
            SegReg::Ss => self.refresh_stack(),
            SegReg::Cs => self.refresh_mode(),
            _ => {}
        }
    }
}

/// A segment register after a real-mode load: limit and attributes stay (big real mode).
pub(crate) fn real_segment(old: &Segment, selector: u16) -> Segment {
    Segment { selector, base: u64::from(selector) << 4, ..*old }
}

/// Whether a segment may be read and written. In real mode a code segment may be written if its
/// type has bit 1.
fn rights(attributes: Attributes, real: bool) -> (bool, bool) {
    if !real && !attributes.is_usable() {
        return (false, false);
    }
    let code = attributes.is_code();
    let bit1 = attributes.has_write_or_read();
    (!code || bit1, bit1 && (real || !code))
}

/// Is an address canonical with so many bits?
pub(crate) fn is_canonical_with(bits: u32, linear: u64) -> bool {
    let above = 64 - bits;
    ((linear as i64) << above >> above) as u64 == linear
}
