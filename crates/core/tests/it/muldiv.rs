//! Tests of `isa/muldiv.rs`.

use crate::guest::{CODE, Guest};
use crate::native::{State, compare};
use realmode::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use realmode::*;

const ROUNDS: usize = 4000;

#[test]
fn products_agree_with_the_host() {
    let cases = [
        case!("mul sil", [0x40, 0xF6, 0xE6]),
        case!("mul ah", [0xF6, 0xE4]),
        case!("mul si", [0x66, 0xF7, 0xE6]),
        case!("mul esi", [0xF7, 0xE6]),
        case!("mul rsi", [0x48, 0xF7, 0xE6]),
        case!("imul dl", [0xF6, 0xEA]),
        case!("imul dx", [0x66, 0xF7, 0xEA]),
        case!("imul edx", [0xF7, 0xEA]),
        case!("imul rdx", [0x48, 0xF7, 0xEA]),
        case!("imul ax, si", [0x66, 0x0F, 0xAF, 0xC6]),
        case!("imul eax, esi", [0x0F, 0xAF, 0xC6]),
        case!("imul rcx, rdx", [0x48, 0x0F, 0xAF, 0xCA]),
        case!("imul dx, si, 0x1234", [0x66, 0x69, 0xD6, 0x34, 0x12]),
        case!("imul edx, esi, -0x12345678", [0x69, 0xD6, 0x88, 0xA9, 0xCB, 0xED]),
        case!("imul rdx, rsi, -0x12345678", [0x48, 0x69, 0xD6, 0x88, 0xA9, 0xCB, 0xED]),
        case!("imul dx, si, -3", [0x66, 0x6B, 0xD6, 0xFD]),
        case!("imul edx, esi, 127", [0x6B, 0xD6, 0x7F]),
        case!("imul rdx, rsi, -128", [0x48, 0x6B, 0xD6, 0x80]),
    ];
    compare(&cases, ROUNDS, |_| {}, |_| SF | ZF | AF | PF);
}

/// Makes RDX:RAX, or AX, divisible by RSI without #DE: the quotient comes from RAX, the
/// remainder from RDX.
fn divisible(state: &mut State, bits: u32) {
    let mask = u64::MAX >> (64 - bits);
    let divisor = u128::from((state.rsi & mask).max(1));
    let remainder = u128::from(state.rdx & mask) % divisor;
    let dividend = u128::from(state.rax & mask) * divisor + remainder;
    state.rsi = divisor as u64;
    place(state, dividend, bits);
}

/// The same for a signed division.
fn divisible_signed(state: &mut State, bits: u32) {
    let signed = |value: u64| i128::from((value << (64 - bits)) as i64 >> (64 - bits));
    let divisor = match signed(state.rsi) {
        0 => 1,
        divisor => divisor,
    };
    let product = signed(state.rax) * divisor;
    let size = i128::from(state.rdx) % divisor.abs();
    let remainder = if product < 0 { -size } else { size };
    // A product of 0 hides the sign of its quotient.
    let remainder = if product == 0 { 0 } else { remainder };
    state.rsi = divisor as u64;
    place(state, (product + remainder) as u128, bits);
}

fn place(state: &mut State, dividend: u128, bits: u32) {
    if bits == 8 {
        state.rax = dividend as u64 & 0xFFFF;
    } else {
        let mask = u64::MAX >> (64 - bits);
        state.rax = dividend as u64 & mask;
        state.rdx = (dividend >> bits) as u64 & mask;
    }
}

#[test]
fn quotients_agree_with_the_host() {
    let unsigned = [
        (8, case!("div sil", [0x40, 0xF6, 0xF6])),
        (16, case!("div si", [0x66, 0xF7, 0xF6])),
        (32, case!("div esi", [0xF7, 0xF6])),
        (64, case!("div rsi", [0x48, 0xF7, 0xF6])),
    ];
    for (bits, case) in unsigned {
        compare(&[case], ROUNDS, |state| divisible(state, bits), |_| ARITH);
    }
    let signed = [
        (8, case!("idiv sil", [0x40, 0xF6, 0xFE])),
        (16, case!("idiv si", [0x66, 0xF7, 0xFE])),
        (32, case!("idiv esi", [0xF7, 0xFE])),
        (64, case!("idiv rsi", [0x48, 0xF7, 0xFE])),
    ];
    for (bits, case) in signed {
        compare(&[case], ROUNDS, |state| divisible_signed(state, bits), |_| ARITH);
    }
}

/// A guest that divides AX by BL or DX:AX by BX.
fn divider(profile: &Profile, code: &[u8], dx: u64, ax: u64, bx: u64) -> Guest {
    Guest::with_profile(profile, code).with(Reg::Rdx, dx).with(Reg::Rax, ax).with(Reg::Rbx, bx)
}

const DIV_BL: &[u8] = &[0xF6, 0xF3];
const DIV_BX: &[u8] = &[0xF7, 0xF3];
const IDIV_BL: &[u8] = &[0xF6, 0xFB];
const IDIV_BX: &[u8] = &[0xF7, 0xFB];

#[test]
fn a_quotient_that_does_not_fit_raises_de_and_changes_nothing() {
    let cases: [(&[u8], u64, u64, u64); 8] = [
        (DIV_BL, 0, 0x1234, 0),
        (DIV_BL, 0, 0x0500, 5),
        (DIV_BX, 5, 0, 5),
        (DIV_BX, 0, 5, 0),
        (IDIV_BL, 0, 0x80 * 3, 3),
        (IDIV_BL, 0, 0x8000, 0xFF),
        (IDIV_BX, 0x8000, 0, 0xFFFF),
        (IDIV_BX, 0xFFFF, 0x7FFF, 1),
    ];
    for (code, dx, ax, bx) in cases {
        for profile in Profile::ALL {
            let mut guest = divider(profile, code, dx, ax, bx);
            guest.cpu.rflags |= ARITH;
            assert_eq!(guest.fault(), Some(0), "{code:x?} {dx:x}:{ax:x}/{bx:x} {}", profile.name);
            assert_eq!((guest.reg(Reg::Rdx), guest.reg(Reg::Rax)), (dx, ax));
            assert_eq!(guest.flags(), ARITH);
            // 8086: the frame holds the next instruction.
            let next = if profile.name == "8086" { 2 } else { 0 };
            assert_eq!(guest.word(0xEFA), CODE as u16 + next, "{}", profile.name);
        }
    }
}

#[test]
fn idiv_allows_the_most_negative_quotient_except_on_an_8086() {
    for profile in Profile::ALL {
        for (code, dx, ax, bx, wanted) in [
            (IDIV_BL, 0, 0x80 * 3 + 1, 0xFD, (0, 0x0180)),
            (IDIV_BX, 0xFFFF, 0x8000, 1, (0, 0x8000)),
        ] {
            let mut guest = divider(profile, code, dx, ax, bx);
            let fault = guest.fault();
            if profile.name == "8086" {
                assert_eq!(fault, Some(0));
            } else {
                assert_eq!(fault, None, "{}", profile.name);
                assert_eq!((guest.reg(Reg::Rdx), guest.reg(Reg::Rax)), wanted);
            }
        }
    }
}

#[test]
fn a_286_lets_an_overflow_pass_that_looks_like_the_most_negative_quotient() {
    let mut guest = divider(&Profile::I80286, IDIV_BL, 0, 0xB0E3, 0x1E);
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0xE380);
    assert_eq!(divider(&Profile::I80386, IDIV_BL, 0, 0xB0E3, 0x1E).fault(), Some(0));
}

#[test]
fn div_reads_its_operand_in_memory_once() {
    let mut guest = Guest::new(&[0xF7, 0x36, 0x10, 0x00]).with(Reg::Rax, 100);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[0x10] = 7;
    guest.step();
    assert_eq!((guest.reg(Reg::Rax), guest.reg(Reg::Rdx)), (14, 2));
    assert_eq!(guest.bus.seen, [crate::guest::Seen::Read(crate::guest::DEVICE + 0x10, 2)]);
}

#[test]
fn mul_leaves_the_flags_each_maker_leaves() {
    // 0x55 * 0x10 = 0x0550; 0x80 * 2 = 0x0100, whose low half is zero.
    for (profile, al, flags) in [
        (&Profile::INTEL, 0x55, CF | OF | PF),
        (&Profile::INTEL, 0x10, CF | OF | PF),
        (&Profile::AMD, 0x55, CF | OF | SF | ZF | AF | PF),
        (&Profile::I80286, 0x55, CF | OF | AF | PF),
        (&Profile::I80286, 0x01, ZF | AF | PF),
    ] {
        let mut guest =
            Guest::with_profile(profile, &[0xF6, 0xE3]).with(Reg::Rax, al).with(Reg::Rbx, 0x10);
        guest.cpu.rflags |= ARITH;
        guest.step();
        assert_eq!(guest.flags(), flags, "{} {al:x}", profile.name);
    }
}

#[test]
fn imul_by_immediate_came_with_the_80186() {
    let code = [0x6B, 0xC3, 0xFE];
    let mut guest = Guest::with_profile(&Profile::I80286, &code).with(Reg::Rbx, 0x4001);
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0x7FFE);
    assert_eq!(guest.flags() & (CF | OF), CF | OF);
}
