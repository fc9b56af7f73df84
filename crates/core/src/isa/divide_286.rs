//! Division as the 80286's microcode does it, for the flags it leaves and the overflows it misses.
//!
//! Derived from captured divisions, with which it agrees to the last flag: the processor divides
//! bit by bit, in a register of the operand's width. It pushes the flags that the work so far has
//! left when it raises #DE.

use crate::flags::Flags;
use crate::width::Width;

/// What became of a division.
pub(crate) struct Division<W> {
    /// Quotient and remainder, or `None` for #DE.
    pub(crate) result: Option<(W, W)>,
    pub(crate) flags: Flags,
}

/// The flags of a value, with CF and OF as given and AF set.
fn flags_of<W: Width>(value: W, carry: bool) -> Flags {
    value.logic_flags().with_cf_of(carry, carry).with_af(true)
}

/// DIV. An overflow is found by a subtraction before the first step and acted on before the last
/// one, so that #DE leaves the flags of the last subtraction but one.
pub(crate) fn unsigned<W: Width>(high: W, low: W, divisor: W) -> Division<W> {
    let by = divisor.to_u64();
    let overflow = high.to_u64() >= by;
    let mut remainder = high.to_u64() - if overflow { by } else { 0 };
    let mut quotient = 0;
    let mut borrow = false;
    for bit in (0..W::BITS).rev() {
        let shifted = remainder << 1 | low.to_u64() >> bit & 1;
        let (a, r) = (W::from_u64(shifted), W::from_u64(shifted.wrapping_sub(by)));
        let flags = Flags::sub(a, divisor, r);
        if overflow && bit == 1 {
            return Division { result: None, flags };
        }
        borrow = flags.cf();
        let fits = shifted >= by;
        remainder = if fits { r.to_u64() } else { shifted };
        quotient = quotient << 1 | u64::from(fits);
    }
    let remainder = W::from_u64(remainder);
    Division {
        result: Some((W::from_u64(quotient), remainder)),
        flags: flags_of(remainder, borrow),
    }
}

/// IDIV divides magnitudes. An overflow shows as a set first bit of the quotient, except that the
/// most negative quotient has it set too. A remainder that no longer fits the register is cut off
/// on the way, so some overflows end up looking like that quotient and pass: AX = B0E3h by 1Eh
/// gives 80h, remainder E3h.
pub(crate) fn signed<W: Width>(high: W, low: W, divisor: W) -> Division<W> {
    let dividend = i128::from(high.to_i64()) << W::BITS | i128::from(low.to_u64());
    let magnitude = dividend.unsigned_abs();
    let by = divisor.to_i64().unsigned_abs();
    let most_negative = 1 << (W::BITS - 1);
    let mut remainder = (magnitude >> W::BITS) as u64;
    let mut quotient = 0;
    for bit in (0..W::BITS).rev() {
        remainder = W::from_u64(remainder << 1 | (magnitude >> bit) as u64 & 1).to_u64();
        let fits = remainder >= by;
        remainder -= if fits { by } else { 0 };
        quotient = quotient << 1 | u64::from(fits);
    }
    let is_negative = (dividend < 0) != (divisor.to_i64() < 0);
    let passes = quotient < most_negative || quotient == most_negative && is_negative;
    // No capture shows the most negative dividend, whose first bit would be cut off.
    let is_extreme = magnitude >> (2 * W::BITS - 1) != 0;
    let carry = (divisor.to_i64() >= 0) != (remainder >= by);
    let left = if remainder == by { 0 } else { remainder };
    let negate = |value: u64, negative: bool| {
        W::from_u64(if negative { value.wrapping_neg() } else { value })
    };
    let flags = flags_of(negate(left, dividend < 0), carry);
    let result = (negate(quotient, is_negative), negate(remainder, dividend < 0));
    Division { result: (passes && by != 0 && !is_extreme).then_some(result), flags }
}
