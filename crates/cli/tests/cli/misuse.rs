//! What the user may get wrong: a clear error, exit code 2, and no file changed.

use std::fs;
#[cfg(target_os = "linux")]
use std::process::Command;

use crate::{file, path, read, realmode};

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
        (&["--image", "a.bin@0:0", "--bios", "b.bin"], &["cannot be used with"]),
        (&["--vga", "a.bin"], &["--bios"]),
        (&["--boot-order", "disk"], &["--bios"]),
        (&["--append", "quiet"], &["--kernel"]),
        (&["--writable"], &["--disk"]),
        (&["--bios", "b.bin", "--boot-order", "tape"], &["'tape'", "floppy, disk"]),
        (&["--cpu", "z80"], &["no such processor", "8086"]),
        (&["--cpu", "intel,-warp"], &["`warp` is no feature", "pae"]),
        (&["--cpu", "intel,pae"], &["`pae` is not -FEATURE"]),
        (&["--clock", "slow"], &["virtual, real"]),
        (&["--date", "tomorrow"], &["not a date", "2026-01-31 12:00:00"]),
        (&["--exit-port", "10000"], &["10000", "hexadecimal"]),
        (&["--exit-port", "60"], &["port 60h belongs to a device", "F4h"]),
        (&["--type", "ls"], &["@TRIGGER"]),
        (&["--type", "ls@"], &["after the @"]),
        (&["--type", "@x"], &["before the @"]),
        (&["--type", r"a\x@b"], &[r"`\x` is none of"]),
        (&["--type", "é@b"], &["`é` has no key"]),
        (&["--serial", ""], &["stdio or a file"]),
        (&["--cpu", "286"], &["demo guest needs 32 bits", "--cpu 286", "--image"]),
        (&["surplus"], &["surplus", "--floppy", "--image FILE@SEG:OFF"]),
    ] {
        let all: Vec<&str> = [&["boot"], arguments].concat();
        let said = realmode(&all).expect(2, words);
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_device_is_booted_once() {
    let bios = file("misuse-order.bin", &[0xF4; 65536]);
    for order in ["floppy,floppy", "disk,floppy,disk"] {
        realmode(&["boot", "--bios", &bios, "--boot-order", order])
            .expect(2, &["names a device twice"]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let missing = format!("{directory}/no-such-file");
    for option in ["--image", "--floppy", "--disk", "--bios"] {
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

/// A BIOS whose processor starts at HLT.
fn bios(name: &str, len: usize) -> String {
    file(name, &vec![0xF4; len])
}

#[test]
fn a_bios_that_was_cut_off_or_is_none_is_refused() {
    let short = bios("short-bios.bin", 65_535);
    realmode(&["boot", "--bios", &short]).expect(2, &[&short, "65535 bytes", "cut off?"]);
    let odd = bios("odd-bios.bin", 65_537);
    realmode(&["boot", "--bios", &odd]).expect(2, &[&odd, "65537 bytes", "multiple of 65536"]);
    let empty = file("zero-bios.bin", &vec![0; 65_536]);
    realmode(&["boot", "--bios", &empty]).expect(2, &[&empty, "not a BIOS"]);
    let large = bios("large-bios.bin", (16 << 20) + 1);
    realmode(&["boot", "--bios", &large]).expect(2, &[&large, "BIOS of 16 MiB"]);
    let whole = bios("whole-bios.bin", 65_536);
    realmode(&["boot", "--bios", &whole]).expect(4, &["idle"]);
}

#[test]
fn what_a_bios_would_not_take_is_refused() {
    let bios = bios("any-bios.bin", 65_536);
    let refused = |option: &str, path: &str, words: &[&str]| {
        realmode(&["boot", "--bios", &bios, option, path]).expect(2, &[&[path], words].concat());
    };
    let zeros = file("zeros.kernel", &vec![0; 4096]);
    refused("--kernel", &zeros, &["no kernel", "HdrS", "bzImage"]);
    let mut cut = vec![0; 1024];
    cut[0x1F1] = 4;
    cut[0x202..0x206].copy_from_slice(b"HdrS");
    cut[0x206..0x208].copy_from_slice(&[0x0A, 0x02]);
    cut[0x211] = 1;
    refused("--kernel", &file("cut.kernel", &cut), &["setup code", "cut off?"]);
    refused("--vga", &zeros, &["no option ROM", "55 AA"]);
    let large = file("larger.img", &vec![0; 2_949_121]);
    refused("--floppy", &large, &["2.88 MB"]);
    for order in ["disk,disk", "disk,floppy,disk"] {
        realmode(&["boot", "--bios", &bios, "--boot-order", order]).expect(2, &["twice"]);
    }
    let line = "x".repeat(2048);
    cut.resize(8192, 0x90);
    let kernel = file("whole.kernel", &cut);
    let arguments = ["boot", "--bios", &bios, "--kernel", &kernel, "--append", &line];
    realmode(&arguments).expect(2, &[&kernel, "2048 bytes", "2047"]);
}

#[test]
fn a_disk_of_no_or_of_part_of_a_sector_is_refused_and_stays_as_it_is() {
    let empty = file("empty.disk", &[]);
    realmode(&["boot", "--disk", &empty]).expect(2, &[&empty, "is empty", "512"]);
    let bytes = [0x5A; 1000];
    let odd = file("odd.disk", &bytes);
    for more in [&[][..], &["--writable"]] {
        let said = realmode(&[&["boot", "--disk", &odd], more].concat());
        said.expect(2, &[&odd, "1000 bytes", &format!("truncate -s 1024 {odd}")]);
    }
    assert_eq!(fs::read(&odd).expect("still there"), bytes);
}

#[test]
fn a_disk_that_nothing_boots_from_is_refused() {
    let disk = file("forgotten-bios.disk", &[0x5A; 512]);
    let said = realmode(&["boot", "--disk", &disk]).expect(2, &[&disk, "add --bios"]);
    assert_eq!(said.stdout, "", "the demo guest has not run");
}

#[test]
fn a_disk_that_may_be_written_is_no_other_input_and_no_output() {
    let bytes = [0x5A; 1024];
    let disk = file("both.disk", &bytes);
    let image = format!("{}@0000:7C00", file("both-image.bin", &[0xF4]));
    let arguments = ["boot", "--disk", &disk];
    for more in [
        &["--writable", "--floppy", &disk][..],
        &["--image", &image, "--serial", &disk],
        &["--image", &image, "--debug", &disk],
        &["--image", &image, "--trace", &disk],
        &["--image", &image, "--screen", &format!("png:{disk}")],
    ] {
        // Bootable, so that nothing else is wrong with it.
        let mut bootable = bytes;
        bootable[510..512].copy_from_slice(&[0x55, 0xAA]);
        fs::write(&disk, bootable).expect("it is ours");
        realmode(&[&arguments[..], more].concat()).expect(2, &["same file", &disk]);
        assert_eq!(fs::read(&disk).expect("still there"), bootable);
    }
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

#[cfg(target_os = "linux")]
#[test]
fn a_trace_that_cannot_be_written_ends_the_run_and_not_the_guest() {
    // mov cx, 0; loop $; mov dx, 3F8h; out dx, al; hlt
    let code = [0xB9, 0x00, 0x00, 0xE2, 0xFE, 0xBA, 0xF8, 0x03, 0xEE, 0xF4];
    let image = format!("{}@0000:7C00", file("long.bin", &code));
    let printed = path("long.txt");
    let serial = printed.to_str().expect("the target directory's name is UTF-8");
    realmode(&["boot", "--image", &image, "--trace", "/dev/full", "--serial", serial])
        .expect(2, &["cannot write /dev/full"]);
    assert_eq!(read(serial), b"", "the guest came to its OUT");
}
