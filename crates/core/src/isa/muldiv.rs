//! MUL, IMUL with one, two and three operands, DIV, IDIV.
//!
//! The leaves take values: a multiplication returns both halves of its product, a division its
//! quotient and remainder, or nothing where the processor raises #DE.

use crate::arch::registers::Reg;
use crate::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use crate::fault::Fault;
use crate::flags::Flags;
use crate::isa::divide_286::{self, Division};
use crate::isa::operand::Operand::{Eb, Ev, Gv, Ibs, Iz};
use crate::isa::row::{Exec, Row, one, sized, two};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, UndefinedFlags};
use crate::width::Width;

use FlagRule::{ByDivision, ByHighHalf, ByResult, Cleared, Kept, Set};
use UndefinedFlags::{Amd, Early, Intel};

/// An operation on the accumulator pair and one operand.
trait Wide {
    fn apply<W: Width>(m: &mut Machine<'_, '_>, b: W) -> Step;
}

/// A product in two halves, and whether the low one alone does not hold it.
struct Product<W> {
    high: W,
    low: W,
    overflow: bool,
}

fn multiply<W: Width>(a: W, b: W) -> Product<W> {
    let product = u128::from(a.to_u64()) * u128::from(b.to_u64());
    let high = W::from_u64((product >> W::BITS) as u64);
    Product { high, low: W::from_u64(product as u64), overflow: high.to_u64() != 0 }
}

fn multiply_signed<W: Width>(a: W, b: W) -> Product<W> {
    let product = i128::from(a.to_i64()) * i128::from(b.to_i64());
    let low = W::from_u64(product as u64);
    Product {
        high: W::from_u64((product >> W::BITS) as u64),
        low,
        overflow: i128::from(low.to_i64()) != product,
    }
}

/// CF and OF tell whether the low half holds the product.
fn product_flags<W: Width>(rules: UndefinedFlags, old: Flags, product: &Product<W>) -> Flags {
    let others = match rules {
        // The multiplier's last step leaves the flags of the high half.
        Early => product.high.logic_flags().with_af(true),
        Intel if product.low.to_u64() == 0 => product.low.logic_flags().with(ZF, 0),
        Intel => product.low.logic_flags(),
        Amd => old,
    };
    others.with_cf_of(product.overflow, product.overflow)
}

/// The quotient and remainder of an unsigned division, or `None` for #DE.
fn divide<W: Width>(high: W, low: W, divisor: W) -> Option<(W, W)> {
    if high.to_u64() >= divisor.to_u64() {
        return None;
    }
    if W::BITS < 64 || high.to_u64() == 0 {
        let dividend = high.to_u64().checked_shl(W::BITS).unwrap_or(0) | low.to_u64();
        let (q, r) = (dividend / divisor.to_u64(), dividend % divisor.to_u64());
        return Some((W::from_u64(q), W::from_u64(r)));
    }
    let dividend = u128::from(high.to_u64()) << W::BITS | u128::from(low.to_u64());
    let divisor = u128::from(divisor.to_u64());
    Some((W::from_u64((dividend / divisor) as u64), W::from_u64((dividend % divisor) as u64)))
}

/// The quotient and remainder of a signed division, or `None` for #DE. The remainder has the
/// sign of the dividend.
fn divide_signed<W: Width>(generation: Generation, high: W, low: W, divisor: W) -> Option<(W, W)> {
    let dividend = i128::from(high.to_i64()) << W::BITS | i128::from(low.to_u64());
    let is_negative = (dividend < 0) != (divisor.to_i64() < 0);
    let by = divisor.to_i64().unsigned_abs();
    let (quotient, remainder) = divide_magnitudes(dividend.unsigned_abs(), by)?;
    // The 8086 takes the most negative quotient for an overflow too.
    let most_negative = 1 << (W::BITS - 1);
    let room = is_negative && generation != Generation::I8086;
    if quotient > most_negative || quotient == most_negative && !room {
        return None;
    }
    let signed = |value: u64, negative: bool| {
        W::from_u64(if negative { value.wrapping_neg() } else { value })
    };
    Some((signed(quotient, is_negative), signed(remainder, dividend < 0)))
}

fn divide_magnitudes(dividend: u128, divisor: u64) -> Option<(u64, u64)> {
    if let Ok(dividend) = u64::try_from(dividend) {
        return Some((dividend.checked_div(divisor)?, dividend % divisor));
    }
    let quotient = dividend.checked_div(divisor.into())?;
    Some((u64::try_from(quotient).ok()?, (dividend % u128::from(divisor)) as u64))
}

/// The accumulator pair: AH:AL, or rDX:rAX.
fn read_pair<W: Width>(m: &Machine<'_, '_>) -> (W, W) {
    (W::read(&m.cpu.gpr, high_register::<W>()), W::read(&m.cpu.gpr, Reg::Rax as u8))
}

fn write_pair<W: Width>(m: &mut Machine<'_, '_>, high: W, low: W) {
    low.write(&mut m.cpu.gpr, Reg::Rax as u8);
    high.write(&mut m.cpu.gpr, high_register::<W>());
}

/// AH (number 16), or rDX.
const fn high_register<W: Width>() -> u8 {
    if W::BITS == 8 { 16 } else { Reg::Rdx as u8 }
}

struct Mul;
impl Wide for Mul {
    fn apply<W: Width>(m: &mut Machine<'_, '_>, b: W) -> Step {
        let product = multiply(W::read(&m.cpu.gpr, Reg::Rax as u8), b);
        finish_product(m, &product)
    }
}

struct Imul;
impl Wide for Imul {
    fn apply<W: Width>(m: &mut Machine<'_, '_>, b: W) -> Step {
        let product = multiply_signed(W::read(&m.cpu.gpr, Reg::Rax as u8), b);
        finish_product(m, &product)
    }
}

fn finish_product<W: Width>(m: &mut Machine<'_, '_>, product: &Product<W>) -> Step {
    write_pair(m, product.high, product.low);
    m.flags = product_flags(m.profile.undefined_flags, m.flags, product);
    Ok(())
}

struct Div;
impl Wide for Div {
    fn apply<W: Width>(m: &mut Machine<'_, '_>, b: W) -> Step {
        let (high, low) = read_pair::<W>(m);
        if m.profile.generation == Generation::I80286 {
            return finish_division(m, &divide_286::unsigned(high, low, b));
        }
        let (quotient, remainder) = divide(high, low, b).ok_or(Fault::DE)?;
        write_pair(m, remainder, quotient);
        m.flags = match m.profile.undefined_flags {
            Early => m.flags,
            Intel => Flags::logic(0),
            Amd => amd_division_flags(m.flags),
        };
        Ok(())
    }
}

struct Idiv;
impl Wide for Idiv {
    fn apply<W: Width>(m: &mut Machine<'_, '_>, b: W) -> Step {
        let (high, low) = read_pair::<W>(m);
        let generation = m.profile.generation;
        if generation == Generation::I80286 {
            return finish_division(m, &divide_286::signed(high, low, b));
        }
        let (quotient, remainder) = divide_signed(generation, high, low, b).ok_or(Fault::DE)?;
        write_pair(m, remainder, quotient);
        if m.profile.undefined_flags == Amd {
            m.flags = amd_division_flags(m.flags);
        }
        Ok(())
    }
}

/// An 80286 has changed the flags when it finds that it cannot divide.
fn finish_division<W: Width>(m: &mut Machine<'_, '_>, division: &Division<W>) -> Step {
    m.flags = division.flags;
    let (quotient, remainder) = division.result.ok_or(Fault::DE)?;
    write_pair(m, remainder, quotient);
    Ok(())
}

fn amd_division_flags(old: Flags) -> Flags {
    old.with(AF | SF | ZF | PF, AF)
}

/// Register operand.
fn r<O: Wide, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.rm);
    O::apply(m, b)
}

/// Memory operand.
fn m<O: Wide, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = m.load::<W>(op)?;
    O::apply(m, b)
}

/// The low half of a signed product into a register.
fn product_into<W: Width>(m: &mut Machine<'_, '_>, number: u8, a: W, b: W) -> Step {
    let product = multiply_signed(a, b);
    product.low.write(&mut m.cpu.gpr, number);
    m.flags = product_flags(m.profile.undefined_flags, m.flags, &product);
    Ok(())
}

/// IMUL reg, reg.
fn r_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (a, b) = (W::read(&m.cpu.gpr, op.rm), W::read(&m.cpu.gpr, op.reg));
    product_into(m, op.rm, a, b)
}

/// IMUL reg, memory.
fn r_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = m.load::<W>(op)?;
    let a = W::read(&m.cpu.gpr, op.reg);
    product_into(m, op.reg, a, b)
}

/// IMUL reg, reg, immediate.
fn r_r_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let a = W::read(&m.cpu.gpr, op.reg);
    product_into(m, op.rm, a, W::from_u64(op.imm))
}

/// IMUL reg, memory, immediate.
fn r_m_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let a = m.load::<W>(op)?;
    product_into(m, op.reg, a, W::from_u64(op.imm))
}

const fn group<O: Wide + 'static>(name: &'static str, digit: u8) -> [Row; 2] {
    [
        one(name, 0xF6, &[Eb])
            .digit(digit)
            .exec(Exec::Forms(const { &[r::<O, u8> as Handler, m::<O, u8> as Handler] })),
        one(name, 0xF7, &[Ev])
            .digit(digit)
            .exec(Exec::FormSizes(const { &[sized!(r, O), sized!(m, O)] })),
    ]
}

const fn multiplies(row: Row) -> Row {
    row.changes(CF | OF)
        .undefined(SF | ZF | AF | PF, Kept)
        .on(Early, SF | ZF | PF, ByHighHalf)
        .on(Early, AF, Set)
        .on(Intel, SF | PF, ByResult)
        .on(Intel, ZF | AF, Cleared)
}

const fn divides(row: Row) -> Row {
    let row = row.undefined(ARITH, Kept).on(Early, ARITH, ByDivision);
    row.on(Amd, AF, Set).on(Amd, SF | ZF | PF, Cleared)
}

/// DIV, which on Intel leaves the flags of 0.
const fn divides_unsigned(row: Row) -> Row {
    divides(row).on(Intel, CF | OF | SF | AF, Cleared).on(Intel, ZF | PF, Set)
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &{
    let (mul, imul) = (group::<Mul>("MUL", 4), group::<Imul>("IMUL", 5));
    let (div, idiv) = (group::<Div>("DIV", 6), group::<Idiv>("IDIV", 7));
    const TWO: Exec = Exec::FormSizes(&[sized!(r_r), sized!(r_m)]);
    const THREE: Exec = Exec::FormSizes(&[sized!(r_r_i), sized!(r_m_i)]);
    [
        multiplies(mul[0]),
        multiplies(mul[1]),
        multiplies(imul[0]),
        multiplies(imul[1]),
        divides_unsigned(div[0]),
        divides_unsigned(div[1]),
        divides(idiv[0]),
        divides(idiv[1]),
        multiplies(two("IMUL", 0xAF, &[Gv, Ev]).exec(TWO)),
        multiplies(one("IMUL", 0x69, &[Gv, Ev, Iz]).since(Generation::I80186).exec(THREE)),
        multiplies(one("IMUL", 0x6B, &[Gv, Ev, Ibs]).since(Generation::I80186).exec(THREE)),
    ]
};
