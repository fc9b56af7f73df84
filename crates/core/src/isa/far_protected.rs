//! Far transfers in protected mode: JMP, CALL, RET, IRET through code segments, call gates, task
//! gates and TSSs. `far.rs` holds their rows and their real-mode halves.

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{AC, ID, IF, IOPL, NT, RF, VIF, VIP, VM};
use crate::arch::vector::{GP, NP};
use crate::bus::Access;
use crate::event::protected::word_size;
use crate::event::task::Switch;
use crate::fault::Fault;
use crate::isa::{far_long, virtual_8086};
use crate::machine::{Leave, Machine, Step};
use crate::mem::descriptor::Incoming;
use crate::width::Width;

const STACK: u8 = SegReg::Ss as u8;

pub(crate) fn fault(vector: u8, selector: u16) -> Leave {
    Leave::Fault(Fault::with_code(vector, selector & !3))
}

/// Where a far JMP or CALL leads.
enum Target<'m> {
    Code {
        target: Incoming<'m>,
        offset: u64,
    },
    /// Through a call gate: the offset is the gate's, and so are the parameters.
    Gate {
        target: Incoming<'m>,
        offset: u64,
        is_wide: bool,
        parameters: u8,
    },
    /// To the task of this TSS.
    Task(u16),
}

/// Resolves the selector of a far JMP or CALL (SDM vol. 2A, "JMP" and "CALL"), with every check
/// that does not depend on the stack.
fn resolve<'m>(
    m: &mut Machine<'_, 'm>,
    selector: u16,
    offset: u64,
    is_call: bool,
) -> Result<Target<'m>, Leave> {
    if selector & !3 == 0 {
        return Err(Fault::GP.into());
    }
    let cpl = m.cpu.cpl();
    let rpl = (selector & 3) as u8;
    let (linear, raw) = m.read_descriptor(selector)?;
    let attributes = Attributes::of_descriptor(raw);
    if attributes.is_code() {
        let dpl = attributes.dpl();
        let allowed =
            if attributes.is_conforming() { dpl <= cpl } else { rpl <= cpl && dpl == cpl };
        if !allowed {
            return Err(fault(GP, selector));
        }
        if !attributes.is_present() {
            return Err(fault(NP, selector));
        }
        let target = m.incoming_code(selector, (linear, raw), cpl)?;
        return Ok(Target::Code { target, offset });
    }
    // Call gates of both sizes, available TSSs of both sizes, task gates.
    if !matches!(attributes.0 & 0x1F, 4 | 12 | 1 | 9 | 5) || attributes.dpl() < cpl.max(rpl) {
        return Err(fault(GP, selector));
    }
    if !attributes.is_present() {
        return Err(fault(NP, selector));
    }
    match attributes.segment_type() {
        4 | 12 => resolve_gate(m, raw, is_call),
        5 => Ok(Target::Task((raw >> 16) as u16)),
        _ => Ok(Target::Task(selector)),
    }
}

/// The code segment that a call gate leads to.
fn resolve_gate<'m>(
    m: &mut Machine<'_, 'm>,
    gate: u64,
    is_call: bool,
) -> Result<Target<'m>, Leave> {
    let cpl = m.cpu.cpl();
    let code = (gate >> 16) as u16;
    if code & !3 == 0 {
        return Err(Fault::GP.into());
    }
    let (linear, raw) = m.read_descriptor(code)?;
    let target = Attributes::of_descriptor(raw);
    let conforming = target.is_conforming();
    let dpl = target.dpl();
    // A JMP cannot change the privilege level, a CALL may raise it.
    let allowed = if is_call || conforming { dpl <= cpl } else { dpl == cpl };
    if !target.is_code() || !allowed {
        return Err(fault(GP, code));
    }
    if !target.is_present() {
        return Err(fault(NP, code));
    }
    let is_wide = Attributes::of_descriptor(gate).segment_type() == 12;
    let high = if is_wide { gate >> 48 << 16 } else { 0 };
    Ok(Target::Gate {
        target: m.incoming_code(code, (linear, raw), if conforming { cpl } else { dpl })?,
        offset: gate & 0xFFFF | high,
        is_wide,
        parameters: (gate >> 32 & 31) as u8,
    })
}

fn check_limit(target: &Incoming<'_>, offset: u64) -> Step {
    if offset > u64::from(target.segment.limit) { Err(Fault::GP.into()) } else { Ok(()) }
}

/// Enters a code segment; nothing can fail after the accessed bit.
pub(crate) fn enter<'m>(m: &mut Machine<'_, 'm>, target: &Incoming<'m>, offset: u64) -> Step {
    m.mark_accessed(target)?;
    m.commit_segment(SegReg::Cs, target.segment);
    m.cpu.rip = offset;
    Ok(())
}

/// JMP far.
pub(crate) fn jmp(m: &mut Machine<'_, '_>, selector: u16, offset: u64) -> Step {
    if m.is_long_mode() {
        return far_long::jmp(m, selector, offset);
    }
    let (target, offset) = match resolve(m, selector, offset, false)? {
        Target::Code { target, offset } | Target::Gate { target, offset, .. } => (target, offset),
        Target::Task(tss) => return m.switch_task(tss, Switch::Jump, m.rflags(), None),
    };
    check_limit(&target, offset)?;
    enter(m, &target, offset)
}

/// CALL far. Through a gate the gate's size counts, not the operand's.
pub(crate) fn call<W: Width>(m: &mut Machine<'_, '_>, selector: u16, offset: u64) -> Step {
    if m.is_long_mode() {
        return far_long::call::<W>(m, selector, offset);
    }
    match resolve(m, selector, offset, true)? {
        Target::Code { target, offset } => call_same::<W>(m, &target, offset),
        Target::Task(tss) => m.switch_task(tss, Switch::Call, m.rflags(), None),
        Target::Gate { target, offset, is_wide, parameters } => {
            if target.cpl() < m.cpu.cpl() {
                call_inner(m, &target, offset, is_wide, parameters)
            } else if is_wide {
                call_same::<u32>(m, &target, offset)
            } else {
                call_same::<u16>(m, &target, offset)
            }
        }
    }
}

fn call_same<'m, W: Width>(m: &mut Machine<'_, 'm>, target: &Incoming<'m>, offset: u64) -> Step {
    let width = W::BYTES as i64;
    let at = [m.stack_offset(-width), m.stack_offset(-2 * width)];
    let cs = m.prepare(STACK, at[0], W::BYTES, Access::Write)?;
    let ip = m.prepare(STACK, at[1], W::BYTES, Access::Write)?;
    check_limit(target, offset)?;
    let selector = m.cpu.segment(SegReg::Cs).selector;
    m.write_value(&cs, W::from_u64(u64::from(selector)))?;
    m.write_value(&ip, W::from_u64(m.cpu.rip))?;
    enter(m, target, offset)?;
    m.set_stack_offset(at[1]);
    Ok(())
}

/// A call to an inner level: a new stack, with the old one's pointer and parameters copied.
fn call_inner<'m>(
    m: &mut Machine<'_, 'm>,
    target: &Incoming<'m>,
    offset: u64,
    is_wide: bool,
    parameters: u8,
) -> Step {
    // The frame may lie over the parameters, and its pages may have to be prepared once more after
    // them: it must not be begun twice.
    m.require_careful()?;
    let size = word_size(is_wide);
    let stack = m.inner_stack(target.cpl(), 0)?;
    let count = usize::from(parameters & 31);
    m.prepare_frame(&stack, 4 + count, is_wide, 0)?;
    check_limit(target, offset)?;
    // The last parameter pushed lies lowest. All are prepared before one is read.
    let parameter = |m: &Machine<'_, 'm>, i: usize| m.stack_offset(((count - 1 - i) * size) as i64);
    for i in 0..count {
        let from = parameter(m, i);
        m.prepare(STACK, from, size, Access::Read)?;
    }
    // Four words and at most 31 parameters.
    let mut words = [0u64; 64];
    words[0] = u64::from(m.cpu.segment(SegReg::Ss).selector);
    words[1] = m.cpu.gpr[Reg::Rsp];
    for i in 0..count {
        let from = parameter(m, i);
        let operand = m.prepare(STACK, from, size, Access::Read)?;
        words[2 + i] = m.read_value(&operand)?;
    }
    words[2 + count] = u64::from(m.cpu.segment(SegReg::Cs).selector);
    words[3 + count] = m.cpu.rip;
    let esp = m.write_frame(&stack, &words[..4 + count], is_wide)?;
    m.enter_at(target, &stack, esp, offset)
}

/// The code segment that RET and IRET return to (SDM vol. 2B, "RET").
fn return_target<'m>(m: &mut Machine<'_, 'm>, selector: u16) -> Result<Incoming<'m>, Leave> {
    if selector & !3 == 0 {
        return Err(Fault::GP.into());
    }
    let rpl = (selector & 3) as u8;
    let (linear, raw) = m.read_descriptor(selector)?;
    let attributes = Attributes::of_descriptor(raw);
    let dpl = attributes.dpl();
    let allowed = if attributes.is_conforming() { dpl <= rpl } else { dpl == rpl };
    if !attributes.is_code() || rpl < m.cpu.cpl() || !allowed {
        return Err(fault(GP, selector));
    }
    if !attributes.is_present() {
        return Err(fault(NP, selector));
    }
    m.incoming_code(selector, (linear, raw), rpl)
}

/// Leaves for the target of a RET or IRET whose stack frame has `popped` bytes before the outer
/// SS:ESP, if there is one. `release` is RET's immediate.
fn leave_for<'m, W: Width>(
    m: &mut Machine<'_, 'm>,
    target: &Incoming<'m>,
    offset: u64,
    popped: i64,
    release: i64,
) -> Step {
    let width = W::BYTES as i64;
    if target.cpl() == m.cpu.cpl() {
        check_limit(target, offset)?;
        enter(m, target, offset)?;
        m.set_stack_offset(m.stack_offset(popped + release));
        return Ok(());
    }
    let esp = m.peek::<W>(popped + release)?.to_u64();
    let selector = m.peek_selector::<W>(popped + release + width)?;
    let stack = m.read_stack_segment(selector, target.cpl(), GP, 0)?;
    check_limit(target, offset)?;
    m.mark_accessed(&stack)?;
    enter(m, target, offset)?;
    m.commit_segment(SegReg::Ss, stack.segment);
    m.set_stack_offset(esp.wrapping_add(release as u64));
    drop_inner_segments(m, target.cpl());
    Ok(())
}

/// After a return to an outer level: data segments that it may not use become null, and null
/// selectors lose what they hide (SDM vol. 2B, "RET").
pub(crate) fn drop_inner_segments(m: &mut Machine<'_, '_>, cpl: u8) {
    for reg in [SegReg::Es, SegReg::Ds, SegReg::Fs, SegReg::Gs] {
        let Segment { selector, attributes, .. } = *m.cpu.segment(reg);
        let is_hidden = attributes.dpl() < cpl && !attributes.is_conforming();
        if selector & !3 == 0 || attributes.is_usable() && is_hidden {
            m.commit_segment(reg, Segment::null(0));
        }
    }
}

/// RET far.
pub(crate) fn ret<W: Width>(m: &mut Machine<'_, '_>, release: u64) -> Step {
    if m.is_long_mode() {
        return far_long::ret::<W>(m, release);
    }
    let width = W::BYTES as i64;
    let offset = m.peek::<W>(0)?.to_u64();
    let selector = m.peek_selector::<W>(width)?;
    let target = return_target(m, selector)?;
    leave_for::<W>(m, &target, offset, 2 * width, release as i64)
}

/// IRET, outside virtual-8086 mode.
pub(crate) fn iret<W: Width>(m: &mut Machine<'_, '_>) -> Step {
    if m.is_long_mode() {
        return far_long::iret::<W>(m);
    }
    if m.rflags() & NT != 0 {
        let result = m.return_to_task();
        if matches!(result, Ok(()) | Err(Leave::Late(_))) {
            m.cpu.nmi_blocked = false;
        }
        return result;
    }
    let width = W::BYTES as i64;
    let offset = m.peek::<W>(0)?.to_u64();
    let selector = m.peek_selector::<W>(width)?;
    let image = m.peek::<W>(2 * width)?.to_u64();
    let cpl = m.cpu.cpl();
    if W::BYTES == 4 && image & VM != 0 && cpl == 0 {
        virtual_8086::enter(m, offset, selector, image)?;
        return_from_interrupt::<W>(m);
        return Ok(());
    }
    let target = return_target(m, selector)?;
    let flags = returned_flags::<W>(m, image, cpl);
    leave_for::<W>(m, &target, offset, 3 * width, 0)?;
    m.set_rflags(flags);
    return_from_interrupt::<W>(m);
    Ok(())
}

/// What every IRET ends with.
fn return_from_interrupt<W: Width>(m: &mut Machine<'_, '_>) {
    m.keep_rf = W::BYTES != 2;
    m.cpu.nmi_blocked = false;
    m.epoch_stale = true;
}

/// EFLAGS after IRET (SDM vol. 2A, "IRET": RETURN-TO-SAME-PRIVILEGE-LEVEL).
pub(crate) fn returned_flags<W: Width>(m: &Machine<'_, '_>, image: u64, cpl: u8) -> u64 {
    let old = m.rflags();
    let iopl = (old >> 12 & 3) as u8;
    let mut keep = VM | VIF | VIP | IOPL | IF;
    if cpl <= iopl {
        keep &= !IF;
    }
    if cpl == 0 {
        keep &= !(IOPL | VIF | VIP);
    }
    if W::BYTES == 2 {
        keep |= RF | AC | ID | VIF | VIP;
    }
    m.profile.canonical_flags(old & keep | image & !keep)
}
