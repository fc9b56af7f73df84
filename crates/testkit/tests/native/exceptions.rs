//! Every exception that code at level 3 can raise under Linux, and where it is said to be.

use realmode::arch::rflags::{OF, RF};
use realmode_testkit::proof::*;

use crate::cases::{ENTRY, MODES, SP, case, exception, ip, native, poke};

/// What a case of one instruction raises: vector, error code, saved pointer past the entry.
#[track_caller]
fn assert_raises(native: &mut Native, case: &Case, expected: (u8, u32, i64)) -> Outcome {
    let outcome = native.run(case);
    assert_eq!(exception(native, case, &outcome), expected, "{:?}", case.mode);
    assert_eq!(outcome.rflags & RF, 0, "RF is cleared");
    assert_eq!((outcome.cr2 != 0), expected.0 == 14, "CR2 is a page fault's");
    outcome
}

#[test]
fn exceptions_without_an_error_code() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        let all: [(&[u8], u8, i64); 6] = [
            (&[0xF6, 0xF1], 0, 0),       // div cl
            (&[0xCC], 3, 1),             // int3
            (&[0xCD, 0x03], 3, 2),       // int 3
            (&[0xCD, 0x04], 4, 2),       // int 4
            (&[0x0F, 0x0B], 6, 0),       // ud2
            (&[0xF0, 0x01, 0xC0], 6, 0), // lock add eax, eax
        ];
        for (code, vector, past) in all {
            let case = case(&native, mode, code);
            assert_raises(&mut native, &case, (vector, 0, past));
        }
    }
}

#[test]
fn into_and_bound_outside_64_bit_code() {
    let Some(mut native) = native() else { return };
    for mode in [Mode::Bits16, Mode::Bits32] {
        let mut into = case(&native, mode, &[0xCE]);
        assert_eq!(native.run(&into).end, End::Returned);
        into.rflags |= OF;
        assert_raises(&mut native, &into, (4, 0, 1));
        // bound ax, [bx]: bounds of zero, and 1 is above
        let modrm = if mode == Mode::Bits16 { 0x07 } else { 0x03 };
        let mut bound = case(&native, mode, &[0x62, modrm]);
        bound.gpr[0] = 1;
        assert_raises(&mut native, &bound, (5, 0, 0));
    }
}

/// Where it is said to be depends on the hypervisor: some forget the byte.
#[test]
fn int1_is_a_debug_exception() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        let case = case(&native, mode, &[0xF1]);
        let outcome = native.run(&case);
        let (vector, error, past) = exception(&native, &case, &outcome);
        assert!((vector, error) == (1, 0) && matches!(past, 0 | 1), "{outcome:x?}");
    }
}

#[test]
fn privileged_instructions_and_gates_are_general_protection() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        for code in [&[0xF4][..], &[0xFA], &[0xE4, 0x60], &[0x0F, 0x20, 0xC0], &[0x0F, 0x32]] {
            let case = case(&native, mode, code);
            assert_raises(&mut native, &case, (13, 0, 0));
        }
        // int 21h: the error code names the gate.
        let case = case(&native, mode, &[0xCD, 0x21]);
        assert_raises(&mut native, &case, (13, 0x21 * 8 + 2, 0));
    }
}

#[test]
fn selectors_that_cannot_be_loaded_are_the_error_code() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    let missing = layout.selector(Kind::Missing);
    for mode in MODES {
        // mov ds, ax: not present
        let mut load = case(&native, mode, &[0x8E, 0xD8]);
        load.gpr[0] = missing.into();
        let error = u32::from(missing & !3);
        assert_raises(&mut native, &load, (11, error, 0));
        // mov ss, ax
        let mut load = case(&native, mode, &[0x8E, 0xD0]);
        load.gpr[0] = missing.into();
        assert_raises(&mut native, &load, (12, error, 0));
        load.gpr[0] = layout.selector(Kind::ReadOnly).into();
        let error = u32::from(layout.selector(Kind::ReadOnly) & !3);
        assert_raises(&mut native, &load, (13, error, 0));
        load.gpr[0] = 0;
        assert_raises(&mut native, &load, (13, 0, 0));
    }
}

#[test]
fn stacks_end_at_their_limit() {
    let Some(mut native) = native() else { return };
    // push eax with ESP=10002h: the top bytes are past the limit.
    let mut push = case(&native, Mode::Bits32, &[0x50]);
    push.gpr[4] = 0x1_0002;
    let outcome = assert_raises(&mut native, &push, (12, 0, 0));
    assert_eq!(outcome.gpr[4], 0x1_0002);
    // pop ax with SP=FFFFh
    let mut pop = case(&native, Mode::Bits16, &[0x58]);
    pop.gpr[4] = 0xFFFF;
    assert_raises(&mut native, &pop, (12, 0, 0));
    // mov rax, [rsp] with a non-canonical RSP
    let mut load = case(&native, Mode::Bits64, &[0x48, 0x8B, 0x04, 0x24]);
    load.gpr[4] = 1 << 63;
    assert_raises(&mut native, &load, (12, 0, 0));
}

#[test]
fn page_faults_say_where_and_how() {
    let Some(mut native) = native() else { return };
    let end = u64::from(native.layout().base + ARENA_SIZE);
    // mov al, [rbx] / mov [rbx], al
    for (opcode, error) in [(0x8A, 4), (0x88, 6)] {
        let mut case = case(&native, Mode::Bits64, &[opcode, 0x03]);
        case.gpr[3] = end;
        let outcome = assert_raises(&mut native, &case, (14, error, 0));
        assert_eq!(outcome.cr2, end);
    }
    // mov [rbx], rax across the end: nothing is written.
    let mut store = case(&native, Mode::Bits64, &[0x48, 0x89, 0x03]);
    (store.gpr[0], store.gpr[3]) = (u64::MAX, end - 4);
    let outcome = assert_raises(&mut native, &store, (14, 6, 0));
    assert_eq!((outcome.cr2, native.page(PAGES - 1)[511].get()), (end, 0));
    // jmp rbx: data cannot be executed.
    let mut jump = case(&native, Mode::Bits64, &[0xFF, 0xE3]);
    jump.gpr[3] = u64::from(native.layout().base + DATA);
    let outcome = native.run(&jump);
    let end = End::Exception { vector: 14, error: 0x15, rip: jump.gpr[3] };
    assert_eq!((outcome.end, outcome.cr2), (end, jump.gpr[3]));
}

#[test]
fn alignment_is_checked_with_ac() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // mov eax, [bx] / [ebx] / [rbx], misaligned
        let code = if mode == Mode::Bits16 { &[0x66, 0x8B, 0x07][..] } else { &[0x8B, 0x03] };
        let mut case = case(&native, mode, code);
        let base = if mode == Mode::Bits64 { u64::from(native.layout().base + DATA) } else { 0 };
        case.gpr[3] = base + 2;
        assert_eq!(native.run(&case).end, End::Returned);
        case.rflags |= 0x4_0000;
        assert_raises(&mut native, &case, (17, 0, 0));
    }
}

#[test]
fn a_jump_lands_on_a_breakpoint() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // jmp short +20h; ret
        let jump = case(&native, mode, &[0xEB, 0x20]);
        assert_raises(&mut native, &jump, (3, 0, 2 + 0x20 + 1));
        let mut ret = case(&native, mode, &[0xC3]);
        let target = ip(&native, mode, 0x5000);
        ret.pokes[0] = poke(STACK + SP as u32, &target.to_le_bytes());
        let outcome = assert_raises(&mut native, &ret, (3, 0, 0x5001 - i64::from(ENTRY)));
        let popped = [2, 4, 8][mode as usize - Mode::Bits16 as usize];
        assert_eq!(outcome.gpr[4], ret.gpr[4] + popped);
    }
    // jmp short FFFDh -> 000Fh: wraps, as the operand size is 16 bits.
    let mut wrap = case(&native, Mode::Bits16, &[0xEB, 0x10]);
    wrap.entry = 0xFFFD;
    assert_raises(&mut native, &wrap, (3, 0, 0x10 - 0xFFFD));
}

#[test]
fn code_ends_at_its_limit() {
    let Some(mut native) = native() else { return };
    for mode in [Mode::Bits16, Mode::Bits32] {
        // The nop is the last byte: what follows cannot be fetched.
        let mut nop = case(&native, mode, &[0x90]);
        nop.entry = 0xFFFF;
        assert_eq!(placed_code(&nop).as_slice(), [0x90]);
        assert_raises(&mut native, &nop, (13, 0, 1));
        // mov ax, imm across the limit
        let mut mov = case(&native, mode, &[0xB8, 1, 2, 3, 4]);
        mov.entry = 0xFFFE;
        assert_raises(&mut native, &mov, (13, 0, 0));
    }
}
