//! Hints and the like: NOP and the reserved NOPs, PAUSE and the waits, fences, cache lines,
//! UD0 UD1 UD2.

use core::sync::atomic::{Ordering, fence};

use crate::arch::control::CR4_TSD;
use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::arch::rflags::ARITH;
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand::{Ev, Gv, Mb, Ra, Rd};
use crate::isa::row::{Modes, Prefix, Row, one, two};
use crate::machine::{Machine, Step};
use crate::op::Op;
use crate::profile::{Generation, Vendor};
use crate::stop::Intercepted;

/// The reserved NOPs came with the Pentium Pro.
const MODERN: Generation = Generation::Modern;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // With REX.B it is XCHG R8 for AMD alone (seen on Zen 4 and on Raptor Cove).
    one("PAUSE", 0x90, &[]).only(Vendor::Amd).prefix(Prefix::F3WithoutB).handler(pause),
    one("PAUSE", 0x90, &[]).only(Vendor::Intel).prefix(Prefix::F3).handler(pause),
    // Waits that another processor's store or a time ends.
    two("UMONITOR", 0xAE, &[Ra])
        .register()
        .digit(6)
        .prefix(Prefix::F3)
        .needs(Features::WAITPKG)
        .handler(umonitor),
    two("UMWAIT", 0xAE, &[Rd])
        .register()
        .digit(6)
        .prefix(Prefix::F2)
        .needs(Features::WAITPKG)
        .changes(ARITH)
        .handler(wait_for_time),
    two("TPAUSE", 0xAE, &[Rd])
        .register()
        .digit(6)
        .prefix(Prefix::P66)
        .needs(Features::WAITPKG)
        .changes(ARITH)
        .handler(wait_for_time),
    exact("MONITOR", 0xC8).prefix(Prefix::None).needs(Features::MONITOR).handler(monitor),
    exact("MWAIT", 0xC9).prefix(Prefix::None).needs(Features::MONITOR).handler(mwait),
    exact("MONITORX", 0xFA).prefix(Prefix::None).needs(Features::MONITORX).handler(monitorx),
    exact("MWAITX", 0xFB).prefix(Prefix::None).needs(Features::MONITORX).handler(mwaitx),
    // Fences: ModRM.rm means nothing.
    barrier("LFENCE", 5, Features::SSE2),
    barrier("MFENCE", 6, Features::SSE2),
    barrier("SFENCE", 7, Features::SSE),
    // Cache lines.
    line("CLFLUSH", 7, Prefix::None, Features::CLFSH),
    line("CLFLUSHOPT", 7, Prefix::P66, Features::CLFLUSHOPT),
    line("CLWB", 6, Prefix::P66, Features::CLWB),
    exact("CLZERO", 0xFC).needs(Features::CLZERO).handler(clzero),
    // #UD by definition.
    two("UD2", 0x0B, &[]).handler(undefined).ends_block(),
    // Zen takes no ModRM byte for these.
    two("UD1", 0xB9, &[Gv, Ev]).only(Vendor::Intel).handler(undefined).ends_block(),
    two("UD0", 0xFF, &[Gv, Ev]).only(Vendor::Intel).handler(undefined).ends_block(),
    two("UD1", 0xB9, &[]).only(Vendor::Amd).handler(undefined).ends_block(),
    two("UD0", 0xFF, &[]).only(Vendor::Amd).handler(undefined).ends_block(),
    // Prefetches.
    prefetch("PREFETCH", 0x0D, 0),
    prefetch("PREFETCHW", 0x0D, 1),
    prefetch("PREFETCHWT1", 0x0D, 2),
    prefetch("PREFETCHNTA", 0x18, 0),
    prefetch("PREFETCHT0", 0x18, 1),
    prefetch("PREFETCHT1", 0x18, 2),
    prefetch("PREFETCHT2", 0x18, 3),
    prefetch("PREFETCHIT1", 0x18, 6).modes(Modes::Only64).needs(Features::PREFETCHI),
    prefetch("PREFETCHIT0", 0x18, 7).modes(Modes::Only64).needs(Features::PREFETCHI),
    prefetch("CLDEMOTE", 0x1C, 0).prefix(Prefix::None).needs(Features::CLDEMOTE),
    two("ENDBR64", 0x1E, &[]).modrm(0xFA).prefix(Prefix::F3).since(MODERN).handler(nop),
    two("ENDBR32", 0x1E, &[]).modrm(0xFB).prefix(Prefix::F3).since(MODERN).handler(nop),
    // What no other family takes of 0F 0D and 0F 18 to 1F: MPX and shadow stacks refine these, and
    // are NOPs where they do not exist.
    two("NOP", 0x0D, &[Ev]).since(MODERN).only(Vendor::Intel).handler(nop),
    // APM vol. 3, "PREFETCHlevel": a register is #UD.
    two("NOP", 0x0D, &[Ev]).memory().since(MODERN).only(Vendor::Amd).handler(nop),
    two("NOP", 0x18, &[Ev]).span(8).since(MODERN).handler(nop),
];

/// A row of 0F 01 whose ModRM byte is opcode.
const fn exact(name: &'static str, modrm: u8) -> Row {
    two(name, 0x01, &[]).modrm(modrm)
}

const fn barrier(name: &'static str, digit: u8, feature: Features) -> Row {
    two(name, 0xAE, &[])
        .register()
        .digit(digit)
        .prefix(Prefix::None)
        .needs(feature)
        .handler(order_memory)
}

const fn line(name: &'static str, digit: u8, prefix: Prefix, feature: Features) -> Row {
    two(name, 0xAE, &[Mb]).digit(digit).prefix(prefix).needs(feature).handler(check_line)
}

const fn prefetch(name: &'static str, opcode: u8, digit: u8) -> Row {
    two(name, opcode, &[Mb]).digit(digit).since(MODERN).handler(nop)
}

fn nop(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    Ok(())
}

fn undefined(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    Err(Fault::UD.into())
}

fn pause(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.intercept(Intercepted::Pause)
}

/// Guest memory is shared with other processors, and the host reorders stores with later loads
/// as the guest would have done.
fn order_memory(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    fence(Ordering::SeqCst);
    Ok(())
}

/// CLFLUSH and its kin: the line is translated and checked as a load of one byte would be, and
/// nothing is accessed. SDM vol. 2A, "CLFLUSH": a segment that can only be executed will do.
fn check_line(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let linear = m.check_segment(op.seg, m.offset(op), 1, Access::Execute)?;
    let by = m.program();
    m.prepare_linear(linear, 1, Access::Read, by)?;
    Ok(())
}

/// CLZERO: the aligned 64 bytes around rAX.
fn clzero(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let offset = m.cpu.gpr[Reg::Rax] & (u64::MAX >> op.address_shift) & !63;
    let operand = m.prepare(op.seg, offset, 64, Access::Write)?;
    m.write_operand(&operand, &[0; 64])
}

/// UMONITOR: checks the address; nothing is watched, since every wait ends at once.
fn umonitor(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let offset = m.cpu.gpr.slot(op.rm) & (u64::MAX >> op.address_shift);
    m.prepare(op.seg, offset, 1, Access::Read)?;
    Ok(())
}

/// MONITOR and MWAIT are #UD, not #GP, above level 0 (SDM vol. 2B, "MONITOR").
fn require_supervisor(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cpl() > 0 { Err(Fault::UD.into()) } else { Ok(()) }
}

fn monitor(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_supervisor(m)?;
    monitorx(m, op)
}

/// MONITORX, and MONITOR where it is allowed: checks the address in rAX. There are no extensions in
/// ECX, and the hints in EDX mean nothing.
fn monitorx(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_extensions(m, 0)?;
    let offset = m.cpu.gpr[Reg::Rax] & (u64::MAX >> op.address_shift);
    m.prepare(op.seg, offset, 1, Access::Read)?;
    Ok(())
}

/// #GP for bits of ECX that are not among these.
fn require_extensions(m: &Machine<'_, '_>, known: u32) -> Step {
    if m.cpu.gpr[Reg::Rcx] as u32 & !known != 0 { Err(Fault::GP.into()) } else { Ok(()) }
}

/// MWAIT may end for any reason, and ends at once. Bit 0: interrupts end it also where IF is clear.
fn mwait(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_supervisor(m)?;
    require_extensions(m, 1)
}

/// MWAITX: bit 1 besides, a time in EBX that ends it (APM vol. 3, "MWAITX").
fn mwaitx(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_extensions(m, 3)
}

/// UMWAIT and TPAUSE may wake for any reason, and wake at once. CF would say that the operating
/// system's limit expired.
fn wait_for_time(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let denied = m.cpu.cr4 & CR4_TSD != 0 && m.cpu.cpl() > 0;
    if denied || m.cpu.gpr.slot(op.rm) as u32 > 1 {
        return Err(Fault::GP.into());
    }
    m.flags = m.flags.with(ARITH, 0);
    Ok(())
}
