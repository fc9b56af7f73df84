//! The devices, their ports, and the lines between them.
//!
//! A device is a plain struct in a file of its own: it is told the time, returns what it asks of
//! the machine, and says when it next does something by itself. This file alone knows where
//! devices are and which interrupt is whose.

use crate::ata::{ATA, ATA_CONTROL, ATA_LAST, Ata};
use crate::chipset_port::{CHIPSET_PORT, ChipsetPort};
use crate::clock::{Clock, Time};
use crate::console::Channel;
use crate::disk::Disk;
use crate::firmware_config::{FIRMWARE_CONFIG, FirmwareConfig};
use crate::io_apic::IoApic;
use crate::kernel::KERNEL_PORT;
use crate::keyboard_controller::{KEYBOARD_COMMAND, KEYBOARD_DATA, KeyboardController};
use crate::local_apic::{LocalApic, Signal};
use crate::pic::{ELCR, PIC_1, PIC_2, Pics};
use crate::pit::{PIT, Pit};
use crate::power::{DEBUG_EXIT, PM1_CONTROL};
use crate::rtc::{CMOS, Rtc};
use crate::serial::{COM1, COM1_LAST, Serial};
use crate::system_port::{SYSTEM_PORT, SystemPort, SystemWrite};
use crate::vga::{VGA, VGA_LAST, Vga};

/// Power-on self test codes.
const POST: u16 = 0x80;
/// Bochs's debug port.
const DEBUG_E9: u16 = 0xE9;
/// QEMU's debug console, where SeaBIOS writes its log if it reads E9h there.
const DEBUG_402: u16 = 0x402;
const DEBUG_PRESENT: u8 = 0xE9;
/// The address register of PCI. There is none, but firmware asks.
pub(crate) const PCI_ADDRESS: u16 = 0xCF8;
/// The reset control register of later chipsets.
const RESET_CONTROL: u16 = 0xCF9;
const RESET_CONTROL_NOW: u8 = 1 << 2;

/// Which ports are spoken for: each range from its first to its last.
const TAKEN: [(u16, u16); 20] = [
    (PIC_1, PIC_1 + 1),
    (PIT, PIT + 3),
    (KEYBOARD_DATA, CHIPSET_PORT),
    (KEYBOARD_COMMAND, KEYBOARD_COMMAND),
    (CMOS, CMOS + 1),
    (POST, POST),
    (SYSTEM_PORT, SYSTEM_PORT),
    (PIC_2, PIC_2 + 1),
    (DEBUG_E9, DEBUG_E9),
    (ATA, ATA_LAST),
    (VGA, VGA_LAST),
    (ATA_CONTROL, ATA_CONTROL),
    (COM1, COM1_LAST),
    (DEBUG_402, DEBUG_402),
    (ELCR, ELCR + 1),
    (KERNEL_PORT, KERNEL_PORT),
    (FIRMWARE_CONFIG, FIRMWARE_CONFIG + 1),
    (PM1_CONTROL, PM1_CONTROL + 1),
    (PCI_ADDRESS, PCI_ADDRESS),
    (RESET_CONTROL, RESET_CONTROL),
];

/// Does a device have this port?
pub(crate) fn is_taken(port: u16) -> bool {
    TAKEN.iter().any(|(first, last)| (*first..=*last).contains(&port))
}

const IRQ_TIMER: u8 = 0;
const IRQ_KEYBOARD: u8 = 1;
const IRQ_COM1: u8 = 4;
const IRQ_CLOCK: u8 = 8;
const IRQ_DISK: u8 = 14;

/// What a write asks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// A byte leaves the machine.
    Print(Channel, u8),
    /// The A20 gate may have moved.
    A20,
    /// The processor is reset, and nothing else.
    Reset,
    /// As the power switch.
    HardReset,
    /// The guest ends the run.
    Exit(u8),
}

/// All of them.
pub(crate) struct Board<'m> {
    pub(crate) time: Time<'m>,
    pub(crate) a20: bool,
    pub(crate) pics: Pics,
    pub(crate) local_apic: LocalApic,
    pub(crate) io_apic: IoApic,
    pub(crate) keyboard: KeyboardController,
    pub(crate) serial: Serial,
    pub(crate) rtc: Rtc,
    pub(crate) vga: Vga,
    pub(crate) config: FirmwareConfig<'m>,
    pub(crate) disk: Option<&'m mut dyn Disk>,
    /// The last code written to port 80h.
    pub(crate) post: u8,
    /// The port that ends the run.
    pub(crate) exit_port: u16,
    pub(crate) ata: Ata,
    pub(crate) pit: Pit,
    pub(crate) system_port: SystemPort,
    pub(crate) chipset_port: ChipsetPort,
    /// When a device next does something by itself; `u64::MAX` is never.
    due: u64,
}

impl<'m> Board<'m> {
    /// A board in the state in which firmware hands over, with so much RAM.
    pub(crate) fn new(ram: u64) -> Self {
        let mut board = Board {
            time: Time::new(Clock::Virtual),
            a20: true,
            pics: Pics::RESET,
            local_apic: LocalApic::BOOTED,
            io_apic: IoApic::RESET,
            keyboard: KeyboardController::BOOTED,
            serial: Serial::BOOTED,
            rtc: Rtc::new(0),
            vga: Vga::RESET,
            config: FirmwareConfig::new(ram),
            disk: None,
            post: 0,
            exit_port: DEBUG_EXIT,
            ata: Ata::RESET,
            pit: Pit::RESET,
            system_port: SystemPort::RESET,
            chipset_port: ChipsetPort::RESET,
            due: u64::MAX,
        };
        board.set_memory_size(ram);
        // The output is high, so that the first control word is no edge.
        board.set_line(IRQ_TIMER, true);
        board
    }

    /// As at power-on. The clock and its memory have a battery.
    pub(crate) fn reset(&mut self) {
        self.a20 = true;
        self.pics = Pics::RESET;
        self.local_apic = LocalApic::BOOTED;
        self.io_apic = IoApic::RESET;
        self.set_line(IRQ_TIMER, true);
        self.keyboard.reset();
        self.serial.reset();
        self.vga = Vga::RESET;
        self.ata = Ata::RESET;
        self.pit = Pit::RESET;
        self.system_port = SystemPort::RESET;
        self.chipset_port = ChipsetPort::RESET;
        self.refresh();
    }

    /// Memory sizes in CMOS: up to 640 KiB, above 1 MiB in KiB, above 16 MiB in units of 64 KiB.
    fn set_memory_size(&mut self, ram: u64) {
        let low = (ram >> 10).min(640);
        let extended = (ram.saturating_sub(0x10_0000) >> 10).min(0xFC00);
        let above_16_mib = (ram.saturating_sub(0x100_0000) >> 16).min(0xFFFF);
        for (index, value) in
            [(0x15, low), (0x17, extended), (0x30, extended), (0x34, above_16_mib)]
        {
            self.rtc.set_byte(index, value as u8);
            self.rtc.set_byte(index + 1, (value >> 8) as u8);
        }
        // Equipment: a colour screen of 80 columns, a keyboard. No floppy, one processor.
        self.rtc.set_byte(0x14, 0x06);
    }

    /// When a device next does something by itself.
    pub(crate) fn next_event(&self) -> Option<u64> {
        (self.due != u64::MAX).then_some(self.due)
    }

    /// Lets devices do what is due by now.
    pub(crate) fn settle(&mut self) {
        let now = self.time.now();
        if now < self.due {
            return;
        }
        self.rtc.settle(now);
        self.keyboard.settle(now);
        self.local_apic.settle(now);
        if self.pit.take_rise(now) {
            self.set_line(IRQ_TIMER, false);
            self.set_line(IRQ_TIMER, true);
        }
        self.refresh();
    }

    /// Sets the lines, and looks when the next event is, after a device has changed.
    pub(crate) fn refresh(&mut self) {
        self.set_lines();
        let events = [
            self.pit.next_event(),
            self.rtc.next_event(),
            self.keyboard.next_event(),
            self.local_apic.next_event(),
        ];
        self.due = events.into_iter().flatten().min().unwrap_or(u64::MAX);
    }

    fn set_lines(&mut self) {
        self.set_line(IRQ_KEYBOARD, self.keyboard.interrupts());
        self.set_line(IRQ_COM1, self.serial.interrupts());
        self.set_line(IRQ_CLOCK, self.rtc.interrupts());
        self.set_line(IRQ_DISK, self.ata.interrupts());
    }

    /// An interrupt line: it reaches the interrupt controllers and the I/O APIC.
    fn set_line(&mut self, line: u8, high: bool) {
        self.pics.set(line, high);
        self.io_apic.set(line, high, &mut self.local_apic);
    }

    /// The processor's INTR.
    pub(crate) fn is_interrupting(&self) -> bool {
        self.local_apic.is_requesting(self.pics.is_requesting())
    }

    /// The processor takes an interrupt: its vector.
    pub(crate) fn acknowledge(&mut self) -> u8 {
        self.local_apic.acknowledge().unwrap_or_else(|| self.pics.acknowledge())
    }

    /// Is a device at this physical address?
    pub(crate) fn has_registers(&self, address: u64) -> bool {
        self.local_apic.has(address) || IoApic::has(address)
    }

    /// Reads registers of at most 8 bytes.
    pub(crate) fn read_registers(&self, address: u64) -> u64 {
        if IoApic::has(address) {
            self.io_apic.read(address).into()
        } else {
            self.local_apic.read(address, self.time.now())
        }
    }

    /// Writes a register of 32 bits.
    pub(crate) fn write_registers(&mut self, address: u64, value: u32) -> Signal {
        if IoApic::has(address) {
            self.io_apic.write(address, value, &mut self.local_apic);
            return Signal::Nothing;
        }
        let signal = self.local_apic.write(address, value, self.time.now());
        if let Signal::End(vector) = signal {
            self.io_apic.end(vector, &mut self.local_apic);
        }
        signal
    }

    pub(crate) fn read(&mut self, port: u16) -> u8 {
        let now = self.time.now();
        match port {
            PIC_1 | 0x21 => self.pics.read(0, port - PIC_1),
            PIC_2 | 0xA1 => self.pics.read(1, port - PIC_2),
            ELCR | 0x4D1 => self.pics.read_elcr(usize::from(port - ELCR)),
            PIT..=0x43 => self.pit.read(port - PIT, now),
            CHIPSET_PORT => self.chipset_port.read(self.pit.output(2, now), now),
            KEYBOARD_DATA => self.keyboard.read_data(now),
            KEYBOARD_COMMAND => self.keyboard.read_status(now),
            CMOS | 0x71 => self.rtc.read(port - CMOS, now),
            POST => self.post,
            SYSTEM_PORT => self.system_port.read(self.a20),
            DEBUG_E9 | DEBUG_402 => DEBUG_PRESENT,
            VGA..=VGA_LAST => self.vga.read(port),
            COM1..=COM1_LAST => self.serial.read(port - COM1),
            0x511 => {
                let mut byte = [0];
                self.config.read(&mut byte);
                byte[0]
            }
            ATA..=ATA_LAST | ATA_CONTROL if self.disk.is_some() => self.read_ata(port),
            _ => 0xFF,
        }
    }

    fn read_ata(&mut self, port: u16) -> u8 {
        match port {
            ATA => {
                let mut byte = [0xFF];
                self.read_data(ATA, &mut byte);
                byte[0]
            }
            ATA_CONTROL => self.ata.alternate_status(),
            _ => self.ata.read(port - ATA),
        }
    }

    pub(crate) fn write(&mut self, port: u16, value: u8) -> Effect {
        let now = self.time.now();
        match port {
            PIC_1 | 0x21 => self.pics.write(0, port - PIC_1, value),
            PIC_2 | 0xA1 => self.pics.write(1, port - PIC_2, value),
            ELCR | 0x4D1 => self.pics.write_elcr(usize::from(port - ELCR), value),
            PIT..=0x43 => {
                self.pit.write(port - PIT, value, now);
                let output = self.pit.output(0, now);
                self.set_line(IRQ_TIMER, output);
            }
            CHIPSET_PORT => {
                let gate = self.chipset_port.write(value);
                self.pit.set_gate_2(gate, now);
            }
            KEYBOARD_DATA => {
                let ask = self.keyboard.write_data(value, now);
                return self.effect(ask);
            }
            KEYBOARD_COMMAND => {
                let ask = self.keyboard.write_command(value, self.a20);
                return self.effect(ask);
            }
            CMOS | 0x71 => self.rtc.write(port - CMOS, value, now),
            POST => self.post = value,
            SYSTEM_PORT => {
                let ask = self.system_port.write(value);
                return self.effect(Some(ask));
            }
            DEBUG_E9 | DEBUG_402 => return Effect::Print(Channel::Debug, value),
            port if port == self.exit_port => return Effect::Exit(value),
            VGA..=VGA_LAST => self.vga.write(port, value),
            COM1..=COM1_LAST => {
                if let Some(byte) = self.serial.write(port - COM1, value) {
                    return Effect::Print(Channel::Serial, byte);
                }
            }
            ATA..=ATA_LAST | ATA_CONTROL => self.write_ata(port, value),
            RESET_CONTROL if value & RESET_CONTROL_NOW != 0 => return Effect::HardReset,
            _ => {}
        }
        Effect::Nothing
    }

    fn write_ata(&mut self, port: u16, value: u8) {
        let Some(disk) = self.disk.as_deref_mut() else { return };
        match port {
            ATA => {
                self.ata.write_data(&[value], disk);
            }
            ATA_CONTROL => self.ata.write_control(value),
            _ => self.ata.write(port - ATA, value, disk),
        }
    }

    fn effect(&mut self, ask: Option<SystemWrite>) -> Effect {
        match ask {
            Some(SystemWrite::A20(open)) => {
                self.a20 = open;
                Effect::A20
            }
            Some(SystemWrite::Reset) => Effect::Reset,
            None => Effect::Nothing,
        }
    }

    /// How many of `len` bytes pass in whole elements of `size` bytes: one that a sector ends
    /// within goes alone, as its bytes reach more ports than one.
    pub(crate) fn whole_elements(&self, port: u16, size: u8, len: usize) -> usize {
        let most = if port == ATA { len.min(self.ata.left()) } else { len };
        most - most % usize::from(size.max(1))
    }

    /// IN of more than a byte from a port that is wider, or that can fill a block: how many bytes.
    pub(crate) fn read_data(&mut self, port: u16, data: &mut [u8]) -> usize {
        match (port, self.disk.as_deref_mut()) {
            (ATA, Some(disk)) => self.ata.read_data(data, disk),
            (0x511, _) => {
                self.config.read(data);
                data.len()
            }
            _ => 0,
        }
    }

    /// OUT of more than a byte, likewise.
    pub(crate) fn write_data(&mut self, port: u16, data: &[u8]) -> usize {
        match (port, self.disk.as_deref_mut()) {
            (ATA, Some(disk)) => self.ata.write_data(data, disk),
            (FIRMWARE_CONFIG, _) => {
                if let [low, high] = *data {
                    self.config.select(u16::from_le_bytes([low, high]));
                }
                data.len()
            }
            _ => 0,
        }
    }
}
