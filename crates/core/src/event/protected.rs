//! Delivery in protected mode: interrupt and trap gates of both sizes, to the same or an inner
//! privilege level (SDM vol. 2A, "INT n": INTER-PRIVILEGE-LEVEL and INTRA-PRIVILEGE-LEVEL).

use crate::arch::descriptor::Attributes;
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{IF, NT, RF, TF, VM};
use crate::arch::vector;
use crate::bus::Access;
use crate::event::task::Switch;
use crate::event::virtual_8086::PUSHED;
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Step};
use crate::mem::descriptor::Incoming;
use crate::mem::walk::By;

/// What asked for the delivery: it decides the EXT bit and the check of the gate's DPL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// INT n, INT3, INTO.
    Software,
    /// An exception, an interrupt, NMI, INT1.
    External,
}

/// RF in the frame: a fault sets it, so that the instruction is executed again without meeting its
/// breakpoint (SDM vol. 3B, "Instruction-Breakpoint Exception Condition").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// As it is: interrupts and traps.
    Keep,
    /// Set: faults.
    Set,
    /// Clear: software interrupts, whose start cleared it.
    Clear,
}

impl Resume {
    /// The flags that a frame shows.
    pub(crate) fn image(self, flags: u64) -> u64 {
        match self {
            Resume::Keep => flags,
            Resume::Set => flags | RF,
            Resume::Clear => flags & !RF,
        }
    }
}

impl Origin {
    /// EXT, bit 0 of an error code.
    pub(crate) fn ext(self) -> u16 {
        u16::from(self == Origin::External)
    }
}

/// A gate of the IDT.
enum Gate {
    Code(CodeGate),
    /// To the task of this TSS.
    Task(u16),
}

/// An interrupt or trap gate.
struct CodeGate {
    selector: u16,
    offset: u32,
    /// 32-bit frames.
    is_wide: bool,
    /// Clears IF.
    is_interrupt: bool,
}

/// Where a frame goes.
pub(crate) struct Stack<'m> {
    pub(crate) incoming: Incoming<'m>,
    esp: u64,
    mask: u64,
    /// It is a new stack, so a fault on it names its selector.
    is_new: bool,
    /// The privilege level whose stack it is.
    level: u8,
}

impl Stack<'_> {
    /// The privilege that it is written with.
    fn by(&self) -> By {
        By::Level(self.level)
    }

    /// The selector part of an error code for this stack.
    pub(crate) fn code(&self) -> u16 {
        if self.is_new { self.incoming.segment.selector & !3 } else { 0 }
    }

    /// The offset of word `i` of a frame, counted downwards from the top.
    fn word(&self, i: usize, size: usize) -> u64 {
        self.esp.wrapping_sub((size * (i + 1)) as u64) & self.mask
    }
}

/// The most words of a frame: GS, FS, DS, ES, SS, ESP, EFLAGS, CS, EIP, error code.
const FRAME: usize = 10;

impl<'m> Machine<'_, 'm> {
    /// Delivers `vector` through the IDT.
    pub(crate) fn deliver_protected(
        &mut self,
        vector: u8,
        error_code: Option<u16>,
        origin: Origin,
        resume: Resume,
    ) -> Step {
        if self.is_long_mode() {
            return self.deliver_long(vector, error_code, origin, resume);
        }
        let is_virtual = self.cpu.is_virtual_8086();
        let gate = match self.read_gate(vector, origin)? {
            Gate::Code(gate) => gate,
            Gate::Task(selector) => {
                let flags = resume.image(self.rflags());
                let switch = Switch::Event { ext: origin.ext() };
                return self.switch_task(selector, switch, flags, error_code);
            }
        };
        let cpl = self.cpu.cpl();
        let target = self.gate_target(&gate, cpl, origin)?;
        let inner = target.cpl() < cpl;
        let stack = if inner {
            self.inner_stack(target.cpl(), origin.ext())?
        } else {
            self.current_stack()
        };
        let mut frame = [0; FRAME];
        let mut count = 0;
        let mut add = |value: u64| {
            frame[count] = value;
            count += 1;
        };
        if is_virtual {
            for reg in PUSHED {
                add(u64::from(self.cpu.segment(reg).selector));
            }
        }
        if inner {
            add(u64::from(self.cpu.segment(SegReg::Ss).selector));
            add(self.cpu.gpr[Reg::Rsp]);
        }
        add(resume.image(self.rflags()));
        add(u64::from(self.cpu.segment(SegReg::Cs).selector));
        add(self.cpu.rip);
        if let Some(code) = error_code {
            add(u64::from(code));
        }
        self.prepare_frame(&stack, count, gate.is_wide, origin.ext())?;
        if gate.offset > target.segment.limit {
            return Err(Fault::with_code(vector::GP, origin.ext()).into());
        }
        let esp = self.write_frame(&stack, &frame[..count], gate.is_wide)?;
        self.enter_at(&target, &stack, esp, u64::from(gate.offset))?;
        if is_virtual {
            self.drop_virtual_segments();
        }
        let clear = TF | NT | RF | VM | if gate.is_interrupt { IF } else { 0 };
        self.set_rflags(self.rflags() & !clear);
        self.epoch_stale = true;
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
        let raw = self.known_part(u64::from_le_bytes(bytes));
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
            return Ok(Gate::Task((raw >> 16) as u16));
        }
        let is_wide = kind >= 14;
        let high = if is_wide { raw >> 48 << 16 } else { 0 };
        Ok(Gate::Code(CodeGate {
            selector: (raw >> 16) as u16,
            offset: (raw & 0xFFFF | high) as u32,
            is_wide,
            is_interrupt: kind & 1 == 0,
        }))
    }

    /// The code segment a gate leads to, and the privilege level it runs at.
    fn gate_target(
        &mut self,
        gate: &CodeGate,
        cpl: u8,
        origin: Origin,
    ) -> Result<Incoming<'m>, Leave> {
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
        // Virtual-8086 mode is left for level 0 alone.
        if self.cpu.is_virtual_8086() && new_cpl != 0 {
            return Err(Fault::with_code(vector::GP, code).into());
        }
        self.incoming_code(gate.selector, (linear, raw), new_cpl)
    }

    fn current_stack(&self) -> Stack<'m> {
        Stack {
            incoming: Incoming::loaded(*self.cpu.segment(SegReg::Ss)),
            esp: self.cpu.gpr[Reg::Rsp],
            mask: self.stack_mask,
            is_new: false,
            level: self.cpu.cpl(),
        }
    }

    /// SS:ESP of an inner level from the TSS (SDM vol. 3A, "Stack Switching").
    pub(crate) fn inner_stack(&mut self, level: u8, ext: u16) -> Result<Stack<'m>, Leave> {
        let (selector, esp) = self.read_tss_stack(level, ext)?;
        let incoming = self.read_stack_segment(selector, level, vector::TS, ext)?;
        let mask = if incoming.segment.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
        Ok(Stack { incoming, esp, mask, is_new: true, level })
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

    /// Checks and prepares the places of `count` words below the top of `stack`, before anything
    /// of the frame is written. `ext` is bit 0 of the error code.
    pub(crate) fn prepare_frame(
        &mut self,
        stack: &Stack<'m>,
        count: usize,
        wide: bool,
        ext: u16,
    ) -> Step {
        let size = word_size(wide);
        let full = Leave::Fault(Fault::with_code(vector::SS, stack.code() | ext));
        for i in 0..count {
            let offset = stack.word(i, size);
            let segment = &stack.incoming.segment;
            let linear = self.check_offsets(segment, offset, size, Access::Write).ok_or(full)?;
            self.prepare_linear(linear, size, Access::Write, stack.by())?;
        }
        Ok(())
    }

    /// Writes a prepared frame; returns the new ESP.
    pub(crate) fn write_frame(
        &mut self,
        stack: &Stack<'m>,
        words: &[u64],
        wide: bool,
    ) -> Result<u64, Leave> {
        let size = word_size(wide);
        let mut esp = stack.esp;
        for (i, word) in words.iter().enumerate() {
            esp = stack.word(i, size);
            let linear = stack.incoming.segment.base.wrapping_add(esp) & self.linear_mask;
            let operand = self.prepare_linear(linear, size, Access::Write, stack.by())?;
            self.write_operand(&operand, &word.to_le_bytes()[..size])?;
        }
        Ok(esp)
    }

    /// Enters the code of a gate with the stack that holds its frame.
    pub(crate) fn enter_at(
        &mut self,
        target: &Incoming<'m>,
        stack: &Stack<'m>,
        esp: u64,
        offset: u64,
    ) -> Step {
        self.mark_accessed(&stack.incoming)?;
        self.mark_accessed(target)?;
        if stack.is_new {
            self.commit_segment(SegReg::Ss, stack.incoming.segment);
        }
        self.commit_segment(SegReg::Cs, target.segment);
        self.set_stack_offset(esp);
        self.cpu.rip = offset;
        Ok(())
    }
}

/// The bytes of a word of a 32-bit or 16-bit frame.
pub(crate) fn word_size(wide: bool) -> usize {
    if wide { 4 } else { 2 }
}
