//! `boot --save` and `boot --load`.

use std::fs;

use serde_json::Value;

use super::{file, path, realmode};

const TRANSFERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guests/transfers.bin");
const SEABIOS: &str = "/usr/share/seabios/bios.bin";

/// Writes `rd` to the screen after some time, polls for a key, and powers off.
const POLLS: [u8; 39] = [
    0xB9, 0x00, 0x00, 0xE2, 0xFE, // mov cx, 0; loop $
    0xB8, 0x00, 0xB8, 0x8E, 0xD8, // mov ax, B800h; mov ds, ax
    0xC7, 0x06, 0x00, 0x00, 0x72, 0x07, // mov word [0], 'r' in grey
    0xC7, 0x06, 0x02, 0x00, 0x64, 0x07, // mov word [2], 'd' in grey
    0xE4, 0x64, 0xA8, 0x01, 0x74, 0xFA, // in al, 64h; test al, 1; jz back
    0xE4, 0x60, // in al, 60h
    0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF, 0xF4, 0xF4, // power off
];

/// A disk of 32 sectors of its own.
fn disk(name: &str) -> String {
    let bytes: Vec<u8> = (0..32 * 512).map(|at| (at * 7 + at / 512) as u8).collect();
    file(name, &bytes)
}

/// The object of `--json` and the exit code.
fn json(arguments: &[&str]) -> (Value, i32) {
    let said = realmode(&[&["boot", "--json"], arguments].concat());
    assert_eq!(said.stderr, "", "{arguments:?}");
    (serde_json::from_str(&said.stdout).expect("one object"), said.code)
}

/// Compares a run with one that is saved at each of these places and goes on. `machine` are
/// options of what is run, `script` those that the snapshot remembers, `until` what it does not.
fn outlasts(name: &str, machine: &[&str], script: &[&str], until: &[&str], points: &[&str]) {
    let (straight, code) = json(&[machine, script, until].concat());
    assert_eq!(code, 0, "{straight}");
    let snapshot = path(name);
    let snapshot = snapshot.to_str().expect("the target directory's name is UTF-8");
    for at in points {
        let save = [machine, script, &["--save", snapshot, "--at", at]].concat();
        let (first, code) = json(&save);
        assert_eq!((code, &first["result"]), (0, &Value::from("saved")), "at {at}: {first}");
        if let Ok(count) = at.parse::<u64>() {
            assert_eq!(first["instructions"], count);
        }
        let (second, code) = json(&[&["--load", snapshot], until].concat());
        assert_eq!(code, 0, "at {at}: {second}");
        for field in ["result", "instructions", "guest_seconds", "screen", "post_code", "cs", "ip"]
        {
            assert_eq!(second[field], straight[field], "{field}, saved at {at}");
        }
        for field in ["serial", "debug"] {
            let text = |run: &Value| run[field].as_str().expect("a text").to_owned();
            assert_eq!(text(&first) + &text(&second), text(&straight), "{field}, saved at {at}");
        }
    }
}

#[test]
fn a_run_with_disk_timer_and_keys_goes_on_where_it_was_saved() {
    let disk = disk("snapshot-disk.img");
    let image = format!("{TRANSFERS}@0000:7C00");
    let machine = ["--image", image.as_str(), "--disk", disk.as_str(), "--memory", "2"];
    let points = ["1", "109", "112", "20000", "25000", "77777", "..", "181000", "."];
    outlasts("snapshot-disk.snap", &machine, &["--type", "abc@..."], &[], &points);
    let before: Vec<u8> = (0..32 * 512).map(|at| (at * 7 + at / 512) as u8).collect();
    assert_eq!(fs::read(disk).expect("still there"), before, "the image is as it was");
}

#[test]
fn what_is_typed_at_a_text_on_the_screen_is_typed_at_the_same_instruction() {
    let image = file("snapshot-polls.bin", &POLLS);
    let image = format!("{image}@0000:7C00");
    let points = ["500", "1024", "1025", "40000", "65540", "66000"];
    let script = ["--type", "k@rd"];
    outlasts("snapshot-polls.snap", &["--image", &image], &script, &[], &points);
}

#[test]
fn seabios_goes_on_from_a_snapshot() {
    if !std::path::Path::new(SEABIOS).exists() {
        eprintln!("skipped: there is no {SEABIOS}");
        return;
    }
    let until = ["--until", "No bootable device"];
    let points = ["1M", "3M", "Booting from Floppy"];
    let machine = ["--bios", SEABIOS, "--cpu", "intel,-pae"];
    outlasts("snapshot-bios.snap", &machine, &[], &until, &points);
}

#[test]
fn a_loop_is_found_at_the_same_instruction_wherever_the_run_was_saved() {
    let image = format!("{}@0000:7C00", file("snapshot-loop.bin", &[0xEB, 0xFE]));
    let (straight, _) = json(&["--image", &image]);
    assert_eq!(straight["result"], "loop");
    let snapshot = path("snapshot-loop.snap");
    let snapshot = snapshot.to_str().expect("the target directory's name is UTF-8");
    // The first turn is 1024 instructions; one of it is left, and none.
    for at in ["1023", "1024"] {
        json(&["--image", &image, "--save", snapshot, "--at", at]);
        let (resumed, _) = json(&["--load", snapshot]);
        assert_eq!(resumed["result"], "loop");
        assert_eq!(resumed["instructions"], straight["instructions"], "saved at {at}");
        let (limited, _) = json(&["--load", snapshot, "--limit", at]);
        assert_eq!(limited["result"], "limit", "nothing has been executed to judge by");
    }
}

#[test]
fn a_run_that_comes_to_its_limit_where_it_is_to_be_saved_is_saved() {
    let image = format!("{}@0000:7C00", file("snapshot-limit.bin", &[0x40, 0xEB, 0xFD]));
    let snapshot = path("snapshot-limit.snap");
    let snapshot = snapshot.to_str().expect("the target directory's name is UTF-8");
    for at in ["1000", "1024"] {
        let (saved, code) =
            json(&["--image", &image, "--save", snapshot, "--at", at, "--limit", at]);
        assert_eq!((code, &saved["result"]), (0, &"saved".into()), "{at}");
    }
}

#[test]
fn a_guest_that_waits_once_the_text_is_on_the_screen_is_saved_as_it_waits() {
    let polls = file("snapshot-waits.bin", &[&POLLS[5..22], &[0xFB, 0xF4]].concat());
    let image = format!("{polls}@0000:7C00");
    let snapshot = path("snapshot-waits.snap");
    let snapshot = snapshot.to_str().expect("the target directory's name is UTF-8");
    let (saved, code) = json(&["--image", &image, "--save", snapshot, "--at", "rd"]);
    assert_eq!((code, &saved["result"]), (0, &"saved".into()));
    assert_eq!(json(&["--load", snapshot]).0["result"], "idle");
}

/// Saves a run of the guest of transfers at its second dot, and returns snapshot and disk.
fn saved(name: &str) -> (String, String) {
    let disk = disk(&format!("{name}.img"));
    let snapshot = file(&format!("{name}.snap"), b"what was there before");
    let image = format!("{TRANSFERS}@0000:7C00");
    let arguments = ["boot", "--image", &image, "--disk", &disk, "--save", &snapshot, "--at", ".."];
    realmode(&arguments).expect(0, &["saved to", &snapshot, "at instruction"]);
    (snapshot, disk)
}

#[test]
fn a_damaged_snapshot_is_refused_and_nothing_runs() {
    let (snapshot, _) = saved("snapshot-damaged");
    let good = fs::read(&snapshot).expect("it was written");
    let load = |bytes: &[u8], word: &str| {
        let bad = file("snapshot-damaged-too.snap", bytes);
        let said = realmode(&["boot", "--load", &bad]).expect(2, &["snapshot-damaged-too", word]);
        assert_eq!(said.stdout, "");
    };
    load(&[], "empty");
    load(b"text\n", "no snapshot");
    load(&good[..good.len() - 1], "damaged");
    for (at, word) in [(0, "no snapshot"), (8, "version"), (13, "damaged"), (999, "checksum")] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        load(&bad, word);
    }
    realmode(&["boot", "--load", "/nonexistent/file"]).expect(2, &["cannot read"]);
}

#[test]
fn the_disk_of_a_snapshot_is_to_be_the_same() {
    let (snapshot, disk) = saved("snapshot-other-disk");
    let bytes = fs::read(&disk).expect("it was written");
    let elsewhere = file("snapshot-moved.img", &bytes);
    fs::remove_file(&disk).expect("it was ours");
    realmode(&["boot", "--load", &snapshot]).expect(2, &["cannot read", &disk, "--disk"]);
    let limited = ["boot", "--load", &snapshot, "--limit", "1M", "--disk"];
    realmode(&[&limited[..], &[&elsewhere]].concat()).expect(6, &["limit"]);
    let smaller = file("snapshot-smaller.img", &bytes[512..]);
    let words = ["not the disk of the snapshot", "31 sectors", "32"];
    realmode(&[&limited[..], &[&smaller]].concat()).expect(2, &words);
    let mut changed = bytes;
    changed[5] ^= 1;
    let changed = file("snapshot-changed.img", &changed);
    realmode(&[&limited[..], &[&changed]].concat()).expect(2, &["checksum", "written to since"]);
}

#[test]
fn options_that_contradict_a_snapshot_are_refused() {
    let (snapshot, disk) = saved("snapshot-options");
    for (option, value) in [
        ("--memory", "16"),
        ("--bios", SEABIOS),
        ("--image", "x@0:0"),
        ("--floppy", "x"),
        ("--clock", "real"),
        ("--cpu", "intel"),
        ("--date", "now"),
        ("--exit-port", "501"),
        ("--record", "x"),
        ("--replay", "x"),
    ] {
        realmode(&["boot", "--load", &snapshot, option, value])
            .expect(2, &["cannot be used with", option]);
    }
    realmode(&["boot", "--load", &snapshot, "--writable", "--disk", &disk])
        .expect(2, &["cannot be used with"]);
    realmode(&["boot", "--save", &snapshot]).expect(2, &["--at"]);
    realmode(&["boot", "--at", "5"]).expect(2, &["--save"]);
    let bare = file("snapshot-bare.snap", b"");
    realmode(&["boot", "--save", &bare, "--at", "5"]).expect(0, &["saved"]);
    realmode(&["boot", "--load", &bare, "--disk", &disk]).expect(2, &["has none"]);
    let other = path("snapshot-other.snap");
    let other = other.to_str().expect("the target directory's name is UTF-8");
    realmode(&["boot", "--load", &bare, "--save", other, "--at", "3"]).expect(2, &["past"]);
    realmode(&["boot", "--load", &bare, "--limit", "3"]).expect(2, &["--limit", "past", "5"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_no_place_for_a_snapshot_and_is_not_waited_for() {
    let pipe = path("snapshot-pipe");
    let _ = fs::remove_file(&pipe);
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("there is a mkfifo").success());
    let pipe = pipe.to_str().expect("the target directory's name is UTF-8");
    let image = format!("{TRANSFERS}@0000:7C00");
    realmode(&["boot", "--image", &image, "--save", pipe, "--at", "5"])
        .expect(2, &["cannot write", pipe, "only saved to a file"]);
}

#[test]
fn a_snapshot_is_never_saved_over_an_input_and_only_a_whole_one_over_another() {
    let (snapshot, disk) = saved("snapshot-over");
    let image = format!("{TRANSFERS}@0000:7C00");
    let run = ["boot", "--image", &image, "--disk", &disk, "--limit", "1M", "--at"];
    for over in [disk.as_str(), TRANSFERS] {
        let before = fs::read(over).expect("it is there");
        realmode(&[&run[..], &["5", "--save", over]].concat()).expect(2, &["same file"]);
        assert_eq!(fs::read(over).expect("still there"), before);
    }
    realmode(&["boot", "--load", &snapshot, "--save", &snapshot, "--at", "5M"])
        .expect(2, &["same file"]);
    let said = realmode(&[&run[..], &["5", "--save", "/nonexistent/x"]].concat());
    let said = said.expect(2, &["cannot write /nonexistent/x"]);
    assert!(!said.stderr.contains(".tmp"), "{}", said.stderr);
    let before = fs::read(&snapshot).expect("it was written");
    // A guest that waits for keys for ever does not come to this.
    realmode(&[&run[..], &["never", "--save", &snapshot]].concat())
        .expect(6, &["nothing was saved", "--at"]);
    assert_eq!(fs::read(&snapshot).expect("still there"), before);
    let polls = file("snapshot-over.bin", &[0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF]);
    let polls = format!("{polls}@0000:7C00");
    realmode(&["boot", "--image", &polls, "--save", &snapshot, "--at", "1M"])
        .expect(10, &["nothing was saved"]);
}
