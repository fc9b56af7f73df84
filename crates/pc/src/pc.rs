//! The machine as its owner sees it: what can be put into it, asked of it and told it.

use core::sync::atomic::AtomicU8;

use realmode::Phys;

use crate::board::{self, Board};
use crate::clock::Clock;
use crate::console::Console;
use crate::disk::Disk;
use crate::error::Error;
use crate::firmware_config::Contents;
use crate::kernel::Kernel;
use crate::key::{Held, Key};
use crate::memory::Memory;
use crate::power::Ending;
use crate::screen::Screen;

/// 48 bits of sector numbers.
const MOST_SECTORS: u64 = 1 << 48;

/// A small PC. Give it memory and a console, boot something, and run the emulator on it.
///
/// ```
/// use core::ops::ControlFlow;
/// use core::sync::atomic::AtomicU8;
/// use realmode::{CacheLine, Emulator, Profile, Stop};
/// use realmode_pc::{Channel, Ending, Pc};
///
/// let ram: Vec<AtomicU8> = (0..1 << 20).map(|_| AtomicU8::new(0)).collect();
/// let mut printed = Vec::new();
/// let mut pc = Pc::new(&ram, |_: Channel, byte: u8| {
///     printed.push(byte);
///     ControlFlow::Continue(())
/// })?;
/// // mov al, 'A'; out E9h, al; mov dx, 604h; mov ax, 2000h; out dx, ax
/// let guest = [0xB0, 0x41, 0xE6, 0xE9, 0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF];
/// let mut cpu = pc.boot_image(&guest, 0x0000, 0x7C00)?;
///
/// let mut lines = vec![CacheLine::EMPTY; 64];
/// let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
/// assert_eq!(pc.run(&mut emulator, &mut cpu, 1000), Ok(Stop::Requested));
/// assert_eq!(pc.ending(), Some(Ending::PowerOff));
/// drop(pc);
/// assert_eq!(printed, b"A");
/// # Ok::<(), realmode_pc::Error>(())
/// ```
pub struct Pc<'m, C> {
    pub(crate) memory: Memory<'m>,
    pub(crate) board: Board<'m>,
    pub(crate) console: C,
    pub(crate) ending: Option<Ending>,
    /// The console wants the run to stop.
    pub(crate) is_broken: bool,
    /// The level of INTR that the processor was told.
    pub(crate) intr: bool,
    /// Until when the emulator runs on without asking; 0 if it is not [`Pc::run`] that runs it.
    pub(crate) slice_end: u64,
    pub(crate) resets: u64,
    /// What runs have used up of their budgets.
    pub(crate) spent: u64,
    pub(crate) kernel: Option<Kernel<'m>>,
    /// The BIOS has come to the kernel.
    pub(crate) wants_kernel: bool,
}

impl<'m, C: Console> Pc<'m, C> {
    /// A PC with `ram` as its physical memory from 0 up, which is any whole number of pages;
    /// text memory needs 740 KiB.
    ///
    /// # Errors
    /// `ram` is empty, not whole pages, or larger than [`MAX_RAM`](crate::MAX_RAM).
    pub fn new(ram: &'m [AtomicU8], console: C) -> Result<Self, Error> {
        Ok(Pc {
            memory: Memory::new(ram)?,
            board: Board::new(ram.len() as u64),
            console,
            ending: None,
            is_broken: false,
            intr: false,
            slice_end: 0,
            resets: 0,
            spent: 0,
            kernel: None,
            wants_kernel: false,
        })
    }

    /// Copies an image into physical memory. Pages from C0000h to FFFFFh become RAM by it. Load
    /// before the first `run`, or withdraw the range from the emulator.
    ///
    /// # Errors
    /// The image is empty or does not lie in memory; then nothing was written.
    pub fn load(&mut self, start: Phys, image: &[u8]) -> Result<(), Error> {
        self.memory.load(start, image)
    }

    /// Attaches a disk as the first of the primary ATA channel.
    ///
    /// # Errors
    /// It has no sectors, or more than can be addressed.
    pub fn attach_disk(&mut self, disk: &'m mut dyn Disk) -> Result<(), Error> {
        match disk.sectors() {
            0 => return Err(Error::DiskEmpty),
            sectors if sectors > MOST_SECTORS => return Err(Error::DiskTooLarge { sectors }),
            _ => self.board.disk = Some(disk),
        }
        Ok(())
    }

    /// Adds a file to the firmware configuration device, or replaces one. SeaBIOS looks for
    /// `floppyimg/NAME`, a bootable floppy of an exact size, `vgaroms/NAME` and `genroms/NAME`,
    /// `bootorder`, and settings in `etc/`.
    ///
    /// # Errors
    /// The name is empty or longer than 55 bytes, or there are 32 files.
    pub fn add_file(&mut self, name: &'m str, contents: &'m [u8]) -> Result<(), Error> {
        let is_added = self.board.config.add(name, Contents::Long(contents));
        if is_added { Ok(()) } else { Err(Error::FileRefused) }
    }

    /// Has the BIOS boot a Linux kernel, a bzImage, or what has its format, such as memtest86+.
    /// Say so before [`Pc::boot_bios`].
    ///
    /// # Errors
    /// It has no header, is too old or cut off, or does not fit into RAM; or the command line is
    /// longer than 2047 bytes.
    pub fn set_kernel(&mut self, image: &'m [u8], command_line: &'m str) -> Result<(), Error> {
        self.kernel = Some(Kernel::new(image, command_line, self.memory.len())?);
        Ok(())
    }

    /// Sets the date of the clock: seconds since 1970 when the machine is switched on.
    pub fn set_date(&mut self, seconds: i64) {
        self.board.rtc.set_epoch(seconds);
    }

    /// Sets a byte of CMOS memory, such as the boot order in 38h and 3Dh.
    pub fn set_cmos(&mut self, index: u8, value: u8) {
        self.board.rtc.set_byte(index, value);
    }

    /// Sets the port that ends the run, which is 501h at first.
    ///
    /// # Errors
    /// A device has that port.
    pub fn set_exit_port(&mut self, port: u16) -> Result<(), Error> {
        if board::is_taken(port) {
            return Err(Error::PortTaken { port });
        }
        self.board.exit_port = port;
        Ok(())
    }

    /// The port that ends the run.
    pub fn exit_port(&self) -> u16 {
        self.board.exit_port
    }

    /// Sets where time comes from.
    pub fn set_clock(&mut self, clock: Clock<'m>) {
        self.board.time.set_clock(clock);
    }

    /// Nanoseconds since the machine was switched on.
    pub fn now(&self) -> u64 {
        self.board.time.now()
    }

    /// When a device next does something by itself, in nanoseconds since the machine was switched
    /// on.
    pub fn next_event(&self) -> Option<u64> {
        self.board.next_event()
    }

    /// Has text typed on the keyboard, at a pace a guest can follow. Returns how many bytes of it
    /// there was room for; offer the rest later. Characters that a US keyboard does not have are
    /// left out; the arrows ↑ ↓ ← → are keys.
    pub fn type_text(&mut self, text: &str) -> usize {
        let taken = self.board.keyboard.keyboard.type_text(text);
        self.board.refresh();
        taken
    }

    /// Has a key pressed and released on the keyboard while others are held down, after what is
    /// still to be typed. False if there was no room: offer it later. A key that a US keyboard
    /// does not have is left out.
    pub fn press(&mut self, key: Key, held: Held) -> bool {
        let is_taken = self.board.keyboard.keyboard.press(key, held);
        self.board.refresh();
        is_taken
    }

    /// Is there text that the guest has not taken from the keyboard yet?
    pub fn is_typing(&self) -> bool {
        self.board.keyboard.keyboard.is_typing()
    }

    /// Sends bytes to COM1. Returns how many there was room for; offer the rest later.
    pub fn send_serial(&mut self, bytes: &[u8]) -> usize {
        let taken = self.board.serial.send(bytes);
        self.board.refresh();
        taken
    }

    /// The byte a load from physical memory would read; all ones where there is none.
    pub fn byte(&self, at: Phys) -> u8 {
        self.memory.byte(at)
    }

    /// Is there memory at this physical address?
    pub fn is_memory(&self, at: Phys) -> bool {
        self.memory.is_memory(at)
    }

    /// The text screen, or `None` if RAM ends before it.
    pub fn screen(&self) -> Option<Screen<'m>> {
        self.memory.screen(self.board.vga.start())
    }

    /// The row and column of the cursor, if it is on the screen and visible.
    pub fn cursor(&self) -> Option<(usize, usize)> {
        let first = Screen::first(self.board.vga.start());
        let at = self.board.vga.cursor()?.checked_sub(first)?;
        let (row, column) = (at / Screen::COLUMNS, at % Screen::COLUMNS);
        (row < Screen::ROWS).then_some((row, column))
    }

    /// What bit 7 of an attribute means: that the character blinks, or that its background is
    /// bright.
    pub fn blinks(&self) -> bool {
        self.board.vga.blinks()
    }

    /// How the guest ended the run, once `run` returned `Stop::Requested`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// How often the processor was reset. Without a BIOS a reset is an [`Ending`].
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// What all calls of [`Pc::run`] have used up of their budgets: to go on with the rest of one
    /// that came back early.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The last code the guest wrote to port 80h: how far its self test came.
    pub fn post_code(&self) -> u8 {
        self.board.post
    }

    /// The console it was given.
    pub fn console(&self) -> &C {
        &self.console
    }

    /// The console it was given, to change.
    pub fn console_mut(&mut self) -> &mut C {
        &mut self.console
    }

    pub(crate) fn is_a20_open(&self) -> bool {
        self.board.a20
    }
}
