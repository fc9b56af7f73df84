//! The processor itself: HLT, CPUID, time, randomness, extended state, caches, calls of the
//! monitor.

use crate::arch::control::{CR4_OSXSAVE, CR4_PCE, CR4_PKE, CR4_TSD};
use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::arch::rflags::{AC, ARITH, CF};
use crate::fault::Fault;
use crate::isa::operand::Operand::{Ev, Ey, Rd};
use crate::isa::row::{Exec, Prefix, Row, Size64, by_width, one, two};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::stop::{Intercepted, UnimplementedReason};
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("HLT", 0xF4, &[]).handler(hlt).ends_block(),
    two("CPUID", 0xA2, &[]).since(Generation::Modern).handler(cpuid).serialises(),
    exact("SERIALIZE", 0xE8)
        .prefix(Prefix::None)
        .needs(Features::SERIALIZE)
        .handler(serialize)
        .serialises(),
    // Time and counters.
    two("RDTSC", 0x31, &[]).needs(Features::TSC).handler(rdtsc).ends_block(),
    exact("RDTSCP", 0xF9).needs(Features::RDTSCP).handler(rdtscp).ends_block(),
    two("RDPMC", 0x33, &[]).since(Generation::Modern).handler(rdpmc).ends_block(),
    exact("RDPRU", 0xFD).prefix(Prefix::None).needs(Features::RDPRU).handler(rdpru).ends_block(),
    two("RDPID", 0xC7, &[Rd])
        .register()
        .digit(7)
        .prefix(Prefix::F3)
        .size64(Size64::Force64)
        .needs(Features::RDPID)
        .handler(rdpid),
    // Randomness.
    two("RDRAND", 0xC7, &[Ev])
        .register()
        .digit(6)
        .prefix(Prefix::NotRepeat)
        .needs(Features::RDRAND)
        .arithmetic()
        .ends_block()
        .handler(random),
    two("RDSEED", 0xC7, &[Ev])
        .register()
        .digit(7)
        .prefix(Prefix::NotRepeat)
        .needs(Features::RDSEED)
        .arithmetic()
        .ends_block()
        .handler(random),
    // Extended state, keys, access to user pages.
    exact("XGETBV", 0xD0).prefix(Prefix::None).needs(Features::XSAVE).handler(xgetbv),
    exact("XSETBV", 0xD1)
        .prefix(Prefix::None)
        .needs(Features::XSAVE)
        .handler(xsetbv)
        .changes_validity(),
    exact("RDPKRU", 0xEE).prefix(Prefix::None).needs(Features::PKU).handler(rdpkru),
    exact("WRPKRU", 0xEF).prefix(Prefix::None).needs(Features::PKU).handler(wrpkru),
    exact("CLAC", 0xCA).prefix(Prefix::None).needs(Features::SMAP).handler(clac),
    exact("STAC", 0xCB).prefix(Prefix::None).needs(Features::SMAP).handler(stac),
    // Both vendors' calls, whatever the profile's: a guest may have been built for the other, and
    // its monitor decides.
    exact("VMCALL", 0xC1).prefix(Prefix::None).since(Generation::Modern).handler(hypercall),
    exact("VMMCALL", 0xD9).since(Generation::Modern).handler(hypercall),
    // Caches.
    two("WBNOINVD", 0x09, &[])
        .prefix(Prefix::F3)
        .needs(Features::WBNOINVD)
        .handler(wbinvd)
        .serialises(),
    two("WBINVD", 0x09, &[]).since(Generation::I80486).handler(wbinvd).serialises(),
    two("INVD", 0x08, &[]).since(Generation::I80486).handler(invd).serialises(),
    // Trace.
    two("PTWRITE", 0xAE, &[Ey])
        .digit(4)
        .prefix(Prefix::OnlyF3)
        .needs(Features::PTWRITE)
        .exec(Exec::Forms(&[ptwrite_r as Handler, ptwrite_m as Handler])),
    two("RSM", 0xAA, &[]).since(Generation::Modern).handler(rsm).changes_validity(),
    // LOADALL: 102 bytes at 800h on a 286, at ES:EDI on a 386.
    two("LOADALL", 0x05, &[])
        .since(Generation::I80286)
        .until(Generation::I80286)
        .changes_validity(),
    two("LOADALL", 0x07, &[])
        .since(Generation::I80386)
        .until(Generation::I80386)
        .changes_validity(),
];

/// 0F 01 with a ModRM byte that is opcode.
const fn exact(name: &'static str, modrm: u8) -> Row {
    two(name, 0x01, &[]).modrm(modrm)
}

fn hlt(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Hlt)?;
    Err(Leave::Halt)
}

fn hypercall(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    Err(Leave::Hypercall)
}

fn ecx(m: &Machine<'_, '_>) -> u32 {
    m.cpu.gpr[Reg::Rcx] as u32
}

/// EDX:EAX.
pub(crate) fn edx_eax(m: &Machine<'_, '_>) -> u64 {
    m.cpu.gpr[Reg::Rdx] << 32 | m.cpu.gpr[Reg::Rax] & 0xFFFF_FFFF
}

/// Writes EDX:EAX.
pub(crate) fn set_edx_eax(m: &mut Machine<'_, '_>, value: u64) {
    m.cpu.gpr[Reg::Rax] = value & 0xFFFF_FFFF;
    m.cpu.gpr[Reg::Rdx] = value >> 32;
}

fn cpuid(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.intercept(Intercepted::Cpuid)?;
    let (leaf, subleaf) = (m.cpu.gpr[Reg::Rax] as u32, ecx(m));
    let mut result = m.bus.cpuid(m.profile, leaf, subleaf);
    // Two bits mirror CR4, whoever answers.
    let mirror = |word: &mut u32, bit: u32, on: bool| {
        *word = if on { *word | bit } else { *word & !bit };
    };
    match (leaf, subleaf) {
        (1, _) => mirror(&mut result.ecx, 1 << 27, m.cpu.cr4 & CR4_OSXSAVE != 0),
        (7, 0) => mirror(&mut result.ecx, 1 << 4, m.cpu.cr4 & CR4_PKE != 0),
        (0xD, 0 | 1) if result.ebx != 0 => result.ebx = image_size(m, subleaf),
        _ => {}
    }
    m.cpu.gpr[Reg::Rax] = u64::from(result.eax);
    m.cpu.gpr[Reg::Rbx] = u64::from(result.ebx);
    m.cpu.gpr[Reg::Rcx] = u64::from(result.ecx);
    m.cpu.gpr[Reg::Rdx] = u64::from(result.edx);
    m.epoch_stale = true;
    Ok(())
}

/// What an XSAVE image takes with the components that are enabled (SDM vol. 2A, "CPUID", leaf 0DH):
/// in the standard form, or for subleaf 1 compacted.
fn image_size(m: &mut Machine<'_, '_>, subleaf: u32) -> u32 {
    const LEGACY_AND_HEADER: u32 = 0x240;
    let enabled = if subleaf == 1 { m.cpu.xcr0 | m.cpu.msr.xss } else { m.cpu.xcr0 };
    let mut end = LEGACY_AND_HEADER;
    for component in (2..63).filter(|bit| enabled >> bit & 1 != 0) {
        let place = m.bus.cpuid(m.profile, 0xD, component);
        end = if subleaf == 1 {
            // Bit 1 of ECX: on a boundary of 64 bytes.
            let aligned = end.checked_next_multiple_of(64).unwrap_or(end);
            let start = if place.ecx & 2 != 0 { aligned } else { end };
            start.saturating_add(place.eax)
        } else {
            end.max(place.ebx.saturating_add(place.eax))
        };
    }
    end
}

fn serialize(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.epoch_stale = true;
    Ok(())
}

/// CR4.TSD keeps the time from user code.
fn require_time(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr4 & CR4_TSD != 0 { m.require_cpl(0) } else { Ok(()) }
}

fn rdtsc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_time(m)?;
    m.intercept(Intercepted::Rdtsc)?;
    m.require_careful()?;
    let now = m.bus.tsc(&mut m.control);
    set_edx_eax(m, now);
    Ok(())
}

fn rdtscp(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    rdtsc(m, op)?;
    m.cpu.gpr[Reg::Rcx] = m.cpu.msr.tsc_aux & 0xFFFF_FFFF;
    Ok(())
}

fn rdpid(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    *m.cpu.gpr.slot_mut(op.rm) = m.cpu.msr.tsc_aux & 0xFFFF_FFFF;
    Ok(())
}

fn rdpmc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.cpu.cr4 & CR4_PCE == 0 {
        m.require_cpl(0)?;
    }
    m.intercept(Intercepted::Rdpmc)?;
    m.require_careful()?;
    let value = m.bus.read_pmc(ecx(m), &mut m.control).ok_or(Leave::Fault(Fault::GP))?;
    set_edx_eax(m, value);
    Ok(())
}

/// RDPRU (APM vol. 3): MPERF and APERF; other numbers read zero.
fn rdpru(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.cpu.cr4 & CR4_TSD != 0 && m.cpu.cpl() > 0 {
        return Err(Fault::UD.into());
    }
    m.require_careful()?;
    const MPERF: u32 = 0xE7;
    let value = match ecx(m) {
        number @ 0..=1 => m.bus.read_msr(MPERF + number, &mut m.control).unwrap_or(0),
        _ => 0,
    };
    set_edx_eax(m, value);
    Ok(())
}

/// RDRAND and RDSEED: CF says whether the number is there; without one the register is zero.
fn random(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        m.require_careful()?;
        let number = m.bus.random(&mut m.control);
        W::from_u64(number.unwrap_or(0)).write(&mut m.cpu.gpr, op.rm);
        m.flags = m.flags.with(ARITH, if number.is_some() { CF } else { 0 });
        Ok(())
    }
    by_width!(go)(m, op)
}

/// #UD unless the operating system has set a bit of CR4.
fn require_cr4(m: &Machine<'_, '_>, bit: u64) -> Step {
    if m.cpu.cr4 & bit == 0 { Err(Fault::UD.into()) } else { Ok(()) }
}

fn xgetbv(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_cr4(m, CR4_OSXSAVE)?;
    if ecx(m) != 0 {
        return Err(Fault::GP.into());
    }
    set_edx_eax(m, m.cpu.xcr0);
    Ok(())
}

fn xsetbv(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_cr4(m, CR4_OSXSAVE)?;
    m.require_cpl(0)?;
    let offered = m.bus.cpuid(m.profile, 0xD, 0);
    let offered = u64::from(offered.edx) << 32 | u64::from(offered.eax);
    let value = edx_eax(m);
    if ecx(m) != 0 || !is_valid_xcr0(value, offered) {
        return Err(Fault::GP.into());
    }
    m.cpu.xcr0 = value;
    Ok(())
}

/// SDM vol. 1, "Enabling the XSAVE Feature Set": x87 is always on, and some components come
/// only together.
fn is_valid_xcr0(value: u64, offered: u64) -> bool {
    const X87: u64 = 1;
    const SSE: u64 = 1 << 1;
    const AVX: u64 = 1 << 2;
    const MPX: u64 = 3 << 3;
    const AVX512: u64 = 7 << 5;
    const TILES: u64 = 3 << 17;
    let together = |mask: u64| value & mask == 0 || value & mask == mask;
    value & !offered == 0
        && value & X87 != 0
        && (value & AVX == 0 || value & SSE != 0)
        && (value & AVX512 == 0 || value & AVX != 0)
        && together(MPX)
        && together(AVX512)
        && together(TILES)
}

fn rdpkru(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_cr4(m, CR4_PKE)?;
    if ecx(m) != 0 {
        return Err(Fault::GP.into());
    }
    set_edx_eax(m, u64::from(m.cpu.pkru));
    Ok(())
}

fn wrpkru(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_cr4(m, CR4_PKE)?;
    if ecx(m) != 0 || m.cpu.gpr[Reg::Rdx] as u32 != 0 {
        return Err(Fault::GP.into());
    }
    m.set_pkru(m.cpu.gpr[Reg::Rax] as u32);
    Ok(())
}

fn clac(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_supervisor(m)?;
    m.cpu.rflags &= !AC;
    Ok(())
}

fn stac(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_supervisor(m)?;
    m.cpu.rflags |= AC;
    Ok(())
}

/// CLAC and STAC are #UD, not #GP, above level 0.
fn require_supervisor(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cpl() > 0 { Err(Fault::UD.into()) } else { Ok(()) }
}

fn wbinvd(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Wbinvd)?;
    m.epoch_stale = true;
    Ok(())
}

fn invd(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Invd)?;
    m.epoch_stale = true;
    Ok(())
}

/// The payload is 32 bits unless REX.W asks for 64.
fn ptwrite_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.cpu.gpr.slot(op.rm);
    m.bus.trace_write(if op.width == 8 { value } else { value & 0xFFFF_FFFF });
    Ok(())
}

fn ptwrite_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = if op.width == 8 { m.load::<u64>(op)? } else { u64::from(m.load::<u32>(op)?) };
    m.bus.trace_write(value);
    Ok(())
}

/// RSM is #UD outside system-management mode.
fn rsm(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.cpu.smm {
        Err(Leave::Unimplemented(UnimplementedReason::Mode))
    } else {
        Err(Fault::UD.into())
    }
}

#[cfg(test)]
mod tests {
    use super::is_valid_xcr0;

    #[test]
    fn xcr0_needs_x87_and_complete_groups() {
        let offered = 0xE7;
        for valid in [0x1, 0x3, 0x7, 0xE7] {
            assert!(is_valid_xcr0(valid, offered), "{valid:#x}");
        }
        for invalid in [0x0, 0x2, 0x5, 0x6, 0x27, 0xE3, 0x1F, 0x207] {
            assert!(!is_valid_xcr0(invalid, offered), "{invalid:#x}");
        }
    }
}
