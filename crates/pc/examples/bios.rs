//! Boots a BIOS:
//! `bios BIOS [floppy=F] [disk=F] [kernel=F] [append=TEXT] [rom=F] [until=TEXT]
//! [type=TEXT@TRIGGER]... [limit=N] [memory=MiB] [tsc=0|1] [trace=N]`.
//!
//! Ports 402h and E9h go to stderr, COM1 to stdout. `\n` in TEXT is Enter. The disk is read only.
//! `trace=N` prints where the processor was at the ends of the last N slices of 1000 instructions.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU8;
use std::time::Instant;

use realmode::{CacheLine, Cpu, Emulator, Features, Profile, SegReg, Stop};
use realmode_pc::{Channel, Console, Disk, DiskError, Pc, SECTOR};

struct Output {
    /// What came out of COM1 and of the debug ports.
    seen: [Vec<u8>; 2],
    until: Vec<u8>,
    is_found: bool,
}

impl Console for Output {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        match channel {
            Channel::Serial => drop(std::io::stdout().write_all(&[byte])),
            Channel::Debug => drop(std::io::stderr().write_all(&[byte])),
        }
        let seen = &mut self.seen[usize::from(channel == Channel::Debug)];
        seen.push(byte);
        if !self.until.is_empty() && seen.ends_with(&self.until) {
            self.is_found = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

struct ReadOnly(Vec<u8>);

impl Disk for ReadOnly {
    fn sectors(&self) -> u64 {
        (self.0.len() / SECTOR) as u64
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        let from = self.0.chunks_exact(SECTOR).nth(lba as usize).ok_or(DiskError)?;
        sector.copy_from_slice(from);
        Ok(())
    }

    fn write(&mut self, _lba: u64, _sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        Err(DiskError)
    }
}

type Failure = Box<dyn std::error::Error>;

/// Programs that find PAE turn paging on, and without a time stamp counter they use the timer.
fn profile(has_tsc: bool) -> Profile {
    let missing = if has_tsc { Features::PAE } else { Features::PAE | Features::TSC };
    let features = Profile::INTEL.features.difference(missing);
    Profile { name: "unpaged", id: 128, features, ..Profile::INTEL }
}

struct Options(HashMap<String, Vec<String>>);

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let mut options: HashMap<String, Vec<String>> = HashMap::new();
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("an option is NAME=VALUE")?;
            let value = value.replace("\\n", "\n").replace("\\e", "\x1b");
            options.entry(name.to_owned()).or_default().push(value);
        }
        Ok(Options(options))
    }

    fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn text(&self, name: &str) -> &str {
        self.all(name).first().map_or("", String::as_str)
    }

    fn number(&self, name: &str, default: u64) -> Result<u64, Failure> {
        Ok(self.all(name).first().map_or(Ok(default), |value| value.parse())?)
    }

    fn file(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.all(name).first().map(std::fs::read).transpose()?)
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let bios = std::fs::read(arguments.next().ok_or("which BIOS?")?)?;
    let options = Options::read(arguments)?;
    let bios: Vec<AtomicU8> = bios.into_iter().map(AtomicU8::new).collect();
    let ram = options.number("memory", 32)? << 20;
    let ram: Vec<AtomicU8> = (0..ram).map(|_| AtomicU8::new(0)).collect();
    let floppy = options.file("floppy")?.map(whole_floppy);
    let (rom, kernel) = (options.file("rom")?, options.file("kernel")?);
    let mut disk = options.file("disk")?.map(ReadOnly);

    let until = options.text("until").as_bytes().to_vec();
    let output = Output { seen: [Vec::new(), Vec::new()], until, is_found: false };
    let mut pc = Pc::new(&ram, output)?;
    if let Some(floppy) = &floppy {
        pc.add_file("floppyimg/floppy.img", floppy)?;
    }
    if let Some(rom) = &rom {
        pc.add_file("vgaroms/vgabios.bin", rom)?;
        // Text goes to the screen alone.
        pc.add_file("etc/sercon-port", &[0; 8])?;
    }
    if let Some(kernel) = &kernel {
        pc.set_kernel(kernel, options.text("append"))?;
    }
    if let Some(disk) = &mut disk {
        pc.attach_disk(disk)?;
    }
    let cpu = pc.boot_bios(&bios)?;
    drive(&options, &mut pc, cpu)
}

fn drive<'m>(options: &Options, pc: &mut Pc<'m, Output>, mut cpu: Cpu) -> Result<(), Failure> {
    let mut typing: VecDeque<(&str, &str)> =
        options.all("type").iter().filter_map(|value| value.rsplit_once('@')).collect();
    let limit = options.number("limit", 2_000_000_000)?;
    let trace = options.number("trace", 0)? as usize;
    let slice = if trace > 0 { 1000 } else { 200_000 };
    // The emulator borrows as long as the memory lives.
    let lines = Vec::leak(vec![CacheLine::EMPTY; 4096]);
    let mut emulator = Emulator::new(&profile(options.number("tsc", 1)? != 0), lines);
    let (started, mut places) = (Instant::now(), VecDeque::new());
    let stop = loop {
        let stop = pc.run(&mut emulator, &mut cpu, slice)?;
        places.push_back(place(&cpu));
        places.drain(..places.len().saturating_sub(trace));
        if let Some((text, trigger)) = typing.front()
            && is_shown(pc, trigger)
        {
            pc.type_text(text);
            pc.console_mut().seen = [Vec::new(), Vec::new()];
            typing.pop_front();
        }
        if stop != Stop::Budget || emulator.counters().spent > limit {
            break stop;
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    places.iter().for_each(|place| eprintln!("{place}"));
    print_screen(pc);
    eprintln!("\n{stop:?} {:?} at {}", pc.ending(), place(&cpu));
    let is_found = pc.console().is_found;
    eprintln!("found: {is_found}, resets: {}, POST {:02X}h", pc.resets(), pc.post_code());
    let instructions = emulator.counters().instructions;
    let guest = pc.now() as f64 / 1e9;
    eprintln!("{instructions} instructions, {seconds:.3} s, {guest:.3} s of the guest's");
    Ok(())
}

/// The sizes of floppies are exact.
fn whole_floppy(mut image: Vec<u8>) -> Vec<u8> {
    let sizes = [163_840, 184_320, 327_680, 368_640, 737_280, 1_228_800, 1_474_560, 2_949_120];
    let size = sizes.into_iter().find(|size| *size >= image.len()).unwrap_or(image.len());
    image.resize(size, 0);
    image
}

fn is_shown(pc: &Pc<'_, Output>, text: &str) -> bool {
    let is_printed = |seen: &Vec<u8>| String::from_utf8_lossy(seen).contains(text);
    pc.console().seen.iter().any(is_printed) || rows(pc).iter().any(|row| row.contains(text))
}

fn rows(pc: &Pc<'_, Output>) -> Vec<String> {
    let Some(screen) = pc.screen() else { return Vec::new() };
    (0..25).map(|row| screen.row(row).map(|cell| char::from(cell.code)).collect()).collect()
}

fn print_screen(pc: &Pc<'_, Output>) {
    for row in rows(pc) {
        let row = row.replace(|c: char| c.is_control(), " ");
        if !row.trim().is_empty() {
            println!("|{row}|");
        }
    }
}

fn place(cpu: &Cpu) -> String {
    let cs = cpu.segment(SegReg::Cs);
    format!("{:04X}:{:08X} CR0={:08X} EFLAGS={:06X}", cs.selector, cpu.rip, cpu.cr0, cpu.rflags)
}
