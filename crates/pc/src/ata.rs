//! One ATA disk, device 0 of the primary channel, by programmed I/O (ATA/ATAPI-6, "PIO data-in"
//! and "PIO data-out" protocols). Every command completes at once.

use crate::ata_address::{Address, Addressed};
use crate::ata_identify::identify;
use crate::disk::{Disk, SECTOR};

/// The command block's first port, and the device control port.
pub(crate) const ATA: u16 = 0x1F0;
pub(crate) const ATA_LAST: u16 = ATA + 7;
pub(crate) const ATA_CONTROL: u16 = 0x3F6;

const BUSY: u8 = 1 << 7;
const READY: u8 = 1 << 6 | 1 << 4;
const DATA: u8 = 1 << 3;
const ERROR: u8 = 1 << 0;

const ABORTED: u8 = 1 << 2;
const NOT_FOUND: u8 = 1 << 4;
const UNCORRECTABLE: u8 = 1 << 6;
const DIAGNOSTIC_PASSED: u8 = 0x01;

const DEVICE_1: u8 = 1 << 4;
const NO_INTERRUPT: u8 = 1 << 1;
const SOFT_RESET: u8 = 1 << 2;
const HIGH_ORDER: u8 = 1 << 7;

/// Most sectors in a block of READ and WRITE MULTIPLE.
pub(crate) const MOST_MULTIPLE: u8 = 16;

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Way {
    In,
    Out,
}

/// A command that moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Transfer {
    way: Way,
    /// The sector in the buffer; none for IDENTIFY DEVICE.
    lba: Option<u64>,
    /// Sectors that have not gone through the data port, this one included.
    left: u32,
    /// How many of them make one interrupt.
    block: u32,
    /// Sectors of this block that have gone through.
    done: u32,
}

/// Its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Ata {
    features: u8,
    addressed: Addressed,
    control: u8,
    status: u8,
    error: u8,
    transfer: Option<Transfer>,
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    buffer: [u8; SECTOR],
    at: usize,
    /// Sectors a block; 0 is none set.
    multiple: u8,
    interrupt: bool,
}

impl Ata {
    pub(crate) const RESET: Ata = Ata {
        features: 0,
        addressed: Addressed::RESET,
        control: 0,
        status: READY,
        error: DIAGNOSTIC_PASSED,
        transfer: None,
        buffer: [0; SECTOR],
        at: 0,
        multiple: 0,
        interrupt: false,
    };

    /// The level of IRQ 14.
    pub(crate) fn interrupts(&self) -> bool {
        self.interrupt && self.control & NO_INTERRUPT == 0 && self.is_selected()
    }

    fn is_selected(&self) -> bool {
        self.addressed.device & DEVICE_1 == 0
    }

    /// IN of register 1 to 7.
    pub(crate) fn read(&mut self, register: u16) -> u8 {
        let order = usize::from(self.control & HIGH_ORDER != 0);
        match register {
            1 => self.error,
            register @ 2..=6 => self.addressed.read(register, order),
            _ => {
                let status = self.alternate_status();
                self.interrupt &= !self.is_selected();
                status
            }
        }
    }

    /// IN of the control port: the status, and the interrupt stays. There is no device 1.
    pub(crate) fn alternate_status(&self) -> u8 {
        if self.is_selected() { self.status } else { 0 }
    }

    /// OUT to the control port.
    pub(crate) fn write_control(&mut self, value: u8) {
        let ends = self.control & !value & SOFT_RESET != 0;
        self.control = value;
        if value & SOFT_RESET != 0 {
            *self = Ata { control: value, status: BUSY, ..Ata::RESET };
        } else if ends {
            self.status = READY;
        }
    }

    /// OUT to register 1 to 7.
    pub(crate) fn write(&mut self, register: u16, value: u8, disk: &mut dyn Disk) {
        // Writing a register shows the low order again.
        self.control &= !HIGH_ORDER;
        match register {
            1 => self.features = value,
            register @ 2..=6 => self.addressed.write(register, value),
            _ if self.control & SOFT_RESET != 0 => {}
            // EXECUTE DEVICE DIAGNOSTIC is for both devices.
            _ if self.is_selected() || value == 0x90 => self.command(value, disk),
            _ => {}
        }
    }

    fn command(&mut self, command: u8, disk: &mut dyn Disk) {
        self.interrupt = false;
        self.transfer = None;
        self.error = 0;
        match command {
            0x20 | 0x21 => self.begin(Way::In, Address::Short, 1, disk),
            0x24 => self.begin(Way::In, Address::Long, 1, disk),
            0x30 | 0x31 => self.begin(Way::Out, Address::Short, 1, disk),
            0x34 => self.begin(Way::Out, Address::Long, 1, disk),
            0xC4 => self.begin_multiple(Way::In, Address::Short, disk),
            0x29 => self.begin_multiple(Way::In, Address::Long, disk),
            0xC5 => self.begin_multiple(Way::Out, Address::Short, disk),
            0x39 => self.begin_multiple(Way::Out, Address::Long, disk),
            0xEC => {
                self.buffer = identify(disk.sectors(), self.multiple);
                let block = Transfer { way: Way::In, lba: None, left: 1, block: 1, done: 0 };
                self.offer(block);
                self.interrupt = true;
            }
            0xC6 if matches!(self.addressed.count[0], 0 | 1 | 2 | 4 | 8 | MOST_MULTIPLE) => {
                self.multiple = self.addressed.count[0];
                self.complete();
            }
            // INITIALIZE DEVICE PARAMETERS.
            0x91 if self.addressed.set_geometry() => self.complete(),
            // SET FEATURES: the write cache, read-ahead, power-on defaults, PIO modes.
            0xEF => match (self.features, self.addressed.count[0] >> 3) {
                (0x02 | 0x82 | 0x55 | 0xAA | 0x66 | 0xCC, _) | (0x03, 0 | 1) => self.complete(),
                _ => self.fail(ABORTED),
            },
            0x08 | 0x90 => {
                let kept = Ata { control: self.control, multiple: self.multiple, ..Ata::RESET };
                *self = Ata { interrupt: command == 0x90, ..kept };
            }
            // VERIFY, SEEK, RECALIBRATE, FLUSH CACHE, power.
            0x40..=0x42 | 0x70 | 0x10..=0x1F | 0xE7 | 0xEA | 0xE0..=0xE3 => self.complete(),
            // CHECK POWER MODE: active.
            0xE5 => {
                self.addressed.count[0] = 0xFF;
                self.complete();
            }
            _ => self.fail(ABORTED),
        }
    }

    fn begin_multiple(&mut self, way: Way, address: Address, disk: &mut dyn Disk) {
        match self.multiple {
            0 => self.fail(ABORTED),
            block => self.begin(way, address, u32::from(block), disk),
        }
    }

    fn begin(&mut self, way: Way, address: Address, block: u32, disk: &mut dyn Disk) {
        let left = self.addressed.sectors(address);
        let lba = self.addressed.lba(address);
        let end = lba.map(|lba| lba + u64::from(left));
        if end.is_none_or(|end| end > disk.sectors()) {
            return self.fail(NOT_FOUND);
        }
        self.offer(Transfer { way, lba, left, block, done: 0 });
        if way == Way::In {
            self.fetch(disk);
            self.interrupt = true;
        }
    }

    fn offer(&mut self, transfer: Transfer) {
        self.transfer = Some(transfer);
        self.at = 0;
        self.status = READY | DATA;
    }

    fn fetch(&mut self, disk: &mut dyn Disk) {
        let Some(lba) = self.transfer.and_then(|transfer| transfer.lba) else { return };
        if disk.read(lba, &mut self.buffer).is_err() {
            self.fail_at(lba);
        }
    }

    fn complete(&mut self) {
        self.status = READY;
        self.transfer = None;
        self.interrupt = true;
    }

    fn fail(&mut self, error: u8) {
        self.complete();
        self.status |= ERROR;
        self.error = error;
    }

    fn fail_at(&mut self, lba: u64) {
        self.addressed.set_lba(lba);
        self.fail(UNCORRECTABLE);
    }

    /// How many bytes are left of the sector that goes through the data port.
    pub(crate) fn left(&self) -> usize {
        SECTOR.saturating_sub(self.at)
    }

    /// IN of the data port: as many bytes as there are, up to the end of the sector.
    pub(crate) fn read_data(&mut self, data: &mut [u8], disk: &mut dyn Disk) -> usize {
        let is_in =
            self.is_selected() && self.transfer.is_some_and(|transfer| transfer.way == Way::In);
        let rest = self.buffer.get(self.at..).filter(|_| is_in).unwrap_or(&[]);
        let len = rest.len().min(data.len());
        data[..len].copy_from_slice(&rest[..len]);
        self.moved(len, disk);
        len
    }

    /// OUT to the data port, likewise.
    pub(crate) fn write_data(&mut self, data: &[u8], disk: &mut dyn Disk) -> usize {
        let is_out =
            self.is_selected() && self.transfer.is_some_and(|transfer| transfer.way == Way::Out);
        let rest = self.buffer.get_mut(self.at..).filter(|_| is_out).unwrap_or(&mut []);
        let len = rest.len().min(data.len());
        rest[..len].copy_from_slice(&data[..len]);
        self.moved(len, disk);
        len
    }

    /// Goes on to the next sector when one is through.
    fn moved(&mut self, len: usize, disk: &mut dyn Disk) {
        self.at += len;
        let Some(mut transfer) = self.transfer.filter(|_| len > 0 && self.at >= SECTOR) else {
            return;
        };
        if let (Way::Out, Some(lba)) = (transfer.way, transfer.lba)
            && disk.write(lba, &self.buffer).is_err()
        {
            return self.fail_at(lba);
        }
        transfer.left -= 1;
        transfer.done += 1;
        if transfer.left == 0 {
            self.complete();
            // What was read needs no second interrupt.
            self.interrupt = transfer.way == Way::Out;
            return;
        }
        let ends_block = transfer.done == transfer.block;
        if ends_block {
            transfer.done = 0;
        }
        transfer.lba = transfer.lba.map(|lba| lba + 1);
        self.offer(transfer);
        if transfer.way == Way::In {
            self.fetch(disk);
        }
        self.interrupt |= ends_block;
    }

    /// Can it have come to this with a disk of so many sectors?
    pub(crate) fn is_sound(&self, sectors: u64) -> bool {
        let is_possible = |transfer: Transfer| {
            let Transfer { lba, left, block, done, .. } = transfer;
            let is_on_disk = match lba {
                Some(lba) => sectors.checked_sub(u64::from(left)).is_some_and(|last| lba <= last),
                None => left == 1,
            };
            let is_block = done < block && block <= u32::from(MOST_MULTIPLE);
            self.at < SECTOR && left > 0 && is_block && is_on_disk
        };
        self.at <= SECTOR
            && matches!(self.multiple, 0 | 1 | 2 | 4 | 8 | MOST_MULTIPLE)
            && self.transfer.is_none_or(is_possible)
    }
}

#[cfg(test)]
#[path = "ata_tests.rs"]
mod tests;
