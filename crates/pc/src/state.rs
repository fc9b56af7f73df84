//! What the devices hold, as plain data: to save a machine, and to go on from it elsewhere.
//!
//! A saved machine is a [`State`], the [`Cpu`](realmode::Cpu), the bytes of RAM, and what was put
//! into it: BIOS, disk, kernel, files. The devices here answer at once, so no instruction is in
//! flight between two runs.
//!
//! A state from outside is not trusted: [`Pc::restore`] refuses what no machine can have come to,
//! by what each device says in its `is_sound`. So a device need not check itself while it works.

use crate::ata::Ata;
use crate::chipset_port::ChipsetPort;
use crate::console::Console;
use crate::error::Error;
use crate::io_apic::IoApic;
use crate::keyboard_controller::KeyboardController;
use crate::local_apic::LocalApic;
use crate::pc::Pc;
use crate::pic::Pics;
use crate::pit::Pit;
use crate::power::Ending;
use crate::rtc::Rtc;
use crate::serial::Serial;
use crate::system_port::SystemPort;
use crate::vga::Vga;

/// The version of [`State`]; another version is refused. It grows whenever a field of a device is
/// added or taken away, or means something else.
pub const STATE_VERSION: u32 = 2;

/// All of a machine but its processor, memory and disk, between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State {
    version: u32,
    parts: Parts,
    now: u64,
    /// Which pages from C0000h to FFFFFh are RAM.
    shadow: u64,
    a20: bool,
    post: u8,
    /// The level of INTR that the processor was told.
    intr: bool,
    resets: u64,
    ending: Option<Ending>,
    wants_kernel: bool,
    /// What is selected in the firmware configuration, and how far it has been read.
    selection: (u16, u64),
    pics: Pics,
    local_apic: LocalApic,
    io_apic: IoApic,
    pit: Pit,
    rtc: Rtc,
    keyboard: KeyboardController,
    serial: Serial,
    vga: Vga,
    ata: Ata,
    system_port: SystemPort,
    chipset_port: ChipsetPort,
}

/// What the machine was put together from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Parts {
    ram: u64,
    bios: u64,
    sectors: u64,
    kernels: u64,
    files: u64,
}

impl Parts {
    fn of<C: Console>(pc: &Pc<'_, C>) -> Parts {
        Parts {
            ram: pc.memory.len(),
            bios: pc.memory.rom_len(),
            sectors: pc.board.disk.as_deref().map_or(0, |disk| disk.sectors()),
            kernels: u64::from(pc.kernel.is_some()),
            files: pc.board.config.files() as u64,
        }
    }

    fn check(&self, here: &Parts) -> Result<(), Error> {
        for (what, saved, here) in [
            ("bytes of RAM", self.ram, here.ram),
            ("bytes of BIOS", self.bios, here.bios),
            ("sectors of disk", self.sectors, here.sectors),
            ("kernels", self.kernels, here.kernels),
            ("firmware files", self.files, here.files),
        ] {
            if saved != here {
                return Err(Error::StateOfAnother { what, saved, here });
            }
        }
        Ok(())
    }
}

impl State {
    /// Nanoseconds since the machine was switched on. A real clock is to go on from here.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Could a machine with these parts have come to it?
    fn check(&self, parts: &Parts) -> Result<(), Error> {
        if self.version != STATE_VERSION {
            let (found, expected) = (self.version, STATE_VERSION);
            return Err(Error::StateVersion { found, expected });
        }
        self.parts.check(parts)?;
        for (what, is_sound) in [
            ("interrupt controllers", self.pics.is_sound()),
            ("local APIC", self.local_apic.is_sound(self.now)),
            ("I/O APIC", self.io_apic.is_sound()),
            ("timer", self.pit.is_sound(self.now)),
            ("clock", self.rtc.is_sound(self.now)),
            ("keyboard", self.keyboard.is_sound(self.now)),
            ("serial line", self.serial.is_sound()),
            ("screen", self.vga.is_sound()),
            ("disk", self.ata.is_sound(parts.sectors)),
            ("kernel", parts.kernels > 0 || !self.wants_kernel),
        ] {
            if !is_sound {
                return Err(Error::StateDamaged { what });
            }
        }
        Ok(())
    }
}

impl<C: Console> Pc<'_, C> {
    /// The state of all devices. Call it between two runs.
    pub fn save(&self) -> State {
        let board = &self.board;
        State {
            version: STATE_VERSION,
            parts: Parts::of(self),
            now: board.time.now(),
            shadow: self.memory.shadow(),
            a20: board.a20,
            post: board.post,
            intr: self.intr,
            resets: self.resets,
            ending: self.ending,
            wants_kernel: self.wants_kernel,
            selection: board.config.selection(),
            pics: board.pics,
            local_apic: board.local_apic,
            io_apic: board.io_apic,
            pit: board.pit,
            rtc: board.rtc,
            keyboard: board.keyboard,
            serial: board.serial,
            vga: board.vga,
            ata: board.ata,
            system_port: board.system_port,
            chipset_port: board.chipset_port,
        }
    }

    /// Puts the devices into a saved state. This machine is to have been put together as the
    /// saved one was: as much RAM, the same disk, kernel, files and BIOS, in this order. Fill RAM
    /// after it, since [`Pc::boot_bios`] writes there, and go on with [`Pc::run`], the saved
    /// processor, and an emulator of the same profile that is new or flushed.
    ///
    /// ```
    /// # use core::sync::atomic::AtomicU8;
    /// use realmode_pc::{Error, Pc};
    /// let ram: Vec<AtomicU8> = (0..2 << 20).map(|_| AtomicU8::new(0)).collect();
    /// let (other_ram, ram) = (&ram, &ram[..1 << 20]);
    /// let mut pc = Pc::new(ram, ())?;
    /// pc.type_text("half a word");
    /// let state = pc.save();
    /// let mut again = Pc::new(ram, ())?;
    /// again.restore(&state)?;
    /// assert!(again.is_typing());
    ///
    /// let refused = Pc::new(other_ram, ())?.restore(&state);
    /// assert!(matches!(refused, Err(Error::StateOfAnother { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The state is of another version or another machine, or damaged. Then nothing was changed.
    pub fn restore(&mut self, state: &State) -> Result<(), Error> {
        state.check(&Parts::of(self))?;
        self.memory.set_shadow(state.shadow);
        self.intr = state.intr;
        self.resets = state.resets;
        self.ending = state.ending;
        self.wants_kernel = state.wants_kernel;
        self.is_broken = false;
        let board = &mut self.board;
        board.time.go_on(state.now);
        board.a20 = state.a20;
        board.post = state.post;
        board.config.go_on(state.selection);
        board.pics = state.pics;
        board.local_apic = state.local_apic;
        board.io_apic = state.io_apic;
        board.pit = state.pit;
        board.rtc = state.rtc;
        board.keyboard = state.keyboard;
        board.serial = state.serial;
        board.vga = state.vga;
        board.ata = state.ata;
        board.system_port = state.system_port;
        board.chipset_port = state.chipset_port;
        board.refresh();
        Ok(())
    }
}
