//! Fast system calls: SYSENTER, SYSEXIT, SYSCALL, SYSRET. They load CS and SS with fixed flat
//! segments and look at no descriptor.

use crate::arch::control::{CR0_PE, EFER_SCE};
use crate::arch::cpuid::Features;
use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{FIXED, IF, RF, VM};
use crate::fault::Fault;
use crate::isa::row::{Modes, Row, two};
use crate::machine::{Machine, Step};
use crate::op::Op;
use crate::profile::Vendor;

/// The rows of this family. SYSCALL needs protected mode even where it does not need 64-bit mode.
pub(crate) const ROWS: &[Row] = &[
    two("SYSENTER", 0x34, &[]).needs(Features::SEP).handler(sysenter).changes_validity(),
    two("SYSEXIT", 0x35, &[]).needs(Features::SEP).handler(sysexit).changes_validity(),
    two("SYSCALL", 0x05, &[])
        .modes(Modes::Protected)
        .needs(Features::SYSCALL)
        .handler(syscall)
        .changes_validity(),
    two("SYSRET", 0x07, &[])
        .modes(Modes::Protected)
        .needs(Features::SYSCALL)
        .handler(sysret)
        .changes_validity(),
];

/// The code that a fast call or return leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Bits32,
    Bits64,
}

impl Code {
    /// 64-bit code if `wide`.
    fn of(wide: bool) -> Code {
        if wide { Code::Bits64 } else { Code::Bits32 }
    }
}

/// A flat code segment of a privilege level.
fn code_segment(selector: u16, level: u8, code: Code) -> Segment {
    let size = if code == Code::Bits64 { Attributes::L } else { Attributes::DB };
    flat(selector, level, 0xB, size)
}

/// A flat stack segment of a privilege level.
fn stack_segment(selector: u16, level: u8) -> Segment {
    flat(selector, level, 0x3, Attributes::DB)
}

fn flat(selector: u16, level: u8, kind: u32, size: u32) -> Segment {
    let attributes = Attributes(0x90 | Attributes::G | kind | size | u32::from(level) << 5);
    Segment { selector: selector & !3 | u16::from(level), base: 0, limit: u32::MAX, attributes }
}

/// Loads SS, then CS, and goes. `rip` has to be legal.
fn go(m: &mut Machine<'_, '_>, cs: Segment, ss: Segment, rip: u64) {
    m.commit_segment(SegReg::Ss, ss);
    m.commit_segment(SegReg::Cs, cs);
    m.cpu.rip = rip;
}

// ---- SYSENTER, SYSEXIT ----

/// Both are #GP in real mode and while IA32_SYSENTER_CS is null. AMD has neither in long mode
/// (APM vol. 3, "SYSENTER").
fn require_sysenter(m: &Machine<'_, '_>) -> Step {
    if m.profile.vendor == Vendor::Amd && m.is_long_mode() {
        return Err(Fault::UD.into());
    }
    if m.cpu.cr0 & CR0_PE == 0 || m.cpu.msr.sysenter_cs & 0xFFFC == 0 {
        return Err(Fault::GP.into());
    }
    Ok(())
}

fn sysenter(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_sysenter(m)?;
    let code = Code::of(m.is_long_mode());
    let mask = if code == Code::Bits64 { u64::MAX } else { 0xFFFF_FFFF };
    let selector = m.cpu.msr.sysenter_cs as u16;
    let (rip, rsp) = (m.cpu.msr.sysenter_eip & mask, m.cpu.msr.sysenter_esp & mask);
    m.set_rflags(m.rflags() & !(VM | IF | RF));
    let ss = stack_segment(selector.wrapping_add(8), 0);
    go(m, code_segment(selector, 0, code), ss, rip);
    m.cpu.gpr[Reg::Rsp] = rsp;
    Ok(())
}

/// SYSEXIT goes to ECX and EDX, with REX.W to RCX and RDX in 64-bit code.
///
/// The level is looked at first: at level 3 of long mode Zen 3 raises #GP, not #UD.
fn sysexit(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    require_sysenter(m)?;
    let code = Code::of(op.width == 8);
    let (mask, distance) = match code {
        Code::Bits64 => (u64::MAX, 32),
        Code::Bits32 => (0xFFFF_FFFF, 16),
    };
    let (rip, rsp) = (m.cpu.gpr[Reg::Rdx] & mask, m.cpu.gpr[Reg::Rcx] & mask);
    if !m.is_canonical(rip) || !m.is_canonical(rsp) {
        return Err(Fault::GP.into());
    }
    let selector = (m.cpu.msr.sysenter_cs as u16).wrapping_add(distance);
    let ss = stack_segment(selector.wrapping_add(8), 3);
    go(m, code_segment(selector, 3, code), ss, rip);
    m.cpu.gpr[Reg::Rsp] = rsp;
    Ok(())
}

// ---- SYSCALL, SYSRET ----

/// Intel has SYSCALL in 64-bit code alone (SDM vol. 2B, "SYSCALL"), AMD in all of protected mode.
fn require_syscall(m: &Machine<'_, '_>) -> Step {
    let is_elsewhere = m.profile.vendor == Vendor::Intel && !m.cpu.is_64_bit_code();
    if m.cpu.msr.efer & EFER_SCE == 0 || is_elsewhere {
        return Err(Fault::UD.into());
    }
    Ok(())
}

fn syscall(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_syscall(m)?;
    let star = m.cpu.msr.star;
    let selector = (star >> 32) as u16;
    let old = m.rflags() & !RF;
    let code = Code::of(m.is_long_mode());
    let (rip, flags) = if code == Code::Bits64 {
        let target = if m.cpu.is_64_bit_code() { m.cpu.msr.lstar } else { m.cpu.msr.cstar };
        m.cpu.gpr[Reg::R11] = old;
        (target, old & !m.cpu.msr.fmask | FIXED)
    } else {
        (star & 0xFFFF_FFFF, old & !(VM | IF))
    };
    m.cpu.gpr[Reg::Rcx] = m.cpu.rip;
    m.set_rflags(flags);
    let ss = stack_segment(selector.wrapping_add(8), 0);
    go(m, code_segment(selector, 0, code), ss, rip);
    Ok(())
}

/// The flags that SYSRET takes from R11.
const RETURNED: u64 = 0x3C_7FD7;

fn sysret(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_syscall(m)?;
    m.require_cpl(0)?;
    let code = Code::of(op.width == 8);
    let rip = match code {
        Code::Bits64 => m.cpu.gpr[Reg::Rcx],
        Code::Bits32 => m.cpu.gpr[Reg::Rcx] & 0xFFFF_FFFF,
    };
    let intel = m.profile.vendor == Vendor::Intel;
    // Intel checks before the level changes; AMD's fetch faults at level 3.
    if intel && !m.is_canonical(rip) {
        return Err(Fault::GP.into());
    }
    let base = (m.cpu.msr.star >> 48) as u16;
    let cs = base.wrapping_add(if code == Code::Bits64 { 16 } else { 0 });
    let flags = if m.is_long_mode() {
        m.cpu.gpr[Reg::R11] & RETURNED | FIXED
    } else {
        m.rflags() & !VM | IF
    };
    let ss = stack_segment(base.wrapping_add(8), 3);
    let ss = if intel { ss } else { kept_stack(m, ss.selector) };
    m.set_rflags(flags);
    go(m, code_segment(cs, 3, code), ss, rip);
    Ok(())
}

/// AMD's SYSRET loads the selector of SS and the level, and keeps the rest (APM vol. 3,
/// "SYSRET").
fn kept_stack(m: &Machine<'_, '_>, selector: u16) -> Segment {
    let old = *m.cpu.segment(SegReg::Ss);
    let attributes = Attributes(old.attributes.0 | 3 << 5);
    Segment { selector, attributes, ..old }
}
