//! AVX moves of 128 and 256 bits. They clear what lies above the bits that they write.

use crate::arch::cpuid::Features as F;
use crate::bus::Access;
use crate::isa::operand::Operand::{Ed, Ey, Hdq, Md, Mq, Mx, Udq, V, Vdq, W, Wq};
use crate::isa::row::{Exec, Modes, Row};
use crate::isa::simd::available::require_avx;
use crate::isa::simd::legacy;
use crate::isa::simd::moves::{
    All, Avx, Double, Even, High, Low, Part, Quad, Single, Xmm, bytes, from_general, halves, load,
    store, to_general,
};
use crate::isa::simd::{aligned, encoding};
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("VEX.128-256.NP.0F.WIG 10", "VMOVUPS", &[V, W], F::AVX).exec(load_vector::<All>()),
    encoding("VEX.128-256.66.0F.WIG 10", "VMOVUPD", &[V, W], F::AVX).exec(load_vector::<All>()),
    encoding("VEX.LIG.F3.0F.WIG 10", "VMOVSS", &[Vdq, Md], F::AVX).exec(load::<Single, Avx>()),
    encoding("VEX.LIG.F3.0F.WIG 10", "VMOVSS", &[Vdq, Hdq, Udq], F::AVX)
        .exec(load::<Single, Avx>()),
    encoding("VEX.LIG.F2.0F.WIG 10", "VMOVSD", &[Vdq, Mq], F::AVX).exec(load::<Double, Avx>()),
    encoding("VEX.LIG.F2.0F.WIG 10", "VMOVSD", &[Vdq, Hdq, Udq], F::AVX)
        .exec(load::<Double, Avx>()),
    encoding("VEX.128-256.NP.0F.WIG 11", "VMOVUPS", &[W, V], F::AVX).exec(store_vector::<All>()),
    encoding("VEX.128-256.66.0F.WIG 11", "VMOVUPD", &[W, V], F::AVX).exec(store_vector::<All>()),
    encoding("VEX.LIG.F3.0F.WIG 11", "VMOVSS", &[Md, Vdq], F::AVX).exec(store::<Single, Avx>()),
    encoding("VEX.LIG.F3.0F.WIG 11", "VMOVSS", &[Udq, Hdq, Vdq], F::AVX)
        .exec(store::<Single, Avx>()),
    encoding("VEX.LIG.F2.0F.WIG 11", "VMOVSD", &[Mq, Vdq], F::AVX).exec(store::<Double, Avx>()),
    encoding("VEX.LIG.F2.0F.WIG 11", "VMOVSD", &[Udq, Hdq, Vdq], F::AVX)
        .exec(store::<Double, Avx>()),
    encoding("VEX.128.NP.0F.WIG 12", "VMOVLPS", &[Vdq, Hdq, Mq], F::AVX).exec(load::<Low, Avx>()),
    encoding("VEX.128.NP.0F.WIG 12", "VMOVHLPS", &[Vdq, Hdq, Udq], F::AVX).exec(load::<Low, Avx>()),
    encoding("VEX.128.66.0F.WIG 12", "VMOVLPD", &[Vdq, Hdq, Mq], F::AVX).exec(load::<Low, Avx>()),
    encoding("VEX.128.NP.0F.WIG 13", "VMOVLPS", &[Mq, Vdq], F::AVX).exec(store::<Low, Avx>()),
    encoding("VEX.128.66.0F.WIG 13", "VMOVLPD", &[Mq, Vdq], F::AVX).exec(store::<Low, Avx>()),
    encoding("VEX.128.NP.0F.WIG 16", "VMOVHPS", &[Vdq, Hdq, Mq], F::AVX).exec(load::<High, Avx>()),
    encoding("VEX.128.NP.0F.WIG 16", "VMOVLHPS", &[Vdq, Hdq, Udq], F::AVX)
        .exec(load::<High, Avx>()),
    encoding("VEX.128.66.0F.WIG 16", "VMOVHPD", &[Vdq, Hdq, Mq], F::AVX).exec(load::<High, Avx>()),
    encoding("VEX.128.NP.0F.WIG 17", "VMOVHPS", &[Mq, Vdq], F::AVX).exec(store::<High, Avx>()),
    encoding("VEX.128.66.0F.WIG 17", "VMOVHPD", &[Mq, Vdq], F::AVX).exec(store::<High, Avx>()),
    encoding("VEX.128-256.NP.0F.WIG 28", "VMOVAPS", &[V, W], F::AVX).exec(load_vector::<Even>()),
    encoding("VEX.128-256.66.0F.WIG 28", "VMOVAPD", &[V, W], F::AVX).exec(load_vector::<Even>()),
    encoding("VEX.128-256.NP.0F.WIG 29", "VMOVAPS", &[W, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128-256.66.0F.WIG 29", "VMOVAPD", &[W, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128-256.NP.0F.WIG 2B", "VMOVNTPS", &[Mx, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128-256.66.0F.WIG 2B", "VMOVNTPD", &[Mx, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128.66.0F.W1 6E", "VMOVQ", &[Vdq, Ey], F::AVX)
        .modes(Modes::Only64)
        .exec(from_general::<u64, Avx>()),
    encoding("VEX.128.66.0F.WIG 6E", "VMOVD", &[Vdq, Ed], F::AVX).exec(from_general::<u32, Avx>()),
    encoding("VEX.128-256.66.0F.WIG 6F", "VMOVDQA", &[V, W], F::AVX).exec(load_vector::<Even>()),
    encoding("VEX.128-256.F3.0F.WIG 6F", "VMOVDQU", &[V, W], F::AVX).exec(load_vector::<All>()),
    encoding("VEX.256.NP.0F.WIG 77", "VZEROALL", &[], F::AVX).handler(vzeroall),
    encoding("VEX.128.NP.0F.WIG 77", "VZEROUPPER", &[], F::AVX).handler(vzeroupper),
    encoding("VEX.128.66.0F.W1 7E", "VMOVQ", &[Ey, Vdq], F::AVX)
        .modes(Modes::Only64)
        .exec(to_general::<u64, Avx>()),
    encoding("VEX.128.66.0F.WIG 7E", "VMOVD", &[Ed, Vdq], F::AVX).exec(to_general::<u32, Avx>()),
    encoding("VEX.128.F3.0F.WIG 7E", "VMOVQ", &[Vdq, Wq], F::AVX).exec(load::<Quad, Avx>()),
    encoding("VEX.128-256.66.0F.WIG 7F", "VMOVDQA", &[W, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128-256.F3.0F.WIG 7F", "VMOVDQU", &[W, V], F::AVX).exec(store_vector::<All>()),
    encoding("VEX.128.66.0F.WIG D6", "VMOVQ", &[Wq, Vdq], F::AVX).exec(store::<Quad, Avx>()),
    encoding("VEX.128-256.66.0F.WIG E7", "VMOVNTDQ", &[Mx, V], F::AVX).exec(store_vector::<Even>()),
    encoding("VEX.128-256.F2.0F.WIG F0", "VLDDQU", &[V, Mx], F::AVX).exec(load_vector::<All>()),
    encoding("VEX.128-256.66.0F38.WIG 2A", "VMOVNTDQA", &[V, Mx], F::AVX)
        .exec(load_vector::<Even>()),
];

/// A YMM register, by halves.
type Ymm = [Xmm; 2];

fn ymm(m: &mut Machine<'_, '_>, register: u8) -> Ymm {
    [m.xmm(register), *m.ymm_high_mut(register)]
}

/// Writes a register; a form of 128 bits clears the upper half.
fn set(m: &mut Machine<'_, '_>, op: &Op, register: u8, [low, high]: Ymm) {
    *m.xmm_mut(register) = low;
    *m.ymm_high_mut(register) = if op.is_256() { high } else { [0; 2] };
}

/// How many bytes the form moves.
fn size(op: &Op) -> usize {
    if op.is_256() { 32 } else { 16 }
}

/// What a move of so many bytes has to be aligned to.
fn alignment<P: Part>(op: &Op) -> u64 {
    if P::ALIGNMENT == 1 { 1 } else { size(op) as u64 }
}

fn load_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    let value = ymm(m, op.rm);
    set(m, op, op.reg, value);
    Ok(())
}

fn load_m<P: Part>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    let operand = aligned(m, op, size(op), alignment::<P>(op), Access::Read)?;
    let mut halved = [[0; 16]; 2];
    let all = halved.as_flattened_mut();
    m.read_operand(&operand, all.get_mut(..size(op)).unwrap_or_default())?;
    set(m, op, op.reg, halved.map(halves));
    Ok(())
}

fn store_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    let value = ymm(m, op.reg);
    set(m, op, op.rm, value);
    Ok(())
}

fn store_m<P: Part>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_avx(m)?;
    let operand = aligned(m, op, size(op), alignment::<P>(op), Access::Write)?;
    let halved = ymm(m, op.reg).map(bytes);
    m.write_operand(&operand, halved.as_flattened().get(..size(op)).unwrap_or_default())
}

const fn load_vector<P: Part>() -> Exec {
    Exec::Forms(const { &[load_r as Handler, load_m::<P> as Handler] })
}

const fn store_vector<P: Part>() -> Exec {
    Exec::Forms(const { &[store_r as Handler, store_m::<P> as Handler] })
}

/// The registers that the mode has not are left alone.
fn vzeroupper(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_avx(m)?;
    let count = legacy::xmm_count(m);
    m.cpu.fpu.ymm_high.iter_mut().take(count).for_each(|half| *half = [0; 2]);
    Ok(())
}

fn vzeroall(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    vzeroupper(m, op)?;
    let count = legacy::xmm_count(m);
    m.cpu.fpu.xmm.iter_mut().take(count).for_each(|half| *half = [0; 2]);
    Ok(())
}
