//! The demo guest: what a first user sees.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::{path, realmode};

const GUESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guests");

#[test]
fn the_demo_passes_its_checks_and_ends_with_exit_code_0() {
    let said = realmode(&["boot"]).expect(0, &[]);
    assert!(said.stdout.contains("All checks passed.\r\n"), "{}", said.stdout);
    assert!(!said.stdout.contains("FAILED"), "{}", said.stdout);
    assert!(said.stdout.contains("╔═══ Processor ══"), "the screen follows the log");
    assert_eq!(said.stderr, "");
}

#[test]
fn the_demo_finds_the_memory_it_is_given() {
    for (memory, tested) in [("1", " 0"), ("2", " 1"), ("5", " 4"), ("80", "64")] {
        let said = realmode(&["boot", "--memory", memory]).expect(0, &[]);
        let line = said.stdout.lines().find(|line| line.contains("║  MiB filled and verified"));
        let line = line.expect("the memory line is on the screen");
        // Nothing is shown for none.
        let number = format!(" {}   ok", if tested == " 0" { "  " } else { tested });
        assert!(line.contains(&number), "--memory {memory}: {line}");
    }
}

#[test]
fn stats_and_json_tell_what_the_demo_cost() {
    let said = realmode(&["boot", "--stats", "--screen", "none"]).expect(0, &["MIPS", "seconds"]);
    assert!(!said.stdout.contains('╔'));
    let said = realmode(&["boot", "--json"]).expect(0, &[]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("one JSON object");
    assert_eq!(json["result"], "power-off");
    assert_eq!(json["exit_code"], 0);
    assert!(json["instructions"].as_u64().is_some_and(|count| count > 100_000));
    assert!(json["serial"].as_str().is_some_and(|text| text.contains("demo guest")));
    assert!(json["screen"][1].as_str().is_some_and(|row| row.contains("Processor")));
}

#[test]
fn until_ends_the_demo_at_a_text_on_com1_or_on_the_screen() {
    let said = realmode(&["boot", "--until", "12 factorial", "--screen", "none"]).expect(0, &[]);
    assert!(said.stdout.ends_with("12 factorial"), "{}", said.stdout);
    let said = realmode(&["boot", "--until", "Checks passed", "--json"]).expect(0, &[]);
    assert!(said.stdout.contains("on the screen"), "{}", said.stdout);
    realmode(&["boot", "--until", "never to be seen"]).expect(10, &[", but", "had not appeared"]);
    let said = realmode(&["boot", "--until", "never to be seen", "--json"]).expect(10, &[]);
    assert!(said.stdout.contains("had not appeared"), "{}", said.stdout);
}

#[test]
fn the_screen_begins_on_a_line_of_its_own_after_output_that_does_not_end_with_one() {
    let said = realmode(&["boot", "--until", "12 factorial"]).expect(0, &[]);
    assert!(said.stdout.contains("12 factorial\n realmode  "), "{}", said.stdout);
}

#[test]
fn the_screen_becomes_a_picture_in_place_of_an_older_one() {
    let png = path("demo.png");
    fs::write(&png, vec![0; 1 << 20]).expect("the target directory can be written");
    realmode(&["boot", "--screen", &format!("png:{}", png.display())]).expect(0, &[]);
    let bytes = fs::read(&png).expect("the picture was written");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xAEB`\x82"));
    assert_eq!(bytes[16..24], [0, 0, 2, 0x80, 0, 0, 1, 0x90], "640 by 400");
}

#[test]
fn the_committed_guests_are_what_their_sources_assemble_to() {
    if Command::new("nasm").arg("-v").output().is_err() {
        // Not `eprintln!`: the test harness keeps that to itself when a test passes.
        let line = b"skipped: nasm is not installed, guests were not compared with their sources\n";
        std::io::stderr().write_all(line).expect("stderr takes a line");
        return;
    }
    let built = path("guests");
    // What an earlier run has left would be compared with itself.
    let _ = fs::remove_dir_all(&built);
    fs::create_dir(&built).expect("the target directory can be written");
    let (sources, binaries): (Vec<_>, Vec<_>) = fs::read_dir(GUESTS)
        .expect("the guests are there")
        .map(|entry| entry.expect("it can be listed").path())
        .partition(|path| {
            path.extension().is_some_and(|kind| kind == "asm" || kind == "inc" || kind == "sh")
        });
    let copy = |path: &Path| built.join(path.file_name().expect("a file has a name"));
    for source in &sources {
        fs::copy(source, copy(source)).expect("the target directory can be written");
    }
    let status = Command::new("sh").arg(built.join("build.sh")).status();
    assert!(status.is_ok_and(|status| status.success()), "nasm accepts every source");
    for binary in &binaries {
        let same = fs::read(copy(binary)).ok() == fs::read(binary).ok();
        assert!(same, "{} is stale: run testdata/guests/build.sh", binary.display());
    }
    let count = fs::read_dir(&built).expect("it was made here").count();
    assert_eq!(count, sources.len() + binaries.len(), "all that is built is committed");
}
