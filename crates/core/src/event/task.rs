//! Task switches: through a TSS or a task gate by JMP, CALL and events, and back by IRET (SDM
//! vol. 3A, "Task Switching").
//!
//! Everything that can go wrong in the old task is checked and every page of both TSSs prepared
//! before anything is written. What goes wrong afterwards, in loading the new task's segments, is a
//! fault of the new task: [`Leave::Late`].

use crate::arch::control::{CR0_TS, DR6_BT};
use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::SegReg;
use crate::arch::rflags::{NT, VM};
use crate::arch::vector;
use crate::bus::Access;
use crate::fault::Fault;
use crate::flags::Flags;
use crate::machine::{Leave, Machine, Step};
use crate::mem::access::Operand;
use crate::mem::descriptor::Incoming;
use crate::mem::walk::By;

/// What asks for a task switch. A nested task remembers the old one, and returns to it by IRET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// JMP: the old task is left for good.
    Jump,
    /// CALL: nested.
    Call,
    /// IRET out of a nested task.
    Return,
    /// Nested, with bit 0 of the error codes.
    Event { ext: u16 },
}

impl Switch {
    fn is_nested(self) -> bool {
        matches!(self, Switch::Call | Switch::Event { .. })
    }

    fn ext(self) -> u16 {
        if let Switch::Event { ext } = self { ext } else { 0 }
    }

    /// The exception for a task that it must not lead to.
    fn bad_task(self) -> u8 {
        if self == Switch::Return { vector::TS } else { vector::GP }
    }
}

/// The busy bit of a TSS descriptor's type, and the bit that makes it a 32-bit one.
const BUSY: u32 = 2;
const WIDE: u32 = 8;
/// The debug trap bit of a 32-bit TSS.
const TRAP: usize = 0x64;
/// DR7: the local enables, which a task switch clears, and LE.
const DR7_LOCAL: u64 = 0x155;

/// The last byte that a TSS must have.
fn last_byte(attributes: Attributes) -> u32 {
    if attributes.0 & WIDE != 0 { 0x67 } else { 0x2B }
}

/// What of a TSS is written when a task is left: from where on.
fn saved_from(attributes: Attributes) -> u64 {
    if attributes.0 & WIDE != 0 { 0x20 } else { 0x0E }
}

/// The registers in a TSS.
struct Registers {
    eip: u32,
    flags: u32,
    gpr: [u32; 8],
    /// ES, CS, SS, DS, FS, GS.
    selectors: [u16; 6],
}

impl Registers {
    const LEN: usize = 64;

    /// As a 32-bit TSS keeps them, or a 16-bit one: bytes, and how many.
    fn bytes(&self, is_wide: bool) -> ([u8; Self::LEN], usize) {
        let selectors = self.selectors.iter().map(|selector| u32::from(*selector));
        let count = if is_wide { 16 } else { 14 };
        let words = [self.eip, self.flags].into_iter().chain(self.gpr).chain(selectors);
        let mut bytes = [0; Self::LEN];
        let size = if is_wide { 4 } else { 2 };
        for (place, word) in bytes.chunks_exact_mut(size).zip(words.take(count)) {
            place.copy_from_slice(&word.to_le_bytes()[..size]);
        }
        (bytes, count * size)
    }

    fn of_bytes(bytes: &[u8; Self::LEN], is_wide: bool) -> Registers {
        let size = if is_wide { 4 } else { 2 };
        let mut words = bytes
            .chunks_exact(size)
            .map(|chunk| chunk.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte)));
        let mut next = || words.next().unwrap_or(0);
        let (eip, flags) = (next(), next());
        let gpr = core::array::from_fn(|_| next());
        let mut selectors = core::array::from_fn(|_| next() as u16);
        if !is_wide {
            // A 16-bit TSS has neither FS nor GS.
            (selectors[4], selectors[5]) = (0, 0);
        }
        Registers { eip, flags, gpr, selectors }
    }
}

/// A task that is about to be entered.
struct Task<'m> {
    tr: Segment,
    /// The byte of its descriptor that has the busy bit.
    busy: Operand<'m>,
    /// The whole TSS.
    tss: Operand<'m>,
}

impl<'m> Machine<'_, 'm> {
    /// Switches to the task of `selector`. `flags` are those the old task is left with, and
    /// `error_code` is pushed in the new one.
    pub(crate) fn switch_task(
        &mut self,
        selector: u16,
        switch: Switch,
        flags: u64,
        error_code: Option<u16>,
    ) -> Step {
        self.require_careful()?;
        self.settle_flags();
        let before = self.cpu.clone();
        let result = self.switch_in_place(selector, switch, flags, error_code);
        if matches!(result, Ok(()) | Err(Leave::Fault(_) | Leave::Late(_))) {
            if self.is_paged() && !matches!(result, Err(Leave::Fault(_))) {
                self.bus.invalidate(None);
            }
            return result;
        }
        // It will be done again from its start, with what it has read and written on record.
        *self.cpu = before;
        self.flags = Flags::from_rflags(self.cpu.rflags);
        self.flush_translations();
        self.refresh_mode();
        result
    }

    fn switch_in_place(
        &mut self,
        selector: u16,
        switch: Switch,
        flags: u64,
        error_code: Option<u16>,
    ) -> Step {
        let task = self.find_task(selector, switch)?;
        let old = self.cpu.tr;
        let bad_old = Fault::with_code(vector::TS, old.selector & !3 | switch.ext());
        if !old.attributes.is_usable() || old.limit < last_byte(old.attributes) {
            return Err(bad_old.into());
        }
        let is_wide = old.attributes.0 & WIDE != 0;
        let (saved, len) = self.task_registers(flags, switch).bytes(is_wide);
        let place = old.base.wrapping_add(saved_from(old.attributes));
        let place =
            self.prepare_linear(place & self.linear_mask, len, Access::Write, By::Tables)?;
        let link = if switch.is_nested() {
            Some(self.prepare_linear(task.tr.base, 2, Access::Write, By::Tables)?)
        } else {
            let own = self.descriptor_address(old.selector).ok_or(Leave::Fault(bad_old))?;
            let own = self.prepare_access_byte(own)?;
            self.update_locked(&own, &mut |byte| byte & !u64::from(BUSY))?;
            None
        };
        self.write_operand(&place, saved.get(..len).unwrap_or_default())?;
        if let Some(link) = &link {
            self.write_operand(link, &old.selector.to_le_bytes())?;
        }
        if switch != Switch::Return {
            self.update_locked(&task.busy, &mut |byte| byte | u64::from(BUSY))?;
        }
        let mut tss = [0; 0x68];
        let size = last_byte(task.tr.attributes) as usize + 1;
        self.read_operand(&task.tss, tss.get_mut(..size).unwrap_or_default())?;
        self.enter_task(&task, &tss, switch, error_code).map_err(|leave| match leave {
            Leave::Fault(fault) => Leave::Late(fault),
            leave => leave,
        })
    }

    /// The TSS that a selector names, with the checks that the old task makes of it.
    fn find_task(&mut self, selector: u16, switch: Switch) -> Result<Task<'m>, Leave> {
        let code = selector & !3 | switch.ext();
        let bad = Fault::with_code(switch.bad_task(), code);
        if selector & 4 != 0 {
            return Err(bad.into());
        }
        let (linear, raw) = self.read_descriptor_or(selector, bad)?;
        let mut tr = Segment::of_descriptor(selector, raw);
        let wanted = if switch == Switch::Return { 1 | BUSY } else { 1 };
        let is_system = !tr.attributes.is_code_or_data();
        if !is_system || tr.attributes.0 & 0xF & !WIDE != wanted {
            return Err(bad.into());
        }
        if !tr.attributes.is_present() {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        if tr.limit < last_byte(tr.attributes) {
            return Err(Fault::with_code(vector::TS, code).into());
        }
        tr.attributes.0 |= BUSY;
        let size = last_byte(tr.attributes) as usize + 1;
        let base = tr.base & self.linear_mask;
        let tss = self.prepare_linear(base, size, Access::Read, By::Tables)?;
        let busy = self.prepare_access_byte(linear)?;
        Ok(Task { tr, busy, tss })
    }

    /// The registers of the task that is left.
    fn task_registers(&self, flags: u64, switch: Switch) -> Registers {
        let flags = if switch == Switch::Return { flags & !NT } else { flags };
        Registers {
            eip: self.cpu.rip as u32,
            flags: flags as u32,
            gpr: core::array::from_fn(|i| self.cpu.gpr.slot(i as u8) as u32),
            selectors: self.cpu.seg.map(|segment| segment.selector),
        }
    }

    /// The new task's registers, then its segments. From here on every fault is its own.
    fn enter_task(
        &mut self,
        task: &Task<'m>,
        tss: &[u8; 0x68],
        switch: Switch,
        error_code: Option<u16>,
    ) -> Step {
        let attributes = task.tr.attributes;
        let is_wide = attributes.0 & WIDE != 0;
        let from = saved_from(attributes) as usize;
        let empty = [0; Registers::LEN];
        let bytes = tss.get(from..).and_then(|bytes| bytes.first_chunk()).unwrap_or(&empty);
        let new = Registers::of_bytes(bytes, is_wide);
        let word = |at: usize| tss.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
        let dword = |at| word(at).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let ldt = dword(if is_wide { 0x60 } else { 0x2A }) as u16;
        self.cpu.tr = task.tr;
        self.cpu.cr0 |= CR0_TS;
        self.cpu.dr7 &= !DR7_LOCAL;
        for (number, value) in new.gpr.iter().enumerate() {
            *self.cpu.gpr.slot_mut(number as u8) = u64::from(*value);
        }
        self.cpu.rip = u64::from(new.eip);
        let nested = if switch.is_nested() { NT } else { 0 };
        let flags = u64::from(new.flags) | nested;
        self.cpu.ldtr = Segment::null(ldt);
        let level = if flags & VM != 0 { 3 } else { (new.selectors[1] & 3) as u8 };
        for (segment, selector) in self.cpu.seg.iter_mut().zip(new.selectors) {
            *segment = Segment::null(selector);
            segment.attributes.0 |= u32::from(level) << 5;
        }
        self.set_rflags(self.profile.canonical_flags(flags));
        self.refresh_mode();
        self.epoch_stale = true;
        self.keep_rf = true;
        if is_wide && self.is_paged() {
            self.set_cr3(u64::from(dword(0x1C)))?;
        }
        self.load_task_ldt(ldt, switch.ext())?;
        if flags & VM != 0 {
            self.cpu.seg = new.selectors.map(Segment::virtual_8086);
            self.refresh_mode();
        } else {
            self.load_task_segments(&new.selectors, level, switch.ext())?;
        }
        if self.cpu.rip > u64::from(self.cpu.segment(SegReg::Cs).limit) {
            return Err(Fault::GP.into());
        }
        self.push_error_code(error_code, is_wide)?;
        if is_wide && dword(TRAP) & 1 != 0 {
            self.cpu.pending.debug |= DR6_BT as u32;
        }
        Ok(())
    }

    fn load_task_ldt(&mut self, selector: u16, ext: u16) -> Step {
        if selector & !3 == 0 {
            return Ok(());
        }
        let bad = Fault::with_code(vector::TS, selector & !3 | ext);
        if selector & 4 != 0 {
            return Err(bad.into());
        }
        let (_, raw) = self.read_descriptor_or(selector, bad)?;
        let segment = Segment::of_descriptor(selector, raw);
        let attributes = segment.attributes;
        let is_ldt = !attributes.is_code_or_data() && attributes.segment_type() == 2;
        if !is_ldt || !attributes.is_present() {
            return Err(bad.into());
        }
        self.cpu.ldtr = segment;
        Ok(())
    }

    /// CS, SS, then the data segments, each checked as the manual's table of a task switch says.
    fn load_task_segments(&mut self, selectors: &[u16; 6], level: u8, ext: u16) -> Step {
        let [es, cs, ss, ds, fs, gs] = *selectors;
        let code = self.task_code(cs, level, ext)?;
        self.mark_accessed(&code)?;
        self.commit_segment(SegReg::Cs, code.segment);
        let stack = self.read_stack_segment(ss, level, vector::TS, ext)?;
        self.mark_accessed(&stack)?;
        self.commit_segment(SegReg::Ss, stack.segment);
        let data = [(SegReg::Ds, ds), (SegReg::Es, es), (SegReg::Fs, fs), (SegReg::Gs, gs)];
        for (reg, selector) in data {
            let incoming = self.read_data_segment(reg, selector).map_err(|leave| match leave {
                Leave::Fault(Fault { vector: vector::GP, error_code, .. }) => {
                    Leave::Fault(Fault::with_code(vector::TS, error_code | ext))
                }
                leave => leave,
            })?;
            self.mark_accessed(&incoming)?;
            self.commit_segment(reg, incoming.segment);
        }
        Ok(())
    }

    fn task_code(&mut self, selector: u16, level: u8, ext: u16) -> Result<Incoming<'m>, Leave> {
        let code = selector & !3 | ext;
        let bad = Fault::with_code(vector::TS, code);
        if selector & !3 == 0 {
            return Err(bad.into());
        }
        let (linear, raw) = self.read_descriptor_or(selector, bad)?;
        let attributes = Attributes::of_descriptor(raw);
        let dpl = attributes.dpl();
        let fits = if attributes.is_conforming() { dpl <= level } else { dpl == level };
        if !attributes.is_code() || !fits {
            return Err(bad.into());
        }
        if !attributes.is_present() {
            return Err(Fault::with_code(vector::NP, code).into());
        }
        self.incoming_code(selector, (linear, raw), level)
    }

    /// The error code of an exception lies on the new task's stack.
    fn push_error_code(&mut self, error_code: Option<u16>, is_wide: bool) -> Step {
        match error_code {
            Some(code) if is_wide => self.push(u32::from(code)),
            Some(code) => self.push(code),
            None => Ok(()),
        }
    }

    /// IRET with NT: back to the task that the TSS remembers.
    pub(crate) fn return_to_task(&mut self) -> Step {
        let mut link = [0; 2];
        self.read_linear(self.cpu.tr.base, &mut link)?;
        self.switch_task(u16::from_le_bytes(link), Switch::Return, self.rflags(), None)
    }
}
