//! Many cases on several threads at once, each of them verified.

use std::thread;
use std::time::Instant;

use realmode::arch::rflags::{ARITH, ZF};
use realmode_testkit::proof::*;

use crate::cases::{MODES, SP, case, exception, native, peek};

/// Cases of each thread.
const CASES: u64 = 200_000;

/// Runs `add ax, bx`, `div cl` and `push eax` on values that a generator gives, and checks all
/// that they leave.
fn soak(mut native: Native, seed: u64) {
    let layout = native.layout();
    let mut random = seed;
    for number in 0..CASES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let mode = MODES[(number % 3) as usize];
        let code: &[u8] = match number % 64 {
            0 => &[0xF6, 0xF1],
            1..32 => &[0x66, 0x01, 0xD8],
            _ => &[0x50],
        };
        let mut case = case(&native, mode, code);
        case.gpr.iter_mut().enumerate().filter(|(i, _)| *i != 4).for_each(|(i, value)| {
            *value = random.rotate_left(i as u32 * 7);
        });
        case.gpr[4] += random >> 20 & 0xFF8;
        case.gpr[1] &= !0xFF;
        case.rflags |= random >> 30 & ARITH;
        let outcome = native.run(&case);
        let mut gpr = case.gpr;
        let word = |value: u64| if mode == Mode::Bits64 { value } else { value & 0xFFFF_FFFF };
        match number % 64 {
            0 => assert_eq!(exception(&native, &case, &outcome), (0, 0, 0)),
            1..32 => {
                // In 16-bit code 66 makes it 32 bits wide.
                let sum = (gpr[0] as u32).wrapping_add(gpr[3] as u32);
                let low = (gpr[0] as u16).wrapping_add(gpr[3] as u16);
                let is_wide = mode == Mode::Bits16;
                gpr[0] = if is_wide { sum.into() } else { gpr[0] & !0xFFFF | u64::from(low) };
                let is_zero = if is_wide { sum == 0 } else { low == 0 };
                assert_eq!((outcome.end, outcome.rflags & ZF != 0), (End::Returned, is_zero));
            }
            _ => {
                let size = [2, 4, 8][(number % 3) as usize];
                gpr[4] -= size;
                let at = STACK + SP as u32 + (random >> 20 & 0xFF8) as u32;
                let pushed = peek(&native, at - 8) >> (64 - 8 * size);
                let mask = u64::MAX >> (64 - 8 * size);
                assert_eq!((outcome.end, pushed), (End::Returned, case.gpr[0] & mask));
                assert_eq!(outcome.rflags, case.rflags);
            }
        }
        if mode != Mode::Bits64 {
            gpr[8..].fill(0);
            assert_eq!(outcome.selectors, case.segments.map(|kind| layout.selector(kind)));
        }
        assert_eq!(outcome.gpr, gpr.map(word), "{mode:?} {number}");
    }
}

fn soak_threads(threads: u64) {
    let workers: Vec<_> = (0..threads)
        .map(|seed| thread::spawn(move || native().map(|native| soak(native, seed))))
        .collect();
    workers.into_iter().for_each(|worker| {
        worker.join().expect("all cases are as they should be");
    });
}

#[test]
fn two_threads_at_once() {
    soak_threads(2);
}

#[test]
fn four_threads_at_once() {
    soak_threads(4);
}

/// Prints the least time a case took; how much that is says nothing about right or wrong.
#[test]
fn time_of_a_case() {
    let Some(mut native) = native() else { return };
    let kinds = [
        ("returning", &[0x01, 0xD8][..]),
        ("raising #DE", &[0xF7, 0xF1]),
        ("raising #UD", &[0x0F, 0x0B]),
    ];
    for (mode, (what, code)) in MODES.into_iter().flat_map(|mode| kinds.map(|kind| (mode, kind))) {
        let case = case(&native, mode, code);
        let best = (0..50)
            .map(|_| {
                let start = Instant::now();
                (0..200).for_each(|_| {
                    std::hint::black_box(native.run(&case));
                });
                start.elapsed() / 200
            })
            .min()
            .unwrap_or_default();
        println!("{mode:?}, {what}: {best:?} a case");
    }
}
