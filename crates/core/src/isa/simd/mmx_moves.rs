//! MMX moves. An MMX register is the significand of a physical x87 register: every one of these
//! instructions makes TOP zero and the tags valid, and what is written becomes an infinity or a NaN
//! for the x87 (SDM vol. 3A, "Emulation of the MMX Instruction Set").

use crate::arch::cpuid::Features as F;
use crate::isa::operand::Operand::{Ed, Ey, Mq, N, P, Q, Udq, Vdq};
use crate::isa::row::{Exec, Modes, Row};
use crate::isa::simd::available::{require_mmx, require_sse_and_mmx};
use crate::isa::simd::encoding;
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::state::Fpu;
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("NP.0F.W1 6E", "MOVQ", &[P, Ey], F::MMX).modes(Modes::Only64).exec(mmx_from::<u64>()),
    encoding("NP.0F 6E", "MOVD", &[P, Ed], F::MMX).exec(mmx_from::<u32>()),
    encoding("NP.0F 6F", "MOVQ", &[P, Q], F::MMX).exec(mmx_load::<u64>()),
    encoding("NP.0F 77", "EMMS", &[], F::MMX).handler(emms),
    encoding("NP.0F.W1 7E", "MOVQ", &[Ey, P], F::MMX).modes(Modes::Only64).exec(mmx_to::<u64>()),
    encoding("NP.0F 7E", "MOVD", &[Ed, P], F::MMX).exec(mmx_to::<u32>()),
    encoding("NP.0F 7F", "MOVQ", &[Q, P], F::MMX).exec(mmx_store::<u64>()),
    encoding("F3.0F D6", "MOVQ2DQ", &[Vdq, N], F::SSE2).handler(movq2dq),
    encoding("F2.0F D6", "MOVDQ2Q", &[P, Udq], F::SSE2).handler(movdq2q),
    encoding("NP.0F E7", "MOVNTQ", &[Mq, P], F::SSE).exec(mmx_store::<u64>()),
];

/// Where FSW has TOP.
const TOP: u16 = 11;

fn top(fpu: &Fpu) -> usize {
    usize::from(fpu.status >> TOP & 7)
}

fn mm(m: &Machine<'_, '_>, register: u8) -> u64 {
    let fpu = &m.cpu.fpu;
    let place = usize::from(register).wrapping_sub(top(fpu)) & 7;
    let [a, b, c, d, e, f, g, h, _, _] = fpu.st[place];
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Makes the registers MMX registers: those of the stack in their physical order, none empty.
fn enter<'a>(m: &'a mut Machine<'_, '_>) -> &'a mut Fpu {
    let fpu = &mut m.cpu.fpu;
    let top = top(fpu);
    fpu.st.rotate_right(top & 7);
    fpu.status &= !(7 << TOP);
    fpu.tags = 0xFF;
    fpu
}

fn set_mm(m: &mut Machine<'_, '_>, register: u8, value: u64) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    enter(m).st[usize::from(register & 7)] = [a, b, c, d, e, f, g, h, 0xFF, 0xFF];
}

fn load_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    set_mm(m, op.reg, mm(m, op.rm));
    Ok(())
}

fn load_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    let value = m.load::<W>(op)?.to_u64();
    set_mm(m, op.reg, value);
    Ok(())
}

fn store_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    set_mm(m, op.rm, mm(m, op.reg));
    Ok(())
}

fn store_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    m.store(op, W::from_u64(mm(m, op.reg)))?;
    enter(m);
    Ok(())
}

fn from_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    let value = W::read(&m.cpu.gpr, op.rm).to_u64();
    set_mm(m, op.reg, value);
    Ok(())
}

fn to_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_mmx(m)?;
    W::from_u64(mm(m, op.reg)).write(&mut m.cpu.gpr, op.rm);
    enter(m);
    Ok(())
}

const fn mmx_load<W: Width>() -> Exec {
    Exec::Forms(const { &[load_r as Handler, load_m::<W> as Handler] })
}

const fn mmx_store<W: Width>() -> Exec {
    Exec::Forms(const { &[store_r as Handler, store_m::<W> as Handler] })
}

/// From a general register or memory.
const fn mmx_from<W: Width>() -> Exec {
    Exec::Forms(const { &[from_r::<W> as Handler, load_m::<W> as Handler] })
}

/// To a general register or memory.
const fn mmx_to<W: Width>() -> Exec {
    Exec::Forms(const { &[to_r::<W> as Handler, store_m::<W> as Handler] })
}

fn movq2dq(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_sse_and_mmx(m)?;
    *m.xmm_mut(op.reg) = [mm(m, op.rm), 0];
    enter(m);
    Ok(())
}

fn movdq2q(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_sse_and_mmx(m)?;
    set_mm(m, op.reg, m.xmm(op.rm)[0]);
    Ok(())
}

/// EMMS gives the registers back: all are empty, the rest stays.
fn emms(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_mmx(m)?;
    m.cpu.fpu.tags = 0;
    Ok(())
}
