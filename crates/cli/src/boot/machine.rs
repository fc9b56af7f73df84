//! The machine: what it is made of is read and checked first, then put together.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicU8;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use realmode::{CacheLine, Cpu, Emulator, Profile};
use realmode_pc::{Clock, Pc};

use super::arguments::ImageAt;
use super::console::Output;
use super::disk::{DiskErrors, ImageDisk, Writes};
use super::files;
use super::kernel;
use super::options::{Args, ClockKind};

/// The guest that runs when none is named, and where it is loaded.
const DEMO: &[u8] = include_bytes!("../../../../testdata/guests/demo.bin");
const DEMO_AT: (u16, u16) = (0x0000, 0x7C00);

const MIB: u64 = 1 << 20;
const MOST_BIOS: u64 = 16 * MIB;
/// An option ROM says its length in a byte, in units of 512.
const MOST_ROM: u64 = 255 * 512;
/// The sizes of floppies, up to 2.88 MB.
const FLOPPIES: [usize; 8] =
    [163_840, 184_320, 327_680, 368_640, 737_280, 1_228_800, 1_474_560, 2_949_120];
/// Lines of decode cache.
const LINES: usize = 2048;
/// 2026-01-01: any date does, as long as it is always the same.
const DATE: i64 = 1_767_225_600;
/// CMOS memory: what a BIOS boots first and second, a nibble each; not the floppy's signature.
const CMOS_BOOT_ORDER: u8 = 0x3D;

/// What a machine is made of.
pub(super) struct Parts {
    ram: Box<[AtomicU8]>,
    software: Software,
    disk: Option<ImageDisk>,
    lines: Vec<CacheLine>,
    profile: Profile,
    clock: Option<Box<dyn Fn() -> u64>>,
}

/// What is booted.
enum Software {
    /// A flat image.
    Image { bytes: Vec<u8>, segment: u16, offset: u16, name: String },
    /// The first sector of a floppy.
    BootSector { bytes: Vec<u8>, path: PathBuf },
    /// A multiboot kernel, and its command line.
    Multiboot { kernel: Vec<u8>, path: PathBuf, append: String },
    /// A BIOS, and what it finds.
    Bios(Box<Firmware>),
}

struct Firmware {
    bios: Box<[AtomicU8]>,
    path: PathBuf,
    vga: Option<Vec<u8>>,
    floppy: Option<Vec<u8>>,
    kernel: Option<(Vec<u8>, PathBuf)>,
    append: String,
}

/// A machine that is ready to run.
pub(super) struct Machine<'m> {
    pub(super) pc: Pc<'m, Output>,
    pub(super) cpu: Cpu,
    pub(super) emulator: Emulator<'m>,
}

impl Parts {
    /// Reads all that the machine is made of.
    pub(super) fn read(args: &Args) -> Result<Parts, String> {
        let software = Software::read(args)?;
        let writes = if args.writable { Writes::Through } else { Writes::Kept };
        let disk = args.disk.as_deref().map(|path| ImageDisk::open(path, writes)).transpose()?;
        Ok(Parts {
            ram: allocate(args.memory * MIB)?,
            software,
            disk,
            lines: vec![CacheLine::EMPTY; LINES],
            profile: args.cpu.clone(),
            clock: match args.clock {
                ClockKind::Virtual => None,
                ClockKind::Real => Some(nanoseconds_from(Instant::now())),
            },
        })
    }

    /// What will go wrong with the disk.
    pub(super) fn disk_errors(&self) -> Rc<DiskErrors> {
        self.disk.as_ref().map(ImageDisk::errors).unwrap_or_default()
    }

    /// Puts the machine together.
    pub(super) fn assemble(&mut self, args: &Args, output: Output) -> Result<Machine<'_>, String> {
        let Parts { ram, software, disk, lines, profile, clock } = self;
        let mut pc = Pc::new(ram, output).map_err(|error| error.to_string())?;
        pc.set_exit_port(args.exit_port).map_err(|error| format!("--exit-port: {error}"))?;
        pc.set_date(args.date.unwrap_or_else(|| default_date(args.clock)));
        if let Some(clock) = clock {
            pc.set_clock(Clock::Real(&**clock));
        }
        if let Some(disk) = disk {
            pc.attach_disk(disk).map_err(|error| format!("--disk: {error}"))?;
        }
        match args.boot_order.as_slice() {
            [] => {}
            [first] => pc.set_cmos(CMOS_BOOT_ORDER, *first as u8),
            [first, second] if first != second => {
                pc.set_cmos(CMOS_BOOT_ORDER, (*second as u8) << 4 | *first as u8);
            }
            _ => return Err("--boot-order names a device twice; once is enough".to_owned()),
        }
        let cpu = software.load(&mut pc, profile)?;
        Ok(Machine { pc, cpu, emulator: Emulator::new(profile, lines) })
    }
}

impl Software {
    fn read(args: &Args) -> Result<Software, String> {
        let ram = args.memory * MIB;
        let in_ram = format!("the RAM of {} MiB (see --memory)", args.memory);
        if let Some(path) = &args.bios {
            let bytes = files::read(path, MOST_BIOS, "a BIOS of 16 MiB")?;
            let kernel = match &args.kernel {
                Some(path) => {
                    let kernel = files::read(path, ram, &in_ram)?;
                    kernel::check_with_bios(&kernel, path)?;
                    Some((kernel, path.clone()))
                }
                None => None,
            };
            return Ok(Software::Bios(Box::new(Firmware {
                bios: bytes.into_iter().map(AtomicU8::new).collect(),
                path: path.clone(),
                vga: args.vga.as_deref().map(read_rom).transpose()?,
                floppy: args.floppy.as_deref().map(read_floppy).transpose()?.map(padded),
                kernel,
                append: args.append.clone(),
            })));
        }
        if let Some(path) = &args.kernel {
            let kernel = files::read(path, ram, &in_ram)?;
            kernel::check_alone(&kernel, path, &args.cpu)?;
            if args.floppy.is_some() {
                return Err("a multiboot kernel has no floppy: leave out --floppy".to_owned());
            }
            let (path, append) = (path.clone(), args.append.clone());
            return Ok(Software::Multiboot { kernel, path, append });
        }
        if let Some(path) = &args.floppy {
            return Ok(Software::BootSector { bytes: read_floppy(path)?, path: path.clone() });
        }
        let Some(ImageAt { path, segment, offset }) = &args.image else {
            let (segment, offset) = DEMO_AT;
            let name = "the demo guest".to_owned();
            return Ok(Software::Image { bytes: DEMO.to_vec(), segment, offset, name });
        };
        let bytes = files::read(path, ram, &in_ram)?;
        let name = path.display().to_string();
        Ok(Software::Image { bytes, segment: *segment, offset: *offset, name })
    }

    /// Returns the processor about to start it.
    fn load<'m>(&'m self, pc: &mut Pc<'m, Output>, profile: &Profile) -> Result<Cpu, String> {
        let mut cpu = match self {
            Software::Image { bytes, segment, offset, name } => pc
                .boot_image(bytes, *segment, *offset)
                .map_err(|error| format!("{name}: {error} (at {segment:04X}:{offset:04X})"))?,
            Software::BootSector { bytes, path } => pc.boot_floppy(bytes).map_err(|error| {
                let path = path.display();
                format!(
                    "{path}: {error}; to run it anyway, use --image {path}@0000:7C00, \
                     or --bios for one that calls a BIOS"
                )
            })?,
            Software::Multiboot { kernel, path, append } => {
                pc.boot_multiboot(kernel, append).map_err(|error| named(path, &error))?
            }
            Software::Bios(firmware) => {
                firmware.load(pc)?;
                return Ok(Cpu::reset_as(profile));
            }
        };
        cpu.rflags = profile.canonical_flags(cpu.rflags);
        Ok(cpu)
    }
}

impl Firmware {
    fn load<'m>(&'m self, pc: &mut Pc<'m, Output>) -> Result<(), String> {
        let mut add = |name, contents| {
            pc.add_file(name, contents).map_err(|error| format!("{name}: {error}"))
        };
        if let Some(vga) = &self.vga {
            add("vgaroms/vgabios.bin", vga)?;
            // No text to COM1.
            add("etc/sercon-port", &[0; 8])?;
        }
        if let Some(floppy) = &self.floppy {
            add("floppyimg/floppy.img", floppy)?;
        }
        if let Some((kernel, path)) = &self.kernel {
            pc.set_kernel(kernel, &self.append).map_err(|error| named(path, &error))?;
        }
        pc.boot_bios(&self.bios).map_err(|error| named(&self.path, &error))?;
        Ok(())
    }
}

fn named(path: &Path, error: &realmode_pc::Error) -> String {
    format!("{}: {error}", path.display())
}

fn nanoseconds_from(start: Instant) -> Box<dyn Fn() -> u64> {
    Box::new(move || start.elapsed().as_nanos().try_into().unwrap_or(u64::MAX))
}

fn default_date(clock: ClockKind) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    match (clock, now) {
        (ClockKind::Real, Ok(now)) => now.as_secs().try_into().unwrap_or(DATE),
        _ => DATE,
    }
}

fn read_rom(path: &Path) -> Result<Vec<u8>, String> {
    let rom = files::read(path, MOST_ROM, "an option ROM of 127.5 KiB")?;
    match rom.as_slice() {
        [0x55, 0xAA, ..] => Ok(rom),
        _ => Err(format!("{} is no option ROM: it does not begin with 55 AA", path.display())),
    }
}

fn read_floppy(path: &Path) -> Result<Vec<u8>, String> {
    let most = FLOPPIES.into_iter().max().unwrap_or_default();
    files::read(path, most as u64, "a floppy of 2.88 MB")
}

/// The sizes of floppies are exact for a BIOS.
fn padded(mut floppy: Vec<u8>) -> Vec<u8> {
    let whole = FLOPPIES.into_iter().find(|size| *size >= floppy.len());
    floppy.resize(whole.unwrap_or(floppy.len()), 0);
    floppy
}

/// Zeroed memory that the host commits only as it is touched.
fn allocate(bytes: u64) -> Result<Box<[AtomicU8]>, String> {
    usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytemuck::try_zeroed_slice_box(bytes).ok())
        .ok_or_else(|| format!("the host has no {} MiB of memory to give", bytes / MIB))
}
