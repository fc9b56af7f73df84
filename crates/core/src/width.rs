//! Operand widths: what differs between 8, 16, 32 and 64 bits, once.

use crate::arch::registers::Registers;
use crate::flags::Flags;

/// An operand width. Implemented by `u8`, `u16`, `u32` and `u64`.
pub(crate) trait Width: Copy + Eq + 'static {
    /// Bytes.
    const BYTES: usize;
    /// Bits.
    const BITS: u32 = Self::BYTES as u32 * 8;

    /// Truncates.
    fn from_u64(value: u64) -> Self;
    /// Zero-extends.
    fn to_u64(self) -> u64;
    /// Sign-extends to 64 bits.
    fn to_i64(self) -> i64;

    /// Reads the register that an operand number encodes. An 8-bit number has bit 4 set for
    /// AH, CH, DH, BH.
    fn read(registers: &Registers, number: u8) -> Self;
    /// Writes it: 8 and 16 bits keep the rest of the register, 32 bits zero the upper half.
    fn write(self, registers: &mut Registers, number: u8);

    /// The result flags of `self` with carry and overflow clear.
    #[inline(always)]
    fn logic_flags(self) -> Flags {
        Flags::logic(self.to_i64() as u64)
    }
}

macro_rules! width {
    ($u:ty, $i:ty, $registers:ident, $number:ident, $read:expr, $value:ident, $write:expr) => {
        impl Width for $u {
            const BYTES: usize = size_of::<$u>();
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as $u
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as $i as i64
            }
            #[inline(always)]
            fn read($registers: &Registers, $number: u8) -> Self {
                $read
            }
            #[inline(always)]
            fn write(self, $registers: &mut Registers, $number: u8) {
                let $value = self;
                $write
            }
        }
    };
}

/// The bit position of an 8-bit register within its 64: 8 for AH, CH, DH, BH.
#[inline(always)]
fn high_shift(number: u8) -> u32 {
    u32::from(number >> 4 & 1) * 8
}

width!(
    u8,
    i8,
    registers,
    number,
    (registers.slot(number & 15) >> high_shift(number)) as u8,
    value,
    {
        let shift = high_shift(number);
        let place = registers.slot_mut(number & 15);
        *place = *place & !(0xFF << shift) | u64::from(value) << shift;
    }
);
width!(u16, i16, registers, number, registers.slot(number) as u16, value, {
    let place = registers.slot_mut(number);
    // Rotated, because LLVM narrows the plain form to a 16-bit store, and the next 64-bit load
    // of the register then waits some 12 cycles for it.
    let rest = place.rotate_right(16) & (u64::MAX >> 16);
    *place = (rest | u64::from(value) << 48).rotate_left(16);
});
width!(u32, i32, registers, number, registers.slot(number) as u32, value, {
    *registers.slot_mut(number) = u64::from(value);
});
width!(u64, i64, registers, number, registers.slot(number), value, {
    *registers.slot_mut(number) = value;
});
