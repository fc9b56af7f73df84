//! Far transfers in long mode: JMP, CALL, RET, IRET through code segments of 16, 32 and 64 bits
//! and call gates of 16 bytes. `far.rs` holds their rows, `far_protected.rs` the rest of protected
//! mode.

use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::NT;
use crate::arch::vector::{GP, NP};
use crate::bus::Access;
use crate::event::long::long_offset;
use crate::fault::Fault;
use crate::isa::far_protected::{drop_inner_segments, enter, fault, returned_flags};
use crate::machine::{Leave, Machine, Step};
use crate::mem::descriptor::Incoming;
use crate::width::Width;

const STACK: u8 = SegReg::Ss as u8;

/// Where a far JMP or CALL leads.
struct Target<'m> {
    segment: Incoming<'m>,
    offset: u64,
    /// It leads there through a call gate.
    is_gate: bool,
}

/// The exceptions of a code segment that is not fit to be entered: L and D exclude each other,
/// and are looked at before P (SDM vol. 2A, "JMP").
fn require_enterable(selector: u16, attributes: Attributes) -> Step {
    if attributes.is_long() && attributes.is_big() {
        return Err(fault(GP, selector));
    }
    if attributes.is_present() { Ok(()) } else { Err(fault(NP, selector)) }
}

/// The target has to be canonical in 64-bit code, and within the limit in any other.
fn check_target(m: &Machine<'_, '_>, target: &Incoming<'_>, offset: u64) -> Step {
    let Segment { attributes, limit, .. } = target.segment;
    let inside =
        if attributes.is_long() { m.is_canonical(offset) } else { offset <= u64::from(limit) };
    if inside { Ok(()) } else { Err(Fault::GP.into()) }
}

/// Resolves the selector of a far JMP or CALL, with every check that does not depend on the stack.
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
    let dpl = attributes.dpl();
    if attributes.is_code() {
        let allowed =
            if attributes.is_conforming() { dpl <= cpl } else { rpl <= cpl && dpl == cpl };
        if !allowed {
            return Err(fault(GP, selector));
        }
        require_enterable(selector, attributes)?;
        let segment = m.incoming_code(selector, (linear, raw), cpl)?;
        return Ok(Target { segment, offset, is_gate: false });
    }
    // Only call gates are left: there are no tasks.
    if attributes.0 & 0x1F != 12 || dpl < cpl.max(rpl) {
        return Err(fault(GP, selector));
    }
    let high = m.read_descriptor_high(selector, linear)?;
    if high >> 40 & 0x1F != 0 {
        return Err(fault(GP, selector));
    }
    if !attributes.is_present() {
        return Err(fault(NP, selector));
    }
    let gate = u128::from(high) << 64 | u128::from(raw);
    let code = (raw >> 16) as u16;
    let segment = m.long_gate_target(code, cpl, 0)?;
    // A JMP cannot change the privilege level, a CALL may raise it.
    if !is_call && segment.cpl() != cpl {
        return Err(fault(GP, code));
    }
    Ok(Target { segment, offset: long_offset(gate), is_gate: true })
}

/// JMP far.
pub(crate) fn jmp(m: &mut Machine<'_, '_>, selector: u16, offset: u64) -> Step {
    let Target { segment, offset, .. } = resolve(m, selector, offset, false)?;
    check_target(m, &segment, offset)?;
    enter(m, &segment, offset)
}

/// CALL far. Through a gate the frame has 64-bit words.
pub(crate) fn call<W: Width>(m: &mut Machine<'_, '_>, selector: u16, offset: u64) -> Step {
    let Target { segment, offset, is_gate } = resolve(m, selector, offset, true)?;
    if segment.cpl() < m.cpu.cpl() {
        return call_inner(m, &segment, offset);
    }
    if is_gate {
        call_same::<u64>(m, &segment, offset)
    } else {
        call_same::<W>(m, &segment, offset)
    }
}

fn call_same<'m, W: Width>(m: &mut Machine<'_, 'm>, target: &Incoming<'m>, offset: u64) -> Step {
    let width = W::BYTES as i64;
    let at = [m.stack_offset(-width), m.stack_offset(-2 * width)];
    let cs = m.prepare(STACK, at[0], W::BYTES, Access::Write)?;
    let ip = m.prepare(STACK, at[1], W::BYTES, Access::Write)?;
    check_target(m, target, offset)?;
    let selector = m.cpu.segment(SegReg::Cs).selector;
    m.write_value(&cs, W::from_u64(u64::from(selector)))?;
    m.write_value(&ip, W::from_u64(m.cpu.rip))?;
    m.mark_accessed(target)?;
    // In the bits of the old mode.
    m.set_stack_offset(at[1]);
    m.enter_long(target, offset, false);
    Ok(())
}

/// A call to an inner level: a new stack, and no parameters.
fn call_inner<'m>(m: &mut Machine<'_, 'm>, target: &Incoming<'m>, offset: u64) -> Step {
    let top = m.read_long_tss_stack(target.cpl(), 0)?;
    let words = [
        u64::from(m.cpu.segment(SegReg::Ss).selector),
        m.cpu.gpr[Reg::Rsp],
        u64::from(m.cpu.segment(SegReg::Cs).selector),
        m.cpu.rip,
    ];
    let (rsp, frame) = m.prepare_long_frame(top, words.len(), target.cpl(), 0)?;
    check_target(m, target, offset)?;
    m.write_long_frame(&frame, &words)?;
    m.mark_accessed(target)?;
    m.enter_long(target, offset, true);
    m.cpu.gpr[Reg::Rsp] = rsp;
    Ok(())
}

/// The code segment that RET and IRET return to.
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
    require_enterable(selector, attributes)?;
    m.incoming_code(selector, (linear, raw), rpl)
}

/// The stack segment that a return pops. 64-bit code inside level 3 may have none.
fn return_stack<'m>(
    m: &mut Machine<'_, 'm>,
    target: &Incoming<'m>,
    selector: u16,
) -> Result<Incoming<'m>, Leave> {
    let level = target.cpl();
    if selector & !3 == 0 {
        let rpl = (selector & 3) as u8;
        if !target.segment.attributes.is_long() || level == 3 || rpl != level {
            return Err(Fault::GP.into());
        }
        return Ok(Incoming::loaded(Segment::null_stack(level)));
    }
    m.read_stack_segment(selector, level, GP, 0)
}

/// The part of a frame that only some returns pop, `above` bytes above the stack pointer.
fn leave_with_stack<'m, W: Width>(
    m: &mut Machine<'_, 'm>,
    target: &Incoming<'m>,
    offset: u64,
    above: i64,
    release: i64,
) -> Step {
    let rsp = m.peek::<W>(above)?.to_u64();
    let selector = m.peek_selector::<W>(above + W::BYTES as i64)?;
    // The target first, as Zen 3 has it.
    check_target(m, target, offset)?;
    let stack = return_stack(m, target, selector)?;
    let is_outer = target.cpl() > m.cpu.cpl();
    m.mark_accessed(&stack)?;
    m.mark_accessed(target)?;
    m.commit_segment(SegReg::Ss, stack.segment);
    m.enter_long(target, offset, false);
    let rsp = rsp.wrapping_add(release as u64);
    if m.stack_mask == 0xFFFF {
        m.set_stack_offset(rsp);
    } else {
        // Also bits that the stack does not use.
        m.cpu.gpr[Reg::Rsp] = rsp;
    }
    if is_outer {
        drop_inner_segments(m, target.cpl());
    }
    Ok(())
}

/// RET far.
pub(crate) fn ret<W: Width>(m: &mut Machine<'_, '_>, release: u64) -> Step {
    let width = W::BYTES as i64;
    let offset = m.peek::<W>(0)?.to_u64();
    let selector = m.peek_selector::<W>(width)?;
    let target = return_target(m, selector)?;
    let release = release as i64;
    let above = 2 * width + release;
    if target.cpl() > m.cpu.cpl() {
        return leave_with_stack::<W>(m, &target, offset, above, release);
    }
    check_target(m, &target, offset)?;
    m.mark_accessed(&target)?;
    m.enter_long(&target, offset, false);
    // In the bits of the new mode: 64-bit code has no stack of 16 bits (seen on Zen 3).
    m.set_stack_offset(m.stack_offset(above));
    Ok(())
}

/// IRET. In 64-bit code it pops SS and RSP at any level (SDM vol. 2A, "IRET").
pub(crate) fn iret<W: Width>(m: &mut Machine<'_, '_>) -> Step {
    if m.rflags() & NT != 0 {
        return Err(Fault::GP.into());
    }
    let width = W::BYTES as i64;
    let offset = m.peek::<W>(0)?.to_u64();
    let selector = m.peek_selector::<W>(width)?;
    let image = m.peek::<W>(2 * width)?.to_u64();
    let target = return_target(m, selector)?;
    let flags = returned_flags::<W>(m, image, m.cpu.cpl());
    if m.cpu.is_64_bit_code() || target.cpl() > m.cpu.cpl() {
        leave_with_stack::<W>(m, &target, offset, 3 * width, 0)?;
    } else {
        check_target(m, &target, offset)?;
        m.mark_accessed(&target)?;
        m.enter_long(&target, offset, false);
        // In the bits of the new mode, as RETF does.
        m.set_stack_offset(m.stack_offset(3 * width));
    }
    m.keep_rf = W::BYTES != 2;
    m.set_rflags(flags);
    m.cpu.nmi_blocked = false;
    m.epoch_stale = true;
    Ok(())
}
