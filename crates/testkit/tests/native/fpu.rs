//! The x87 and SSE registers of a case.

use realmode_testkit::proof::*;

use crate::cases::{MODES, case, exception, native};

/// Offsets in the image.
const STATUS: usize = 2;
const TAGS: usize = 4;
const MXCSR: usize = 24;
const ST0: usize = 32;
const XMM1: usize = 160 + 16;

/// The x87 value 1.0.
const ONE: [u8; 10] = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0x3F];

#[test]
fn fld1_leaves_one_on_the_stack() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        let case = case(&native, mode, &[0xD9, 0xE8]);
        let (outcome, fpu) = native.run_with_fpu(&case, &FpuImage::CLEAN);
        assert_eq!(outcome.end, End::Returned);
        assert_eq!((fpu.0[STATUS + 1], fpu.0[TAGS]), (0x38, 0x80), "{mode:?}");
        assert_eq!(fpu.0[ST0..ST0 + 10], ONE);
        assert!(fpu.0[464..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn an_image_goes_in_and_comes_out() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // paddd xmm1, xmm1
        let case = case(&native, mode, &[0x66, 0x0F, 0xFE, 0xC9]);
        let mut before = FpuImage::CLEAN;
        before.0[XMM1..XMM1 + 16].fill(0x11);
        before.0[MXCSR + 1] = 0x7F; // round toward zero
        let (outcome, after) = native.run_with_fpu(&case, &before);
        assert_eq!(outcome.end, End::Returned);
        assert_eq!(after.0[XMM1..XMM1 + 16], [0x22; 16]);
        assert_eq!(after.0[MXCSR..MXCSR + 2], [0x80, 0x7F]);
    }
    // The host rounds as before.
    assert_eq!(std::hint::black_box(1.0_f32) + f32::EPSILON * 0.75, 1.0 + f32::EPSILON);
}

#[test]
fn an_exception_keeps_the_registers() {
    let Some(mut native) = native() else { return };
    let mut before = FpuImage::CLEAN;
    before.0[XMM1..XMM1 + 16].fill(0x3C);
    for mode in MODES {
        // divps xmm0, xmm0 with all exceptions unmasked: zero by zero.
        let case = case(&native, mode, &[0x0F, 0x5E, 0xC0]);
        before.0[MXCSR..MXCSR + 2].fill(0);
        let (outcome, after) = native.run_with_fpu(&case, &before);
        assert_eq!(exception(&native, &case, &outcome), (19, 0, 0));
        assert_eq!(after.0[XMM1..XMM1 + 16], [0x3C; 16]);
        assert_eq!(after.0[MXCSR], 0x01, "invalid operation");
    }
    // fwait with an exception pending
    let mut before = FpuImage::CLEAN;
    (before.0[0], before.0[STATUS]) = (0x7E, 0x81);
    let case = case(&native, Mode::Bits32, &[0x9B]);
    let (outcome, _) = native.run_with_fpu(&case, &before);
    assert_eq!(exception(&native, &case, &outcome), (16, 0, 0));
}

#[test]
fn upper_halves_of_long_registers_are_zero() {
    let Some(mut native) = native() else { return };
    if !host_profile().has(realmode::Features::AVX) {
        return println!("skipped: the processor has no AVX");
    }
    // vextractf128 xmm1, ymm2, 1
    let case = case(&native, Mode::Bits64, &[0xC4, 0xE3, 0x7D, 0x19, 0xD1, 0x01]);
    let mut before = FpuImage::CLEAN;
    before.0[XMM1..XMM1 + 32].fill(0x55);
    let (outcome, after) = native.run_with_fpu(&case, &before);
    assert_eq!((outcome.end, &after.0[XMM1..XMM1 + 16]), (End::Returned, &[0; 16][..]));
}
