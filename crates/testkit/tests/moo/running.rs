//! What the runner notices, and what it leaves alone.

use std::path::Path;

use realmode::{CacheLine, Fault, Profile};
use realmode_testkit::moo::{MooFile, Register};
use realmode_testkit::vector_run::{
    BUDGET, Ending, Failure, VectorMemory, VectorWorker, profile_for,
};

use crate::builder::*;

/// Runs the tests of a file, one after another on one worker.
fn run(profile: &'static Profile, bytes: Vec<u8>) -> Vec<Result<(), Box<Failure>>> {
    let file = MooFile::from_bytes(Path::new("a.MOO"), bytes).expect("a well-formed file");
    let memory = VectorMemory::new();
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut worker = VectorWorker::new(profile, &memory, &mut lines);
    let results =
        file.tests().map(|test| worker.run(&test.expect("a test"), file.masks())).collect();
    memory.sweep(|address, value| panic!("{value:02x} left at {address:06x}"));
    assert!((0..0x60_000).all(|address| memory.get(address) == 0), "memory is zero again");
    results
}

fn run_one(profile: &'static Profile, test: Vec<u8>) -> Result<(), Box<Failure>> {
    run(profile, file(b"C286", 1, &[test])).remove(0)
}

/// MOV AX,1234 then HLT, with these final registers and bytes.
fn mov_ax(registers: &[(u32, u16)], bytes: &[(u32, u8)]) -> Vec<u8> {
    let instruction = [0xB8, 0x34, 0x12, 0xF4];
    let initial = [initial_words(), code(&instruction)];
    test(0, &instruction, &initial, &[words(b"REGS", registers), ram(bytes)])
}

/// MOV [0],CS and HLT: a store of 1000 to 3000:0000.
fn mov_memory(bytes: &[(u32, u8)]) -> Vec<u8> {
    let instruction = [0x8C, 0x0E, 0, 0, 0xF4];
    let initial = [initial_words(), code(&instruction)];
    test(0, &instruction, &initial, &[words(b"REGS", &[(12, 5)]), ram(bytes)])
}

#[test]
fn a_test_passes_when_registers_and_memory_agree() {
    assert_eq!(run_one(&Profile::I80286, mov_ax(&[(0, 0x1234), (12, 4)], &[])), Ok(()));
    let stored = [(0x30000, 0), (0x30001, 0x10)];
    assert_eq!(run_one(&Profile::I80286, mov_memory(&stored)), Ok(()));
}

#[test]
fn a_register_that_differs_is_named_with_its_values() {
    let failure = run_one(&Profile::I80286, mov_ax(&[(0, 0x1235), (12, 4)], &[])).unwrap_err();
    let [difference] = failure.registers[..] else { panic!("{failure}") };
    assert_eq!(difference.register, Register::Eax);
    assert_eq!((difference.before, difference.expected, difference.found), (0, 0x1235, 0x1234));
    let text = failure.to_string();
    assert!(text.starts_with("#0 test 0 (B8 34 12 F4)\n"), "{text}");
    assert!(text.contains("ax            0000      1235      1234"), "{text}");
}

#[test]
fn a_register_that_is_not_listed_must_not_change() {
    let failure = run_one(&Profile::I80286, mov_ax(&[(12, 4)], &[])).unwrap_err();
    assert_eq!(failure.registers[0].register, Register::Eax);
}

#[test]
fn flags_that_differ_are_named() {
    let test = mov_ax(&[(0, 0x1234), (12, 4), (13, 0x0803)], &[]);
    let failure = run_one(&Profile::I80286, test).unwrap_err();
    assert!(failure.to_string().ends_with("OF 1 not 0, CF 1 not 0"), "{failure}");
}

#[test]
fn masked_flags_do_not_count() {
    let mask = words(b"RMSK", &[(13, 0xF7FE)]);
    let test = mov_ax(&[(0, 0x1234), (12, 4), (13, 0x0803)], &[]);
    let results = run(&Profile::I80286, file(b"C286", 1, &[mask, test]));
    assert_eq!(results, [Ok(())]);
}

#[test]
fn bytes_that_differ_are_listed() {
    let failure = run_one(&Profile::I80286, mov_memory(&[(0x30000, 0), (0x30001, 7)])).unwrap_err();
    let [difference] = failure.memory[..] else { panic!("{failure}") };
    assert_eq!((difference.address, difference.expected, difference.found), (0x30001, 7, 0x10));
    assert!(difference.is_listed);
}

#[test]
fn a_store_that_is_not_listed_is_a_difference() {
    let failure = run_one(&Profile::I80286, mov_memory(&[])).unwrap_err();
    let [difference] = failure.memory[..] else { panic!("{failure}") };
    assert_eq!((difference.address, difference.found), (0x30001, 0x10));
    assert!(!difference.is_listed);
    assert!(failure.to_string().ends_with("stray store"), "{failure}");
}

#[test]
fn a_test_starts_from_zero_memory_whatever_ran_before() {
    let bad = mov_memory(&[]);
    let good = mov_memory(&[(0x30000, 0), (0x30001, 0x10)]);
    let results = run(&Profile::I80286, file(b"C286", 3, &[bad, good.clone(), good]));
    let passed: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(passed, [false, true, true]);
}

#[test]
fn a_halt_is_put_where_control_goes_if_the_test_lists_none() {
    // JMP +20h to a byte that the test does not mention.
    let jump = [0xEB, 0x20, 0xF4];
    let expected = [words(b"REGS", &[(12, 0x23)])];
    let test = test(0, &jump, &[initial_words(), code(&jump)], &expected);
    assert_eq!(run_one(&Profile::I80286, test), Ok(()));
}

#[test]
fn a_run_without_end_ends_with_the_budget() {
    let test = test(0, &[0xEB, 0xFE], &[initial_words(), code(&[0xEB, 0xFE])], &[]);
    let failure = run_one(&Profile::I80286, test).unwrap_err();
    assert_eq!(failure.ending, Ending::Other(format!("{BUDGET} instructions executed")));
    assert!(failure.to_string().contains("did not end in HLT: "), "{failure}");
}

#[test]
fn a_failure_names_the_exceptions_that_were_raised() {
    let mut failure = run_one(&Profile::I80286, mov_ax(&[(12, 4)], &[])).unwrap_err();
    failure.faults = vec![(0x10, Fault::UD), (0x20, Fault::SS)];
    let text = failure.to_string();
    assert!(text.contains("\n    raised #UD at 0010, then #SS(0) at 0020\n"), "{text}");
}

#[test]
fn undefined_flags_do_not_count_where_an_exception_pushed_them() {
    // MOV CS,AX with SP even and odd: the address recorded is that of the word below FLAGS where
    // SP is odd. AF is pushed clear, the test has it set.
    let instruction = [0x8E, 0xC8, 0xF4];
    let vector = [(0x18, 0), (0x19, 0), (0x1A, 0), (0x1B, 0x50), (0x5_0000, 0xF4)];
    let bytes: Vec<(u32, u8)> = (0x10000..).zip(instruction).chain(vector).collect();
    for (sp, recorded) in [(0x100_u16, 0x2_00FE_u32), (0xFF, 0x2_00FC)] {
        let mut registers: Vec<(u32, u16)> = (0..14).map(|bit| (bit, 0)).collect();
        for (bit, value) in [(4, 0x1000), (5, 0x2000), (8, sp), (13, 2)] {
            registers[bit as usize] = (bit, value);
        }
        let frame = 0x2_0000 + u32::from(sp) - 6;
        let pushed = [(0, 0), (1, 0), (2, 0), (3, 0x10), (4, 0x12), (5, 0)];
        let pushed: Vec<(u32, u8)> =
            pushed.into_iter().map(|(offset, value)| (frame + offset, value)).collect();
        let after = [(4, 0x5000), (8, sp - 6), (12, 1)];
        let exception = [&[6][..], &recorded.to_le_bytes()].concat();
        let test = test_with(
            0,
            &instruction,
            &[words(b"REGS", &registers), ram(&bytes)],
            &[words(b"REGS", &after), ram(&pushed)],
            &[chunk(b"EXCP", &exception)],
        );
        let strict = run(&Profile::I80286, file(b"C286", 1, std::slice::from_ref(&test)));
        assert_eq!(strict[0].as_ref().unwrap_err().memory[0].address, frame + 4);
        let mask = words(b"RMSK", &[(13, 0xFFEF)]);
        let masked = run(&Profile::I80286, file(b"C286", 1, &[mask, test]));
        assert_eq!(masked, [Ok(())], "SP {sp:x}");
    }
}

#[test]
fn flags_that_a_processor_lacks_are_not_loaded() {
    // MOV AL,AL.
    let mov = |flags: u16| {
        let mut registers: Vec<(u32, u16)> = (0..14).map(|bit| (bit, 0)).collect();
        registers[4] = (4, 0x1000);
        registers[13] = (13, 0x7002);
        let expected = [words(b"REGS", &[(12, 3), (13, flags)])];
        let instruction = [0x8A, 0xC0, 0xF4];
        test(0, &instruction, &[words(b"REGS", &registers), code(&instruction)], &expected)
    };
    assert_eq!(run_one(&Profile::I80286, mov(0x0002)), Ok(()));
    assert_eq!(run_one(&Profile::I80386, mov(0x7002)), Ok(()));
    assert!(run_one(&Profile::I80286, mov(0x7002)).is_err());
}

#[test]
fn a_32_bit_test_compares_whole_registers_and_the_flags_that_exist() {
    // MOV EAX,89ABCDEF. Bits 18 to 31 of EFLAGS and most of CR0 read as ones on that part.
    let instruction = [0x66, 0xB8, 0xEF, 0xCD, 0xAB, 0x89, 0xF4];
    let mov = |eax: u32| {
        let expected = [dwords(b"RG32", &[(2, eax), (16, 7), (17, 0xFFF8_0002)])];
        test(0, &instruction, &[initial_dwords(), code(&instruction)], &expected)
    };
    assert_eq!(run_one(&Profile::I80386, mov(0x89AB_CDEF)), Ok(()));
    let failure = run_one(&Profile::I80386, mov(0x09AB_CDEF)).unwrap_err();
    assert!(failure.to_string().contains("eax       00000000  09abcdef  89abcdef"), "{failure}");
}

#[test]
fn a_file_names_the_profile_it_was_captured_from() {
    assert_eq!(profile_for("C286"), Some(&Profile::I80286));
    assert_eq!(profile_for("386E"), Some(&Profile::I80386));
    assert_eq!(profile_for("8088"), Some(&Profile::I8086));
    assert_eq!(profile_for("V20"), None);
}
