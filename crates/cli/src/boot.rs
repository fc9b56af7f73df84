//! `realmode boot`.

mod arguments;
mod console;
mod cp437;
mod display;
mod files;
mod font;
mod frames;
#[cfg(test)]
mod interrupt;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod live;
mod outcome;
mod palette;
mod picture;
mod place;
#[cfg(test)]
mod real_clock;
#[cfg(test)]
mod record;
#[cfg(test)]
mod replay;
mod report;
#[cfg(test)]
mod serial_screen;
mod session;
#[cfg(test)]
mod terminal;
mod trace;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicU8;

use clap::builder::NonEmptyStringValueParser;
use realmode::{CacheLine, Cpu, Emulator, Profile};
use realmode_pc::Pc;

use arguments::{ImageAt, ScreenTo};
use console::{Keep, Output};
use display::{Display, Style};
use files::OutputFile;
use session::{Bounds, Finished};
use trace::Trace;

/// The guest that runs when none is named, and where it is loaded.
const DEMO: &[u8] = include_bytes!("../../../testdata/guests/demo.bin");
const DEMO_AT: (u16, u16) = (0x0000, 0x7C00);

/// The largest floppy there is: 2.88 MB.
const MOST_FLOPPY: u64 = 2_949_120;
const MIB: u64 = 1 << 20;
/// Lines of decode cache.
const LINES: usize = 2048;

const EXAMPLES: &str = "\
Examples:
  realmode boot                                       the demo guest
  realmode boot --image kernel.bin@1000:0000 --stats  a flat image, loaded at 10000h
  realmode boot --floppy disk.img --until 'login:'    a boot sector; ends once it prints that
  realmode boot --image test.bin@0000:7C00 --json     for scripts: one object on stdout
  realmode boot --screen png:screen.png --limit 50M   a picture of the screen at the end

The guest's COM1 and debug ports (E9h, 402h) go to stdout as they come. At the end the screen
follows, if there is anything on it; all else goes to stderr.

How a guest ends the run:
  a word of 2000h to port 604h   power-off: exit code 0
  v to port 501h                 exit code (v << 1) | 1, as with QEMU's isa-debug-exit

Exit codes:
  0     the guest powered off, or --until TEXT appeared
  odd   the guest's own, through port 501h
  2     the command line or a file is wrong, and nothing ran; or output could not be written
  4     idle: the guest sits in HLT and nothing can wake it
  6     --limit was reached
  8     the guest got nowhere: triple fault, a BIOS call (there is no BIOS), a jump to itself,
        a reset, no memory to execute, an instruction that is not implemented
  10    the guest powered off, but --until TEXT had not appeared";

/// Boot an image in a small PC.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A flat image, and where to load and start it, in hexadecimal
    #[arg(long, value_name = "FILE@SEG:OFF", value_parser = arguments::image)]
    #[arg(conflicts_with = "floppy")]
    image: Option<ImageAt>,

    /// A floppy image whose first sector is loaded at 0000:7C00 and started
    #[arg(long, value_name = "FILE")]
    floppy: Option<PathBuf>,

    /// RAM in MiB, from 1 to 3072
    #[arg(long, value_name = "MiB", default_value_t = 16)]
    #[arg(value_parser = arguments::memory, allow_negative_numbers = true)]
    memory: u64,

    /// End after so many instructions (20k, 3M and 1G work too)
    ///
    /// A string instruction with REP counts once.
    #[arg(long, value_name = "N", value_parser = arguments::count)]
    #[arg(allow_negative_numbers = true)]
    limit: Option<u64>,

    /// End with success once TEXT appears on COM1, a debug port or the screen
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    until: Option<String>,

    /// Write one line an instruction to FILE: place, bytes, registers before it
    ///
    /// REP is one line. An instruction that faults has one too, though --stats does not count it.
    /// Ctrl-C cuts the trace off; --limit ends it whole.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// What to do with the screen at the end: text, png:FILE or none
    ///
    /// The default is text, if there is anything on the screen.
    #[arg(long, value_name = "text|png:FILE|none", value_parser = arguments::screen)]
    screen: Option<ScreenTo>,

    /// Print instructions, seconds, MIPS and the emulator's counters to stderr
    ///
    /// A string instruction with REP counts once, however long it takes. Blocks are decoded
    /// code: built, compared with memory again (proved) and dropped because it was written to
    /// (retired). Careful instructions met a device, ROM, or written code.
    #[arg(long)]
    stats: bool,

    /// Print one JSON object with all of it to stdout, and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let bytes = args.memory * MIB;
    let guest = Guest::read(args, bytes)?;
    let ram = allocate(bytes)?;
    let keep = if args.json { Keep::All } else { Keep::Nothing };
    let until = args.until.as_deref();
    let mut pc = Pc::new(&ram, Output::new(keep, until)).map_err(|error| error.to_string())?;
    let cpu = guest.load(&mut pc)?;
    let (trace, png) = open_outputs(args)?;
    let trace = trace.as_ref().map(Trace::begin).transpose()?;

    let mut lines = vec![CacheLine::EMPTY; LINES];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let bounds = Bounds { limit: args.limit, until };
    let finished = session::run(&mut emulator, &mut pc, cpu, &bounds, trace)?;

    let exit_code = finished.outcome.exit_code(until.is_some());
    if let Some(png) = &png {
        draw(&pc, png)?;
    }
    if args.json {
        let place = report::place(&finished, &pc);
        print(&format!("{}\n", report::json(&finished, &place, exit_code, until, &pc)))?;
    } else {
        print(&screen_text(args, &finished, &pc))?;
        explain(args, &finished, &pc);
    }
    Ok(ExitCode::from(exit_code))
}

/// What is booted.
enum Guest {
    Image { bytes: Vec<u8>, segment: u16, offset: u16, name: String },
    Floppy { bytes: Vec<u8>, path: PathBuf },
}

impl Guest {
    fn read(args: &Args, ram: u64) -> Result<Guest, String> {
        if let Some(path) = &args.floppy {
            let bytes = files::read(path, MOST_FLOPPY, "a floppy of 2.88 MB")?;
            return Ok(Guest::Floppy { bytes, path: path.clone() });
        }
        let Some(ImageAt { path, segment, offset }) = &args.image else {
            let (segment, offset) = DEMO_AT;
            let name = "the demo guest".to_owned();
            return Ok(Guest::Image { bytes: DEMO.to_vec(), segment, offset, name });
        };
        let what = format!("the RAM of {} MiB (see --memory)", args.memory);
        let bytes = files::read(path, ram, &what)?;
        let name = path.display().to_string();
        Ok(Guest::Image { bytes, segment: *segment, offset: *offset, name })
    }

    fn load(&self, pc: &mut Pc<'_, Output>) -> Result<Cpu, String> {
        match self {
            Guest::Image { bytes, segment, offset, name } => pc
                .boot_image(bytes, *segment, *offset)
                .map_err(|error| format!("{name}: {error} (at {segment:04X}:{offset:04X})")),
            Guest::Floppy { bytes, path } => pc.boot_floppy(bytes).map_err(|error| {
                let path = path.display();
                format!("{path}: {error}; to run it anyway, use --image {path}@0000:7C00")
            }),
        }
    }
}

/// Zeroed memory that the host commits only as it is touched.
fn allocate(bytes: u64) -> Result<Box<[AtomicU8]>, String> {
    usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytemuck::try_zeroed_slice_box(bytes).ok())
        .ok_or_else(|| format!("the host has no {} MiB of memory to give", bytes / MIB))
}

/// The files of `--trace` and `--screen png:`, neither of them an input or the other.
fn open_outputs(args: &Args) -> Result<(Option<OutputFile>, Option<OutputFile>), String> {
    let mut taken: Vec<&Path> = Vec::new();
    taken.extend(args.image.as_ref().map(|image| image.path.as_path()));
    taken.extend(args.floppy.as_deref());
    let trace = args.trace.as_deref().map(|path| OutputFile::open(path, &taken)).transpose()?;
    taken.extend(args.trace.as_deref());
    let png = match &args.screen {
        Some(ScreenTo::Png(path)) => Some(OutputFile::open(path, &taken)?),
        _ => None,
    };
    Ok((trace, png))
}

fn draw(pc: &Pc<'_, Output>, png: &OutputFile) -> Result<(), String> {
    let display = Display::of_vga(pc).ok_or("RAM ends before the screen")?;
    picture::write_png(&display, png.replace()?)
        .map_err(|error| format!("cannot write {}: {error}", png.path().display()))
}

/// The screen as it is to be printed, on lines of its own; empty if it is not.
fn screen_text(args: &Args, finished: &Finished, pc: &Pc<'_, Output>) -> String {
    let Some(display) = Display::of_vga(pc) else { return String::new() };
    let is_wanted = match &args.screen {
        Some(to) => *to == ScreenTo::Text,
        None => !display.is_blank(),
    };
    if !is_wanted {
        return String::new();
    }
    let rows = match std::io::stdout().is_terminal() {
        true => display.styled_rows(Style::of_environment()),
        false => display.rows(),
    };
    let before = if finished.at_line_start { "" } else { "\n" };
    format!("{before}{}\n", rows.join("\n"))
}

fn print(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("cannot write to stdout: {error}"))
}

/// Says on stderr what the user could not know otherwise.
fn explain(args: &Args, finished: &Finished, pc: &Pc<'_, Output>) {
    use outcome::Outcome;
    use realmode_pc::Ending;
    let outcome = finished.outcome;
    let message = outcome.message(args.until.as_deref());
    if outcome.is_nowhere() {
        let place = report::place(finished, pc);
        eprintln!("realmode: {}", report::reason(&message, &place));
    } else if args.until.is_some() && matches!(outcome, Outcome::Ended(_))
        || matches!(outcome, Outcome::Ended(Ending::Exit(_)))
    {
        eprintln!("realmode: {message}");
    }
    if args.stats {
        eprint!("{}", report::stats(finished));
    }
}
