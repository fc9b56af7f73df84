//! SeaBIOS, where the system has it (Debian's package `seabios`), and what it boots.

use core::ops::ControlFlow;
use core::sync::atomic::AtomicU8;
use std::io::Write;

use realmode::{CacheLine, Emulator, Profile, Stop};
use realmode_pc::{Channel, Console, Ending, Pc, SECTOR};

use super::devices::InMemory;

const SEABIOS: &str = "/usr/share/seabios/bios.bin";
pub(super) const SERVICES: &[u8] = include_bytes!("../../../../testdata/guests/services.bin");
pub(super) const FLOPPY: usize = 1_474_560;
/// A minute of the guest's.
const MOST: u64 = 60_000_000_000;
/// Where the guest of services waits for a key.
const PROMPT: &str = "?";

/// The BIOS, or `None` on a system without it.
pub(super) fn seabios() -> Option<Vec<AtomicU8>> {
    file(SEABIOS).map(|bios| bios.into_iter().map(AtomicU8::new).collect())
}

/// A file of the system, or `None`, which is said in a line.
pub(super) fn file(path: &str) -> Option<Vec<u8>> {
    let file = std::fs::read(path).ok();
    if file.is_none() {
        // Not `eprintln!`: the test harness keeps that to itself when a test passes.
        let line = format!("skipped: there is no {path}\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr takes a line");
    }
    file
}

fn memory() -> Vec<AtomicU8> {
    (0..16 << 20).map(|_| AtomicU8::new(0)).collect()
}

/// Keeps the debug ports' output and breaks where it ends in a text.
pub(super) struct Log {
    seen: Vec<u8>,
    until: &'static str,
}

impl Log {
    pub(super) fn until(until: &'static str) -> Log {
        Log { seen: Vec::new(), until }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

impl Console for Log {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        if channel == Channel::Serial {
            return ControlFlow::Continue(());
        }
        self.seen.push(byte);
        let is_over = self.seen.ends_with(self.until.as_bytes());
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Boots and runs in slices, to the console's text or the guest's end. Returns the instructions.
pub(super) fn boot<'m>(pc: &mut Pc<'m, Log>, bios: &'m [AtomicU8], slice: u64) -> u64 {
    // The cache is borrowed for as long as the memory is.
    let lines = vec![CacheLine::EMPTY; 2048].leak();
    let mut emulator = Emulator::new(&Profile::INTEL, lines);
    let mut cpu = pc.boot_bios(bios).expect("a whole BIOS");
    loop {
        let stop = pc.run(&mut emulator, &mut cpu, slice).expect("nothing is in flight");
        let instructions = emulator.counters().instructions;
        match stop {
            Stop::Budget => assert!(pc.now() < MOST, "{}", pc.console().text()),
            Stop::Requested if pc.console().until == PROMPT && pc.ending().is_none() => {
                assert_eq!(pc.type_text("k"), 1);
            }
            Stop::Requested => return instructions,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn seabios_finds_nothing_to_boot_at_the_same_instruction_every_time() {
    let Some(bios) = seabios() else { return };
    let counts = [1_000_000, 9_973].map(|slice| {
        let ram = memory();
        let log = Log::until("No bootable device.");
        let mut pc = Pc::new(&ram, log).expect("16 MiB of whole pages");
        let instructions = boot(&mut pc, &bios, slice);
        (instructions, pc.now(), pc.resets())
    });
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0].2, 0);
}

/// Checks what the guest of services printed; it counts the ranges of memory.
fn check_services(pc: &Pc<'_, Log>, printed: &str) {
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
    assert!(pc.console().text().ends_with(printed), "{}", pc.console().text());
}

#[test]
fn a_boot_sector_uses_the_services_of_seabios_from_a_disk() {
    let Some(bios) = seabios() else { return };
    let ram = memory();
    let mut image = SERVICES.to_vec();
    image.resize(4096 * SECTOR, 0);
    let mut disk = InMemory(image);
    let mut pc = Pc::new(&ram, Log::until(PROMPT)).expect("16 MiB of whole pages");
    pc.attach_disk(&mut disk).expect("it has sectors");
    boot(&mut pc, &bios, 100_000);
    check_services(&pc, "hello sector 2 5B?k");
}

#[test]
fn a_boot_sector_uses_the_services_of_seabios_from_a_floppy() {
    let Some(bios) = seabios() else { return };
    let ram = memory();
    let mut floppy = SERVICES.to_vec();
    floppy.resize(FLOPPY, 0);
    let mut pc = Pc::new(&ram, Log::until(PROMPT)).expect("16 MiB of whole pages");
    pc.add_file("floppyimg/test.img", &floppy).expect("there is room");
    boot(&mut pc, &bios, 100_000);
    // The floppy itself lies in memory that is taken away.
    check_services(&pc, "hello sector 2 7B?k");
}
