//! Delivery in long mode: interrupt and trap gates of 16 bytes, the interrupt stack table, frames
//! of 64-bit words (SDM vol. 3A, "Exception and Interrupt Handling in 64-bit Mode").

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{IF, NT, RF, TF};
use crate::arch::vector;
use crate::bus::Access;
use crate::event::protected::{Origin, Resume};
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Step};
use crate::mem::access::Operand;
use crate::mem::descriptor::Incoming;
use crate::mem::walk::By;

/// A gate of the IDT.
struct Gate {
    selector: u16,
    offset: u64,
    /// Which stack of the interrupt stack table it asks for; 0 for none.
    ist: u8,
    /// Clears IF.
    is_interrupt: bool,
}

/// The most words of a frame: SS, RSP, RFLAGS, CS, RIP, error code.
const FRAME: usize = 6;

impl<'m> Machine<'_, 'm> {
    /// Delivers `vector` through the IDT.
    pub(crate) fn deliver_long(
        &mut self,
        vector: u8,
        error_code: Option<u16>,
        origin: Origin,
        resume: Resume,
    ) -> Step {
        let ext = origin.ext();
        let gate = self.read_long_gate(vector, origin)?;
        let cpl = self.cpu.cpl();
        let target = self.long_gate_target(gate.selector, cpl, ext)?;
        let level = target.cpl();
        let top = match gate.ist {
            0 if level == cpl => self.cpu.gpr[Reg::Rsp],
            0 => self.read_long_tss_stack(level, ext)?,
            ist => self.read_tss_quadword(28 + 8 * u32::from(ist), ext)?,
        };
        let words = [
            u64::from(self.cpu.segment(SegReg::Ss).selector),
            self.cpu.gpr[Reg::Rsp],
            resume.image(self.rflags()),
            u64::from(self.cpu.segment(SegReg::Cs).selector),
            self.cpu.rip,
            u64::from(error_code.unwrap_or(0)),
        ];
        let words = &words[..if error_code.is_some() { FRAME } else { FRAME - 1 }];
        // The frame ends at a multiple of 16, whichever stack it is on.
        let (rsp, frame) = self.prepare_long_frame(top & !15, words.len(), level, ext)?;
        if !self.is_canonical(gate.offset) {
            return Err(Fault::with_code(vector::GP, ext).into());
        }
        self.write_long_frame(&frame, words)?;
        self.mark_accessed(&target)?;
        self.enter_long(&target, gate.offset, level < cpl);
        self.cpu.gpr[Reg::Rsp] = rsp;
        let clear = TF | NT | RF | if gate.is_interrupt { IF } else { 0 };
        self.set_rflags(self.rflags() & !clear);
        self.epoch_stale = true;
        Ok(())
    }

    /// Reads and checks the gate. P is checked last.
    fn read_long_gate(&mut self, vector: u8, origin: Origin) -> Result<Gate, Leave> {
        let code = u16::from(vector) * 8 + 2 + origin.ext();
        let gp = Leave::Fault(Fault::with_code(vector::GP, code));
        let at = u32::from(vector) * 16;
        if at + 15 > u32::from(self.cpu.idtr.limit) {
            return Err(gp);
        }
        let mut bytes = [0; 16];
        self.read_linear(self.cpu.idtr.base.wrapping_add(u64::from(at)), &mut bytes)?;
        let raw = u128::from_le_bytes(bytes);
        let kind = (raw >> 40) as u8 & 0x1F;
        if !matches!(kind, 14 | 15) {
            return Err(gp);
        }
        let dpl = (raw >> 45) as u8 & 3;
        if origin == Origin::Software && dpl < self.cpu.cpl() {
            return Err(gp);
        }
        if raw >> 47 & 1 == 0 {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        Ok(Gate {
            selector: (raw >> 16) as u16,
            offset: long_offset(raw),
            ist: (raw >> 32) as u8 & 7,
            is_interrupt: kind == 14,
        })
    }

    /// The 64-bit code segment that an interrupt or call gate leads to, for the level it will run
    /// at.
    pub(crate) fn long_gate_target(
        &mut self,
        selector: u16,
        cpl: u8,
        ext: u16,
    ) -> Result<Incoming<'m>, Leave> {
        let code = selector & !3 | ext;
        if selector & !3 == 0 {
            return Err(Fault::with_code(vector::GP, ext).into());
        }
        let gp = Fault::with_code(vector::GP, code);
        let (linear, raw) = self.read_descriptor_or(selector, gp)?;
        let attributes = Attributes::of_descriptor(raw);
        let dpl = attributes.dpl();
        let is_64_bit = attributes.is_long() && !attributes.is_big();
        if !attributes.is_code() || dpl > cpl || !is_64_bit {
            return Err(gp.into());
        }
        if !attributes.is_present() {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        let level = if attributes.is_conforming() { cpl } else { dpl };
        self.incoming_code(selector, (linear, raw), level)
    }

    /// RSP of an inner level from the 64-bit TSS.
    pub(crate) fn read_long_tss_stack(&mut self, level: u8, ext: u16) -> Result<u64, Leave> {
        self.read_tss_quadword(4 + 8 * u32::from(level), ext)
    }

    fn read_tss_quadword(&mut self, at: u32, ext: u16) -> Result<u64, Leave> {
        let tr = self.cpu.tr;
        if at + 7 > tr.limit || !tr.attributes.is_usable() {
            return Err(Fault::with_code(vector::TS, tr.selector & !3 | ext).into());
        }
        let mut bytes = [0; 8];
        self.read_linear(tr.base.wrapping_add(u64::from(at)), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Prepares the place of `count` words below `top`, on the stack of a level; returns RSP too.
    pub(crate) fn prepare_long_frame(
        &mut self,
        top: u64,
        count: usize,
        level: u8,
        ext: u16,
    ) -> Result<(u64, Operand<'m>), Leave> {
        let size = count * 8;
        let rsp = top.wrapping_sub(size as u64);
        if !self.is_canonical(rsp) || !self.is_canonical(top.wrapping_sub(1)) {
            return Err(Fault::with_code(vector::SS, ext).into());
        }
        Ok((rsp, self.prepare_linear(rsp, size, Access::Write, By::Level(level))?))
    }

    /// Writes a prepared frame, given in the order of its pushes.
    pub(crate) fn write_long_frame(&mut self, frame: &Operand<'m>, words: &[u64]) -> Step {
        let mut image = [0; 8 * FRAME];
        for (place, word) in image.chunks_exact_mut(8).zip(words.iter().rev()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.write_operand(frame, &image[..8 * words.len().min(FRAME)])
    }

    /// Enters a code segment whose accessed bit is set. An inner level begins with a null SS, whose
    /// RPL is the level.
    pub(crate) fn enter_long(&mut self, target: &Incoming<'m>, offset: u64, is_inner: bool) {
        if is_inner {
            self.commit_segment(SegReg::Ss, Segment::null_stack(target.cpl()));
        }
        self.commit_segment(SegReg::Cs, target.segment);
        self.cpu.rip = offset;
    }
}

/// The offset in a gate of 16 bytes.
pub(crate) fn long_offset(raw: u128) -> u64 {
    (raw & 0xFFFF | raw >> 48 << 16) as u64
}
