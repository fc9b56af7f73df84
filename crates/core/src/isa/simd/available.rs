//! What a vector instruction needs before anything else: #UD, then #NM, then #MF (SDM vol. 2A,
//! "Exception Classes of Intel SSE and AVX Instructions" and "Legacy SIMD"; vol. 3A, "System
//! Programming for Instruction Set Extensions").

use crate::arch::control::{CR0_EM, CR0_TS, CR4_OSFXSR, CR4_OSXSAVE};
use crate::fault::Fault;
use crate::isa::fpu;
use crate::isa::row::VectorSet;
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::stop::UnimplementedReason;

/// The components of XCR0 that AVX needs: SSE and AVX.
const XCR0_AVX: u64 = 6;

/// The same with the three of AVX-512.
const XCR0_AVX512: u64 = 0xE6;

fn require_no_switch(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr0 & CR0_TS != 0 { Err(Fault::NM.into()) } else { Ok(()) }
}

/// SSE on XMM registers.
#[inline]
pub(crate) fn require_sse(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr0 & CR0_EM != 0 || m.cpu.cr4 & CR4_OSFXSR == 0 {
        return Err(Fault::UD.into());
    }
    require_no_switch(m)
}

/// MMX, and SSE on MMX registers.
pub(crate) fn require_mmx(m: &mut Machine<'_, '_>) -> Step {
    if m.cpu.cr0 & CR0_EM != 0 {
        return Err(Fault::UD.into());
    }
    require_no_switch(m)?;
    fpu::require_no_error(m)?;
    fpu::signal_error(m)
}

/// SSE between XMM and MMX registers.
pub(crate) fn require_sse_and_mmx(m: &mut Machine<'_, '_>) -> Step {
    require_sse(m)?;
    require_mmx(m)
}

/// AVX. CR0.EM means nothing to it.
#[inline]
pub(crate) fn require_avx(m: &Machine<'_, '_>) -> Step {
    require_components(m, XCR0_AVX)
}

fn require_components(m: &Machine<'_, '_>, components: u64) -> Step {
    if m.cpu.cr4 & CR4_OSXSAVE == 0 || m.cpu.xcr0 & components != components {
        return Err(Fault::UD.into());
    }
    require_no_switch(m)
}

const NOT_EXECUTED: Leave = Leave::Unimplemented(UnimplementedReason::Instruction);

/// What raises the exceptions of an instruction that is not executed, and stops.
pub(crate) fn not_executed(set: VectorSet) -> Handler {
    match set {
        VectorSet::Mmx => no_mmx,
        VectorSet::Sse => no_sse,
        VectorSet::Avx => no_avx,
        VectorSet::Avx512 => no_avx512,
    }
}

fn no_mmx(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_mmx(m)?;
    Err(NOT_EXECUTED)
}

fn no_sse(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_sse(m)?;
    Err(NOT_EXECUTED)
}

fn no_avx(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_avx(m)?;
    Err(NOT_EXECUTED)
}

fn no_avx512(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_components(m, XCR0_AVX512)?;
    Err(NOT_EXECUTED)
}
