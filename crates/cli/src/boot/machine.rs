//! The machine: what it is made of is read and checked first, then put together.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicU8;

use realmode::{CacheLine, Cpu, Emulator, Profile};
use realmode_pc::{Clock, Pc};
use serde::{Deserialize, Serialize};

use super::arguments::ImageAt;
use super::console::Output;
use super::disk::{DiskErrors, DiskInUse, ImageDisk, Writes};
use super::files;
use super::kernel;
use super::options::{Args, ClockKind};
use super::outside::Outside;
use super::snapshot::{Loaded, Run};

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
    date: i64,
    exit_port: u16,
    /// What the machine is put into once it is put together.
    loaded: Option<Loaded>,
}

/// What is booted.
enum Software {
    /// The guest that runs when none is named.
    Demo,
    /// A flat image.
    Image { bytes: Vec<u8>, segment: u16, offset: u16, name: String },
    /// The first sector of a floppy.
    BootSector { bytes: Vec<u8>, path: PathBuf },
    /// A multiboot kernel, and its command line.
    Multiboot { kernel: Vec<u8>, path: PathBuf, append: String },
    /// A BIOS, as memory, and what it finds.
    Bios { rom: Box<[AtomicU8]>, firmware: Box<Firmware> },
    /// What is in the RAM of a snapshot.
    Loaded,
}

/// A BIOS, and what it finds. A guest that asks for a file does so at any time, so a snapshot
/// holds all of it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Firmware {
    path: PathBuf,
    #[serde(with = "serde_bytes")]
    bios: Vec<u8>,
    #[serde(with = "serde_bytes")]
    vga: Option<Vec<u8>>,
    #[serde(with = "serde_bytes")]
    floppy: Option<Vec<u8>>,
    kernel: Option<Kernel>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Kernel {
    path: PathBuf,
    #[serde(with = "serde_bytes")]
    image: Vec<u8>,
    append: String,
}

/// A machine that is ready to run.
pub(super) struct Machine<'m> {
    pub(super) pc: Pc<'m, Output>,
    pub(super) cpu: Cpu,
    pub(super) emulator: Emulator<'m>,
    pub(super) ram: &'m [AtomicU8],
    pub(super) firmware: Option<&'m Firmware>,
    pub(super) disk: Option<DiskInUse>,
    pub(super) clock: ClockKind,
    /// How far its run has come.
    pub(super) run: Run,
}

impl Parts {
    /// Reads all that the machine is made of, unless it is in a snapshot.
    pub(super) fn read(
        args: &Args,
        outside: &Outside,
        loaded: Option<Loaded>,
    ) -> Result<Parts, String> {
        let clock = outside.clock.clone();
        let clock = clock.map(|clock| Box::new(move || clock.read()) as Box<dyn Fn() -> u64>);
        if let Some(loaded) = loaded {
            return Parts::load(loaded, args.disk.as_deref(), clock);
        }
        let software = Software::read(args)?;
        let writes = if args.writable { Writes::Through } else { Writes::Kept };
        let disk = args.disk.as_deref().map(|path| ImageDisk::open(path, writes)).transpose()?;
        if software.is_demo() {
            check_demo(args)?;
        }
        Ok(Parts {
            ram: allocate(args.memory * MIB)?,
            software,
            disk,
            lines: vec![CacheLine::EMPTY; LINES],
            profile: args.cpu.clone(),
            clock,
            date: outside.date,
            exit_port: args.exit_port,
            loaded: None,
        })
    }

    /// The parts of a snapshot. Opens its disk: that of `--disk`, or where it was.
    fn load(
        mut loaded: Loaded,
        disk: Option<&Path>,
        clock: Option<Box<dyn Fn() -> u64>>,
    ) -> Result<Parts, String> {
        let disk = match (loaded.disk(), disk) {
            (Some(saved), given) => Some(saved.open(given.unwrap_or(saved.path()))?),
            (None, None) => None,
            (None, Some(_)) => {
                let path = loaded.path().display();
                return Err(format!("--disk: the machine in {path} has none; leave it out"));
            }
        };
        let software = match loaded.take_firmware() {
            Some(firmware) => Software::of_firmware(firmware),
            None => Software::Loaded,
        };
        Ok(Parts {
            ram: allocate(loaded.ram())?,
            software,
            disk,
            lines: vec![CacheLine::EMPTY; LINES],
            profile: loaded.profile().clone(),
            clock,
            date: 0,
            exit_port: loaded.exit_port(),
            loaded: Some(loaded),
        })
    }

    /// What will go wrong with the disk.
    pub(super) fn disk_errors(&self) -> Rc<DiskErrors> {
        self.disk.as_ref().map(ImageDisk::errors).unwrap_or_default()
    }

    /// Puts the machine together.
    pub(super) fn assemble(&mut self, args: &Args, output: Output) -> Result<Machine<'_>, String> {
        let Parts { ram, software, disk, lines, profile, clock, date, exit_port, loaded } = self;
        let mut pc = Pc::new(ram, output).map_err(|error| error.to_string())?;
        pc.set_exit_port(*exit_port).map_err(|error| format!("--exit-port: {error}"))?;
        pc.set_date(*date);
        let clock_kind = if clock.is_some() { ClockKind::Real } else { ClockKind::Virtual };
        if let Some(clock) = clock {
            pc.set_clock(Clock::Real(&**clock));
        }
        let disk_in_use = disk.as_ref().map(ImageDisk::in_use);
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
        let mut machine = Machine {
            pc,
            cpu,
            emulator: Emulator::new(profile, lines),
            ram,
            firmware: software.firmware(),
            disk: disk_in_use,
            clock: clock_kind,
            run: Run::default(),
        };
        if let Some(loaded) = loaded.take() {
            loaded.restore(&mut machine)?;
        }
        Ok(machine)
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
                    let image = files::read(path, ram, &in_ram)?;
                    kernel::check_with_bios(&image, path)?;
                    Some(Kernel { path: path.clone(), image, append: args.append.clone() })
                }
                None => None,
            };
            return Ok(Software::of_firmware(Firmware {
                path: path.clone(),
                bios: bytes,
                vga: args.vga.as_deref().map(read_rom).transpose()?,
                floppy: args.floppy.as_deref().map(read_floppy).transpose()?.map(padded),
                kernel,
            }));
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
            return Ok(Software::Demo);
        };
        let bytes = files::read(path, ram, &in_ram)?;
        let name = path.display().to_string();
        Ok(Software::Image { bytes, segment: *segment, offset: *offset, name })
    }

    fn of_firmware(firmware: Firmware) -> Software {
        let rom = firmware.bios.iter().copied().map(AtomicU8::new).collect();
        Software::Bios { rom, firmware: Box::new(firmware) }
    }

    fn is_demo(&self) -> bool {
        matches!(self, Software::Demo)
    }

    fn firmware(&self) -> Option<&Firmware> {
        match self {
            Software::Bios { firmware, .. } => Some(firmware),
            _ => None,
        }
    }

    /// Returns the processor about to start it.
    fn load<'m>(&'m self, pc: &mut Pc<'m, Output>, profile: &Profile) -> Result<Cpu, String> {
        let mut cpu = match self {
            Software::Demo => {
                let (segment, offset) = DEMO_AT;
                pc.boot_image(DEMO, segment, offset)
                    .map_err(|error| format!("the demo guest: {error}"))?
            }
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
            Software::Bios { rom, firmware } => {
                firmware.load(rom, pc)?;
                return Ok(Cpu::reset_as(profile));
            }
            Software::Loaded => return Ok(Cpu::reset_as(profile)),
        };
        cpu.rflags = profile.canonical_flags(cpu.rflags);
        Ok(cpu)
    }
}

impl Firmware {
    fn load<'m>(&'m self, rom: &'m [AtomicU8], pc: &mut Pc<'m, Output>) -> Result<(), String> {
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
        if let Some(Kernel { path, image, append }) = &self.kernel {
            pc.set_kernel(image, append).map_err(|error| named(path, &error))?;
        }
        pc.boot_bios(rom).map_err(|error| named(&self.path, &error))?;
        Ok(())
    }
}

/// Refuses what the demo guest has no use for: another guest was meant.
fn check_demo(args: &Args) -> Result<(), String> {
    if let Some(path) = &args.disk {
        let path = path.display();
        return Err(format!(
            "--disk: without a BIOS nothing boots from {path}, and the demo guest does not look at \
             it: add --bios FILE"
        ));
    }
    if !args.cpu.has_32_bits() {
        return Err(format!(
            "the demo guest needs 32 bits, and --cpu {} has 16: name a guest, such as \
             --image FILE@SEG:OFF",
            args.cpu.name
        ));
    }
    Ok(())
}

fn named(path: &Path, error: &realmode_pc::Error) -> String {
    format!("{}: {error}", path.display())
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
