//! Disks: what becomes of the image.

use std::fs::OpenOptions;
use std::io::{Read, Write};

use crate::{file, finish, read, realmode, start};

const SECTOR: usize = 512;
/// Adds 1 to each byte of sector 1, writes sector 2, and exits with the status register.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/guests/disk.bin");
/// The exit code for the status that says that all went well, 50h.
const GOOD: i32 = 0x50 << 1 | 1;
/// The one for 51h, which says that something went wrong.
const BAD: i32 = 0x51 << 1 | 1;

fn image(name: &str) -> String {
    let bytes: Vec<u8> = (0..4 * SECTOR).map(|i| (i / SECTOR) as u8).collect();
    file(name, &bytes)
}

#[test]
fn an_image_changes_only_where_it_may() {
    let guest = format!("{GUEST}@0000:7C00");
    let image = image("disk.img");
    let before = read(&image);
    let arguments = ["boot", "--image", &guest, "--disk", &image];
    realmode(&arguments).expect(GOOD, &[]);
    assert_eq!(read(&image), before);
    realmode(&[&arguments[..], &["--writable"]].concat()).expect(GOOD, &[]);
    let after = read(&image);
    assert_eq!(after[2 * SECTOR..3 * SECTOR], [2; SECTOR]);
    let mut rest = after;
    rest[2 * SECTOR..3 * SECTOR].fill(2);
    assert_eq!(rest, before, "sector 2 held 2 before, and so nothing else has changed");
}

#[test]
fn a_disk_that_shrinks_under_the_guest_has_bad_sectors_and_the_run_goes_on() {
    let code = [
        0xBA, 0xF8, 0x03, 0xB0, 0x72, 0xEE, // mov dx, 3F8h; mov al, 'r'; out dx, al
        0xBA, 0xFD, 0x03, // mov dx, 3FDh
        0xEC, 0xA8, 0x01, 0x74, 0xFB, // wait: in al, dx; test al, 1; jz wait
        0xB9, 0x02, 0x00, // mov cx, 2
        0xBA, 0xF2, 0x01, 0xB0, 0x01, 0xEE, // again: one sector
        0x42, 0xB0, 0x03, 0xEE, // LBA 3
        0xBA, 0xF6, 0x01, 0xB0, 0xE0, 0xEE, // LBA, device 0
        0x42, 0xB0, 0x20, 0xEE, 0xEC, // READ SECTORS; in al, dx: the status
        0xE2, 0xE9, // loop again
        0xBA, 0x01, 0x05, 0xEE, // mov dx, 501h; out dx, al
    ];
    let guest = format!("{}@0000:7C00", file("reader.bin", &code));
    let image = image("shrinking.img");
    let mut child = start(&["boot", "--image", &guest, "--disk", &image, "--serial", "stdio"]);
    let mut ready = [0];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut ready).expect("the guest prints");
    assert_eq!(&ready, b"r");
    let cut = OpenOptions::new().write(true).open(&image).expect("it is ours");
    cut.set_len(SECTOR as u64).expect("a file can be cut off");
    child.stdin.as_mut().expect("a pipe").write_all(b"!").expect("the guest waits for it");
    let said = finish(child).expect(BAD, &["sector 3 of", &image, "shorter"]);
    assert_eq!(said.stderr.matches("sector").count(), 2, "once: {}", said.stderr);
}
