//! Tests of `isa/shift.rs`.

use crate::guest::Guest;
use crate::native::{Case, RESULT, State, compare};
use realmode::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
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

/// One step from AX and CL, with CF as given; AX and the flags afterwards.
fn shift_ax(profile: &Profile, code: &[u8], ax: u64, cl: u64, flags: u64) -> (u64, u64) {
    let mut guest = Guest::with_profile(profile, code).with(Reg::Rax, ax).with(Reg::Rcx, cl);
    guest.cpu.rflags |= flags;
    guest.step();
    (guest.reg(Reg::Rax), guest.flags())
}

#[test]
fn intel_takes_of_from_the_first_step_and_the_others_from_the_last() {
    // By 4: 4000h and 1 differ in their first and last step.
    let cases: [(&[u8], u64, u64, u64); 6] = [
        // rol, ror, rcl, rcr, shl, shr ax, cl
        (&[0xD3, 0xC0], 0x4000, OF, 0),
        (&[0xD3, 0xC8], 0x0001, OF, 0),
        (&[0xD3, 0xD0], 0x4000, OF, 0),
        (&[0xD3, 0xD8], 0x8000, OF, 0),
        (&[0xD3, 0xE0], 0x4000, OF, 0),
        (&[0xD3, 0xE8], 0x8000, OF, 0),
    ];
    for (code, ax, intel, last) in cases {
        assert_eq!(shift_ax(&Profile::INTEL, code, ax, 4, 0).1 & OF, intel, "{code:x?}");
        assert_eq!(shift_ax(&Profile::AMD, code, ax, 4, 0).1 & OF, last, "{code:x?}");
        assert_eq!(shift_ax(&Profile::I80286, code, ax, 4, 0).1 & OF, last, "{code:x?}");
    }
}

#[test]
fn a_rotate_by_immediate_spares_of_on_intel_in_a_register_only() {
    // rol ax, 4 and rol word [0x2000], 4
    assert_eq!(shift_ax(&Profile::INTEL, &[0xC1, 0xC0, 4], 0x4000, 0, 0).1, 0);
    assert_eq!(shift_ax(&Profile::INTEL, &[0xC1, 0xC0, 4], 0, 0, OF).1, OF);
    assert_eq!(shift_ax(&Profile::INTEL, &[0xC1, 0xC0, 1], 0x4000, 0, 0).1, OF);
    let mut guest = Guest::new(&[0xC1, 0x06, 0x00, 0x20, 4]);
    guest.poke(0x2000, &[0x00, 0x40]);
    guest.step();
    assert_eq!((guest.word(0x2000), guest.flags()), (0x0004, OF));
}

#[test]
fn a_count_of_zero_keeps_every_flag() {
    let all = ARITH;
    for digit in 0..8 {
        for cl in [0, 32, 64] {
            let code = [0xD3, 0xC0 | digit << 3];
            assert_eq!(shift_ax(&Profile::INTEL, &code, 0x1234, cl, all), (0x1234, all));
            assert_eq!(shift_ax(&Profile::I80286, &code, 0x1234, cl, 0), (0x1234, 0));
        }
    }
    for code in [[0x0F, 0xA5, 0xC0], [0x0F, 0xAD, 0xC0]] {
        assert_eq!(shift_ax(&Profile::INTEL, &code, 0x1234, 32, all), (0x1234, all));
    }
}

#[test]
fn rcl_by_a_whole_turn_changes_nothing_on_intel_and_of_elsewhere() {
    // rcl al, cl with 9: AL and CF are where they were.
    assert_eq!(shift_ax(&Profile::INTEL, &[0xD2, 0xD0], 0x80, 9, 0), (0x80, 0));
    assert_eq!(shift_ax(&Profile::AMD, &[0xD2, 0xD0], 0x80, 9, 0), (0x80, OF));
    assert_eq!(shift_ax(&Profile::I80286, &[0xD2, 0xD0], 0x80, 9, CF), (0x80, CF));
}

#[test]
fn a05_a_count_past_the_width_shifts_everything_out() {
    for profile in [&Profile::I80286, &Profile::INTEL, &Profile::AMD] {
        // shl al, 9; shl al, 8; shr ax, 17; sar ax, 31
        let cf = |code: &[u8], ax| {
            let (ax, flags) = shift_ax(profile, code, ax, 0, 0);
            (ax, flags & (CF | ZF | SF))
        };
        assert_eq!(cf(&[0xC0, 0xE0, 9], 0xFF), (0, ZF));
        assert_eq!(cf(&[0xC0, 0xE0, 8], 0x01), (0, ZF | CF));
        assert_eq!(cf(&[0xC1, 0xE8, 17], 0xFFFF), (0, ZF));
        assert_eq!(cf(&[0xC1, 0xF8, 31], 0x8000), (0xFFFF, CF | SF));
    }
}

#[test]
fn an_8086_takes_all_of_cl() {
    let code = [0xD3, 0xE0];
    assert_eq!(shift_ax(&Profile::I8086, &code, 0x1234, 33, 0).0, 0);
    assert_eq!(shift_ax(&Profile::I80286, &code, 0x1234, 33, 0).0, 0x2468);
    // ror ax, 255; rcr ax, 255 = 15 turns of 17
    assert_eq!(shift_ax(&Profile::I8086, &[0xD3, 0xC8], 0x0001, 255, 0).0, 0x0002);
    assert_eq!(shift_ax(&Profile::I8086, &[0xD3, 0xD8], 0x1234, 255, 0).0, 0x1234);
}

#[test]
fn the_8086_sets_all_ones_where_later_ones_shift_left() {
    let setmo = |code: &[u8], cl| shift_ax(&Profile::I8086, code, 0x1234, cl, ARITH);
    assert_eq!(setmo(&[0xD1, 0xF0], 0), (0xFFFF, SF | PF));
    assert_eq!(setmo(&[0xD2, 0xF0], 3), (0x12FF, SF | PF));
    assert_eq!(setmo(&[0xD3, 0xF0], 0), (0x1234, ARITH));
    assert_eq!(shift_ax(&Profile::I80286, &[0xD1, 0xF0], 0x1234, 0, 0).0, 0x2468);
}

#[test]
fn a16_sar_of_the_minimum_and_of_minus_one() {
    assert_eq!(shift_ax(&Profile::INTEL, &[0xD1, 0xF8], 0x8000, 0, 0), (0xC000, SF | PF));
    assert_eq!(shift_ax(&Profile::INTEL, &[0xD1, 0xF8], 0xFFFF, 0, 0), (0xFFFF, CF | SF | PF));
    assert_eq!(shift_ax(&Profile::INTEL, &[0xD0, 0xF8], 0x01, 0, 0), (0, CF | ZF | PF));
}

#[test]
fn d07_lock_on_a_shift_is_ud() {
    for code in [
        // shl word [0x2000], 1; shld [0x2000], ax, cl; shr byte [0x2000], 3
        &[0xF0, 0xD1, 0x26, 0x00, 0x20][..],
        &[0xF0, 0x0F, 0xA5, 0x06, 0x00, 0x20],
        &[0xF0, 0xC0, 0x2E, 0x00, 0x20, 3],
    ] {
        assert_eq!(Guest::new(code).fault(), Some(6));
    }
    // A 286 lets it pass.
    assert_eq!(Guest::with_profile(&Profile::I80286, &[0xF0, 0xD1, 0xE0]).fault(), None);
}

#[test]
fn double_shifts_in_memory_match_those_in_registers() {
    // shld [0x2000], bx, 4; shrd [0x2000], bx, cl
    for (memory, register) in [
        (&[0x0F, 0xA4, 0x1E, 0x00, 0x20, 4][..], &[0x0F, 0xA4, 0xD8, 4][..]),
        (&[0x0F, 0xAD, 0x1E, 0x00, 0x20], &[0x0F, 0xAD, 0xD8]),
    ] {
        let run = |code: &[u8]| {
            let guest = Guest::new(code).with(Reg::Rax, 0x1234).with(Reg::Rbx, 0xABCD);
            let mut guest = guest.with(Reg::Rcx, 5);
            guest.poke(0x2000, &[0x34, 0x12]);
            guest.step();
            guest
        };
        let (in_memory, in_register) = (run(memory), run(register));
        assert_eq!(u64::from(in_memory.word(0x2000)), in_register.reg(Reg::Rax));
        assert_eq!(in_memory.flags(), in_register.flags());
    }
}

#[test]
fn a_shift_of_a_device_is_one_read_and_one_write() {
    use crate::guest::{DEVICE, Seen};
    // shl byte [0x10], cl
    let mut guest = Guest::new(&[0xD2, 0x26, 0x10, 0x00]).with(Reg::Rcx, 1);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[0x10] = 0x81;
    guest.step();
    let at = DEVICE + 0x10;
    assert_eq!(guest.bus.seen, [Seen::Read(at, 1), Seen::Write(at, 1, 0x02)]);
    assert_eq!(guest.flags(), CF | OF);
}
