//! Tests of `isa/bcd.rs`. The 80286 profile is held against captured vectors; here are the
//! corners, and the differences between processors.

use crate::guest::Guest;
use realmode::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use realmode::*;

/// One step from AX and flags; AX and the flags afterwards.
fn adjust(profile: &Profile, code: &[u8], ax: u64, flags: u64) -> (u64, u64) {
    let mut guest = Guest::with_profile(profile, code).with(Reg::Rax, ax);
    guest.cpu.rflags |= flags;
    guest.step();
    (guest.reg(Reg::Rax), guest.flags())
}

const DAA: &[u8] = &[0x27];
const DAS: &[u8] = &[0x2F];
const AAA: &[u8] = &[0x37];
const AAS: &[u8] = &[0x3F];

#[test]
fn daa_and_das_correct_both_digits() {
    let intel = |code, ax, flags| adjust(&Profile::INTEL, code, ax, flags);
    assert_eq!(intel(DAA, 0x9A, 0), (0x00, CF | AF | ZF | PF));
    assert_eq!(intel(DAA, 0x79, AF), (0x7F, AF));
    assert_eq!(intel(DAA, 0x12, CF), (0x72, CF | PF));
    assert_eq!(intel(DAS, 0x06, AF), (0x00, AF | ZF | PF));
    // The borrow of the low digit alone sets CF.
    assert_eq!(intel(DAS, 0x05, AF), (0xFF, CF | AF | SF | PF));
}

#[test]
fn daa_clears_of_on_intel_and_computes_it_elsewhere() {
    assert_eq!(adjust(&Profile::INTEL, DAA, 0x7A, 0).1 & OF, 0);
    assert_eq!(adjust(&Profile::INTEL, DAA, 0x12, OF).1 & OF, 0);
    assert_eq!(adjust(&Profile::AMD, DAA, 0x7A, 0).1 & OF, OF);
    assert_eq!(adjust(&Profile::AMD, DAA, 0x12, OF).1 & OF, 0);
}

#[test]
fn an_8086_with_af_finds_the_high_digit_off_above_9f() {
    assert_eq!(adjust(&Profile::I8086, DAA, 0x9B, AF).0, 0xA1);
    assert_eq!(adjust(&Profile::I80286, DAA, 0x9B, AF).0, 0x01);
}

#[test]
fn aaa_carries_from_al_into_ah_except_on_an_8086() {
    assert_eq!(adjust(&Profile::INTEL, AAA, 0x00FA, 0).0, 0x0200);
    assert_eq!(adjust(&Profile::I8086, AAA, 0x00FA, 0).0, 0x0100);
    assert_eq!(adjust(&Profile::INTEL, AAS, 0x0201, AF).0, 0x000B);
    assert_eq!(adjust(&Profile::I8086, AAS, 0x0201, AF).0, 0x010B);
    assert_eq!(adjust(&Profile::INTEL, AAA, 0xFF35, ARITH & !AF), (0xFF05, PF));
    assert_eq!(adjust(&Profile::AMD, AAA, 0xFF35, ARITH & !AF), (0xFF05, SF | PF));
}

#[test]
fn w31_aam_takes_sf_zf_pf_from_al() {
    for profile in [&Profile::INTEL, &Profile::AMD, &Profile::I80286] {
        assert_eq!(adjust(profile, &[0xD4, 10], 0x50, ARITH), (0x0800, ZF | PF));
        assert_eq!(adjust(profile, &[0xD4, 1], 0xFF, 0), (0xFF00, ZF | PF));
        assert_eq!(adjust(profile, &[0xD4, 0xFF], 0xF0, 0), (0x00F0, SF | PF));
    }
}

#[test]
fn w31_aam_0_raises_de_and_leaves_ax() {
    for profile in Profile::ALL {
        let mut guest = Guest::with_profile(profile, &[0xD4, 0]).with(Reg::Rax, 0x1234);
        assert_eq!(guest.fault(), Some(0), "{}", profile.name);
        assert_eq!(guest.reg(Reg::Rax), 0x1234);
    }
}

#[test]
fn aad_has_the_flags_of_its_addition() {
    assert_eq!(adjust(&Profile::INTEL, &[0xD5, 10], 0x0C14, 0), (0x8C, SF | OF));
    assert_eq!(adjust(&Profile::I80286, &[0xD5, 0x10], 0x0FF1, 0), (0xE1, CF | OF | SF | PF));
}
