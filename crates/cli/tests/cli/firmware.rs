//! SeaBIOS, where the system has it (Debian's package `seabios`), and what it boots.

use std::fs;
use std::io::Write;

use crate::{file, read, realmode};

const SEABIOS: &str = "/usr/share/seabios/bios.bin";
const SERVICES: &[u8] = include_bytes!("../../../../testdata/guests/services.bin");

/// The BIOS, or `None` on a system without it.
fn seabios() -> Option<&'static str> {
    if fs::exists(SEABIOS).unwrap_or(false) {
        return Some(SEABIOS);
    }
    let line = format!("skipped: there is no {SEABIOS}\n");
    // Not `eprintln!`: the test harness keeps that to itself when a test passes.
    std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
    None
}

/// The guest that uses a BIOS's services, as a disk of 2 MiB.
fn services(name: &str) -> String {
    let mut image = SERVICES.to_vec();
    image.resize(2 << 20, 0);
    file(name, &image)
}

#[test]
fn seabios_finds_nothing_to_boot_and_two_runs_agree() {
    let Some(bios) = seabios() else { return };
    let run = || {
        let arguments = ["boot", "--bios", bios, "--until", "No bootable device", "--json"];
        let mut json = realmode(&arguments).expect(0, &[]).json();
        for name in ["seconds", "mips"] {
            assert!(json[name].take().as_f64().is_some(), "{name}");
        }
        // What a cache can hold at a time depends on where the host has put RAM and ROM.
        assert!(json["counters"].take().is_object());
        json
    };
    let json = run();
    assert_eq!(json, run());
    assert_eq!((&json["resets"], &json["disk_errors"]), (&0.into(), &0.into()));
    assert!(json["guest_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(json["serial"].as_str().is_some_and(|text| text.contains("SeaBIOS")));
}

#[test]
fn a_boot_sector_uses_the_services_from_a_disk_and_a_floppy() {
    let Some(bios) = seabios() else { return };
    let floppy = file("services.flp", SERVICES);
    let disk = services("services.img");
    for (option, image, prompt) in [("--disk", &disk, "5B?"), ("--floppy", &floppy, "7B?")] {
        let before = read(image);
        let typing = format!("k@{prompt}");
        let said = realmode(&["boot", "--bios", bios, option, image, "--type", &typing]);
        // COM1's last byte is still in the BIOS.
        let printed = format!("hello sector 2 {prompt}");
        let said = said.expect(0, &[&printed, "?k"]);
        assert!(said.stdout.ends_with(&printed), "{}", said.stdout);
        assert_eq!(read(image), before);
    }
}

#[test]
fn com1_brings_keys_to_a_guest_that_asks_seabios() {
    let Some(bios) = seabios() else { return };
    let disk = services("services-com1.img");
    let arguments = ["boot", "--bios", bios, "--disk", &disk, "--type", "com1:q@5B?"];
    realmode(&arguments).expect(0, &["5B?q"]);
}

#[test]
fn the_boot_order_is_the_users() {
    let Some(bios) = seabios() else { return };
    let disk = services("services-order.img");
    let floppy = file("services-order.flp", SERVICES);
    for (order, booted) in [("disk,floppy", "from Hard Disk"), ("floppy,disk", "from Floppy")] {
        let arguments = ["boot", "--bios", bios, "--disk", &disk, "--floppy", &floppy];
        let more = ["--boot-order", order, "--until", "hello"];
        let said = realmode(&[&arguments[..], &more].concat()).expect(0, &[booted]);
        assert_eq!(said.stderr.matches("Booting from ").count(), 2, "{}", said.stderr);
    }
}

#[test]
fn with_a_vga_bios_text_is_on_the_screen_and_not_on_com1() {
    const VGA: &str = "/usr/share/seabios/vgabios-isavga.bin";
    let Some(bios) = seabios() else { return };
    let disk = services("services-vga.img");
    let arguments = ["boot", "--bios", bios, "--vga", VGA, "--disk", &disk, "--json"];
    let said = realmode(&[&arguments[..], &["--type", "k@5B?"]].concat()).expect(0, &[]);
    let json = said.json();
    assert_eq!(json["serial"], "");
    let rows = json["screen"].as_array().expect("25 rows");
    let text = "hello sector 2 5B?k";
    assert!(rows.iter().any(|row| row.as_str() == Some(text)), "{rows:?}");
}
