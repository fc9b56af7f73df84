//! RDMSR and WRMSR. Registers that the modes need live in `Cpu`; all others are the bus's.

use crate::arch::control::{
    CR0_PG, EFER_FFXSR, EFER_LMA, EFER_LME, EFER_LMSLE, EFER_NXE, EFER_SCE, EFER_SVME,
};
use crate::arch::cpuid::Features;
use crate::arch::msr::{
    CSTAR, EFER, FMASK, FS_BASE, GS_BASE, IA32_DEBUGCTL, IA32_INTERRUPT_SSP_TABLE, IA32_PAT,
    IA32_PKRS, IA32_PL0_SSP, IA32_S_CET, IA32_SYSENTER_CS, IA32_SYSENTER_EIP, IA32_SYSENTER_ESP,
    IA32_TIME_STAMP_COUNTER, IA32_U_CET, IA32_XSS, KERNEL_GS_BASE, LSTAR, STAR, TSC_AUX,
};
use crate::arch::registers::{Reg, SegReg};
use crate::fault::Fault;
use crate::isa::row::{Modes, Prefix, Row, two};
use crate::isa::system::{edx_eax, set_edx_eax};
use crate::machine::{Leave, Machine, Step, Window};
use crate::mem::segment::is_canonical_with;
use crate::op::Op;
use crate::profile::{Profile, Vendor};
use crate::state::Cpu;
use crate::stop::Intercepted;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    two("WRMSR", 0x30, &[]).needs(Features::MSR).handler(wrmsr).changes_validity(),
    two("RDMSR", 0x32, &[]).needs(Features::MSR).handler(rdmsr).ends_block(),
    list("WRMSRNS", Prefix::None, Features::WRMSRNS),
    list("WRMSRLIST", Prefix::F3, Features::MSRLIST).modes(Modes::Only64),
    list("RDMSRLIST", Prefix::F2, Features::MSRLIST).modes(Modes::Only64),
];

const fn list(name: &'static str, prefix: Prefix, feature: Features) -> Row {
    two(name, 0x01, &[]).modrm(0xC6).prefix(prefix).needs(feature).changes_validity()
}

const GP: Leave = Leave::Fault(Fault::GP);

fn rdmsr(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Rdmsr)?;
    m.require_careful()?;
    let index = m.cpu.gpr[Reg::Rcx] as u32;
    let value = match place(m.cpu, m.profile, index) {
        Some(place) => *place,
        None if index == IA32_TIME_STAMP_COUNTER => m.bus.tsc(&mut m.control),
        None => m.bus.read_msr(index, &mut m.control).ok_or(GP)?,
    };
    set_edx_eax(m, value);
    Ok(())
}

fn wrmsr(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Wrmsr)?;
    m.require_careful()?;
    let index = m.cpu.gpr[Reg::Rcx] as u32;
    let value = edx_eax(m);
    if place(m.cpu, m.profile, index).is_none() {
        let taken = m.bus.write_msr(index, value, &mut m.control);
        m.epoch_stale |= taken;
        return if taken { Ok(()) } else { Err(GP) };
    }
    let value = checked(m, index, value)?;
    if let Some(place) = place(m.cpu, m.profile, index) {
        *place = value;
    }
    m.epoch_stale = true;
    match index {
        EFER | IA32_PKRS => m.flush_translations(),
        FS_BASE => m.windows[SegReg::Fs as usize] = Window::default(),
        GS_BASE => m.windows[SegReg::Gs as usize] = Window::default(),
        _ => {}
    }
    Ok(())
}

/// Where `Cpu` keeps a register, if it does and the profile has it.
fn place<'c>(cpu: &'c mut Cpu, profile: &Profile, index: u32) -> Option<&'c mut u64> {
    let extended = Features::SYSCALL.union(Features::NX).union(Features::LM);
    let shadow_stacks = Features::CET_SS.union(Features::CET_IBT);
    let aux = Features::RDTSCP.union(Features::RDPID);
    let msr = &mut cpu.msr;
    let (any, place) = match index {
        IA32_SYSENTER_CS => (Features::SEP, &mut msr.sysenter_cs),
        IA32_SYSENTER_ESP => (Features::SEP, &mut msr.sysenter_esp),
        IA32_SYSENTER_EIP => (Features::SEP, &mut msr.sysenter_eip),
        IA32_DEBUGCTL => (Features::MSR, &mut msr.debugctl),
        IA32_PAT => (Features::PAT, &mut msr.pat),
        IA32_U_CET => (shadow_stacks, &mut msr.u_cet),
        IA32_S_CET => (shadow_stacks, &mut msr.s_cet),
        IA32_PL0_SSP..IA32_INTERRUPT_SSP_TABLE => {
            (Features::CET_SS, msr.pl_ssp.get_mut((index - IA32_PL0_SSP) as usize)?)
        }
        IA32_INTERRUPT_SSP_TABLE => (Features::CET_SS, &mut msr.interrupt_ssp_table),
        IA32_XSS => (Features::XSAVES, &mut msr.xss),
        IA32_PKRS => (Features::PKS, &mut msr.pkrs),
        EFER => (extended, &mut msr.efer),
        STAR => (Features::SYSCALL, &mut msr.star),
        LSTAR => (Features::LM, &mut msr.lstar),
        CSTAR => (Features::LM, &mut msr.cstar),
        FMASK => (Features::SYSCALL, &mut msr.fmask),
        FS_BASE => (Features::LM, &mut cpu.seg[SegReg::Fs as usize].base),
        GS_BASE => (Features::LM, &mut cpu.seg[SegReg::Gs as usize].base),
        KERNEL_GS_BASE => (Features::LM, &mut msr.kernel_gs_base),
        TSC_AUX => (aux, &mut msr.tsc_aux),
        _ => return None,
    };
    profile.features.intersects(any).then_some(place)
}

/// The value that a register takes, or #GP(0) for one it does not take (SDM vol. 4).
fn checked(m: &mut Machine<'_, '_>, index: u32, value: u64) -> Result<u64, Leave> {
    let intel = m.profile.vendor == Vendor::Intel;
    let valid = match index {
        EFER => return checked_efer(m, value),
        IA32_SYSENTER_CS => return Ok(value & 0xFFFF_FFFF),
        // AMD's SYSENTER has no 64-bit mode, and its registers hold 32 bits (APM vol. 2,
        // "SYSENTER and SYSEXIT MSRs").
        IA32_SYSENTER_ESP | IA32_SYSENTER_EIP if !intel => return Ok(value & 0xFFFF_FFFF),
        LSTAR
        | CSTAR
        | FS_BASE
        | GS_BASE
        | KERNEL_GS_BASE
        | IA32_SYSENTER_ESP
        | IA32_SYSENTER_EIP
        | IA32_INTERRUPT_SSP_TABLE => is_linear(m.profile, value),
        // AMD drops the upper half instead.
        FMASK | TSC_AUX if !intel => return Ok(value & 0xFFFF_FFFF),
        FMASK | TSC_AUX => value >> 32 == 0,
        IA32_PKRS => value >> 32 == 0,
        IA32_PAT => value.to_le_bytes().iter().all(|kind| matches!(kind, 0 | 1 | 4..=7)),
        // LBR and BTF; AMD's pin controls besides.
        IA32_DEBUGCTL => value & !(if intel { 0x3 } else { 0x3F }) == 0,
        IA32_XSS => {
            let offered = m.bus.cpuid(m.profile, 0xD, 1);
            value & !(u64::from(offered.edx) << 32 | u64::from(offered.ecx)) == 0
        }
        IA32_U_CET | IA32_S_CET => value & 0x3C0 == 0 && is_linear(m.profile, value),
        IA32_PL0_SSP..IA32_INTERRUPT_SSP_TABLE => value & 3 == 0 && is_linear(m.profile, value),
        _ => true,
    };
    if valid { Ok(value) } else { Err(GP) }
}

/// Can the processor have this linear address, in whichever paging mode? It is that, and not
/// CR4.LA57, which WRMSR asks (SDM vol. 3A, "Canonicality Checking").
fn is_linear(profile: &Profile, address: u64) -> bool {
    is_canonical_with(profile.linear_bits(), address)
}

/// EFER: LMA is the processor's, LME cannot change while paging is on, and a bit whose feature
/// is missing is reserved.
fn checked_efer(m: &Machine<'_, '_>, value: u64) -> Result<u64, Leave> {
    let amd = m.profile.vendor == Vendor::Amd;
    let bits = [
        (EFER_SCE, m.profile.has(Features::SYSCALL)),
        (EFER_LME | EFER_LMA, m.profile.has(Features::LM)),
        (EFER_NXE, m.profile.has(Features::NX)),
        (EFER_SVME, m.profile.has(Features::SVM)),
        (EFER_LMSLE, false),
        (EFER_FFXSR, amd && m.profile.has(Features::FXSR_OPT)),
    ];
    let defined = bits.iter().fold(0, |all, (bit, has)| if *has { all | bit } else { all });
    let old = m.cpu.msr.efer;
    let switches = (old ^ value) & EFER_LME != 0;
    if value & !defined != 0 || switches && m.cpu.cr0 & CR0_PG != 0 {
        return Err(GP);
    }
    Ok(value & !EFER_LMA | old & EFER_LMA)
}
