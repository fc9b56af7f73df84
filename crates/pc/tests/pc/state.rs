//! Machines that are saved, put together anew, and go on: nothing of it shows.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};

use realmode::{CacheLine, Cpu, Emulator, Profile, Reg, Stop};
use realmode_pc::{Channel, Console, Ending, Error, Pc, SECTOR, State};

use super::devices::{InMemory, memory};
use super::firmware::seabios;

const TRANSFERS: &[u8] = include_bytes!("../../../../testdata/guests/transfers.bin");
/// How often a run is saved.
const POINTS: usize = 20;

/// How a machine is put together, and what ends its run.
struct Setup<'a> {
    bios: &'a [AtomicU8],
    ram: usize,
    disk: Vec<u8>,
    text: &'static str,
    until: Option<&'static str>,
}

/// A machine between two runs, and what it has printed.
#[derive(PartialEq)]
struct Saved {
    state: State,
    cpu: Cpu,
    ram: Vec<u8>,
    disk: Vec<u8>,
    instructions: u64,
    printed: Vec<u8>,
}

/// Keeps what is printed on the debug port, and breaks where it ends in a text.
struct Log(Vec<u8>, Option<&'static str>);

impl Console for Log {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        if channel == Channel::Debug {
            self.0.push(byte);
        }
        match self.1 {
            Some(until) if self.0.ends_with(until.as_bytes()) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Runs a new machine, from its start or from where another was saved, and saves it. Returns
/// also how much of `budget` instructions and exceptions have used up.
fn run(setup: &Setup<'_>, from: Option<&Saved>, budget: u64) -> (Saved, u64) {
    let ram = memory(setup.ram);
    let mut lines = vec![CacheLine::EMPTY; 512];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut disk = InMemory(from.map_or(&setup.disk, |saved| &saved.disk).clone());
    let log = Log(from.map_or(Vec::new(), |saved| saved.printed.clone()), setup.until);
    let mut pc = Pc::new(&ram, log).expect("whole pages");
    if !disk.0.is_empty() {
        pc.attach_disk(&mut disk).expect("it has sectors");
    }
    let booted = match setup.bios {
        [] => pc.boot_image(TRANSFERS, 0, 0x7C00),
        bios => pc.boot_bios(bios),
    };
    let mut cpu = booted.expect("it fits");
    match from {
        Some(saved) => {
            pc.restore(&saved.state).expect("a machine came to it");
            assert_eq!(pc.save(), saved.state);
            cpu = saved.cpu.clone();
            ram.iter()
                .zip(&saved.ram)
                .for_each(|(cell, byte)| cell.store(*byte, Ordering::Relaxed));
        }
        None => assert_eq!(pc.type_text(setup.text), setup.text.len()),
    }
    let stop = pc.run(&mut emulator, &mut cpu, budget).expect("nothing is in flight");
    assert!(matches!(stop, Stop::Budget | Stop::Requested), "{stop:?}");
    let counters = *emulator.counters();
    let saved = Saved {
        state: pc.save(),
        cpu,
        ram: ram.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(),
        instructions: from.map_or(0, |saved| saved.instructions) + counters.instructions,
        printed: pc.console().0.clone(),
        disk: disk.0,
    };
    (saved, counters.spent)
}

/// Saves a run at random points, goes on each time on a machine put together anew, and compares
/// the end with that of the straight run, which is returned.
fn saved_equals_straight(setup: &Setup<'_>, seed: u64) -> Saved {
    let (straight, spent) = run(setup, None, u64::MAX);
    let mut random = seed;
    let mut points = [0; POINTS].map(|_: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 20) % spent
    });
    points.sort_unstable();
    let (mut saved, mut at) = (None, 0);
    for point in points {
        saved = Some(run(setup, saved.as_ref(), point - at).0);
        at = point;
    }
    let (end, _) = run(setup, saved.as_ref(), u64::MAX);
    assert_eq!((end.instructions, &end.cpu), (straight.instructions, &straight.cpu));
    assert_eq!(end.state, straight.state);
    assert!(end == straight, "RAM, the disk or the output differ, saved at {points:?}");
    straight
}

fn transfers() -> Setup<'static> {
    let disk = (0..32 * SECTOR).map(|at| (at * 7 + at / SECTOR) as u8).collect();
    Setup { bios: &[], ram: 1 << 20, disk, text: "abc", until: None }
}

#[test]
fn interrupts_keys_waits_and_half_read_sectors_outlast_a_snapshot() {
    let setup = transfers();
    let mut ends = Vec::new();
    for seed in 1..=5 {
        ends.push(saved_equals_straight(&setup, seed));
    }
    let words = setup.disk[SECTOR..12 * SECTOR].iter().map(|byte| i16::from(*byte as i8));
    let sum = words.fold(0i16, i16::wrapping_add).wrapping_mul(8).to_le_bytes();
    let expected = [b"\x1E\x9E........\x30\xB0\x2E\xAE".as_slice(), &sum].concat();
    assert_eq!(ends[0].printed, expected);
    assert_ne!(ends[0].disk, setup.disk);
}

#[test]
fn a_string_instruction_within_a_sector_outlasts_a_snapshot() {
    let setup = transfers();
    let (straight, _) = run(&setup, None, u64::MAX);
    // Through the first three REP INSW; each machine executes one instruction, or slice.
    let mut saved = run(&setup, None, 100).0;
    let mut is_half_done = false;
    for _ in 0..60 {
        let before = saved.cpu.clone();
        saved = run(&setup, Some(&saved), 1).0;
        let counts = [&before, &saved.cpu].map(|cpu| cpu.gpr[Reg::Rcx] & 0xFFFF);
        is_half_done |= saved.cpu.rip == before.rip && counts == [2600, 2048];
    }
    assert!(is_half_done, "no REP was saved half done");
    assert!(run(&setup, Some(&saved), u64::MAX).0 == straight);
}

#[test]
fn seabios_outlasts_snapshots_up_to_no_bootable_device() {
    let Some(bios) = seabios() else { return };
    let until = Some("No bootable device.");
    let setup = Setup { bios: &bios, ram: 16 << 20, disk: Vec::new(), text: "", until };
    let end = saved_equals_straight(&setup, 7);
    assert!(end.printed.ends_with(b"No bootable device."));
}

#[test]
fn a_state_of_another_machine_is_refused_and_changes_nothing() {
    let (ram, more) = (memory(1 << 20), memory(2 << 20));
    let mut disk = InMemory(vec![0; 4 * SECTOR]);
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    pc.attach_disk(&mut disk).expect("four sectors");
    pc.type_text("x");
    let state = pc.save();
    let mut other = Pc::new(&more, ()).expect("2 MiB of whole pages");
    let before = other.save();
    let refused = Error::StateOfAnother { what: "bytes of RAM", saved: 1 << 20, here: 2 << 20 };
    assert_eq!(other.restore(&state), Err(refused));
    let mut other = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    let refused = Error::StateOfAnother { what: "sectors of disk", saved: 4, here: 0 };
    assert_eq!(other.restore(&state), Err(refused));
    other.add_file("a", b"1").expect("there is room");
    let with_file = other.save();
    let mut third = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    let refused = Error::StateOfAnother { what: "firmware files", saved: 1, here: 0 };
    assert_eq!(third.restore(&with_file), Err(refused));
    assert!(!third.is_typing() && before != state);
}

#[test]
fn how_the_guest_ended_is_saved() {
    let (end, _) = run(&transfers(), None, u64::MAX);
    let ram = memory(1 << 20);
    let mut disk = InMemory(end.disk.clone());
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    pc.attach_disk(&mut disk).expect("it has sectors");
    pc.restore(&end.state).expect("a machine came to it");
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
}
