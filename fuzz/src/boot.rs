//! A whole small PC that boots whatever it is given: images, boot sectors, kernels, a BIOS, with
//! a disk that may fail, and a snapshot half-way.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use arbitrary::{Arbitrary, Unstructured};
use realmode::{CacheLine, Cpu, Emulator, Profile, Stop};
use realmode_pc::{Error, Pc, SECTOR, State};

use crate::Reached;
use crate::parts::{Printed, Ram, Sectors};

/// What a guest is run for, and what of it before the snapshot.
const BUDGET: u64 = 20_000;
const HALF: u64 = 7_000;
/// Calls of `run` in each half at most.
const MOST_RUNS: u64 = 100;
const DISK: usize = 80;
/// A BIOS of 64 KiB. The processor begins 16 bytes before its end.
const BIOS: usize = 0x1_0000;
const ENTRY: usize = BIOS - 16;
/// jmp F000:0000
const JUMP: [u8; 5] = [0xEA, 0x00, 0x00, 0x00, 0xF0];
/// mov dx, 508h; out dx, al: the port that starts a kernel.
const START: [u8; 4] = [0xBA, 0x08, 0x05, 0xEE];

/// What an input begins with; an image is the rest.
#[derive(Arbitrary, Clone, Copy)]
struct Head {
    kind: u8,
    /// A bit each for: a disk, one that fails, more RAM, keys, bytes on COM1, a snapshot, a cache
    /// of one line, another processor.
    flags: u8,
    /// Where an image goes, and whatever else needs a number.
    place: u16,
}

impl Head {
    fn has(self, bit: u8) -> bool {
        self.flags >> bit & 1 != 0
    }

    fn profile(self) -> &'static Profile {
        let others = usize::from(self.place) % Profile::ALL.len();
        if self.has(7) { Profile::ALL[others] } else { &Profile::INTEL }
    }

    fn lines(self) -> Vec<CacheLine> {
        vec![CacheLine::EMPTY; if self.has(6) { 1 } else { 64 }]
    }

    fn ram(self) -> Ram {
        Ram::new(match (self.has(2), self.kind % KINDS) {
            (true, _) => 2 << 20,
            // As small as there can be.
            (false, IMAGE | FLOPPY) if self.place % 4 == 3 => 0x1000 << (self.place >> 8 & 7),
            _ => 1 << 20,
        })
    }

    fn disk(self, image: &[u8]) -> Option<Sectors> {
        let fails = if self.has(1) { 1 + u64::from(self.place % 7) } else { 0 };
        self.has(0).then(|| Sectors::new(image, DISK, fails))
    }
}

/// What an image is.
const KINDS: u8 = 6;
const IMAGE: u8 = 0;
const FLOPPY: u8 = 1;
const MULTIBOOT: u8 = 2;
const BZIMAGE: u8 = 3;
const BIOS_IMAGE: u8 = 4;
// What is left is a BIOS, with the image as a firmware file, too.

/// Boots what the bytes are. Nothing panics, the budget holds, and a machine that goes on from a
/// snapshot comes to the same end.
pub fn boot(data: &[u8]) -> Reached {
    let mut input = Unstructured::new(data);
    let Ok(head) = Head::arbitrary(&mut input) else { return Reached::default() };
    let image = input.take_rest();
    let (ram, bios, mut disk) = (head.ram(), Bios::new(head, image), head.disk(image));
    let (contents, mut lines) = (disk.clone(), head.lines());
    let Ok((mut pc, cpu)) = put_together(head, image, &bios, &ram, disk.as_mut()) else {
        return Reached { refused: 1, ..Reached::default() };
    };
    let mut run = Run { emulator: Emulator::new(head.profile(), &mut lines), cpu };
    if head.has(3) {
        pc.type_text("abc\n");
    }
    if head.has(4) {
        pc.send_serial(b"xyz\r");
    }
    run.until(&mut pc, HALF);
    let saved = head.has(5).then(|| Saved {
        cpu: run.cpu.clone(),
        state: pc.save(),
        ram: ram.copy(),
        disk: contents.as_ref().map(Sectors::copy),
        printed: pc.console().0.clone(),
        left: BUDGET - pc.spent(),
    });
    run.until(&mut pc, BUDGET);
    let _ = (pc.screen().map(|screen| screen.row(0).count()), pc.cursor(), pc.next_event());
    let _ = (pc.missing_handler(&run.cpu), pc.ending(), pc.post_code());
    let counters = *run.emulator.counters();
    let reached = Reached {
        instructions: counters.instructions,
        faults: counters.faults,
        blocks_retired: counters.blocks_retired,
        requests: pc.console().0.len() as u64,
        accepted: 1,
        refused: 0,
    };
    let end = (run.cpu, pc.save(), std::mem::take(&mut pc.console_mut().0));
    ram.check();
    bios.check();
    if let Some(saved) = saved {
        let copy = saved.ram.copy();
        assert!(saved.go_on(head, image, &copy) == end, "the processor or a device differs");
        assert!(copy.is_same(&ram), "memory differs");
    }
    reached
}

/// A machine about to start, with all that the input gives it.
fn put_together<'m>(
    head: Head,
    image: &'m [u8],
    bios: &'m Bios,
    ram: &'m Ram,
    disk: Option<&'m mut Sectors>,
) -> Result<(Pc<'m, Printed>, Cpu), Error> {
    let mut pc = Pc::new(ram.cells(), Printed::default())?;
    if let Some(disk) = disk {
        pc.attach_disk(disk)?;
    }
    pc.set_cmos(head.place as u8, head.kind);
    let cpu = match head.kind % KINDS {
        IMAGE => pc.boot_image(image, head.place, 0x100)?,
        FLOPPY => {
            let mut sector = image[..image.len().min(SECTOR - 2)].to_vec();
            sector.resize(SECTOR - 2, 0);
            sector.extend([0x55, 0xAA]);
            pc.boot_floppy(&sector)?
        }
        MULTIBOOT => pc.boot_multiboot(image, "a command line")?,
        BZIMAGE => {
            pc.set_kernel(image, "a command line")?;
            pc.boot_bios(&bios.0)?
        }
        BIOS_IMAGE => pc.boot_bios(&bios.0)?,
        _ => {
            pc.add_file("genroms/a file", image)?;
            pc.boot_bios(&bios.0)?
        }
    };
    Ok((pc, cpu))
}

/// A BIOS that starts a kernel, or the image with a jump to its first byte.
struct Bios(Vec<AtomicU8>);

impl Bios {
    fn new(head: Head, image: &[u8]) -> Bios {
        let bios = Bios(bytemuck::zeroed_vec(BIOS));
        bios.fill(0, &image[..image.len().min(ENTRY)]);
        bios.fill(ENTRY, if head.kind % KINDS == BZIMAGE { &START } else { &JUMP });
        bios
    }

    fn fill(&self, at: usize, bytes: &[u8]) {
        self.0[at..].iter().zip(bytes).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
    }

    /// Panics unless the end is as it was.
    fn check(&self) {
        let end: Vec<u8> = self.0[ENTRY..].iter().map(|cell| cell.load(Relaxed)).collect();
        let is_same = [&JUMP[..], &START[..]].iter().any(|entry| end.starts_with(entry));
        assert!(is_same && end.ends_with(&[0; 11]), "the BIOS changed");
    }
}

/// A processor and the emulator that runs it.
struct Run<'m> {
    emulator: Emulator<'m>,
    cpu: Cpu,
}

impl<'m> Run<'m> {
    /// Runs until the machine has used up `limit`, or ends, or waits for ever.
    fn until(&mut self, pc: &mut Pc<'m, Printed>, limit: u64) {
        for _ in 0..MOST_RUNS {
            let left = limit - pc.spent();
            let stop = pc.run(&mut self.emulator, &mut self.cpu, left);
            assert!(pc.spent() <= limit, "used {} of a budget of {limit}", pc.spent());
            match stop {
                // The console broke the run.
                Ok(Stop::Requested) if pc.ending().is_none() => {}
                _ => return,
            }
        }
    }
}

/// A machine half-way.
struct Saved {
    cpu: Cpu,
    state: State,
    ram: Ram,
    disk: Option<Sectors>,
    printed: Vec<u8>,
    left: u64,
}

impl Saved {
    /// Puts it together anew, from what a file would hold, and runs it to its end.
    fn go_on(mut self, head: Head, image: &[u8], ram: &Ram) -> (Cpu, State, Vec<u8>) {
        let file = postcard::to_stdvec(&(&self.cpu, &self.state)).expect("both are plain data");
        let (cpu, state): (Cpu, State) = postcard::from_bytes(&file).expect("it was just written");
        let (bios, mut lines) = (Bios::new(head, image), head.lines());
        let (mut pc, _) = put_together(head, image, &bios, ram, self.disk.as_mut())
            .expect("it could be put together before");
        pc.restore(&state).expect("a machine came to it");
        ram.fill(&self.ram);
        let mut run = Run { emulator: Emulator::new(head.profile(), &mut lines), cpu };
        run.until(&mut pc, self.left);
        self.printed.append(&mut pc.console_mut().0);
        (run.cpu, pc.save(), self.printed)
    }
}
