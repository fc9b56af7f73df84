//! What a well-formed file says.

use std::path::Path;

use realmode_testkit::moo::{MooFile, Register, RegisterMasks, RegisterWidth, TestHash};

use crate::builder::*;

fn open(bytes: Vec<u8>) -> MooFile {
    MooFile::from_bytes(Path::new("sample.MOO"), bytes).expect("a well-formed file")
}

#[test]
fn a_file_names_its_processor_and_its_number_of_tests() {
    let file = open(sample());
    assert_eq!(file.cpu(), "C286");
    assert_eq!(file.promised(), 2);
    assert_eq!(file.tests().count(), 2);
}

#[test]
fn a_compressed_file_reads_as_the_plain_one() {
    let (plain, packed) = (open(sample()), open(gzip(&sample())));
    for (a, b) in plain.tests().zip(packed.tests()) {
        assert_eq!(format!("{:?}", a.unwrap()), format!("{:?}", b.unwrap()));
    }
}

#[test]
fn a_16_bit_test_is_read_whole() {
    let file = open(sample());
    let test = file.tests().next().unwrap().unwrap();
    assert_eq!((test.index, test.name().as_ref()), (7, "test 7"));
    assert_eq!(test.bytes, [0x40, 0xF4]);
    assert_eq!(test.initial.registers.width(), RegisterWidth::Word);
    assert_eq!(test.initial.registers.get(Register::Cs), Some(0x1000));
    assert_eq!(test.initial.registers.get(Register::Ss), Some(0x2000));
    assert_eq!(test.initial.registers.get(Register::Fs), None);
    assert_eq!(test.initial.ram.iter().collect::<Vec<_>>(), [(0x10000, 0x40), (0x10001, 0xF4)]);
    let changed: Vec<_> = test.expected.registers.iter().collect();
    assert_eq!(changed, [(Register::Eax, 1), (Register::Eip, 2)]);
    assert!(test.expected.ram.is_empty());
    assert_eq!(test.exception, None);
    assert_eq!(test.hash, Some(TestHash([7; 20])));
}

#[test]
fn a_32_bit_test_is_read_whole() {
    let file = open(sample());
    let test = file.tests().nth(1).unwrap().unwrap();
    assert_eq!(test.initial.registers.width(), RegisterWidth::Dword);
    assert_eq!(test.initial.registers.iter().count(), 20);
    assert_eq!(test.initial.registers.get(Register::Eflags), Some(0xFFFC_0002));
    let changed: Vec<_> = test.expected.registers.iter().collect();
    assert_eq!(changed, [(Register::Eax, 1), (Register::Eip, 3)]);
    assert_eq!(test.expected.ram.iter().collect::<Vec<_>>(), [(0x2_0000, 3)]);
    let exception = test.exception.unwrap();
    assert_eq!((exception.vector, exception.flags_at), (6, 0x0003_2010));
}

#[test]
fn masks_of_the_file_and_of_the_test_both_apply() {
    let file = open(sample());
    let mut masks = *file.masks();
    assert_eq!(masks.get(Register::Eax), 0xFFFF_FF00, "a 16-bit mask keeps the upper half");
    assert_eq!(masks.get(Register::Eflags), 0xFFFF_F7FF);
    assert_eq!(masks.get(Register::Ebx), u32::MAX);
    let test = file.tests().next().unwrap().unwrap();
    masks.narrow_all(&test.expected.mask);
    assert_eq!(masks.get(Register::Eflags), 0xFFFF_F7EF);
    let wide = file.tests().nth(1).unwrap().unwrap();
    let mut masks = RegisterMasks::ALL;
    masks.narrow_all(&wide.expected.mask);
    assert_eq!(masks.get(Register::Eax), 0x0FFF_FFFF);
}

#[test]
fn masks_apply_to_tests_that_stand_before_them() {
    let one = test(0, &[0xF4], &[initial_words()], &[]);
    let file = open(file(b"C286", 1, &[one, words(b"RMSK", &[(13, 0xFFFE)])]));
    assert_eq!(file.masks().get(Register::Eflags), 0xFFFF_FFFE);
}

#[test]
fn unknown_chunks_are_skipped_at_every_level() {
    let odd = chunk(b"ODD!", &[9; 33]);
    let one = test_with(
        0,
        &[0xF4],
        &[odd.clone(), initial_words(), odd.clone()],
        &[odd.clone(), words(b"REGS", &[(12, 1)])],
        std::slice::from_ref(&odd),
    );
    let file = open(file(b"386E", 1, &[odd.clone(), one, odd]));
    let test = file.tests().next().unwrap().unwrap();
    assert_eq!(test.expected.registers.get(Register::Eip), Some(1));
    assert_eq!(file.tests().count(), 1);
}

#[test]
fn a_longer_header_is_skipped_by_its_length() {
    let header = [&[1, 2, 0, 0, 0, 0, 0, 0][..], b"V20 ", &[0xEE; 9]].concat();
    let file = open(chunk(b"MOO ", &header));
    assert_eq!(file.cpu(), "V20");
    assert!(file.tests().next().is_none());
}

#[test]
fn register_names_follow_the_width() {
    let name = |register: Register| {
        (register.name(RegisterWidth::Word), register.name(RegisterWidth::Dword))
    };
    assert_eq!(name(Register::Eax), ("ax", "eax"));
    assert_eq!(name(Register::Eflags), ("flags", "eflags"));
    assert_eq!(name(Register::Es), ("es", "es"));
    assert_eq!(name(Register::Cr0), ("cr0", "cr0"));
}

#[test]
fn a_hash_is_forty_hexadecimal_digits() {
    let text = "8abbbc61a5866292b0bc816660d7b334bea7962a";
    assert_eq!(TestHash::from_hex(text).unwrap().to_string(), text);
    assert_eq!(TestHash::from_hex(&text[1..]), None);
    assert_eq!(TestHash::from_hex(&text.replace('8', "g")), None);
    assert_eq!(TestHash::from_hex(&"ä".repeat(20)), None);
}
