//! memtest86+ under SeaBIOS, where the system has both (Debian's packages `memtest86+` and
//! `seabios`).

use core::sync::atomic::AtomicU8;

use realmode::{Features, Profile};
use realmode_pc::Pc;

use super::firmware::{file, seabios};
use super::terminal::{Terminal, converse};

const MEMTEST: &str = "/boot/memtest86+ia32.bin";
const APPEND: &str = "console=ttyS0,115200 nobench nosmp nosm nopause";

/// The first tests. Without a time stamp counter it shows them on the text screen alone and draws
/// on COM1 what was under a menu, so one is opened.
const STEPS: [(&str, &str); 5] = [
    ("Memtest86+ v", ""),
    ("Test #0", ""),
    ("Test #2", "1"),
    ("<F10> Exit menu", "0"),
    ("Test #3", ""),
];

/// It turns paging on where it finds PAE, and measures with the coprocessor where it finds a time
/// stamp counter; neither is executed.
fn profile() -> Profile {
    let features = Profile::INTEL.features.difference(Features::PAE | Features::TSC);
    Profile { name: "unpaged", id: 128, features, ..Profile::INTEL }
}

#[test]
fn memtest_draws_its_screen_on_com1_and_completes_its_first_tests_without_an_error() {
    let Some((kernel, bios)) = file(MEMTEST).zip(seabios()) else { return };
    // It moves itself above 4 MiB.
    let ram: Vec<AtomicU8> = (0..5 << 20).map(|_| AtomicU8::new(0)).collect();
    let mut pc = Pc::new(&ram, Terminal::new()).expect("5 MiB of whole pages");
    pc.set_kernel(&kernel, APPEND).expect("a bzImage that fits");
    converse(&mut pc, &bios, &profile(), 100_000_000, &STEPS);
    let screen = pc.console().text();
    for text in ["Memtest86+ v", "Memory  :    5MB", "Test #2", "[1MB of 4.62MB]", "Errors: 0"] {
        assert!(screen.contains(text), "no {text:?} on\n{screen}");
    }
}
