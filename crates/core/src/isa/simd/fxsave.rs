//! FXSAVE, FXRSTOR, and MXCSR alone: LDMXCSR, STMXCSR and their VEX forms.

use crate::arch::control::{CR0_EM, CR0_TS, CR4_OSFXSR, EFER_FFXSR};
use crate::arch::cpuid::Features as F;
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand::{M, Md};
use crate::isa::row::{Modes, Row};
use crate::isa::simd::available::{require_avx, require_sse};
use crate::isa::simd::legacy::{self, Pointers, Region, SIZE, XMM, xmm_count};
use crate::isa::simd::{aligned, encoding};
use crate::machine::{Machine, Step};
use crate::op::Op;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("NP.0F.W1 AE /0", "FXSAVE64", &[M], F::FXSR).modes(Modes::Only64).handler(fxsave),
    encoding("NP.0F AE /0", "FXSAVE", &[M], F::FXSR).handler(fxsave),
    encoding("NP.0F.W1 AE /1", "FXRSTOR64", &[M], F::FXSR).modes(Modes::Only64).handler(fxrstor),
    encoding("NP.0F AE /1", "FXRSTOR", &[M], F::FXSR).handler(fxrstor),
    encoding("NP.0F AE /2", "LDMXCSR", &[Md], F::SSE).handler(ldmxcsr),
    encoding("NP.0F AE /3", "STMXCSR", &[Md], F::SSE).handler(stmxcsr),
    encoding("VEX.128.NP.0F.WIG AE /2", "VLDMXCSR", &[Md], F::AVX).handler(vldmxcsr),
    encoding("VEX.128.NP.0F.WIG AE /3", "VSTMXCSR", &[Md], F::AVX).handler(vstmxcsr),
];

/// Both are #NM, not #UD, with CR0.EM (SDM vol. 2A, "FXSAVE").
fn require_available(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr0 & (CR0_EM | CR0_TS) != 0 { Err(Fault::NM.into()) } else { Ok(()) }
}

/// Do FXSAVE and FXRSTOR work on the XMM registers? Not before the operating system says that it
/// knows of them, and not in the kernel of one that asks AMD's parts to leave them out (APM vol. 2,
/// "Fast FXSAVE and FXRSTOR").
fn has_xmm(m: &Machine<'_, '_>) -> bool {
    let is_fast = m.cpu.msr.efer & EFER_FFXSR != 0 && m.cpu.is_64_bit_code() && m.cpu.cpl() == 0;
    m.cpu.cr4 & CR4_OSFXSR != 0 && !is_fast
}

/// The last 96 bytes are software's, and so is the place of registers that are not saved.
fn fxsave(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    let operand = aligned(m, op, SIZE, 16, Access::Write)?;
    let mut region: Region = [0; SIZE];
    legacy::save_x87(m, Pointers::of(op.width), &mut region);
    legacy::save_mxcsr(m, &mut region);
    let count = if has_xmm(m) { xmm_count(m) } else { 0 };
    legacy::save_xmm(&m.cpu.fpu, count, &mut region);
    let end = XMM + 16 * count;
    m.write_operand(&operand, region.get(..end).unwrap_or_default())
}

fn fxrstor(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    let operand = aligned(m, op, SIZE, 16, Access::Read)?;
    let mut region: Region = [0; SIZE];
    m.read_operand(&operand, &mut region)?;
    let mxcsr = legacy::mxcsr(&region);
    let knows = m.cpu.cr4 & CR4_OSFXSR != 0;
    if knows && mxcsr & !legacy::mxcsr_mask(m) != 0 {
        return Err(Fault::GP.into());
    }
    let count = if has_xmm(m) { xmm_count(m) } else { 0 };
    let fpu = &mut m.cpu.fpu;
    legacy::load_x87(fpu, Pointers::of(op.width), &region);
    legacy::load_xmm(fpu, count, &region);
    if knows {
        fpu.mxcsr = mxcsr;
    }
    Ok(())
}

fn ldmxcsr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_sse(m)?;
    load(m, op)
}

fn vldmxcsr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    load(m, op)
}

/// A reserved bit is #GP.
fn load(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.load::<u32>(op)?;
    if value & !legacy::mxcsr_mask(m) != 0 {
        return Err(Fault::GP.into());
    }
    m.cpu.fpu.mxcsr = value;
    Ok(())
}

fn stmxcsr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_sse(m)?;
    m.store(op, m.cpu.fpu.mxcsr)
}

fn vstmxcsr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    m.store(op, m.cpu.fpu.mxcsr)
}
