//! Descriptors: reads from the GDT and LDT, the checks of data and stack segments, and segments on
//! their way into a register.

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::SegReg;
use crate::arch::vector;
use crate::bus::Access;
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Step};
use crate::mem::access::Operand;
use crate::mem::walk::By;

/// A segment on its way into a register. Every check of the segment itself is made; what else
/// can fail is still to come, so nothing is written yet.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'m> {
    pub(crate) segment: Segment,
    /// The access byte of its descriptor, if the accessed bit has to be set.
    accessed: Option<Operand<'m>>,
}

impl Incoming<'_> {
    /// A segment that is in its register already.
    pub(crate) fn loaded(segment: Segment) -> Self {
        Incoming { segment, accessed: None }
    }

    /// The privilege level of a code segment once it is entered.
    pub(crate) fn cpl(&self) -> u8 {
        (self.segment.selector & 3) as u8
    }
}

impl<'m> Machine<'_, 'm> {
    /// The descriptor checks of a data or stack segment load (SDM vol. 2B, "MOV": the
    /// exceptions of protected mode), in the manual's order. P is checked last.
    pub(crate) fn read_data_segment(
        &mut self,
        reg: SegReg,
        selector: u16,
    ) -> Result<Incoming<'m>, Leave> {
        let gp = |code: u16| Leave::Fault(Fault::with_code(vector::GP, code & !3));
        let cpl = self.cpu.cpl();
        let rpl = (selector & 3) as u8;
        if selector & !3 == 0 {
            let segment = self.null_segment(reg, selector, cpl)?;
            return Ok(Incoming::loaded(segment));
        }
        if reg == SegReg::Ss {
            return self.read_stack_segment(selector, cpl, vector::GP, 0);
        }
        let (linear, raw) = self.read_descriptor(selector)?;
        let segment = Segment::of_descriptor(selector, raw);
        let attributes = segment.attributes;
        let readable = attributes.is_code_or_data()
            && (!attributes.is_code() || attributes.has_write_or_read());
        let dpl = attributes.dpl();
        if !readable || !attributes.is_conforming() && (rpl > dpl || cpl > dpl) {
            return Err(gp(selector));
        }
        if !attributes.is_present() {
            return Err(Fault::with_code(vector::NP, selector & !3).into());
        }
        self.incoming(segment, linear)
    }

    /// The checks of a segment that becomes the stack of privilege level `level`. A bad one is
    /// `vector` with the selector, an absent one #SS. `ext` is bit 0 of the error codes.
    pub(crate) fn read_stack_segment(
        &mut self,
        selector: u16,
        level: u8,
        vector: u8,
        ext: u16,
    ) -> Result<Incoming<'m>, Leave> {
        // Of a null selector the code is zero.
        let code = selector & !3 | ext;
        let bad = Fault::with_code(vector, code);
        if selector & !3 == 0 {
            return Err(bad.into());
        }
        let (linear, raw) = self.read_descriptor_or(selector, bad)?;
        let segment = Segment::of_descriptor(selector, raw);
        let attributes = segment.attributes;
        let levels_agree = (selector & 3) as u8 == level && attributes.dpl() == level;
        if !levels_agree || !attributes.is_writable_data() {
            return Err(bad.into());
        }
        if !attributes.is_present() {
            return Err(Fault::with_code(vector::SS, code).into());
        }
        self.incoming(segment, linear)
    }

    /// A null selector: legal in DS, ES, FS, GS; in SS only in 64-bit code below CPL 3.
    fn null_segment(&self, reg: SegReg, selector: u16, cpl: u8) -> Result<Segment, Leave> {
        let stack = reg == SegReg::Ss;
        let rpl = (selector & 3) as u8;
        if stack && !(self.cpu.is_64_bit_code() && cpl < 3 && rpl == cpl) {
            return Err(Fault::GP.into());
        }
        Ok(if stack { Segment::null_stack(cpl) } else { Segment::null(selector) })
    }

    /// Reads a descriptor from the GDT or LDT; returns its linear address too. #GP(selector)
    /// beyond the table.
    pub(crate) fn read_descriptor(&mut self, selector: u16) -> Result<(u64, u64), Leave> {
        self.read_descriptor_or(selector, Fault::with_code(vector::GP, selector & !3))
    }

    /// The same, with the fault that a selector beyond the table raises.
    pub(crate) fn read_descriptor_or(
        &mut self,
        selector: u16,
        fault: Fault,
    ) -> Result<(u64, u64), Leave> {
        let linear = self.descriptor_address(selector).ok_or(Leave::Fault(fault))?;
        Ok((linear, self.descriptor_at(linear)?))
    }

    /// Where the descriptor of a selector lies; `None` beyond its table.
    pub(crate) fn descriptor_address(&self, selector: u16) -> Option<u64> {
        let ldtr = &self.cpu.ldtr;
        let (base, limit) = if selector & 4 == 0 {
            (self.cpu.gdtr.base, u32::from(self.cpu.gdtr.limit))
        } else if ldtr.attributes.is_usable() && ldtr.selector & !3 != 0 {
            (ldtr.base, ldtr.limit)
        } else {
            return None;
        };
        let offset = u32::from(selector & !7);
        // Compared in 32 bits, so that a limit of FFFF does not wrap.
        (offset + 7 <= limit).then(|| base.wrapping_add(u64::from(offset)))
    }

    /// The second half of a descriptor of 16 bytes, which must lie in the table too.
    pub(crate) fn read_descriptor_high(
        &mut self,
        selector: u16,
        linear: u64,
    ) -> Result<u64, Leave> {
        let next = (selector & !7)
            .checked_add(8)
            .and_then(|next| self.descriptor_address(next | selector & 4));
        if next.is_none() {
            return Err(Fault::with_code(vector::GP, selector & !3).into());
        }
        self.descriptor_at(linear.wrapping_add(8))
    }

    /// The descriptor that lies at a linear address.
    pub(crate) fn descriptor_at(&mut self, linear: u64) -> Result<u64, Leave> {
        let mut raw = [0; 8];
        self.read_linear(linear, &mut raw)?;
        Ok(self.known_part(u64::from_le_bytes(raw)))
    }

    /// What this processor sees of a descriptor or gate: a 286 knows 48 bits of it, and of the
    /// system types those below 8.
    pub(crate) fn known_part(&self, raw: u64) -> u64 {
        if self.has_32_bits() {
            return raw;
        }
        let low = raw & 0xFFFF_FFFF_FFFF;
        let is_unknown = !Attributes::of_descriptor(low).is_code_or_data() && low >> 43 & 1 != 0;
        if is_unknown { low & !(0xF << 40) } else { low }
    }

    /// A code segment that a transfer is about to enter, to run at privilege level `cpl`.
    pub(crate) fn incoming_code(
        &mut self,
        selector: u16,
        (linear, raw): (u64, u64),
        cpl: u8,
    ) -> Result<Incoming<'m>, Leave> {
        let selector = selector & !3 | u16::from(cpl);
        self.incoming(Segment::of_descriptor(selector, raw), linear)
    }

    /// The access byte of the descriptor at `linear` is prepared for writing if it has to be.
    fn incoming(&mut self, segment: Segment, linear: u64) -> Result<Incoming<'m>, Leave> {
        let accessed = if segment.attributes.0 & 1 == 0 {
            Some(self.prepare_access_byte(linear)?)
        } else {
            None
        };
        Ok(Incoming { segment: segment.accessed(), accessed })
    }

    /// The byte of the descriptor at `linear` that holds its type, prepared for writing.
    pub(crate) fn prepare_access_byte(&mut self, linear: u64) -> Result<Operand<'m>, Leave> {
        let byte = self.table_address(linear.wrapping_add(5));
        self.prepare_linear(byte, 1, Access::Write, By::Tables)
    }

    /// Sets the accessed bit in memory, if it was clear.
    pub(crate) fn mark_accessed(&mut self, incoming: &Incoming<'m>) -> Step {
        if let Some(byte) = &incoming.accessed {
            self.update_locked(byte, &mut |byte| byte | 1)?;
        }
        Ok(())
    }
}
