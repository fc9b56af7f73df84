//! The registers that say which sectors a command is about, in three ways: 48 bits, 28 bits, and
//! cylinder, head and sector.

const DEVICE_LBA: u8 = 1 << 6;

/// How long a sector's address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Short,
    Long,
}

/// Sector count, address and device. All but the last hold the two bytes written last, the later
/// one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Addressed {
    pub(crate) count: [u8; 2],
    lba: [[u8; 2]; 3],
    pub(crate) device: u8,
    /// Heads and sectors a track of cylinder addresses.
    geometry: [u8; 2],
}

impl Addressed {
    /// The signature of a disk.
    pub(crate) const RESET: Addressed =
        Addressed { count: [1, 0], lba: [[1, 0], [0; 2], [0; 2]], device: 0, geometry: [16, 63] };

    /// IN of register 2 to 6; `order` is 1 for the byte written first.
    pub(crate) fn read(&self, register: u16, order: usize) -> u8 {
        match register {
            2 => self.count[order & 1],
            3..=5 => self.lba[usize::from(register) - 3][order & 1],
            _ => self.device | 0xA0,
        }
    }

    /// OUT to register 2 to 6.
    pub(crate) fn write(&mut self, register: u16, value: u8) {
        match register {
            2 => self.count = [value, self.count[0]],
            3..=5 => {
                let slot = &mut self.lba[usize::from(register) - 3];
                *slot = [value, slot[0]];
            }
            _ => self.device = value,
        }
    }

    /// INITIALIZE DEVICE PARAMETERS. False, and nothing set, if a track would have no sectors.
    pub(crate) fn set_geometry(&mut self) -> bool {
        let [sectors, _] = self.count;
        if sectors > 0 {
            self.geometry = [(self.device & 0xF) + 1, sectors];
        }
        sectors > 0
    }

    /// How many sectors; 0 stands for the most.
    pub(crate) fn sectors(&self, address: Address) -> u32 {
        match (address, self.count) {
            (Address::Long, [0, 0]) => 0x1_0000,
            (Address::Long, count) => u32::from(u16::from_le_bytes(count)),
            (Address::Short, [0, _]) => 0x100,
            (Address::Short, [count, _]) => u32::from(count),
        }
    }

    /// The first sector, at most 48 bits; `None` if there is no such sector.
    pub(crate) fn lba(&self, address: Address) -> Option<u64> {
        if address == Address::Long {
            let [low, mid, high] = self.lba;
            let bytes = [low[0], mid[0], high[0], low[1], mid[1], high[1], 0, 0];
            return Some(u64::from_le_bytes(bytes));
        }
        let [low, mid, high] = self.lba.map(|bytes| bytes[0]);
        let head = self.device & 0xF;
        if self.device & DEVICE_LBA != 0 {
            return Some(u64::from(u32::from_le_bytes([low, mid, high, head])));
        }
        let [heads, sectors] = self.geometry;
        let cylinder = u64::from(u16::from_le_bytes([mid, high]));
        let sector = low.checked_sub(1).filter(|sector| *sector < sectors && head < heads)?;
        let track = cylinder * u64::from(heads) + u64::from(head);
        Some(track * u64::from(sectors) + u64::from(sector))
    }

    /// Names a sector to the guest.
    pub(crate) fn set_lba(&mut self, lba: u64) {
        let bytes = lba.to_le_bytes();
        for (i, slot) in self.lba.iter_mut().enumerate() {
            *slot = [bytes[i], bytes[i + 3]];
        }
    }
}
