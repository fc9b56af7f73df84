//! The process around the oracle: hangs, system calls, thread-local variables, panics, crashes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use realmode_testkit::proof::*;

use crate::cases::{MODES, case, exception, native};

#[test]
fn a_case_that_hangs_is_ended_and_the_next_one_is_fine() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // jmp $
        let hang = case(&native, mode, &[0xEB, 0xFE]);
        let mut add = case(&native, mode, &[0x01, 0xD8]);
        (add.gpr[0], add.gpr[3]) = (1, 2);
        let outcome = native.run(&hang);
        assert_eq!((outcome.end, outcome.gpr[4]), (End::Hung, hang.gpr[4] & 0xFFFF_FFFF));
        let outcome = native.run(&add);
        assert_eq!((outcome.end, outcome.gpr[0]), (End::Returned, 3));
    }
}

#[test]
fn a_case_that_gets_on_for_too_long_is_ended_too() {
    let Some(mut native) = native() else { return };
    // loop $
    let mut case = case(&native, Mode::Bits64, &[0xE2, 0xFE]);
    case.gpr[1] = 1 << 60;
    let outcome = native.run(&case);
    assert_eq!(outcome.end, End::Hung);
    assert!(outcome.gpr[1] < case.gpr[1] - 1_000_000, "{outcome:x?}");
}

#[test]
fn a_tick_in_a_case_changes_nothing() {
    let Some(mut native) = native() else { return };
    for mode in MODES {
        // loop $: long enough to be interrupted, and not ended, as it gets on.
        let mut case = case(&native, mode, &[0x67, 0xE2, 0xFD]);
        if mode == Mode::Bits16 {
            case.gpr[4] |= 0xABCD_0000;
        } else {
            case.code.bytes[..3].copy_from_slice(&[0xE2, 0xFE, 0x90]);
        }
        case.gpr[1] = 3_000_000;
        case.rflags |= 0x4_0401;
        for _ in 0..30 {
            let outcome = native.run(&case);
            let mut expected = case.gpr;
            expected[1] = 0;
            assert_eq!((outcome.end, outcome.gpr), (End::Returned, expected), "{mode:?}");
            assert_eq!(outcome.rflags, case.rflags);
            if mode != Mode::Bits64 {
                let layout = case.layout;
                assert_eq!(outcome.selectors, case.segments.map(|kind| layout.selector(kind)));
            }
        }
    }
}

#[test]
fn a_system_call_is_not_made() {
    let Some(mut native) = native() else { return };
    for (mode, code) in
        [(Mode::Bits16, [0xCD, 0x80]), (Mode::Bits32, [0xCD, 0x80]), (Mode::Bits64, [0x0F, 0x05])]
    {
        // exit_group of 32- and 64-bit code
        let mut call = case(&native, mode, &code);
        call.gpr[0] = if mode == Mode::Bits64 { 231 } else { 252 };
        let result = catch_unwind(AssertUnwindSafe(|| native.run(&call)));
        let message = result.expect_err("the run panics");
        let message = message.downcast_ref::<String>().expect("with a text");
        assert!(message.contains("makes a system call"), "{message}");
    }
    let nop = case(&native, Mode::Bits16, &[0x90]);
    assert_eq!(native.run(&nop).end, End::Returned);
}

#[test]
fn thread_local_variables_survive_a_case_that_loads_fs() {
    thread_local!(static LOCAL: Cell<u64> = const { Cell::new(0) });
    let Some(mut native) = native() else { return };
    LOCAL.set(0x1234_5678);
    for mode in MODES {
        // mov fs, ax; then the same with an exception after it
        for code in [&[0x8E, 0xE0][..], &[0x8E, 0xE0, 0x0F, 0x0B]] {
            let mut case = case(&native, mode, code);
            case.gpr[0] = native.layout().selector(Kind::Down).into();
            let outcome = native.run(&case);
            assert_eq!(outcome.end == End::Returned, code.len() == 2);
            assert_eq!(outcome.selectors[4], native.layout().selector(Kind::Down));
            LOCAL.set(LOCAL.get() + 1);
            assert!(std::thread::current().name().is_some());
        }
    }
    assert_eq!(LOCAL.get(), 0x1234_5678 + 6);
}

#[test]
fn a_panic_after_a_case_unwinds() {
    let Some(mut native) = native() else { return };
    for code in [&[0x90][..], &[0x0F, 0x0B], &[0xEB, 0xFE]] {
        let case = case(&native, Mode::Bits16, code);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _on_the_way = String::from("dropped");
            native.run(&case);
            panic!("after a case");
        }));
        let message = result.expect_err("it panics");
        assert_eq!(message.downcast_ref::<&str>(), Some(&"after a case"));
    }
}

#[test]
fn a_thread_has_one_arena_and_gives_it_back() {
    let number = 250;
    let Ok(first) = Native::new(number) else { return println!("skipped: see the others") };
    assert!(matches!(Native::new(number - 1), Err(Unavailable::ThreadIsTaken)));
    let other = std::thread::spawn(move || Native::new(number).map(drop));
    let other = other.join().expect("it does not panic");
    assert!(matches!(other, Err(Unavailable::Memory { number: 250, .. })));
    drop(first);
    let mut again = Native::new(number).expect("it was given back");
    let nop = case(&again, Mode::Bits32, &[0x90]);
    assert_eq!(again.run(&nop).end, End::Returned);
    assert!(matches!(Native::new(ARENAS), Err(Unavailable::NoSuchArena { number: ARENAS })));
}

#[test]
fn cases_that_cannot_be_executed_are_refused() {
    let Some(mut native) = native() else { return };
    let fine = case(&native, Mode::Bits16, &[0x90]);
    let mut cases = [(); 5].map(|()| fine.clone());
    cases[0].rflags |= 0x100;
    cases[1].segments[2] = Kind::ReadOnly;
    cases[2].segments[3] = Kind::Missing;
    cases[3].layout = Layout::native(255);
    cases[4].mode = Mode::Real;
    for case in cases {
        catch_unwind(AssertUnwindSafe(|| native.run(&case))).expect_err("it is refused");
    }
    assert_eq!(native.run(&fine).end, End::Returned);
}

/// Crashes of the program, each in a process of its own.
#[cfg(unix)]
mod crashes {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const NAME: &str = "process::crashes::a_crash_of_the_program_itself_is_still_one";
    /// Names the crash to the process that is to have it.
    const CRASH: &str = "REALMODE_NATIVE_CRASH";

    #[test]
    fn a_crash_of_the_program_itself_is_still_one() {
        if let Ok(what) = std::env::var(CRASH) {
            let mut native = native().expect("the parent had one");
            let undefined = case(&native, Mode::Bits32, &[0x0F, 0x0B]);
            let outcome = native.run(&undefined);
            assert_eq!(exception(&native, &undefined, &outcome), (6, 0, 0));
            return crash(&what);
        }
        if native().is_none() {
            return;
        }
        for (what, signal, text) in [
            ("overflow", 6, "overflowed its stack"),
            ("overflow elsewhere", 6, "overflowed its stack"),
            ("sent", 4, ""),
        ] {
            let (ended, output) = end_of_child(what);
            assert_eq!(ended, Some(signal), "{what}: {output}");
            assert!(output.contains(text), "{what}: {output}");
        }
    }

    /// Runs the test above with a crash: the signal that ended it, and what it said.
    fn end_of_child(what: &str) -> (Option<i32>, String) {
        let program = std::env::current_exe().expect("tests are programs");
        let mut command = Command::new(program);
        command.args(["--exact", NAME, "--nocapture"]).env(CRASH, what);
        let output = command.output().expect("it starts");
        (output.status.signal(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn crash(what: &str) {
        match what {
            "overflow" => println!("{}", recurse(0)),
            "overflow elsewhere" => println!("{:?}", std::thread::spawn(|| recurse(0)).join()),
            // SIGILL, which nobody handled before.
            _ => println!("{:?}", Command::new("sh").args(["-c", "kill -ILL $PPID"]).status()),
        }
    }

    fn recurse(depth: u64) -> u64 {
        let frame = std::hint::black_box([depth; 512]);
        if depth == u64::MAX { 0 } else { recurse(depth + 1) + frame[7] }
    }
}
