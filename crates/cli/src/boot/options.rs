//! The options of `realmode boot`, and its help.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use realmode::Profile;
use serde::{Deserialize, Serialize};

use super::arguments::{self, At, ImageAt, ScreenTo, SerialTo, Typing};
use crate::processor;

const EXAMPLES: &str = "\
Examples:
  realmode boot                                       the demo guest
  realmode boot --image kernel.bin@1000:0000 --stats  a flat image, loaded at 10000h
  realmode boot --floppy disk.img --until 'login:'    a boot sector, without a BIOS
  realmode boot --kernel kernel.elf --append debug    a multiboot kernel, without a BIOS
  realmode boot --image test.bin@0000:7C00 --json     for scripts: one object on stdout
  realmode boot --screen png:screen.png --limit 50M   a picture of the screen at the end

With SeaBIOS (package seabios), whose text goes to COM1, and with --vga to the screen:
  BIOS=/usr/share/seabios/bios.bin
  realmode boot --bios $BIOS --until 'No bootable device'
  realmode boot --bios $BIOS --disk disk.img --memory 64
  realmode boot --bios $BIOS --disk disk.img --serial stdio --clock real
GRUB's rescue floppy: a command line, a command, and what it answers
  realmode boot --bios $BIOS --floppy grub-rescue-floppy.img \\
    --type 'c@GNU GRUB' --type 'ls\\n@grub>' --until '(fd0)'
memtest86+ has no end; it turns paging on if there is PAE, and uses the x87 if there is a TSC
  realmode boot --bios $BIOS --kernel memtest86+ia32.bin --append console=ttyS0,115200 \\
    --cpu intel,-pae,-tsc --memory 32 --type '\\n@start testing' --limit 1G
A run that is saved after the first three million instructions, and goes on
  realmode boot --bios $BIOS --save bios.snap --at 3M
  realmode boot --load bios.snap --until 'No bootable device'

On a terminal, the guest's screen is shown live, or COM1 as long as there is nothing on the
screen, and keys go to the guest. Ctrl-C ends the run. Ctrl-] before a key has the guest get it
whatever it is, as Ctrl-] Ctrl-C; Ctrl-] s shows the other one of screen and COM1. What COM1 and
the debug ports printed follows at the end. --screen none, --json and --serial stdio are not live.
From 26 rows on, the terminal has a line below that says so; with fewer than 25, it shows those of
the guest's up to the cursor.

Otherwise COM1 and the debug ports (E9h, 402h) go to stdout as they come; the debug ports with
--bios or --serial stdio to stderr. At the end the screen follows, if there is anything on it; all
else goes to stderr.

Time is virtual unless --clock says otherwise: 10 ns an instruction, and waiting takes none. Then
two runs agree to the instruction, also in the date. What stdin and keys bring comes when it comes;
--record writes it down and --replay brings it again. At the keyboard, --clock real is what you
want: on the virtual clock a countdown is over at once.

How a guest ends the run:
  a word of 2000h to port 604h   power-off: exit code 0
  v to port 501h (--exit-port)   exit code (v << 1) | 1, as with QEMU's isa-debug-exit
With a BIOS, a reset or a triple fault restarts the guest.

Exit codes:
  0     the guest powered off, --until TEXT appeared, the run was saved, or nobody reads stdout
  odd   the guest's own, through the exit port
  2     the command line or a file is wrong, and nothing ran; or output could not be written
  4     idle: the guest sits in HLT and nothing can wake it
  6     --limit was reached
  8     the guest got nowhere: triple fault, a BIOS call without a BIOS, a jump to itself,
        a reset, no memory to execute, an instruction that is not implemented
  10    the guest powered off, but --until TEXT had not appeared; or the run ended well, but had
        not come to --at
  129, 130, 143   SIGHUP, Ctrl-C or SIGTERM ended the run";

/// Boot an image, a floppy, a disk or a kernel in a small PC.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A file without an option: never there, so that the error says what to do with it
    #[arg(hide = true, value_name = "FILE", value_parser = arguments::stray)]
    stray: Option<Infallible>,

    /// A flat image, and where to load and start it, in hexadecimal
    #[arg(long, value_name = "FILE@SEG:OFF", value_parser = arguments::image)]
    #[arg(conflicts_with_all = ["floppy", "bios", "kernel"])]
    pub(super) image: Option<ImageAt>,

    /// A BIOS, which then boots what there is: floppy, disk, kernel
    #[arg(long, value_name = "FILE")]
    pub(super) bios: Option<PathBuf>,

    /// A VGA BIOS for the BIOS: text goes to the screen, and no longer to COM1
    #[arg(long, value_name = "FILE", requires = "bios")]
    pub(super) vga: Option<PathBuf>,

    /// A floppy image; without a BIOS, its first sector is loaded at 0000:7C00 and started
    ///
    /// With a BIOS it is padded to the next size of floppies; what the guest writes is lost.
    #[arg(long, value_name = "FILE")]
    pub(super) floppy: Option<PathBuf>,

    /// A disk image: the first ATA disk
    ///
    /// What the guest writes stays in memory and is lost at the end, unless --writable is given.
    #[arg(long, value_name = "FILE")]
    pub(super) disk: Option<PathBuf>,

    /// Write to the disk image what the guest writes to the disk
    #[arg(long, requires = "disk")]
    pub(super) writable: bool,

    /// A kernel: with a BIOS a bzImage, which it boots; without one a multiboot kernel
    ///
    /// Which it is, its header says. One that has both is a multiboot kernel, unless --bios is
    /// given. A multiboot kernel gets no modules.
    #[arg(long, value_name = "FILE")]
    pub(super) kernel: Option<PathBuf>,

    /// The kernel's command line
    #[arg(long, value_name = "TEXT", requires = "kernel", default_value = "")]
    pub(super) append: String,

    /// What the BIOS tries to boot, in this order
    #[arg(long, value_name = "DEVICE,DEVICE", requires = "bios", value_delimiter = ',')]
    pub(super) boot_order: Vec<Device>,

    /// RAM in MiB, from 1 to 3072
    #[arg(long, value_name = "MiB", default_value_t = 16)]
    #[arg(value_parser = arguments::memory, allow_negative_numbers = true)]
    pub(super) memory: u64,

    /// The processor, and features it shall not have, by the names of CPUID: intel,-pae,-tsc
    #[arg(long, value_name = "NAME[,-FEATURE]...", default_value = "intel")]
    #[arg(value_parser = processor::with_features)]
    pub(super) cpu: Profile,

    /// Where time comes from
    #[arg(long, value_enum, default_value_t = ClockKind::Virtual)]
    pub(super) clock: ClockKind,

    /// The date at the start, in UTC: '2026-01-31 12:00:00', or now
    ///
    /// The default is 2026-01-01 00:00:00, so that runs agree; with --clock real it is now.
    #[arg(long, value_name = "DATE", value_parser = arguments::date)]
    pub(super) date: Option<i64>,

    /// The port that ends the run, in hexadecimal
    #[arg(long, value_name = "PORT", default_value = "501", value_parser = arguments::port)]
    pub(super) exit_port: u16,

    /// What COM1 is connected to: stdin and stdout, or a file for its output
    #[arg(long, value_name = "stdio|FILE", value_parser = arguments::serial)]
    pub(super) serial: Option<SerialTo>,

    /// A file for the output of the debug ports
    #[arg(long, value_name = "FILE")]
    pub(super) debug: Option<PathBuf>,

    /// Type TEXT once TRIGGER has appeared on COM1, a debug port or the screen; repeatable
    ///
    /// Each trigger counts from when the text before was typed. On the screen, one that is there
    /// already has to appear once more. \n is Enter, \e Escape, \t Tab, \\ a backslash. TEXT is
    /// typed on the keyboard, a key each 30 ms of the guest's; com1:TEXT is received by COM1.
    /// SeaBIOS and what asks it for keys take them from either, other guests from one.
    #[arg(long = "type", value_name = "TEXT@TRIGGER", value_parser = arguments::typing)]
    pub(super) typing: Vec<Typing>,

    /// Write all that enters the run from outside to FILE: keys, stdin, the date, a real clock
    ///
    /// FILE is text. A disk that is written to with --writable is another one afterwards.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Give the run what another took, as --record wrote it to FILE, and neither keys nor stdin
    ///
    /// All else has to be as it was then: the same files and options, --type among them; FILE
    /// says what it was. --until, --limit and those about output may differ. Where the record
    /// ends, the guest goes on without input.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(super) replay: Option<PathBuf>,

    /// End after so many instructions (20k, 3M and 1G work too)
    ///
    /// A string instruction with REP counts once. A guest that waits for a key in a BIOS waits for
    /// ever, since the BIOS's timer goes on; a limit ends that.
    #[arg(long, value_name = "N", value_parser = arguments::count)]
    #[arg(allow_negative_numbers = true)]
    pub(super) limit: Option<u64>,

    /// End with success once TEXT appears on COM1, a debug port or the screen
    ///
    /// With --type it counts from when the last text was typed. The run ends there and then: of
    /// what is printed twice, as by SeaBIOS, the second may lack its end.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(super) until: Option<String>,

    /// Write one line an instruction to FILE: place, bytes, registers before it
    ///
    /// REP is one line. An instruction that faults has one too, though --stats does not count it.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,

    /// Save the run to FILE once it has come to --at, and end
    ///
    /// All of the machine is in it but the disk's image, which has to stay as it is. The file is
    /// replaced when the new one is whole. See --load.
    #[arg(long, value_name = "FILE", requires = "at")]
    pub(super) save: Option<PathBuf>,

    /// Where to save: after so many instructions (5M), or once TEXT appears as for --until
    #[arg(long, value_name = "N|TEXT", requires = "save", value_parser = arguments::at)]
    #[arg(allow_negative_numbers = true)]
    pub(super) at: Option<At>,

    /// Go on from a file of --save as if the run had not been interrupted
    ///
    /// What the machine is made of is in the file. Its disk is found where it was, or is given
    /// with --disk. Counts, as of --limit and --at, are from the start of the run; what --type
    /// had still to do comes before what it is given now.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "image", "bios", "vga", "floppy", "writable", "kernel", "append", "boot_order", "memory",
        "cpu", "clock", "date", "exit_port", "record", "replay",
    ])]
    pub(super) load: Option<PathBuf>,

    /// What to do with the screen at the end: text, png:FILE or none
    ///
    /// The default is text, if there is anything on the screen.
    #[arg(long, value_name = "text|png:FILE|none", value_parser = arguments::screen)]
    pub(super) screen: Option<ScreenTo>,

    /// Print instructions, seconds, MIPS and the emulator's counters to stderr
    ///
    /// A string instruction with REP counts once, however long it takes. Blocks are decoded
    /// code: built, compared with memory again (proved) and dropped because it was written to
    /// (retired). Careful instructions met a device, ROM, or written code.
    #[arg(long)]
    pub(super) stats: bool,

    /// Print one JSON object with all of it to stdout, and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

/// `--clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(super) enum ClockKind {
    /// From the instructions executed; runs agree
    Virtual,
    /// The host's
    Real,
}

/// What a BIOS can boot, by its number in CMOS memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Device {
    /// The floppy
    Floppy = 1,
    /// The disk
    Disk = 2,
}
