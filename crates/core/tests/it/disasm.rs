//! Tests of `disasm.rs`. Every encoding's operands are compared with iced-x86's in the testkit;
//! here is what only we decide.

use realmode::CodeSize::{self, Bits16, Bits32, Bits64};
use realmode::{DecodeError, Features, Profile, SegReg, Segmentation, decode_one};

fn text(size: CodeSize, bytes: &[u8]) -> String {
    // Every feature, so that every row can be seen.
    let profile = Profile { features: Features::all(), ..Profile::INTEL };
    let decoded = decode_one(bytes, size, &profile, Segmentation::Protected);
    let instruction = decoded.unwrap_or_else(|error| panic!("{bytes:02x?}: {error}"));
    assert_eq!(instruction.len(), bytes.len(), "{instruction}");
    instruction.at(0x7C00).to_string()
}

#[test]
fn text_is_intel_syntax_with_every_size_spelled_out() {
    let cases: &[(CodeSize, &[u8], &str)] = &[
        (Bits16, &[0x8B, 0x40, 0x10], "mov ax, word [bx+si+0x10]"),
        (Bits16, &[0x26, 0x8A, 0x87, 0xF0, 0xFF], "mov al, byte [es:bx-0x10]"),
        (Bits16, &[0xA1, 0x34, 0x12], "mov ax, word [0x1234]"),
        (Bits16, &[0x67, 0x8A, 0x04, 0xC5, 0x10, 0, 0, 0], "mov al, byte [eax*8+0x10]"),
        (Bits16, &[0xEA, 0x5B, 0xE0, 0x00, 0xF0], "jmp 0xf000:0xe05b"),
        (Bits16, &[0xFF, 0x2F], "jmp far word [bx]"),
        (Bits16, &[0xC4, 0x1E, 0x10, 0x00], "les bx, [0x10]"),
        (Bits16, &[0x75, 0xFE], "jne 0x7c00"),
        (Bits16, &[0x66, 0xEB, 0x00], "o32 jmp 0x7c03"),
        (Bits16, &[0x83, 0xC0, 0xFF], "add ax, 0xffff"),
        (Bits16, &[0xC8, 0x10, 0x00, 0x02], "enter 0x10, 0x2"),
        (Bits16, &[0x98], "cbw"),
        (Bits16, &[0x66, 0x98], "cwde"),
        (Bits16, &[0x67, 0xE3, 0x00], "jecxz 0x7c03"),
        (Bits16, &[0x0F, 0x94, 0xC4], "sete ah"),
        (Bits16, &[0x8E, 0xD8], "mov ds, ax"),
        (Bits16, &[0x0F, 0x22, 0xC0], "mov cr0, eax"),
        (Bits16, &[0xDF, 0xE0], "fnstsw ax"),
        (Bits32, &[0xF0, 0x01, 0x0C, 0x85, 0x10, 0, 0, 0], "lock add dword [eax*4+0x10], ecx"),
        (Bits32, &[0x66, 0xCB], "o16 retf"),
        (Bits64, &[0x40, 0x88, 0xE0], "mov al, spl"),
        (Bits64, &[0x49, 0x89, 0xC7], "mov r15, rax"),
        (Bits64, &[0x8B, 0x05, 0x10, 0, 0, 0], "mov eax, dword [rel 0x7c16]"),
        (Bits64, &[0x48, 0x0F, 0xC7, 0x08], "cmpxchg16b xmmword [rax]"),
    ];
    for (size, bytes, expected) in cases {
        assert_eq!(text(*size, bytes), *expected);
    }
}

#[test]
fn d20_vex_in_16_bit_protected_mode_code_means_32_bits_without_its_w_bit() {
    assert_eq!(text(Bits16, b"\xC4\xE2\x78\xF2\xC1"), "andn eax, eax, ecx");
    assert_eq!(text(Bits16, b"\xC4\xE2\x79\xF7\xC1"), "shlx eax, ecx, eax");
    assert_eq!(text(Bits16, b"\xC5\xF9\x6E\xC1"), "vmovd xmm0, ecx");
}

#[test]
fn strings_show_their_width_their_repeat_and_their_segment() {
    let cases: &[(&[u8], &str)] = &[
        (&[0xA4], "movsb"),
        (&[0xF3, 0xA4], "rep movsb"),
        (&[0xF3, 0x66, 0xAF], "repe scasd"),
        (&[0xF2, 0xA6], "repne cmpsb"),
        (&[0xF3, 0x2E, 0x67, 0xAD], "rep cs a32 lodsw"),
        (&[0xF3, 0x6D], "rep insw"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(text(Bits16, bytes), *expected);
    }
}

#[test]
fn vectors_are_named_by_their_length() {
    let cases: &[(&[u8], &str)] = &[
        (&[0x0F, 0x58, 0xC1], "addps xmm0, xmm1"),
        (&[0xF2, 0x0F, 0x58, 0x00], "addsd xmm0, qword [rax]"),
        (&[0xC5, 0xEC, 0x58, 0xC1], "vaddps ymm0, ymm2, ymm1"),
        // disp8 counts in units of the operand.
        (&[0x62, 0xF1, 0x7C, 0x48, 0x58, 0x40, 0x01], "vaddps zmm0, zmm0, zmmword [rax+0x40]"),
        (&[0x62, 0xF1, 0x7C, 0x58, 0x58, 0x40, 0x01], "vaddps zmm0, zmm0, dword [rax+0x4]{1to16}"),
        (&[0x62, 0xF1, 0x7C, 0xB9, 0x58, 0xC1], "vaddps zmm0{k1}{z}, zmm0, zmm1, {rd-sae}"),
        (&[0xC4, 0xE2, 0x69, 0x92, 0x04, 0x48], "vgatherdps xmm0, [rax+xmm1*2], xmm2"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(text(Bits64, bytes), *expected);
    }
}

#[test]
fn evex_has_no_more_than_sixteen_general_registers() {
    // R' with a general register in reg, as silicon has it; R with one is its fourth bit.
    let is_undefined = |bytes: &[u8]| {
        let profile = Profile { features: Features::all(), ..Profile::INTEL };
        decode_one(bytes, Bits64, &profile, Segmentation::Protected).unwrap().is_undefined()
    };
    assert!(is_undefined(b"\x62\xE1\x7E\x08\x2C\xC0"));
    assert!(is_undefined(b"\x62\xE1\x7D\x08\xC5\xC0\x00"));
    assert_eq!(text(Bits64, b"\x62\x71\x7E\x08\x2C\xC0"), "vcvttss2si r8d, xmm0");
}

#[test]
fn the_address_of_xbegin_is_not_truncated_by_a_16_bit_operand_size() {
    assert_eq!(text(Bits16, &[0xC7, 0xF8, 0x00, 0x80]), "xbegin 0xfffffc04");
    assert_eq!(text(Bits32, &[0x66, 0xC7, 0xF8, 0x00, 0x80]), "o16 xbegin 0xfffffc05");
}

#[test]
fn the_segment_of_a_memory_operand_is_the_prefix_or_what_its_base_has() {
    let segment = |size, bytes| {
        decode_one(bytes, size, &Profile::INTEL, Segmentation::Protected).unwrap().segment()
    };
    assert_eq!(segment(Bits16, &[0x8B, 0x07]), Some(SegReg::Ds)); // [bx]
    assert_eq!(segment(Bits16, &[0x8B, 0x02]), Some(SegReg::Ss)); // [bp+si]
    assert_eq!(segment(Bits16, &[0x26, 0x8B, 0x02]), Some(SegReg::Es));
    assert_eq!(segment(Bits64, &[0x26, 0x8B, 0x04, 0x24]), Some(SegReg::Ss)); // [rsp]
    assert_eq!(segment(Bits64, &[0x41, 0x8B, 0x04, 0x24]), Some(SegReg::Ds)); // [r12]
    assert_eq!(segment(Bits16, &[0x8B, 0xC3]), None);
}

#[test]
fn a_branch_without_an_address_says_how_far_it_goes() {
    let decode = |bytes| decode_one(bytes, Bits16, &Profile::INTEL, Segmentation::Real);
    assert_eq!(decode(&[0xEB, 0xFE]).unwrap().to_string(), "jmp $+0x0");
    assert_eq!(decode(&[0xE8, 0xF0, 0xFF]).unwrap().to_string(), "call $-0xd");
}

#[test]
fn what_a_mode_or_a_profile_lacks_is_undefined() {
    let is_undefined = |bytes: &[u8], profile, segmentation| {
        decode_one(bytes, Bits16, profile, segmentation).unwrap().is_undefined()
    };
    let lar = &[0x0F, 0x02, 0xC0];
    assert!(is_undefined(lar, &Profile::INTEL, Segmentation::Real));
    assert!(!is_undefined(lar, &Profile::INTEL, Segmentation::Protected));
    let cpuid = &[0x0F, 0xA2];
    assert!(is_undefined(cpuid, &Profile::I80386, Segmentation::Real));
    // LOCK on a register, MOV to CS.
    assert!(is_undefined(&[0xF0, 0x01, 0xD8], &Profile::INTEL, Segmentation::Real));
    assert!(is_undefined(&[0x8E, 0xC8], &Profile::INTEL, Segmentation::Real));
}

#[test]
fn bytes_that_end_too_early_say_how_many_are_missing() {
    let missing =
        |bytes: &[u8]| match decode_one(bytes, Bits16, &Profile::INTEL, Segmentation::Real) {
            Err(DecodeError::Short { missing }) => missing,
            other => panic!("{bytes:02x?}: {other:?}"),
        };
    assert_eq!(missing(&[]), 1);
    assert_eq!(missing(&[0x66]), 1);
    assert_eq!(missing(&[0x0F]), 1);
    assert_eq!(missing(&[0x8B]), 1);
    // Of group 3, TEST has an immediate, and NOT has none.
    assert_eq!(missing(&[0xF7]), 1);
    assert_eq!(missing(&[0x8B, 0x80]), 2);
    assert_eq!(missing(&[0x66, 0x81, 0x06]), 6);
    assert_eq!(missing(&[0xEA, 0x5B, 0xE0]), 2);
    // Behind 0F 38 comes an opcode, for which there is no room.
    let mut no_room = [0x66; 15];
    no_room[13..].copy_from_slice(&[0x0F, 0x38]);
    for bytes in [&[0x66; 16][..], &no_room] {
        let too_long = decode_one(bytes, Bits16, &Profile::INTEL, Segmentation::Real);
        assert_eq!(too_long.err(), Some(DecodeError::TooLong));
    }
}

#[test]
fn is_implemented_tells_executed_rows_from_recognised_ones() {
    let is_implemented = |bytes: &[u8]| {
        let decoded = decode_one(bytes, Bits16, &Profile::INTEL, Segmentation::Real);
        decoded.unwrap().is_implemented()
    };
    assert!(is_implemented(&[0x01, 0xD8]));
    assert!(is_implemented(&[0xD9, 0x2E, 0, 0])); // fldcw
    assert!(!is_implemented(&[0xD9, 0xEE])); // fldz
    assert!(!is_implemented(&[0x0F, 0x58, 0xC1])); // addps
}
