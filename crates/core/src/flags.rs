//! Lazy arithmetic flags: the last result and a carry-out vector, from which each flag is derived
//! when it is read.
//!
//! `result` is the result sign-extended to 64 bits: ZF is `result == 0`, SF its sign, PF the parity
//! of its low byte. `carries` holds CF in bit 63, CF ^ OF in bit 62, AF in bit 3, and two
//! corrections so that any flag can be set alone: bit 32 inverts SF, bits 8 to 15 are XORed
//! into the byte whose parity is PF.

use crate::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use crate::width::Width;

const CF_BIT: u32 = 63;
const OF_BIT: u32 = 62;
const SF_INVERT_BIT: u32 = 32;
const PARITY_SHIFT: u32 = 8;

/// The six arithmetic flags in lazy form.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Flags {
    result: u64,
    carries: u64,
}

impl Flags {
    /// The flags of an RFLAGS image.
    pub(crate) fn from_rflags(rflags: u64) -> Flags {
        let bit = |mask: u64| u64::from(rflags & mask != 0);
        // A result with the wanted ZF; its sign is clear and its parity even, so the corrections
        // are the wanted flags themselves.
        let result = if rflags & ZF != 0 { 0 } else { 0x300 };
        Flags {
            result,
            carries: bit(CF) << CF_BIT
                | (bit(CF) ^ bit(OF)) << OF_BIT
                | bit(AF) << 3
                | bit(SF) << SF_INVERT_BIT
                | (1 - bit(PF)) << PARITY_SHIFT,
        }
    }

    /// The six flags as an RFLAGS image; other bits are zero.
    pub(crate) fn to_rflags(self) -> u64 {
        u64::from(self.cf())
            | u64::from(self.pf()) << 2
            | u64::from(self.af()) << 4
            | u64::from(self.zf()) << 6
            | u64::from(self.sf()) << 7
            | u64::from(self.of()) << 11
    }

    /// CF, OF and AF clear, the others of `result`, which is sign-extended.
    #[inline(always)]
    pub(crate) fn logic(result: u64) -> Flags {
        Flags { result, carries: 0 }
    }

    /// The flags of a result with its carry-out vector, both of width `W`.
    #[inline(always)]
    fn of_carries<W: Width>(result: W, carries: W) -> Flags {
        let c = carries.to_u64();
        let top = (c << (64 - W::BITS)) & (3 << 62);
        Flags { result: result.to_i64() as u64, carries: top | c & 8 }
    }

    /// After `a + b (+ carry) = result`.
    #[inline(always)]
    pub(crate) fn add<W: Width>(a: W, b: W, result: W) -> Flags {
        let (a, b, r) = (a.to_u64(), b.to_u64(), result.to_u64());
        Flags::of_carries(result, W::from_u64(a & b | (a | b) & !r))
    }

    /// After `a - b (- borrow) = result`.
    #[inline(always)]
    pub(crate) fn sub<W: Width>(a: W, b: W, result: W) -> Flags {
        let (a, b, r) = (a.to_u64(), b.to_u64(), result.to_u64());
        Flags::of_carries(result, W::from_u64(!a & b | (!a | b) & r))
    }

    /// After a comparison of `a` with `b`: of `a - b`, which goes nowhere.
    #[inline(always)]
    pub(crate) fn compare<W: Width>(a: W, b: W) -> Flags {
        Flags::sub(a, b, W::from_u64(a.to_u64().wrapping_sub(b.to_u64())))
    }

    /// These flags with CF taken from `old`: INC and DEC.
    #[inline(always)]
    pub(crate) fn keep_cf(self, old: Flags) -> Flags {
        // OF is stored relative to CF, so both bits flip where CF does.
        let flip = (self.carries ^ old.carries) >> CF_BIT & 1;
        Flags { carries: self.carries ^ (flip << CF_BIT | flip << OF_BIT), ..self }
    }

    #[inline(always)]
    pub(crate) fn cf(self) -> bool {
        self.carries >> CF_BIT != 0
    }
    #[inline(always)]
    pub(crate) fn of(self) -> bool {
        (self.carries >> CF_BIT ^ self.carries >> OF_BIT) & 1 != 0
    }
    #[inline(always)]
    pub(crate) fn zf(self) -> bool {
        self.result == 0
    }
    #[inline(always)]
    pub(crate) fn sf(self) -> bool {
        (self.result >> 63 ^ self.carries >> SF_INVERT_BIT) & 1 != 0
    }
    #[inline(always)]
    pub(crate) fn af(self) -> bool {
        self.carries & 8 != 0
    }
    #[inline(always)]
    pub(crate) fn pf(self) -> bool {
        let byte = (self.result ^ self.carries >> PARITY_SHIFT) as u8;
        byte.count_ones() & 1 == 0
    }

    /// These flags with those in `mask` replaced by the ones in the RFLAGS image `values`.
    pub(crate) fn with(self, mask: u64, values: u64) -> Flags {
        debug_assert!(mask & !ARITH == 0);
        Flags::from_rflags(self.to_rflags() & !mask | values & mask)
    }

    /// These flags with CF set as given; the others keep their values.
    #[inline(always)]
    pub(crate) fn with_cf(self, cf: bool) -> Flags {
        let flip = self.carries >> CF_BIT ^ u64::from(cf);
        Flags { carries: self.carries ^ (flip << CF_BIT | flip << OF_BIT), ..self }
    }

    /// These flags with CF and OF set as given.
    #[inline(always)]
    pub(crate) fn with_cf_of(self, cf: bool, of: bool) -> Flags {
        let cleared = self.carries & !(3 << OF_BIT);
        let bits = u64::from(cf) << CF_BIT | u64::from(cf ^ of) << OF_BIT;
        Flags { carries: cleared | bits, ..self }
    }

    /// These flags with AF set as given.
    #[inline(always)]
    pub(crate) fn with_af(self, af: bool) -> Flags {
        Flags { carries: self.carries & !8 | u64::from(af) << 3, ..self }
    }

    /// Condition `code` of Jcc, SETcc, CMOVcc (SDM vol. 1, "EFLAGS Condition Codes").
    #[inline(always)]
    pub(crate) fn condition(self, code: u8) -> bool {
        let holds = match code >> 1 & 7 {
            0 => self.of(),
            1 => self.cf(),
            2 => self.zf(),
            3 => self.cf() | self.zf(),
            4 => self.sf(),
            5 => self.pf(),
            6 => self.sf() ^ self.of(),
            _ => (self.sf() ^ self.of()) | self.zf(),
        };
        holds ^ (code & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rflags_image_round_trips() {
        for image in 0..0x1000u64 {
            let image = image & ARITH;
            assert_eq!(Flags::from_rflags(image).to_rflags(), image);
        }
    }

    #[test]
    fn with_replaces_one_flag_and_keeps_the_others() {
        for image in (0..0x1000u64).map(|i| i & ARITH) {
            let flags = Flags::from_rflags(image);
            for cf in [false, true] {
                assert_eq!(flags.with_cf(cf).to_rflags(), image & !CF | u64::from(cf));
                for of in [false, true] {
                    let wanted = image & !(CF | OF) | u64::from(cf) | u64::from(of) << 11;
                    assert_eq!(flags.with_cf_of(cf, of).to_rflags(), wanted);
                }
                let old = Flags::from_rflags(u64::from(cf));
                assert_eq!(flags.keep_cf(old).to_rflags(), image & !CF | u64::from(cf));
                let wanted = image & !AF | u64::from(cf) << 4;
                assert_eq!(flags.with_af(cf).to_rflags(), wanted);
            }
        }
    }

    #[test]
    fn byte_addition_and_subtraction_have_the_manuals_flags() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                for carry in 0..=1u8 {
                    let sum = a.wrapping_add(b).wrapping_add(carry);
                    let wide = u16::from(a) + u16::from(b) + u16::from(carry);
                    let signed = i16::from(a as i8) + i16::from(b as i8) + i16::from(carry);
                    let flags = Flags::add(a, b, sum);
                    assert_eq!(flags.cf(), wide > 255);
                    assert_eq!(flags.of(), i16::from(sum as i8) != signed);
                    assert_eq!(flags.af(), (a & 15) + (b & 15) + carry > 15);
                    let difference = a.wrapping_sub(b).wrapping_sub(carry);
                    let signed = i16::from(a as i8) - i16::from(b as i8) - i16::from(carry);
                    let flags = Flags::sub(a, b, difference);
                    assert_eq!(flags.cf(), u16::from(a) < u16::from(b) + u16::from(carry));
                    assert_eq!(flags.of(), i16::from(difference as i8) != signed);
                    assert_eq!(flags.af(), (a & 15) < (b & 15) + carry);
                    assert_eq!(flags.zf(), difference == 0);
                    assert_eq!(flags.sf(), difference > 127);
                    assert_eq!(flags.pf(), difference.count_ones() % 2 == 0);
                }
            }
        }
    }
}
