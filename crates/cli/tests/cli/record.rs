//! `--record` and `--replay`.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::{file, path, realmode};

/// Sends back what it receives on COM1, with two letters that depend on the timer's count; q
/// powers off.
const ECHO: [u8; 57] = [
    0xB0, 0x34, 0xE6, 0x43, 0x30, 0xC0, 0xE6, 0x40, 0xE6, 0x40, // counter 0: mode 2, 65536
    0xBA, 0xFD, 0x03, 0xEC, 0xA8, 0x01, 0x74, 0xFB, // until in(3FDh) & 1
    0xBA, 0xF8, 0x03, 0xEC, 0x88, 0xC3, 0xEE, // out(3F8h, bl = in(3F8h))
    0xB0, 0x00, 0xE6, 0x43, // latch counter 0
    0xE4, 0x40, 0xE8, 0x11, 0x00, 0xE4, 0x40, 0xE8, 0x0C, 0x00, // letter(in(40h)), twice
    0x80, 0xFB, 0x71, 0x75, 0xDE, // again unless bl is q
    0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF, // power off
    0x24, 0x0F, 0x04, 0x61, 0xEE, 0xC3, // letter: out(dx, 'a' + (al & 15))
];

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// A line of `--stats`.
    fn stat(&self, name: &str) -> &str {
        let line = self.stderr.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.stderr)).trim()
    }
}

/// Runs the guest, sending each of `keys` once the one before it has been answered.
fn echo(arguments: &[&str], keys: &[u8]) -> Run {
    // The tests run side by side.
    static GUEST: LazyLock<String> = LazyLock::new(|| file("record-echo.bin", &ECHO));
    let image = format!("{}@0000:7C00", *GUEST);
    let mut child = Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(["boot", "--image", &image, "--serial", "stdio", "--stats", "--screen", "none"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    let mut text = String::new();
    for key in keys {
        stdin.write_all(&[*key]).and_then(|()| stdin.flush()).expect("it reads");
        let mut answer = [0; 3];
        stdout.read_exact(&mut answer).expect("it answers");
        text.push_str(std::str::from_utf8(&answer).expect("letters"));
    }
    drop(stdin);
    stdout.read_to_string(&mut text).expect("letters");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Run { code: output.status.code(), stdout: text, stderr }
}

fn record(name: &str) -> String {
    path(name).to_str().expect("the target directory's name is UTF-8").to_owned()
}

#[test]
fn a_run_under_the_real_clock_replays_to_the_instruction() {
    let record = record("real.rec");
    let typing = ["--clock", "real", "--type", "com1:xy@z"];
    let first = echo(&[&typing[..], &["--record", &record]].concat(), b"hellozq");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let letters: String = first.stdout.chars().step_by(3).collect();
    assert_eq!(letters, "hellozxyq");
    for _ in 0..2 {
        let again = echo(&[&typing[..], &["--replay", &record]].concat(), b"");
        assert_eq!((again.code, &again.stdout), (first.code, &first.stdout), "{}", again.stderr);
        assert_eq!(again.stat("instructions"), first.stat("instructions"));
        assert_eq!(again.stat("seconds of the guest's"), first.stat("seconds of the guest's"));
    }
}

#[test]
fn a_run_under_the_virtual_clock_replays_too() {
    let record = record("virtual.rec");
    let first = echo(&["--record", &record], b"hello, worldq");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let again = echo(&["--replay", &record], b"");
    assert_eq!((again.code, &again.stdout), (first.code, &first.stdout));
    assert_eq!(again.stat("instructions"), first.stat("instructions"));
    assert!(!again.stderr.contains("ends at"), "{}", again.stderr);
}

#[test]
fn a_replay_goes_on_without_input_where_the_record_ends() {
    let whole = record("whole.rec");
    echo(&["--record", &whole], b"abcq");
    let text = fs::read_to_string(&whole).expect("a record");
    let cut: String = text
        .split_inclusive('\n')
        .filter(|line| !line.ends_with(" 71\n") && !line.starts_with("end"))
        .collect();
    assert_eq!(text.lines().count(), cut.lines().count() + 2, "q and the end are gone: {text}");
    let cut = file("cut.rec", cut.as_bytes());
    let again = echo(&["--replay", &cut, "--limit", "10M"], b"");
    assert_eq!(again.code, Some(6), "{}", again.stderr);
    let letters: String = again.stdout.chars().step_by(3).collect();
    assert_eq!(letters, "abc");
    assert!(again.stderr.contains("cut.rec ends at instruction"), "{}", again.stderr);
    assert!(again.stderr.contains("the guest had no input"), "{}", again.stderr);
}

#[test]
fn a_record_of_another_run_is_refused_and_nothing_runs() {
    let record = record("other.rec");
    echo(&["--record", &record], b"q");
    let guest = file("record-other.bin", &[0xF4]);
    let image = format!("{guest}@0000:7C00");
    let echo_image = format!("{}@0000:7C00", file("record-same.bin", &ECHO));
    for (arguments, words) in [
        (&["--image", &image][..], &["image 57 bytes", "image 1 bytes"][..]),
        (&["--image", &echo_image, "--memory", "17"], &["memory 16 MiB", "memory 17 MiB"]),
        (&["--image", &echo_image, "--clock", "real"], &["clock virtual", "clock real"]),
        (&["--image", &echo_image, "--cpu", "intel,-tsc"], &["made with `cpu", "has `cpu"]),
        (&["--image", &echo_image, "--type", "a@b"], &["not made with `type"]),
    ] {
        let all = [&["boot", "--replay", &record], arguments].concat();
        let said = realmode(&all).expect(2, &[&record, "cannot be replayed here"]).expect(2, words);
        assert_eq!(said.stdout, "");
    }
}

#[test]
fn a_damaged_record_is_refused_with_its_line() {
    let whole = record("damaged.rec");
    echo(&["--record", &whole], b"aq");
    let text = fs::read_to_string(&whole).expect("a record");
    let serial = text.lines().position(|line| line.starts_with("serial ")).expect("an a") + 1;
    let other_version = text.replacen("record 1", "record 7", 1);
    for (text, words) in [
        (text.replacen("serial ", "serail ", 1), format!("line {serial} is damaged")),
        (text[..text.len() - 1].to_owned(), "is cut off".to_owned()),
        (other_version, "version 7".to_owned()),
        ("GIF89a".to_owned(), "does not begin with".to_owned()),
    ] {
        let damaged = file("damaged-copy.rec", text.as_bytes());
        realmode(&["boot", "--replay", &damaged]).expect(2, &[&damaged, &words]);
    }
}

#[test]
fn a_record_is_no_other_file_of_the_run() {
    let image = file("record-input.bin", &[0xF4]);
    let at = format!("{image}@0000:7C00");
    realmode(&["boot", "--image", &at, "--record", &image]).expect(2, &["same file"]);
    assert_eq!(fs::read(&image).expect("still there"), [0xF4]);
    realmode(&["boot", "--image", &at, "--record", "a", "--replay", "b"])
        .expect(2, &["cannot be used with"]);
    let record = record("same.rec");
    realmode(&["boot", "--image", &at, "--record", &record]).expect(4, &[]);
    realmode(&["boot", "--image", &at, "--replay", &record, "--trace", &record])
        .expect(2, &["same file"]);
}
