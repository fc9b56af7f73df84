//! `realmode decode`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::realmode;

#[test]
fn each_instruction_is_a_line_of_address_bytes_and_text() {
    let said = realmode(&["decode", "31C0", "0x8ed8", "75", "fe", "--at", "0x7C00"]).expect(0, &[]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    let expected = [
        "7c00  31 c0                     xor ax, ax",
        "7c02  8e d8                     mov ds, ax",
        "7c04  75 fe                     jne 0x7c04",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_size_of_code_and_the_profile_decide_what_bytes_mean() {
    let text = |arguments: &[&str]| {
        let said = realmode(&[&["decode"], arguments].concat());
        let line = said.stdout.lines().next().unwrap_or_default();
        line.rsplit("  ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(text(&["4889C7", "--bits", "64"]), "mov rdi, rax");
    assert_eq!(text(&["0F02C0"]), "undefined");
    assert_eq!(text(&["0F02C0", "--protected"]), "lar ax, ax");
    assert_eq!(text(&["0FA2", "--profile", "386"]), "undefined");
    assert_eq!(text(&["0FA2"]), "cpuid");
}

#[test]
fn bytes_that_end_within_an_instruction_say_how_many_are_missing() {
    let said = realmode(&["decode", "90", "EA", "5B", "E0"]).expect(1, &[]);
    assert!(said.stdout.contains("0001  ea 5b e0"), "{}", said.stdout);
    assert!(said.stdout.contains("(incomplete: at least 2 more bytes)"), "{}", said.stdout);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    realmode(&["decode", "90 9G"]).expect(2, &["line 1, column 5", "'G'"]);
    realmode(&["decode", "909"]).expect(2, &["line 1, column 3", "odd number"]);
    realmode(&["decode", "90", "0xZ"]).expect(2, &["line 1, column 6", "'Z'"]);
    realmode(&["decode", "é0"]).expect(2, &["line 1, column 1", "hexadecimal digit"]);
    realmode(&["decode", ""]).expect(2, &["no bytes"]);
    realmode(&["decode"]).expect(2, &["HEX"]);
    realmode(&["decode", "90", "--bits", "20"]).expect(2, &["16, 32 or 64"]);
    realmode(&["decode", "90", "--at", "+5"]).expect(2, &["hexadecimal"]);
    realmode(&["decode", "90", "--profile", "z80"]).expect(2, &["8086, 286"]);
    realmode(&["decode", "90", "--bits", "64", "--real"]).expect(2, &["--real"]);
    realmode(&["decode", "90", "--bits", "32", "--profile", "286"]).expect(2, &["286", "32-bit"]);
    realmode(&["decode", "90", "--bits", "64", "--profile", "486"]).expect(2, &["486", "64-bit"]);
}

#[test]
fn standard_input_is_read_for_a_dash_and_json_is_one_object() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(["decode", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(b"f3 a4\n0F0B\n66\n").expect("the command reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("this is JSON");
    assert_eq!(value["instructions"][0]["text"], "rep movsb");
    assert_eq!(value["instructions"][1]["mnemonic"], "UD2");
    assert_eq!(value["missing"]["at_least"], 1);
}
