//! Guests that use devices. Where slices end must change nothing.

use core::cell::Cell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};

use realmode::{CacheLine, Cpu, Emulator, Phys, Profile, Stop};
use realmode_pc::{Channel, Clock, Disk, DiskError, Ending, NS_PER_INSTRUCTION, Pc, SECTOR};

const INTERRUPTS: &[u8] = include_bytes!("../../../../testdata/guests/interrupts.bin");
const DISK: &[u8] = include_bytes!("../../../../testdata/guests/disk.bin");
/// 1000 ticks of 838 ns.
const PERIOD: u64 = 838_096;

pub(super) fn memory(bytes: usize) -> Vec<AtomicU8> {
    (0..bytes).map(|_| AtomicU8::new(0)).collect()
}

/// What two runs are compared by.
#[derive(Debug, PartialEq)]
struct After {
    cpu: Cpu,
    instructions: u64,
    now: u64,
    printed: Vec<u8>,
    stamps: Vec<u64>,
}

/// Runs the guest of interrupts in slices as `slices` gives them, and types `a` at its prompt.
fn run_interrupts(mut slices: impl FnMut() -> u64) -> After {
    let ram = memory(1 << 20);
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let printed = Cell::new(Vec::new());
    let console = |_: Channel, byte: u8| {
        let mut bytes = printed.take();
        bytes.push(byte);
        printed.set(bytes);
        if byte == b'>' { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut pc = Pc::new(&ram, console).expect("1 MiB of whole pages");
    let mut cpu = pc.boot_image(INTERRUPTS, 0, 0x7C00).expect("it fits");
    while pc.ending().is_none() {
        match pc.run(&mut emulator, &mut cpu, slices()).expect("nothing is in flight") {
            Stop::Requested if pc.ending().is_none() => assert_eq!(pc.type_text("a"), 1),
            stop => assert!(matches!(stop, Stop::Budget | Stop::Requested), "{stop:?}"),
        }
        assert!(emulator.counters().instructions < 10_000_000);
    }
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
    let stamp = |at: u64| (0..4).rev().fold(0, |n, i| n << 8 | u64::from(pc.byte(Phys(at + i))));
    let stamps = (0..10).map(|i| stamp(0x9000 + 4 * i)).collect();
    let (instructions, now) = (emulator.counters().instructions, pc.now());
    After { cpu, instructions, now, printed: printed.take(), stamps }
}

#[test]
fn interrupts_come_when_they_are_due_running_and_halted() {
    let after = run_interrupts(|| u64::MAX);
    assert_eq!(after.printed, b"..........>\x1E\x9E");
    let lates: Vec<u64> = after.stamps.iter().map(|stamp| stamp % PERIOD).collect();
    for pair in after.stamps.windows(2) {
        let between = pair[1] - pair[0];
        assert!(between.abs_diff(PERIOD) <= 3 * NS_PER_INSTRUCTION, "{lates:?}");
    }
    assert!(after.instructions < 5 * PERIOD / NS_PER_INSTRUCTION + 1000, "HLT takes none");
}

#[test]
fn where_slices_end_changes_nothing() {
    let straight = run_interrupts(|| u64::MAX);
    assert_eq!(run_interrupts(|| 1), straight);
    let mut seed = 1u64;
    let random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        1 + (seed >> 33) % 10_000
    };
    assert_eq!(run_interrupts(random), straight);
}

#[test]
fn what_is_left_of_a_budget_can_be_told() {
    let ram = memory(1 << 20);
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    let mut cpu = pc.boot_image(INTERRUPTS, 0, 0x7C00).expect("it fits");
    assert_eq!(pc.run(&mut emulator, &mut cpu, 1_000), Ok(Stop::Budget));
    assert_eq!((pc.spent(), emulator.counters().spent), (1_000, 1_000));
    // In HLT awakenings count too, and nothing else happens.
    pc.run(&mut emulator, &mut cpu, 1_000_000).expect("nothing is in flight");
    assert_eq!(pc.spent(), 1_001_000);
    assert!(emulator.counters().spent < 1_001_000);
    cpu.rflags = 0;
    assert_eq!(pc.run(&mut emulator, &mut cpu, 1_000), Ok(Stop::Idle));
    assert_eq!(pc.spent(), 1_001_000);
}

#[test]
fn on_a_real_clock_a_halted_guest_waits_for_the_caller() {
    let ram = memory(1 << 20);
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let time = Cell::new(0);
    let read = || time.replace(time.get() + 10_000);
    let mut printed = 0;
    let mut pc = Pc::new(&ram, |_: Channel, _: u8| {
        printed += 1;
        ControlFlow::Continue(())
    })
    .expect("1 MiB of whole pages");
    pc.set_clock(Clock::Real(&read));
    let mut cpu = pc.boot_image(INTERRUPTS, 0, 0x7C00).expect("it fits");
    let mut halts = 0;
    for _ in 0..1000 {
        match pc.run(&mut emulator, &mut cpu, 100_000).expect("nothing is in flight") {
            Stop::Halt => {
                let Some(at) = pc.next_event() else { break };
                halts += 1;
                time.set(time.get().max(at));
            }
            stop => assert_eq!(stop, Stop::Budget),
        }
        if pc.post_code() != 0 {
            break;
        }
    }
    assert!(halts >= 5 && printed >= 10, "{halts} halts, {printed} bytes");
}

pub(super) struct InMemory(pub(super) Vec<u8>);

impl Disk for InMemory {
    fn sectors(&self) -> u64 {
        (self.0.len() / SECTOR) as u64
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        sector.copy_from_slice(self.0.chunks_exact(SECTOR).nth(lba as usize).ok_or(DiskError)?);
        Ok(())
    }

    fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        let to = self.0.chunks_exact_mut(SECTOR).nth(lba as usize).ok_or(DiskError)?;
        to.copy_from_slice(sector);
        Ok(())
    }
}

#[test]
fn a_sector_is_read_changed_and_written() {
    let ram = memory(1 << 20);
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut disk = InMemory((0..4 * SECTOR).map(|at| at as u8).collect());
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    pc.attach_disk(&mut disk).expect("four sectors");
    let mut cpu = pc.boot_image(DISK, 0, 0x7C00).expect("it fits");
    assert_eq!(pc.run(&mut emulator, &mut cpu, 100_000), Ok(Stop::Requested));
    assert_eq!(pc.ending(), Some(Ending::Exit(0x50)));
    let expected: Vec<u8> = (0..SECTOR).map(|at| (at as u8).wrapping_add(1)).collect();
    assert_eq!(disk.0[2 * SECTOR..3 * SECTOR], expected);
}

#[test]
fn a_disk_of_no_sectors_is_refused() {
    let ram = memory(1 << 20);
    let mut disk = InMemory(vec![0; SECTOR - 1]);
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    assert_eq!(pc.attach_disk(&mut disk), Err(realmode_pc::Error::DiskEmpty));
}

/// A BIOS of 64 KiB that runs `code` at F000:0000 from the reset vector.
fn bios(code: &[u8]) -> Vec<AtomicU8> {
    let bios = memory(0x1_0000);
    let store = |at: usize, bytes: &[u8]| {
        for (cell, byte) in bios[at..].iter().zip(bytes) {
            cell.store(*byte, Ordering::Relaxed);
        }
    };
    store(0, code);
    store(0xFFF0, &[0xEA, 0x00, 0x00, 0x00, 0xF0]);
    bios
}

#[test]
fn a_bios_starts_at_the_top_and_resets_through_each_port() {
    // Writes port 80h; counts in its own shadow at F000:8000, and resets: 92h, 64h, then a
    // triple fault, then CF9h, which restores the shadow and so would begin again.
    let code = [
        0x2E, 0xFE, 0x06, 0x00, 0x80, // inc byte cs:[8000h]
        0x2E, 0xA0, 0x00, 0x80, // mov al, cs:[8000h]
        0xE6, 0x80, // out 80h, al
        0x3C, 0x01, 0x75, 0x04, // cmp al, 1; jne +4
        0xB0, 0x01, 0xE6, 0x92, // mov al, 1; out 92h, al
        0x3C, 0x02, 0x75, 0x04, // cmp al, 2; jne +4
        0xB0, 0xFE, 0xE6, 0x64, // mov al, FEh; out 64h, al
        0x3C, 0x03, 0x75, 0x08, // cmp al, 3; jne +8
        0x2E, 0x0F, 0x01, 0x1E, 0x00, 0x90, // lidt cs:[9000h], which is all zeros
        0xCD, 0x03, // int 3
        0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF, // power off
    ];
    let (ram, bios) = (memory(1 << 20), bios(&code));
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    let mut cpu = pc.boot_bios(&bios).expect("64 KiB with a start");
    assert_eq!(pc.run(&mut emulator, &mut cpu, 100_000), Ok(Stop::Requested));
    assert_eq!((pc.ending(), pc.resets(), pc.post_code()), (Some(Ending::PowerOff), 3, 4));
}

#[test]
fn port_cf9_restores_the_shadow_of_the_bios() {
    let code = [
        0xE4, 0x80, 0x3C, 0x5A, 0x74, 0x10, // in al, 80h; cmp al, 5Ah; je +16
        0xB0, 0x5A, 0xE6, 0x80, // mov al, 5Ah; out 80h, al
        0x2E, 0xA2, 0x00, 0x80, // mov cs:[8000h], al
        0xBA, 0xF9, 0x0C, 0xB0, 0x06, 0xEE, 0xEB, 0xFE, // mov dx, CF9h; mov al, 6; out dx, al
        0xBA, 0x01, 0x05, 0x2E, 0xA0, 0x00, 0x80, 0xEE, // exit with cs:[8000h]
    ];
    let (ram, bios) = (memory(1 << 20), bios(&code));
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
    let mut cpu = pc.boot_bios(&bios).expect("64 KiB with a start");
    assert_eq!(pc.run(&mut emulator, &mut cpu, 100_000), Ok(Stop::Requested));
    assert_eq!((pc.ending(), pc.resets()), (Some(Ending::Exit(0)), 1));
}
