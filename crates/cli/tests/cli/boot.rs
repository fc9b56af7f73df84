//! How runs end.

use crate::{Said, file, finish, read, realmode, start, with_input};

/// Boots `code` at 0000:7C00.
fn boot(name: &str, code: &[u8], more: &[&str]) -> Said {
    let image = format!("{}@0000:7C00", file(name, code));
    realmode(&[&["boot", "--image", &image], more].concat())
}

#[test]
fn a_value_written_to_port_501_becomes_the_exit_code() {
    // mov dx, 501h; mov al, 3; out dx, al
    let code = [0xBA, 0x01, 0x05, 0xB0, 0x03, 0xEE, 0xF4];
    boot("exit.bin", &code, &[]).expect(7, &["port 501h", "value 0x3"]);
}

#[test]
fn a_power_off_is_success_and_says_nothing() {
    // mov dx, 604h; mov ax, 2000h; out dx, ax
    let code = [0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF, 0xF4];
    let said = boot("off.bin", &code, &[]).expect(0, &[]);
    assert_eq!((said.stdout, said.stderr), (String::new(), String::new()));
}

#[test]
fn a_guest_in_hlt_is_idle_and_not_a_hang() {
    boot("hlt.bin", &[0x90, 0xF4], &[]).expect(4, &["idle", "at 0000:7C01, real mode: F4  hlt\n"]);
    boot("sti-hlt.bin", &[0xFB, 0xF4], &[]).expect(4, &["idle"]);
}

#[test]
fn a_jump_to_itself_is_found() {
    boot("loop.bin", &[0xEB, 0xFE], &[]).expect(8, &["jumps to itself", "0000:7C00", "EB FE  jmp"]);
}

/// Programs a timer of 55 ms whose interrupt powers off, and goes on with the last bytes.
fn timer(last: &[u8]) -> Vec<u8> {
    let mut code = vec![
        0xC7, 0x06, 0x20, 0, 0x40, 0x7C, 0xC7, 0x06, 0x22, 0, 0, 0, // vector 8: 0000:7C40
        0xB0, 0x11, 0xE6, 0x20, 0xB0, 0x08, 0xE6, 0x21, // 8259: vectors from 8 on,
        0xB0, 0x04, 0xE6, 0x21, 0xB0, 0x01, 0xE6, 0x21, 0xB0, 0xFE, 0xE6, 0x21, // IRQ 0 alone
        0xB0, 0x34, 0xE6, 0x43, 0xB0, 0, 0xE6, 0x40, 0xE6, 0x40, // 8254: mode 2, 65536
    ];
    code.extend(last);
    code.resize(0x40, 0x90);
    code.extend([0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF]); // mov dx, 604h; mov ax, 2000h; out
    code
}

#[test]
fn a_guest_that_a_timer_will_wake_waits_and_is_not_at_its_end() {
    // sti; jmp $ and sti; hlt
    for (name, last) in [("tick1.bin", [0xFB, 0xEB, 0xFE]), ("tick2.bin", [0xFB, 0xF4, 0xF4])] {
        boot(name, &timer(&last), &[]).expect(0, &[]);
        boot(name, &timer(&last), &["--clock", "real"]).expect(0, &[]);
    }
    // cli; jmp $ and cli; hlt
    boot("tick3.bin", &timer(&[0xFA, 0xEB, 0xFE]), &[]).expect(8, &["jumps to itself"]);
    boot("tick4.bin", &timer(&[0xFA, 0xF4]), &[]).expect(4, &["idle"]);
    // mov al, FFh; out 21h, al; sti; hlt
    let masked = [0xB0, 0xFF, 0xE6, 0x21, 0xFB, 0xF4];
    boot("tick5.bin", &timer(&masked), &[]).expect(4, &["idle"]);
    // It executes nothing more, so that no limit ends it.
    boot("tick6.bin", &timer(&masked), &["--limit", "1k"]).expect(4, &["idle"]);
}

#[test]
fn the_exit_port_can_be_chosen() {
    // mov al, 3; out F4h, al
    let said = boot("exit-f4.bin", &[0xB0, 0x03, 0xE6, 0xF4, 0xF4], &["--exit-port", "F4"]);
    said.expect(7, &["port F4h", "value 0x3"]);
    boot("exit-f5.bin", &[0xB0, 0x03, 0xE6, 0xF4, 0xF4], &[]).expect(4, &["idle"]);
}

#[test]
fn a_processor_is_what_it_was_said_to_be() {
    // mov eax, 1; cpuid; mov al, dl; and al, 50h (PAE, TSC); mov dx, 501h; out dx, al
    let code = [0x66, 0xB8, 1, 0, 0, 0, 0x0F, 0xA2, 0x88, 0xD0, 0x24, 0x50, 0xBA, 0x01, 0x05, 0xEE];
    for (cpu, exit_code) in [("intel", 0xA1), ("amd,-pae", 0x21), ("intel,-pae,-tsc", 0x01)] {
        boot("cpuid.bin", &code, &["--cpu", cpu]).expect(exit_code, &[]);
    }
    boot("cpuid2.bin", &code, &["--cpu", "286"]).expect(8, &["#UD", "66"]);
}

#[test]
fn a_guest_that_needs_what_is_not_executed_is_told_what_to_leave_out() {
    // fld1
    let words = ["D9 E8", "fld1", "--cpu intel,-avx"];
    boot("x87.bin", &[0xD9, 0xE8, 0xF4], &[]).expect(8, &words);
}

#[test]
fn a_guest_turns_paging_on() {
    // mov byte [1000h], 3; mov word [2000h], 7003h; mov eax, 1000h; mov cr3, eax: an identity map
    // of the page at 7000h. mov eax, cr0; or eax, 80000001h; mov cr0, eax; jmp 0:0, which is #GP
    // and a triple fault.
    let code = [
        0x66, 0xC7, 0x06, 0x00, 0x10, 0x03, 0x20, 0, 0, // page directory
        0x66, 0xC7, 0x06, 0x1C, 0x20, 0x03, 0x70, 0, 0, // page table
        0x66, 0xB8, 0x00, 0x10, 0, 0, 0x0F, 0x22, 0xD8, // mov cr3
        0x0F, 0x20, 0xC0, 0x66, 0x0D, 1, 0, 0, 0x80, 0x0F, 0x22, 0xC0, // mov cr0
        0xEA, 0, 0, 0, 0,
    ];
    let words = ["could not be delivered", "protected mode with paging"];
    boot("paging.bin", &code, &[]).expect(8, &words);
}

#[test]
fn keys_are_typed_when_their_trigger_appears() {
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guests/interrupts.bin");
    let image = format!("{guest}@0000:7C00");
    for clock in ["virtual", "real"] {
        let arguments = ["boot", "--image", &image, "--type", "a@>", "--clock", clock];
        let said = realmode(&arguments).expect(0, &[]);
        assert!(said.stdout.contains('>'), "{}", said.stdout);
    }
    let said = realmode(&["boot", "--image", &image, "--type", "a@never", "--limit", "9M"]);
    said.expect(4, &["idle", ", and `never` had not appeared"]);
}

#[test]
fn what_stdin_sends_com1_receives() {
    // mov dx, 3FDh; wait: in al, dx; test al, 1; jz wait; mov dx, 3F8h; in al, dx; out dx, al
    let code = [
        0xBA, 0xFD, 0x03, 0xEC, 0xA8, 0x01, 0x74, 0xFB, 0xBA, 0xF8, 0x03, 0xEC, 0xEE, 0xE6, 0xE9,
        0xEB, 0xEF,
    ];
    let image = format!("{}@0000:7C00", file("echo.bin", &code));
    let arguments = ["boot", "--image", &image, "--serial", "stdio", "--until", "ok"];
    let said = with_input(&arguments, b"all is ok now").expect(0, &["all is o"]);
    assert_eq!(said.stdout, "all is ok");
    let said = with_input(&[&arguments[..], &["--type", "com1:ok@ist"]].concat(), b"list ");
    assert_eq!(said.expect(0, &[]).stdout, "list ok");
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run_quietly() {
    // mov dx, 3F8h; again: out dx, al; jmp again
    let code = [0xBA, 0xF8, 0x03, 0xEE, 0xEB, 0xFD];
    let image = format!("{}@0000:7C00", file("yes.bin", &code));
    let mut child = start(&["boot", "--image", &image]);
    drop(child.stdout.take());
    finish(child).expect(0, &[]).is_silent();
    // again: out E9h, al; jmp again
    let image = format!("{}@0000:7C00", file("yes-debug.bin", &[0xE6, 0xE9, 0xEB, 0xFC]));
    let mut child = start(&["boot", "--image", &image, "--serial", "stdio", "--stats"]);
    drop(child.stderr.take());
    finish(child).expect(0, &[]).is_silent();
}

#[test]
fn output_goes_to_the_files_that_were_named() {
    // mov dx, 3F8h; mov al, 's'; out dx, al; mov al, 'd'; out E9h, al; hlt
    let code = [0xBA, 0xF8, 0x03, 0xB0, 0x73, 0xEE, 0xB0, 0x64, 0xE6, 0xE9, 0xF4];
    let (serial, debug) = (file("serial.txt", b"older"), file("debug.txt", b"older"));
    let said = boot("files.bin", &code, &["--serial", &serial]).expect(4, &[]);
    assert_eq!((said.stdout, read(&serial)), ("d".to_owned(), b"s".to_vec()));
    let both = ["--serial", &serial, "--debug", &debug, "--json"];
    let said = boot("files2.bin", &code, &both).expect(4, &[]);
    assert_eq!((read(&serial), read(&debug)), (b"s".to_vec(), b"d".to_vec()));
    assert_eq!((&said.json()["serial"], &said.json()["debug"]), (&"s".into(), &"d".into()));
    let said = boot("files3.bin", &code, &["--serial", "stdio"]).expect(4, &["d\n"]);
    assert_eq!(said.stdout, "s");
}

#[test]
fn the_date_is_fixed_unless_it_is_given() {
    // mov al, 9; out 70h, al; in al, 71h; mov dx, 501h; out dx, al: the year, in BCD
    let code = [0xB0, 0x09, 0xE6, 0x70, 0xE4, 0x71, 0xBA, 0x01, 0x05, 0xEE];
    boot("year.bin", &code, &[]).expect(0x26 << 1 | 1, &[]);
    boot("year2.bin", &code, &["--date", "1999-12-31 23:59:59"]).expect(0x33, &[]);
}

#[test]
fn a_handler_that_raises_its_own_exception_is_found() {
    // mov word [18h], 7C0Ch; mov word [1Ah], 0; ud2
    let code = [0xC7, 0x06, 0x18, 0, 0x0C, 0x7C, 0xC7, 0x06, 0x1A, 0, 0, 0, 0x0F, 0x0B];
    boot("fault-loop.bin", &code, &[]).expect(8, &["handler of exceptions", "0000:7C0C", "0F 0B"]);
    boot("fault-loop2.bin", &code, &["--limit", "100"]).expect(6, &["limit reached: 2 "]);
}

#[test]
fn what_is_not_implemented_stops_with_its_bytes() {
    // fldz; fsin
    let code = [0xD9, 0xEE, 0xD9, 0xFE];
    boot("sin.bin", &code, &[]).expect(8, &["unimplemented", "0000:7C00", ": D9 EE"]);
}

#[test]
fn a_bios_call_is_named_with_its_caller() {
    let code = [0xB4, 0x02, 0xCD, 0x13, 0xF4];
    boot("int13.bin", &code, &[])
        .expect(8, &["INT 13h", "no BIOS", "at 0000:7C02", "CD 13  int 0x13\n"]);
}

#[test]
fn an_exception_without_a_handler_is_named_with_its_instruction() {
    let code = [0x90, 0x0F, 0x0B];
    boot("ud.bin", &code, &[]).expect(8, &["#UD", "at 0000:7C01", "0F 0B"]);
    // xor cx, cx; div cx
    boot("de.bin", &[0x31, 0xC9, 0xF7, 0xF1], &[]).expect(8, &["#DE", "at 0000:7C02", "F7 F1"]);
}

#[test]
fn a_triple_fault_is_a_shutdown() {
    // lidt [7C10h], whose limit is 0; int3
    let mut code = [0; 32];
    code[..6].copy_from_slice(&[0x0F, 0x01, 0x1E, 0x10, 0x7C, 0xCC]);
    boot("triple.bin", &code, &[]).expect(8, &["shutdown", "at 0000:7C05"]);
}

#[test]
fn a_guest_that_strays_into_zeros_or_out_of_memory_is_lost() {
    boot("zeros.bin", &[0x90; 16], &[]).expect(8, &["nothing but zeros"]);
    // jmp A000:0000
    boot("nowhere.bin", &[0xEA, 0, 0, 0, 0xA0], &[]).expect(8, &["0xa0000", "A000:0000"]);
}

#[test]
fn a_reset_is_reported() {
    // mov al, 1; out 92h, al
    boot("reset.bin", &[0xB0, 0x01, 0xE6, 0x92, 0xF4], &[]).expect(8, &["reset"]);
}

#[test]
fn a_limit_is_exact() {
    // inc ax; jmp back
    let said = boot("endless.bin", &[0x40, 0xEB, 0xFD], &["--limit", "1001", "--json"]);
    let said = said.expect(6, &[]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("one JSON object");
    assert_eq!(json["result"], "limit");
    assert_eq!(json["instructions"], 1001);
    assert_eq!((&json["cs"], &json["ip"]), (&0.into(), &0x7C01.into()));
    let said = boot("endless2.bin", &[0x40, 0xEB, 0xFD], &["--limit", "3M"]);
    said.expect(6, &["limit reached: 3000000"]);
}

#[test]
fn a_trace_has_a_line_an_instruction() {
    let trace = file("trace.txt", b"an older trace");
    // mov cx, 3; loop $; mov cl, 9; rep lodsb; hlt
    let code = [0xB9, 0x03, 0x00, 0xE2, 0xFE, 0xB1, 0x09, 0xF3, 0xAC, 0xF4];
    boot("traced.bin", &code, &["--trace", &trace]).expect(4, &["idle"]);
    let text = std::fs::read_to_string(&trace).expect("the trace was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(
        lines[0].contains("1 0000:7C00 B9 03 00") && lines[0].contains("mov cx, 0x3"),
        "{text}"
    );
    assert!(lines[3].contains("0000:7C03 E2 FE") && lines[3].contains("ecx=00000001"), "{text}");
    assert!(lines[5].contains("0000:7C07 F3 AC") && lines[5].contains("ecx=00000009"), "{text}");
    assert!(lines[6].contains("0000:7C09 F4"), "{text}");
}

#[test]
fn until_ends_a_run_that_would_idle_or_loop() {
    // mov dx, 3F8h; mov al, 'A'; out dx, al; inc al; out dx, al; hlt
    let code = [0xBA, 0xF8, 0x03, 0xB0, 0x41, 0xEE, 0xFE, 0xC0, 0xEE, 0xF4];
    let said = boot("serial.bin", &code, &["--until", "AB"]).expect(0, &[]);
    assert_eq!(said.stdout, "AB");
    boot("serial2.bin", &code, &["--until", "BA"]).expect(4, &["idle"]);
    // mov ax, B800h; mov ds, ax; mov word [0], 0741h; jmp $
    let code = [0xB8, 0x00, 0xB8, 0x8E, 0xD8, 0xC7, 0x06, 0, 0, 0x41, 0x07, 0xEB, 0xFE];
    boot("screen.bin", &code, &["--until", "A"]).expect(0, &[]);
}

#[test]
fn the_debug_ports_reach_stdout_as_com1_does() {
    // in al, E9h; out E9h, al; mov dx, 402h; mov al, 'x'; out dx, al; hlt
    let code = [0xE4, 0xE9, 0xE6, 0xE9, 0xBA, 0x02, 0x04, 0xB0, 0x78, 0xEE, 0xF4];
    let said = boot("debug.bin", &code, &["--json"]).expect(4, &[]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("one JSON object");
    assert_eq!(json["debug"], "\u{FFFD}x");
    assert_eq!(json["serial"], "");
}

#[test]
fn a_boot_sector_starts_with_dl_0_at_7c00() {
    // call next; next: pop ax; out E9h, al; mov al, ah; out E9h, al; mov al, dl; out E9h, al; hlt
    let code = [0xE8, 0, 0, 0x58, 0xE6, 0xE9, 0x88, 0xE0, 0xE6, 0xE9, 0x88, 0xD0, 0xE6, 0xE9, 0xF4];
    let mut floppy = vec![0; 1_474_560];
    floppy[..code.len()].copy_from_slice(&code);
    floppy[510..512].copy_from_slice(&[0x55, 0xAA]);
    let said = realmode(&["boot", "--floppy", &file("boot.img", &floppy)]).expect(4, &[]);
    assert_eq!(said.stdout, "\u{3}|\0");
}
