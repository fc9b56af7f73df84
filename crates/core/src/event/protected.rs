//! Delivery in protected mode: interrupt and trap gates of both sizes, to the same or an inner
//! privilege level (SDM vol. 2A, "INT n": INTER-PRIVILEGE-LEVEL and INTRA-PRIVILEGE-LEVEL).

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{IF, NT, RF, TF, VM};
use crate::arch::vector;
use crate::bus::Access;
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Step};
use crate::mem::segment::CodeTarget;
use crate::stop::UnimplementedReason;

/// What asked for the delivery: it decides the EXT bit and the check of the gate's DPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// INT n, INT3, INTO.
    Software,
    /// An exception, an interrupt, NMI, INT1.
    External,
}

/// RF in the frame: set by faults, so that the instruction is executed again without meeting its
/// breakpoint (SDM vol. 3B, "Instruction-Breakpoint Exception Condition").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// As it is.
    Keep,
    /// Set.
    Set,
}

impl Origin {
    /// EXT, bit 0 of an error code.
    fn ext(self) -> u16 {
        u16::from(self == Origin::External)
    }
}

/// A gate of the IDT.
struct Gate {
    selector: u16,
    offset: u32,
    /// 32-bit frames.
    is_wide: bool,
    /// Clears IF.
    is_interrupt: bool,
}

/// Where a frame goes.
pub(crate) struct Stack {
    pub(crate) segment: Segment,
    esp: u64,
    mask: u64,
    /// It is a new stack, so a fault on it names its selector.
    is_new: bool,
}

impl Stack {
    /// The selector part of an error code for this stack.
    pub(crate) fn code(&self) -> u16 {
        if self.is_new { self.segment.selector & !3 } else { 0 }
    }
}

/// The most words of a frame: SS, ESP, EFLAGS, CS, EIP, error code.
const FRAME: usize = 6;

impl Machine<'_, '_> {
    /// Delivers `vector` through the IDT.
    pub(crate) fn deliver_protected(
        &mut self,
        vector: u8,
        error_code: Option<u16>,
        origin: Origin,
        resume: Resume,
    ) -> Step {
        if self.is_long_mode() || self.cpu.is_virtual_8086() {
            return Err(Leave::Unimplemented(UnimplementedReason::Delivery));
        }
        let gate = self.read_gate(vector, origin)?;
        let cpl = self.cpu.cpl();
        let target = self.gate_target(&gate, cpl, origin)?;
        let inner = target.cpl < cpl;
        let stack =
            if inner { self.inner_stack(target.cpl, origin.ext())? } else { self.current_stack() };
        if u64::from(gate.offset) > u64::from(target.segment.limit) {
            return Err(Fault::with_code(vector::GP, origin.ext()).into());
        }
        let mut frame = [0; FRAME];
        let mut count = 0;
        let mut add = |value: u64| {
            frame[count] = value;
            count += 1;
        };
        if inner {
            add(u64::from(self.cpu.segment(SegReg::Ss).selector));
            add(self.cpu.gpr[Reg::Rsp]);
        }
        let resume = if resume == Resume::Set { RF } else { 0 };
        add(self.rflags() | resume);
        add(u64::from(self.cpu.segment(SegReg::Cs).selector));
        add(self.cpu.rip);
        if let Some(code) = error_code {
            add(u64::from(code));
        }
        let code = stack.code() | origin.ext();
        let esp = self.write_frame(&stack, &frame[..count], gate.is_wide, code)?;
        self.set_accessed(target.linear, target.raw)?;
        self.enter_gate(&gate, target, inner.then_some(stack.segment), esp);
        Ok(())
    }

    /// Reads and checks the gate. P is checked last.
    fn read_gate(&mut self, vector: u8, origin: Origin) -> Result<Gate, Leave> {
        let code = u16::from(vector) * 8 + 2 + origin.ext();
        let gp = Leave::Fault(Fault::with_code(vector::GP, code));
        let at = u32::from(vector) * 8;
        if at + 7 > u32::from(self.cpu.idtr.limit) {
            return Err(gp);
        }
        let mut bytes = [0; 8];
        self.read_linear(self.cpu.idtr.base.wrapping_add(u64::from(at)), &mut bytes)?;
        let raw = u64::from_le_bytes(bytes);
        let kind = raw >> 40 & 0x1F;
        if !matches!(kind, 5 | 6 | 7 | 14 | 15) {
            return Err(gp);
        }
        let dpl = (raw >> 45 & 3) as u8;
        if origin == Origin::Software && dpl < self.cpu.cpl() {
            return Err(gp);
        }
        if raw >> 47 & 1 == 0 {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        if kind == 5 {
            return Err(Leave::Unimplemented(UnimplementedReason::Delivery));
        }
        let is_wide = kind >= 14;
        let high = if is_wide { raw >> 48 << 16 } else { 0 };
        Ok(Gate {
            selector: (raw >> 16) as u16,
            offset: (raw & 0xFFFF | high) as u32,
            is_wide,
            is_interrupt: kind & 1 == 0,
        })
    }

    /// The code segment a gate leads to, and the privilege level it runs at.
    fn gate_target(&mut self, gate: &Gate, cpl: u8, origin: Origin) -> Result<CodeTarget, Leave> {
        let ext = origin.ext();
        let code = gate.selector & !3 | ext;
        if gate.selector & !3 == 0 {
            return Err(Fault::with_code(vector::GP, ext).into());
        }
        let (linear, raw) =
            self.read_descriptor_or(gate.selector, Fault::with_code(vector::GP, code))?;
        let attributes = Attributes::of_descriptor(raw);
        let dpl = attributes.dpl();
        if !attributes.is_code() || dpl > cpl {
            return Err(Fault::with_code(vector::GP, code).into());
        }
        if !attributes.is_present() {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        let new_cpl = if attributes.is_conforming() { cpl } else { dpl };
        Ok(CodeTarget::new(gate.selector, linear, raw, new_cpl))
    }

    fn current_stack(&self) -> Stack {
        Stack {
            segment: *self.cpu.segment(SegReg::Ss),
            esp: self.cpu.gpr[Reg::Rsp],
            mask: self.stack_mask,
            is_new: false,
        }
    }

    /// SS:ESP of an inner level from the TSS (SDM vol. 3A, "Stack Switching").
    pub(crate) fn inner_stack(&mut self, level: u8, ext: u16) -> Result<Stack, Leave> {
        let (selector, esp) = self.read_tss_stack(level, ext)?;
        let segment = self.read_stack_segment(selector, level, vector::TS, ext)?;
        let mask = if segment.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
        Ok(Stack { segment, esp, mask, is_new: true })
    }

    /// The stack pointer of a level in the current TSS, of either size.
    pub(crate) fn read_tss_stack(&mut self, level: u8, ext: u16) -> Result<(u16, u64), Leave> {
        let tr = self.cpu.tr;
        let wide = tr.attributes.0 & 8 != 0;
        let size = if wide { 8u32 } else { 4 };
        let at = if wide { 4 } else { 2 } + u32::from(level) * size;
        let last = at + if wide { 5 } else { 3 };
        if last > tr.limit || !tr.attributes.is_usable() {
            return Err(Fault::with_code(vector::TS, tr.selector & !3 | ext).into());
        }
        let mut bytes = [0; 6];
        let len = if wide { 6 } else { 4 };
        self.read_linear(tr.base.wrapping_add(u64::from(at)), &mut bytes[..len])?;
        let half = |i: usize| u16::from_le_bytes([bytes[i], bytes[i + 1]]);
        Ok(if wide {
            (half(4), u64::from(half(0)) | u64::from(half(2)) << 16)
        } else {
            (half(2), u64::from(half(0)))
        })
    }

    /// Writes a frame downwards from the top of `stack`; returns the new ESP. Every word is
    /// prepared before the first is written.
    pub(crate) fn write_frame(
        &mut self,
        stack: &Stack,
        words: &[u64],
        wide: bool,
        code: u16,
    ) -> Result<u64, Leave> {
        let size: u64 = if wide { 4 } else { 2 };
        let at = |i: usize| stack.esp.wrapping_sub(size * (i as u64 + 1)) & stack.mask;
        let place = |m: &Self, i: usize| {
            m.check_offsets(&stack.segment, at(i), size as usize, Access::Write)
                .ok_or(Leave::Fault(Fault::with_code(vector::SS, code)))
        };
        for i in 0..words.len() {
            let linear = place(self, i)?;
            self.prepare_linear(linear, size as usize, Access::Write)?;
        }
        for (i, word) in words.iter().enumerate() {
            let linear = place(self, i)?;
            let operand = self.prepare_linear(linear, size as usize, Access::Write)?;
            self.write_operand(&operand, &word.to_le_bytes()[..size as usize])?;
        }
        Ok(at(words.len().saturating_sub(1)))
    }

    fn enter_gate(
        &mut self,
        gate: &Gate,
        target: CodeTarget,
        new_stack: Option<Segment>,
        esp: u64,
    ) {
        if let Some(segment) = new_stack {
            self.commit_segment(SegReg::Ss, segment);
        }
        self.commit_segment(SegReg::Cs, target.segment);
        self.set_stack_offset(esp);
        self.cpu.rip = u64::from(gate.offset);
        let clear = TF | NT | RF | VM | if gate.is_interrupt { IF } else { 0 };
        let flags = self.rflags() & !clear;
        self.set_rflags(flags);
        self.epoch_stale = true;
    }
}
