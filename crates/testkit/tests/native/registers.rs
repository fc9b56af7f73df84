//! What a case finds and what it leaves: registers, flags, memory.

use realmode::arch::rflags::{AF, CF, OF, PF, SF, ZF};
use realmode_testkit::proof::*;

use crate::cases::{ENTRY, MODES, SP, case, native, peek, poke};

/// Register numbers of the manual.
const AX: usize = 0;
const CX: usize = 1;
const BX: usize = 3;
const SP_: usize = 4;
const SI: usize = 6;

#[test]
fn add_leaves_sum_and_flags_in_every_mode() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // add al, bl
        let mut case = case(&native, mode, &[0x00, 0xD8]);
        case.gpr[AX] = 0x1234_5678_9ABC_DE80;
        case.gpr[BX] = 0x80;
        case.rflags = 0x202 | SF | AF;
        let outcome = native.run(&case);
        let kept = if mode == Mode::Bits64 { 0x1234_5678_9ABC_DE00 } else { 0x9ABC_DE00 };
        assert_eq!((outcome.end, outcome.gpr[AX]), (End::Returned, kept), "{mode:?}");
        assert_eq!(outcome.rflags, 0x202 | CF | OF | ZF | PF, "{mode:?}");
    }
}

#[test]
fn every_register_and_flag_reaches_the_case_and_comes_back() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // nop
        let mut case = case(&native, mode, &[0x90]);
        for (number, value) in case.gpr.iter_mut().enumerate() {
            *value = 0x0101_0101_8181_8101 * (number as u64 + 1);
        }
        for flags in [0x202, 0xCD7, 0x4_0202, 0x20_0602, 0x4202] {
            case.rflags = flags | 0x202;
            let outcome = native.run(&case);
            let mut gpr = case.gpr;
            if mode != Mode::Bits64 {
                gpr[8..].fill(0);
                gpr[..8].iter_mut().for_each(|value| *value &= 0xFFFF_FFFF);
            }
            assert_eq!((outcome.end, outcome.gpr), (End::Returned, gpr), "{mode:?}");
            assert_eq!(outcome.rflags, case.rflags, "{mode:?}");
        }
    }
}

#[test]
fn memory_stays_as_the_case_left_it_and_the_code_goes() {
    let Some(mut native) = native() else { return };
    let before = native.page(CODE as usize / 4096)[ENTRY as usize / 8].get();
    assert_eq!(before, 0xCCCC_CCCC_CCCC_CCCC);
    // mov [bx], eax / mov [ebx], eax / mov [rbx], eax
    for (mode, code) in
        MODES.into_iter().zip([&[0x66, 0x89, 0x07][..], &[0x89, 0x03], &[0x89, 0x03]])
    {
        let mut case = case(&native, mode, code);
        case.gpr[AX] = 0xAABB_CCDD;
        let data = DATA + 0x20;
        let base = if mode == Mode::Bits64 { u64::from(native.layout().base + DATA) } else { 0 };
        case.gpr[BX] = base + 0x20;
        case.pokes[0] = poke(data, &[0x11; 8]);
        case.pokes[1] = poke(data + 4, &[0x22; 2]);
        assert_eq!(native.run(&case).end, End::Returned);
        assert_eq!(peek(&native, data), 0x1111_2222_AABB_CCDD, "{mode:?}");
        let code = &native.page(CODE as usize / 4096)[ENTRY as usize / 8..][..4];
        assert!(code.iter().all(|word| word.get() == before), "{mode:?}");
    }
}

#[test]
fn the_high_half_of_esp_is_kept_in_16_bit_code() {
    let Some(mut native) = native() else { return };
    // push ax
    let mut case = case(&native, Mode::Bits16, &[0x50]);
    case.gpr[SP_] = 0xABCD_0000 | SP;
    for _ in 0..10_000 {
        let outcome = native.run(&case);
        assert_eq!((outcome.end, outcome.gpr[SP_]), (End::Returned, 0xABCD_7FFE));
    }
}

#[test]
fn a_case_sees_the_jump_that_follows_it() {
    let Some(mut native) = native() else { return };
    // mov eax, cs:[si] / mov eax, [rsi]
    let codes = [&[0x66, 0x2E, 0x8B, 0x04][..], &[0x2E, 0x8B, 0x06], &[0x8B, 0x06]];
    for (mode, code) in MODES.into_iter().zip(codes) {
        let mut case = case(&native, mode, code);
        let base = if mode == Mode::Bits64 { u64::from(native.layout().base) } else { 0 };
        case.gpr[SI] = base + u64::from(ENTRY) + code.len() as u64;
        let outcome = native.run(&case);
        let jump = return_code(mode, case.layout, ENTRY + code.len() as u32);
        let len = 4;
        let seen = outcome.gpr[AX].to_le_bytes();
        assert_eq!((outcome.end, &seen[..len]), (End::Returned, &jump.as_slice()[..len]));
    }
}

#[test]
fn fs_and_gs_of_64_bit_code_have_the_bases_of_their_segments() {
    let Some(mut native) = native() else { return };
    for (prefix, data) in [(0x64, FS_DATA), (0x65, GS_DATA)] {
        // mov ecx, fs:[0x18]
        let code = [prefix, 0x8B, 0x0C, 0x25, 0x18, 0, 0, 0];
        let mut case = case(&native, Mode::Bits64, &code);
        case.pokes[0] = poke(data + 0x18, &0x1357_9BDF_u32.to_le_bytes());
        let outcome = native.run(&case);
        assert_eq!((outcome.end, outcome.gpr[CX]), (End::Returned, 0x1357_9BDF));
        assert_eq!(outcome.selectors, [0x2B, 0x33, 0x2B, 0x2B, 0, 0]);
    }
}
