//! Tests of `isa/shift.rs`.

use crate::guest::Guest;
use crate::native::{Case, RESULT, State, compare};
use realmode::arch::rflags::{AF, CF, OF, PF, SF, ZF};
use realmode::*;

/// Group 2 with one `/digit`: every width, by CL, by 1 and by immediates below, at and above the
/// width.
macro_rules! group {
    ($name:literal, $digit:literal) => {
        [
            case!(concat!($name, " al, cl"), [0xD2, 0xC0 | $digit << 3]),
            case!(concat!($name, " ah, cl"), [0xD2, 0xC4 | $digit << 3]),
            case!(concat!($name, " sil, cl"), [0x40, 0xD2, 0xC6 | $digit << 3]),
            case!(concat!($name, " ax, cl"), [0x66, 0xD3, 0xC0 | $digit << 3]),
            case!(concat!($name, " eax, cl"), [0xD3, 0xC0 | $digit << 3]),
            case!(concat!($name, " rax, cl"), [0x48, 0xD3, 0xC0 | $digit << 3]),
            case!(concat!($name, " cl, cl"), [0xD2, 0xC1 | $digit << 3]),
            case!(concat!($name, " dl, 1"), [0xD0, 0xC2 | $digit << 3]),
            case!(concat!($name, " dx, 1"), [0x66, 0xD1, 0xC2 | $digit << 3]),
            case!(concat!($name, " edx, 1"), [0xD1, 0xC2 | $digit << 3]),
            case!(concat!($name, " rdx, 1"), [0x48, 0xD1, 0xC2 | $digit << 3]),
            case!(concat!($name, " dl, 8"), [0xC0, 0xC2 | $digit << 3, 8]),
            case!(concat!($name, " dl, 9"), [0xC0, 0xC2 | $digit << 3, 9]),
            case!(concat!($name, " dx, 3"), [0x66, 0xC1, 0xC2 | $digit << 3, 3]),
            case!(concat!($name, " dx, 17"), [0x66, 0xC1, 0xC2 | $digit << 3, 17]),
            case!(concat!($name, " edx, 31"), [0xC1, 0xC2 | $digit << 3, 31]),
            case!(concat!($name, " edx, 32"), [0xC1, 0xC2 | $digit << 3, 32]),
            case!(concat!($name, " rdx, 33"), [0x48, 0xC1, 0xC2 | $digit << 3, 33]),
        ]
    };
}

macro_rules! double {
    ($name:literal, $opcode:literal) => {
        [
            case!(concat!($name, " eax, edx, cl"), [0x0F, $opcode + 1, 0xD0]),
            case!(concat!($name, " rax, rdx, cl"), [0x48, 0x0F, $opcode + 1, 0xD0]),
            case!(concat!($name, " eax, eax, cl"), [0x0F, $opcode + 1, 0xC0]),
            case!(concat!($name, " ax, si, 1"), [0x66, 0x0F, $opcode, 0xF0, 1]),
            case!(concat!($name, " ax, si, 16"), [0x66, 0x0F, $opcode, 0xF0, 16]),
            case!(concat!($name, " eax, esi, 1"), [0x0F, $opcode, 0xF0, 1]),
            case!(concat!($name, " eax, esi, 64"), [0x0F, $opcode, 0xF0, 64]),
            case!(concat!($name, " rax, rsi, 40"), [0x48, 0x0F, $opcode, 0xF0, 40]),
        ]
    };
}

macro_rules! double_16 {
    ($name:literal, $opcode:literal) => {
        [
            case!(concat!($name, " ax, dx, cl"), [0x66, 0x0F, $opcode + 1, 0xD0]),
            case!(concat!($name, " ax, ax, cl"), [0x66, 0x0F, $opcode + 1, 0xC0]),
        ]
    };
}

const ROUNDS: usize = 4000;

#[test]
fn rotates_agree_with_the_host() {
    let cases: [[Case; 18]; 4] =
        [group!("rol", 0), group!("ror", 1), group!("rcl", 2), group!("rcr", 3)];
    for group in cases {
        compare(&group, ROUNDS, |_| {}, |_| OF);
    }
}

#[test]
fn shifts_agree_with_the_host() {
    let cases: [[Case; 18]; 3] = [group!("shl", 4), group!("shr", 5), group!("sar", 7)];
    // A byte shifted by more than its width leaves CF undefined, so CF too is compared only
    // where it was measured.
    for group in cases {
        compare(&group, ROUNDS, |_| {}, |_| OF | AF | CF);
    }
}

#[test]
fn shifts_by_one_define_of() {
    let by_one = |state: &mut State| state.rcx = state.rcx & !0xFF | 1;
    let cases: [[Case; 18]; 7] = [
        group!("rol", 0),
        group!("ror", 1),
        group!("rcl", 2),
        group!("rcr", 3),
        group!("shl", 4),
        group!("shr", 5),
        group!("sar", 7),
    ];
    for group in &cases {
        compare(&group[..11], ROUNDS / 4, by_one, |_| AF);
    }
}

#[test]
fn a05_double_shifts_agree_with_the_host() {
    for cases in [double!("shld", 0xA4), double!("shrd", 0xAC)] {
        compare(&cases, ROUNDS, |_| {}, |_| OF | AF);
    }
    for cases in [double_16!("shld", 0xA4), double_16!("shrd", 0xAC)] {
        let past_width = |state: &State| state.rcx & 31 > 16;
        let undefined = |state: &State| if past_width(state) { RESULT } else { OF | AF };
        compare(&cases, ROUNDS, |_| {}, undefined);
    }
    let cases = [
        case!("shld ax, si, 29", [0x66, 0x0F, 0xA4, 0xF0, 29]),
        case!("shrd ax, si, 29", [0x66, 0x0F, 0xAC, 0xF0, 29]),
    ];
    compare(&cases, ROUNDS, |_| {}, |_| RESULT);
}
