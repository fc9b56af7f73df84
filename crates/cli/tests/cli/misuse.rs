//! What the user may get wrong: a clear error, exit code 2, and no file changed.

use std::fs;
#[cfg(target_os = "linux")]
use std::process::Command;

use crate::{file, path, realmode};

#[test]
fn a_wrong_command_line_is_an_error_that_says_what_to_change() {
    for (arguments, words) in [
        (&["--memory", "0"][..], &["MiB from 1 to 3072"][..]),
        (&["--memory", "3073"], &["MiB from 1 to 3072"]),
        (&["--memory", "18446744073709551616"], &["--memory"]),
        (&["--memory", "1.5"], &["--memory"]),
        (&["--memory", "-1"], &["invalid value '-1'", "--memory"]),
        (&["--limit", "-1"], &["invalid value '-1'", "not a count"]),
        (&["--memory", "16M"], &["--memory", "without a unit"]),
        (&["--limit", "0"], &["at least one instruction"]),
        (&["--limit", "10T"], &["not a count"]),
        (&["--until", ""], &["--until"]),
        (&["--screen", "gif:a"], &["expected text, png:FILE or none"]),
        (&["--screen", "png:"], &["name is missing"]),
        (&["--image", "a.bin"], &["@SEG:OFF"]),
        (&["--image", "a.bin@7C00"], &["not SEG:OFF"]),
        (&["--image", "a.bin@0000:17C00"], &["17C00", "hexadecimal"]),
        (&["--image", "a.bin@0000:7C0G"], &["7C0G", "hexadecimal"]),
        (&["--image", "a.bin@0:0", "--floppy", "b.img"], &["cannot be used with"]),
        (&["surplus"], &["surplus"]),
    ] {
        let all: Vec<&str> = [&["boot"], arguments].concat();
        let said = realmode(&all).expect(2, words);
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let missing = format!("{directory}/no-such-file");
    for option in ["--image", "--floppy"] {
        let at = if option == "--image" { "@0000:7C00" } else { "" };
        realmode(&["boot", option, &format!("{missing}{at}")])
            .expect(2, &["cannot read", &missing]);
        realmode(&["boot", option, &format!("{directory}{at}")])
            .expect(2, &["it is a directory", directory]);
        let empty = file(&format!("empty{option}"), &[]);
        realmode(&["boot", option, &format!("{empty}{at}")]).expect(2, &[&empty, "is empty"]);
    }
    realmode(&["run-image", &missing]).expect(2, &["cannot read", &missing]);
}

#[test]
fn an_image_that_does_not_fit_is_refused() {
    let larger = file("larger.bin", &vec![0x90; (1 << 20) + 1]);
    let image = format!("{larger}@0000:0000");
    realmode(&["boot", "--memory", "1", "--image", &image]).expect(2, &[&larger, "RAM of 1 MiB"]);
    let page = file("page.bin", &[0x90; 4096]);
    let past = format!("{page}@FFFF:0000");
    realmode(&["boot", "--memory", "1", "--image", &past]).expect(2, &["0xffff0", "FFFF:0000"]);
    let hole = format!("{page}@9FFF:0000");
    realmode(&["boot", "--image", &hole]).expect(2, &["A0000h-B7FFFh"]);
    realmode(&["run-image", &larger]).expect(2, &[&larger, "does not fit"]);
}

#[test]
fn a_floppy_that_no_bios_would_boot_is_refused_with_a_way_around() {
    let short = file("short.img", &[0x90; 511]);
    realmode(&["boot", "--floppy", &short]).expect(2, &["511 bytes"]);
    let unsigned = file("unsigned.img", &[0x90; 1024]);
    let around = format!("--image {unsigned}@0000:7C00");
    realmode(&["boot", "--floppy", &unsigned]).expect(2, &["9090", "55AA", &around]);
    let large = file("large.img", &vec![0; 2_949_121]);
    realmode(&["boot", "--floppy", &large]).expect(2, &["2.88 MB"]);
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_guest_runs() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let into_nowhere = format!("png:{directory}/no-such-directory/a.png");
    for (screen, word) in
        [(format!("png:{directory}"), "it is a directory"), (into_nowhere, "cannot write")]
    {
        let said = realmode(&["boot", "--screen", &screen]).expect(2, &[word]);
        assert_eq!(said.stdout, "", "the demo guest has not printed");
    }
}

#[test]
fn an_input_file_is_never_written() {
    let bytes = [0xF4; 600];
    let input = file("input.bin", &bytes);
    let screen = format!("png:{input}");
    let image = format!("{input}@0000:7C00");
    realmode(&["boot", "--image", &image, "--screen", &screen]).expect(2, &["same file"]);
    realmode(&["boot", "--image", &image, "--trace", &input]).expect(2, &["same file"]);

    let link = path("input-link.bin");
    let _ = fs::remove_file(&link);
    fs::hard_link(&input, &link).expect("the target directory has hard links");
    let screen = format!("png:{}", link.display());
    realmode(&["boot", "--image", &image, "--screen", &screen]).expect(2, &["same file"]);
    assert_eq!(fs::read(&input).expect("still there"), bytes);
}

#[test]
fn an_output_file_keeps_its_content_when_the_command_is_refused() {
    let png = file("kept.png", b"precious");
    let screen = format!("png:{png}");
    realmode(&["boot", "--screen", &screen, "--image", "no-such-file@0:0"]).expect(2, &[]);
    assert_eq!(fs::read(&png).expect("still there"), b"precious");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let halt = file("halt.bin", &[0xF4]);
    for arguments in [&["decode", "90"][..], &["run-image", &halt], &["boot", "--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
        let output = Command::new(env!("CARGO_BIN_EXE_realmode"))
            .args(arguments)
            .stdout(full)
            .output()
            .expect("the command can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to stdout"), "{arguments:?}: {said}");
    }
}
