//! `realmode vectors`: verdicts, messages, exit codes.

use std::fs;

use crate::{Said, path, realmode};

fn chunk(tag: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [tag, &(payload.len() as u32).to_le_bytes()[..], payload].concat()
}

/// MOV AL,1 at 1000:0000 and HLT, expected to leave `ax`.
fn vector(index: u32, ax: u16) -> Vec<u8> {
    let registers = |tag, mask: u16, values: &[u16]| {
        let values = values.iter().flat_map(|value| value.to_le_bytes());
        chunk(tag, &mask.to_le_bytes().into_iter().chain(values).collect::<Vec<u8>>())
    };
    let mut ram = 3_u32.to_le_bytes().to_vec();
    for (address, byte) in (0x10000_u32..).zip([0xB0, 1, 0xF4]) {
        ram.extend(address.to_le_bytes());
        ram.push(byte);
    }
    let before = [0, 0, 0, 0, 0x1000, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let initial = [registers(b"REGS", 0x3FFF, &before), chunk(b"RAM ", &ram)].concat();
    let expected = registers(b"REGS", 0x1001, &[ax, 3]);
    let parts = [
        index.to_le_bytes().to_vec(),
        chunk(b"NAME", b"\x08\0\0\0mov al,1"),
        chunk(b"BYTS", &[3, 0, 0, 0, 0xB0, 1, 0xF4]),
        chunk(b"INIT", &initial),
        chunk(b"FINA", &expected),
    ];
    chunk(b"TEST", &parts.concat())
}

/// A file of vectors that leave these values in AX.
fn suite(values: &[u16]) -> Vec<u8> {
    let count = values.len() as u32;
    let header = chunk(b"MOO ", &[&[1, 1, 0, 0][..], &count.to_le_bytes(), b"C286"].concat());
    let tests: Vec<u8> = (0..).zip(values).flat_map(|(index, ax)| vector(index, *ax)).collect();
    [header, tests].concat()
}

/// Runs `realmode vectors` on a directory of these files.
fn vectors(name: &str, files: &[(&str, Vec<u8>)], more: &[&str]) -> Said {
    let directory = path(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the target directory can be written");
    for (file, bytes) in files {
        fs::write(directory.join(file), bytes).expect("the target directory can be written");
    }
    let directory = directory.to_str().expect("the target directory's name is UTF-8");
    realmode(&[&["vectors", directory], more].concat())
}

#[test]
fn the_last_line_is_the_verdict() {
    let files = [("B0.MOO", suite(&[1, 1])), ("B1.MOO", suite(&[1]))];
    let said = vectors("vectors-good", &files, &["--profile", "286"]).expect(0, &[]);
    assert!(said.stdout.ends_with("\n3 passed, 0 failed\n"), "{}", said.stdout);
    assert_eq!(said.stderr, "", "no progress bar where there is no terminal");
}

#[test]
fn a_failure_is_shown_with_its_difference_and_counted_by_opcode() {
    let files = [("B0.MOO", suite(&[1, 2, 3])), ("F7.6.MOO", suite(&[1]))];
    let said = vectors("vectors-bad", &files, &["--show", "1"]).expect(1, &[]);
    assert!(said.stdout.starts_with("B0 #1 mov al,1 (B0 01 F4)\n"), "{}", said.stdout);
    assert!(said.stdout.contains("ax            0000      0002      0001"), "{}", said.stdout);
    assert!(!said.stdout.contains("#2"), "one is shown: {}", said.stdout);
    assert!(said.stdout.contains("\nB0               2         1\n"), "{}", said.stdout);
    assert!(said.stdout.ends_with("\n2 passed, 2 failed\n"), "{}", said.stdout);
}

#[test]
fn only_takes_an_opcode_or_its_group() {
    let files =
        [("B0.MOO", suite(&[1])), ("F7.6.MOO", suite(&[1, 1])), ("F7.7.MOO", suite(&[1, 1, 1]))];
    let passed = |only: &[&str], count: &str| {
        let said = vectors(&format!("vectors-only-{count}"), &files, only).expect(0, &[]);
        assert!(said.stdout.ends_with(&format!("\n{count} passed, 0 failed\n")), "{}", said.stdout);
    };
    passed(&["--only", "f7.6"], "2");
    passed(&["--only", "F7"], "5");
    passed(&["--only", "F7.7", "--only", "B0"], "4");
    passed(&["--only", "F7.7", "--every", "3"], "1");
    vectors("vectors-none", &files, &["--only", "C0"]).expect(2, &["--only C0", "no file"]);
}

#[test]
fn json_is_one_object() {
    let files = [("B0.MOO", suite(&[1, 2]))];
    let said = vectors("vectors-json", &files, &["--json"]).expect(1, &[]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("one JSON object");
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &1.into()));
    assert_eq!(json["files"][0]["opcode"], "B0");
    assert_eq!(json["failures"][0]["registers"]["ax"]["found"], 1);
}

#[test]
fn bad_files_and_arguments_are_named() {
    let mut cut = suite(&[1, 1]);
    cut.truncate(100);
    vectors("vectors-cut", &[("B0.MOO", cut)], &[]).expect(2, &["B0.MOO: byte 0x14: chunk"]);
    vectors("vectors-empty", &[], &[]).expect(2, &["no .MOO or .MOO.gz file"]);
    realmode(&["vectors", "/nonexistent"]).expect(2, &["/nonexistent: "]);
    let said = realmode(&["vectors", ".", "--profile", "z80"]);
    said.expect(2, &["there are 8086, 286, 386, 486, intel, amd"]);
    realmode(&["vectors", ".", "--jobs", "0"]).expect(2, &["--jobs"]);
    realmode(&["vectors"]).expect(2, &["<DIR>"]);
}

#[test]
fn a_single_file_is_a_suite() {
    let path = path("vectors-single.MOO");
    fs::write(&path, suite(&[1])).expect("the target directory can be written");
    let path = path.to_str().expect("the target directory's name is UTF-8");
    let said = realmode(&["vectors", path]).expect(0, &[]);
    assert!(said.stdout.ends_with("\n1 passed, 0 failed\n"), "{}", said.stdout);
}
