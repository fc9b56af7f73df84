//! BMI1 and BMI2: general registers with VEX. Their sizes are 32 bits, and 64 with VEX.W in 64-bit
//! code. Real and virtual-8086 mode have none of them.

use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use crate::flags::Flags;
use crate::isa::operand::Operand::{self, By, Ey, Gy, Ib};
use crate::isa::row::{Exec, Map, Prefix, Row, Vector, row, sized};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::Op;
use crate::profile::UndefinedFlags;
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    defined(bmi1("ANDN", 0xF2, Prefix::None, &[Gy, By, Ey]), OF | SF | ZF | CF)
        .exec(to_reg::<Andn>()),
    defined(bmi1("BLSR", 0xF3, Prefix::None, &[By, Ey]).digit(1), OF | SF | ZF | CF)
        .exec(to_vvvv::<Blsr>()),
    defined(bmi1("BLSMSK", 0xF3, Prefix::None, &[By, Ey]).digit(2), OF | SF | ZF | CF)
        .exec(to_vvvv::<Blsmsk>()),
    defined(bmi1("BLSI", 0xF3, Prefix::None, &[By, Ey]).digit(3), OF | SF | ZF | CF)
        .exec(to_vvvv::<Blsi>()),
    defined(bmi1("BEXTR", 0xF7, Prefix::None, &[Gy, Ey, By]), OF | ZF | CF)
        .on(UndefinedFlags::Amd, AF, FlagRule::Set)
        .exec(to_reg::<Bextr>()),
    defined(bmi2("BZHI", 0xF5, Prefix::None, &[Gy, Ey, By]), OF | SF | ZF | CF)
        .exec(to_reg::<Bzhi>()),
    bmi2("PEXT", 0xF5, Prefix::F3, &[Gy, By, Ey]).exec(to_reg::<Pext>()),
    bmi2("PDEP", 0xF5, Prefix::F2, &[Gy, By, Ey]).exec(to_reg::<Pdep>()),
    bmi2("MULX", 0xF6, Prefix::F2, &[Gy, By, Ey])
        .exec(Exec::FormSizes(&[sized!(mulx_r), sized!(mulx_m)])),
    bmi2("SHLX", 0xF7, Prefix::P66, &[Gy, Ey, By]).exec(to_reg::<Shlx>()),
    bmi2("SARX", 0xF7, Prefix::F3, &[Gy, Ey, By]).exec(to_reg::<Sarx>()),
    bmi2("SHRX", 0xF7, Prefix::F2, &[Gy, Ey, By]).exec(to_reg::<Shrx>()),
    general(Map::Vex3, "RORX", 0xF0, Prefix::F2, &[Gy, Ey, Ib])
        .needs(Features::BMI2)
        .exec(Exec::FormSizes(&[sized!(rorx_r), sized!(rorx_m)])),
];

const fn general(
    map: Map,
    name: &'static str,
    opcode: u8,
    prefix: Prefix,
    operands: &[Operand],
) -> Row {
    let vector = Vector { lengths: 1, ..Vector::ANY };
    row(map, name, opcode, operands).prefix(prefix).vector(vector)
}

const fn bmi1(name: &'static str, opcode: u8, prefix: Prefix, operands: &[Operand]) -> Row {
    general(Map::Vex2, name, opcode, prefix, operands).needs(Features::BMI1)
}

const fn bmi2(name: &'static str, opcode: u8, prefix: Prefix, operands: &[Operand]) -> Row {
    general(Map::Vex2, name, opcode, prefix, operands).needs(Features::BMI2)
}

/// The flags a row defines. It clears the others, but for PF on AMD's parts (seen on Zen 3).
const fn defined(row: Row, flags: u64) -> Row {
    row.changes(flags).undefined(ARITH & !flags, FlagRule::Cleared).on(
        UndefinedFlags::Amd,
        PF,
        FlagRule::ByResult,
    )
}

/// The result of a source in rm and of another register, with the flags after it.
trait Function {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags);
}

/// The result goes to the register in reg, which decode has put into `op.rm` for the form between
/// registers; the other operand is in vvvv.
const fn to_reg<F: Function>() -> Exec {
    Exec::FormSizes(const { &[sized!(to_reg_r, F), sized!(to_reg_m, F)] })
}

fn to_reg_r<F: Function, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (source, other) = (W::read(&m.cpu.gpr, op.reg), W::read(&m.cpu.gpr, op.vvvv()));
    let (result, flags) = F::apply(m.profile.undefined_flags, m.flags, source, other);
    result.write(&mut m.cpu.gpr, op.rm);
    m.flags = flags;
    Ok(())
}

fn to_reg_m<F: Function, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = m.load::<W>(op)?;
    let (result, flags) =
        F::apply(m.profile.undefined_flags, m.flags, source, W::read(&m.cpu.gpr, op.vvvv()));
    result.write(&mut m.cpu.gpr, op.reg);
    m.flags = flags;
    Ok(())
}

/// The result goes to the register in vvvv.
const fn to_vvvv<F: Function>() -> Exec {
    Exec::FormSizes(const { &[sized!(to_vvvv_r, F), sized!(to_vvvv_m, F)] })
}

fn to_vvvv_r<F: Function, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = W::read(&m.cpu.gpr, op.rm);
    set_vvvv::<F, W>(m, op, source);
    Ok(())
}

fn to_vvvv_m<F: Function, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = m.load::<W>(op)?;
    set_vvvv::<F, W>(m, op, source);
    Ok(())
}

fn set_vvvv<F: Function, W: Width>(m: &mut Machine<'_, '_>, op: &Op, source: W) {
    let (result, flags) = F::apply(m.profile.undefined_flags, m.flags, source, source);
    result.write(&mut m.cpu.gpr, op.vvvv());
    m.flags = flags;
}

fn mulx_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = W::read(&m.cpu.gpr, op.reg);
    multiply(m, op, op.rm, source);
    Ok(())
}

fn mulx_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = m.load::<W>(op)?;
    multiply(m, op, op.reg, source);
    Ok(())
}

/// MULX: rDX times the source. The low half goes to vvvv, then the high one to reg.
fn multiply<W: Width>(m: &mut Machine<'_, '_>, op: &Op, high: u8, source: W) {
    let other = W::read(&m.cpu.gpr, Reg::Rdx as u8);
    let product = u128::from(other.to_u64()) * u128::from(source.to_u64());
    W::from_u64(product as u64).write(&mut m.cpu.gpr, op.vvvv());
    W::from_u64((product >> W::BITS) as u64).write(&mut m.cpu.gpr, high);
}

fn rorx_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = W::read(&m.cpu.gpr, op.reg);
    rotated(source, op.imm).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

fn rorx_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let source = m.load::<W>(op)?;
    rotated(source, op.imm).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn rotated<W: Width>(source: W, count: u64) -> W {
    let (source, count) = (source.to_u64(), count as u32 & (W::BITS - 1));
    let wrapped = source << ((W::BITS - count) & (W::BITS - 1));
    W::from_u64(if count == 0 { source } else { source >> count | wrapped })
}

/// SF, ZF and CF; the others are as `defined` says.
fn flags_of<W: Width>(on: UndefinedFlags, flags: Flags, result: W, carry: bool) -> Flags {
    let by_result = Flags::logic(result.to_i64() as u64).to_rflags();
    let own = if on == UndefinedFlags::Amd { SF | ZF | PF } else { SF | ZF };
    flags.with(ARITH, by_result & own | if carry { CF } else { 0 })
}

struct Andn;
impl Function for Andn {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        let result = W::from_u64(source.to_u64() & !other.to_u64());
        (result, flags_of(on, flags, result, false))
    }
}

struct Blsr;
impl Function for Blsr {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, _: W) -> (W, Flags) {
        let value = source.to_u64();
        let result = W::from_u64(value & value.wrapping_sub(1));
        (result, flags_of(on, flags, result, value == 0))
    }
}

struct Blsmsk;
impl Function for Blsmsk {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, _: W) -> (W, Flags) {
        let value = source.to_u64();
        let result = W::from_u64(value ^ value.wrapping_sub(1));
        (result, flags_of(on, flags, result, value == 0))
    }
}

struct Blsi;
impl Function for Blsi {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, _: W) -> (W, Flags) {
        let value = source.to_u64();
        let result = W::from_u64(value & value.wrapping_neg());
        (result, flags_of(on, flags, result, value != 0))
    }
}

/// The lowest `count` bits of a value.
fn low_bits(value: u64, count: u32) -> u64 {
    if count < 64 { value & ((1 << count) - 1) } else { value }
}

struct Bextr;
impl Function for Bextr {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        let control = other.to_u64();
        let (start, count) = (control as u32 & 0xFF, control as u32 >> 8 & 0xFF);
        let shifted = source.to_u64().checked_shr(start).unwrap_or(0);
        let result = W::from_u64(low_bits(shifted, count));
        let by_result = flags_of(on, flags, result, false);
        let own = if on == UndefinedFlags::Amd { AF } else { 0 };
        (result, by_result.with(SF | AF, own))
    }
}

struct Bzhi;
impl Function for Bzhi {
    fn apply<W: Width>(on: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        let count = other.to_u64() as u32 & 0xFF;
        let result = W::from_u64(low_bits(source.to_u64(), count));
        (result, flags_of(on, flags, result, count >= W::BITS))
    }
}

/// The bits that a mask selects, moved to the low end.
struct Pext;
impl Function for Pext {
    fn apply<W: Width>(_: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        let (mut mask, value, mut result, mut at) = (source.to_u64(), other.to_u64(), 0, 0);
        while mask != 0 {
            result |= (value >> mask.trailing_zeros() & 1) << at;
            at += 1;
            mask &= mask - 1;
        }
        (W::from_u64(result), flags)
    }
}

/// The low bits, moved to where a mask has ones.
struct Pdep;
impl Function for Pdep {
    fn apply<W: Width>(_: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        let (mut mask, mut value, mut result) = (source.to_u64(), other.to_u64(), 0);
        while mask != 0 {
            result |= (value & 1) << mask.trailing_zeros();
            value >>= 1;
            mask &= mask - 1;
        }
        (W::from_u64(result), flags)
    }
}

/// How far SHLX, SARX and SHRX shift.
fn count<W: Width>(other: W) -> u32 {
    other.to_u64() as u32 & (W::BITS - 1)
}

struct Shlx;
impl Function for Shlx {
    fn apply<W: Width>(_: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        (W::from_u64(source.to_u64() << (count(other) & 63)), flags)
    }
}

struct Shrx;
impl Function for Shrx {
    fn apply<W: Width>(_: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        (W::from_u64(source.to_u64() >> (count(other) & 63)), flags)
    }
}

struct Sarx;
impl Function for Sarx {
    fn apply<W: Width>(_: UndefinedFlags, flags: Flags, source: W, other: W) -> (W, Flags) {
        (W::from_u64((source.to_i64() >> (count(other) & 63)) as u64), flags)
    }
}
