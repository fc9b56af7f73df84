//! Instructions of protected mode: LAR LSL VERR VERW ARPL, SLDT STR LLDT LTR. In real and
//! virtual-8086 mode none of them exists.

use crate::arch::control::CR4_UMIP;
use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::rflags::ZF;
use crate::arch::vector::{GP, NP};
use crate::fault::Fault;
use crate::isa::operand::Operand::{Ew, Gv, Gw, Mw, Rv};
use crate::isa::row::{Exec, Modes, Row, by_width, one, two};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, Vendor};
use crate::stop::Intercepted;
use crate::width::Width;

const fn group6(name: &'static str, digit: u8) -> Row {
    protected(two(name, 0x00, &[Ew]).digit(digit))
}

const fn protected(row: Row) -> Row {
    row.modes(Modes::Protected).since(Generation::I80286)
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // The memory form stores 16 bits, the register form the operand size.
    protected(two("SLDT", 0x00, &[Mw]).digit(0)).handler(sldt_m),
    protected(two("SLDT", 0x00, &[Rv]).register().digit(0)).handler(sldt_r),
    protected(two("STR", 0x00, &[Mw]).digit(1)).handler(str_m),
    protected(two("STR", 0x00, &[Rv]).register().digit(1)).handler(str_r),
    group6("LLDT", 2).changes_validity().exec(Exec::Forms(&[lldt_r as Handler, lldt_m as Handler])),
    group6("LTR", 3).changes_validity().exec(Exec::Forms(&[ltr_r as Handler, ltr_m as Handler])),
    group6("VERR", 4)
        .changes(ZF)
        .exec(Exec::Forms(&[verify_r::<false> as Handler, verify_m::<false> as Handler])),
    group6("VERW", 5)
        .changes(ZF)
        .exec(Exec::Forms(&[verify_r::<true> as Handler, verify_m::<true> as Handler])),
    protected(two("LAR", 0x02, &[Gv, Ew]))
        .changes(ZF)
        .exec(Exec::Forms(&[lar_r as Handler, lar_m as Handler])),
    protected(two("LSL", 0x03, &[Gv, Ew]))
        .changes(ZF)
        .exec(Exec::Forms(&[lsl_r as Handler, lsl_m as Handler])),
    one("ARPL", 0x63, &[Ew, Gw])
        .modes(Modes::Protected32)
        .since(Generation::I80286)
        .changes(ZF)
        .exec(Exec::Forms(&[arpl_r as Handler, arpl_m as Handler])),
];

fn fault(vector: u8, selector: u16) -> Leave {
    Leave::Fault(Fault::with_code(vector, selector & !3))
}

fn set_zf(m: &mut Machine<'_, '_>, zf: bool) {
    m.flags = m.flags.with(ZF, if zf { ZF } else { 0 });
}

// ---- SLDT, STR ----

/// CR4.UMIP keeps user code from reading the table registers.
fn require_visible(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr4 & CR4_UMIP != 0 { m.require_cpl(0) } else { Ok(()) }
}

fn store_r(m: &mut Machine<'_, '_>, op: &Op, selector: u16) -> Step {
    fn go<W: Width>(m: &mut Machine<'_, '_>, op: &Op, selector: u16) {
        W::from_u64(u64::from(selector)).write(&mut m.cpu.gpr, op.rm);
    }
    require_visible(m)?;
    match op.width {
        2 => go::<u16>(m, op, selector),
        4 => go::<u32>(m, op, selector),
        _ => go::<u64>(m, op, selector),
    }
    Ok(())
}

fn sldt_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    store_r(m, op, m.cpu.ldtr.selector)
}
fn str_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    store_r(m, op, m.cpu.tr.selector)
}
fn sldt_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_visible(m)?;
    m.store(op, m.cpu.ldtr.selector)
}
fn str_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_visible(m)?;
    m.store(op, m.cpu.tr.selector)
}

// ---- LLDT, LTR ----

fn lldt_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let selector = u16::read(&m.cpu.gpr, op.rm);
    lldt(m, selector)
}

fn lldt_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let selector = m.load::<u16>(op)?;
    lldt(m, selector)
}

fn lldt(m: &mut Machine<'_, '_>, selector: u16) -> Step {
    m.intercept(Intercepted::DescriptorTable)?;
    if selector & !3 == 0 {
        m.cpu.ldtr = Segment::null(selector);
        return Ok(());
    }
    let found = system_descriptor(m, selector, &[2])?;
    m.cpu.ldtr = found.segment;
    Ok(())
}

fn ltr_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let selector = u16::read(&m.cpu.gpr, op.rm);
    ltr(m, selector)
}

fn ltr_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let selector = m.load::<u16>(op)?;
    ltr(m, selector)
}

/// LTR marks the TSS busy in memory, by a locked write.
fn ltr(m: &mut Machine<'_, '_>, selector: u16) -> Step {
    m.intercept(Intercepted::DescriptorTable)?;
    if selector & !3 == 0 {
        return Err(Fault::GP.into());
    }
    let types: &[u32] = if m.is_long_mode() { &[9] } else { &[1, 9] };
    let System { mut segment, linear } = system_descriptor(m, selector, types)?;
    let operand = m.prepare_access_byte(linear)?;
    m.update_locked(&operand, &mut |byte| byte | 2)?;
    segment.attributes.0 |= 2;
    m.cpu.tr = segment;
    Ok(())
}

/// A segment that LLDT or LTR loads, and where its descriptor lies.
struct System {
    segment: Segment,
    linear: u64,
}

/// Do system descriptors have 16 bytes? SDM vol. 2A, "LTR": in 64-bit mode; APM vol. 3, "LTR": in
/// long mode.
fn has_long_descriptors(m: &Machine<'_, '_>) -> bool {
    match m.profile.vendor {
        Vendor::Intel => m.cpu.is_64_bit_code(),
        Vendor::Amd => m.is_long_mode(),
    }
}

/// A system descriptor of one of `types` from the GDT. P is checked before what the second half
/// of a long one has.
fn system_descriptor(
    m: &mut Machine<'_, '_>,
    selector: u16,
    types: &[u32],
) -> Result<System, Leave> {
    if selector & 4 != 0 {
        return Err(fault(GP, selector));
    }
    let (linear, raw) = m.read_descriptor(selector)?;
    let attributes = Attributes::of_descriptor(raw);
    if !types.contains(&(attributes.0 & 0x1F)) {
        return Err(fault(GP, selector));
    }
    if !attributes.is_present() {
        return Err(fault(NP, selector));
    }
    let mut segment = Segment::of_descriptor(selector, raw);
    if has_long_descriptors(m) {
        let high = m.read_descriptor_high(selector, linear)?;
        segment.base |= high << 32;
        if high >> 40 & 0x1F != 0 || !m.is_canonical(segment.base) {
            return Err(fault(GP, selector));
        }
    }
    Ok(System { segment, linear })
}

// ---- VERR, VERW, LAR, LSL ----

/// The descriptor of a selector that may be examined at this privilege level: `None` if it is
/// null, beyond its table, or more privileged (conforming code excepted).
fn visible(m: &mut Machine<'_, '_>, selector: u16) -> Result<Option<u64>, Leave> {
    if selector & !3 == 0 {
        return Ok(None);
    }
    // A #GP from the device that a table lies in is no answer.
    let Some(linear) = m.descriptor_address(selector) else { return Ok(None) };
    let raw = m.descriptor_at(linear)?;
    let attributes = Attributes::of_descriptor(raw);
    let level = m.cpu.cpl().max((selector & 3) as u8);
    Ok((attributes.is_conforming() || level <= attributes.dpl()).then_some(raw))
}

fn verify_r<const WRITE: bool>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = u16::read(&m.cpu.gpr, op.rm);
    verify::<WRITE>(m, selector)
}

fn verify_m<const WRITE: bool>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = m.load::<u16>(op)?;
    verify::<WRITE>(m, selector)
}

fn verify<const WRITE: bool>(m: &mut Machine<'_, '_>, selector: u16) -> Step {
    let usable = visible(m, selector)?.is_some_and(|raw| {
        let attributes = Attributes::of_descriptor(raw);
        let segment = attributes.is_code_or_data();
        let bit1 = attributes.has_write_or_read();
        let code = attributes.is_code();
        segment && if WRITE { !code && bit1 } else { !code || bit1 }
    });
    set_zf(m, usable);
    Ok(())
}

fn lar_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    // Gv,Ew in register form: decode has put the destination into `rm`.
    let selector = u16::read(&m.cpu.gpr, op.reg);
    let found = access_rights(m, selector)?;
    examined(m, op, op.rm, found)
}

fn lar_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = m.load::<u16>(op)?;
    let found = access_rights(m, selector)?;
    examined(m, op, op.reg, found)
}

fn lsl_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = u16::read(&m.cpu.gpr, op.reg);
    let found = limit(m, selector)?;
    examined(m, op, op.rm, found)
}

fn lsl_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = m.load::<u16>(op)?;
    let found = limit(m, selector)?;
    examined(m, op, op.reg, found)
}

/// ZF tells whether there was something to see; the register changes only then.
fn examined(m: &mut Machine<'_, '_>, op: &Op, number: u8, found: Option<u32>) -> Step {
    fn write<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        W::from_u64(op.imm).write(&mut m.cpu.gpr, op.rm);
        Ok(())
    }
    set_zf(m, found.is_some());
    let Some(value) = found else { return Ok(()) };
    let value = Op { imm: u64::from(value), rm: number, ..*op };
    by_width!(write)(m, &value)
}

/// LAR's value: the second word of the descriptor, without base and limit.
fn access_rights(m: &mut Machine<'_, '_>, selector: u16) -> Result<Option<u32>, Leave> {
    let Some(raw) = visible(m, selector)? else { return Ok(None) };
    let attributes = Attributes::of_descriptor(raw);
    let segment = attributes.is_code_or_data();
    let known = match attributes.segment_type() {
        1..=5 => !m.is_long_mode() || attributes.segment_type() == 2,
        9 | 11 | 12 => true,
        _ => false,
    };
    Ok((segment || known).then_some((raw >> 32) as u32 & 0x00FF_FF00))
}

/// LSL's value: the limit in bytes.
fn limit(m: &mut Machine<'_, '_>, selector: u16) -> Result<Option<u32>, Leave> {
    let Some(raw) = visible(m, selector)? else { return Ok(None) };
    let attributes = Attributes::of_descriptor(raw);
    let segment = attributes.is_code_or_data();
    let known = match attributes.segment_type() {
        1 | 3 => !m.is_long_mode(),
        2 | 9 | 11 => true,
        _ => false,
    };
    Ok((segment || known).then_some(Segment::of_descriptor(selector, raw).limit))
}

// ---- ARPL ----

/// Raises the RPL of `a` to that of `b`; tells whether it had to.
fn adjust(a: u16, b: u16) -> (u16, bool) {
    if a & 3 < b & 3 { (a & !3 | b & 3, true) } else { (a, false) }
}

fn arpl_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = u16::read(&m.cpu.gpr, op.reg);
    let (value, raised) = adjust(u16::read(&m.cpu.gpr, op.rm), source);
    value.write(&mut m.cpu.gpr, op.rm);
    set_zf(m, raised);
    Ok(())
}

/// Silicon stores, and asks whether it may, only where the level is raised.
fn arpl_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = u16::read(&m.cpu.gpr, op.reg);
    let (value, raised) = adjust(m.load(op)?, source);
    if raised {
        m.store(op, value)?;
    }
    set_zf(m, raised);
    Ok(())
}
