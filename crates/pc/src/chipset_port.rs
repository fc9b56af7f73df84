//! Port 61h: the gate and the output of timer 2, and the toggling refresh bit.

/// Where it is.
pub(crate) const CHIPSET_PORT: u16 = 0x61;

const GATE_2: u8 = 1 << 0;
const WRITABLE: u8 = 0x0F;
const REFRESH: u8 = 1 << 4;
const OUTPUT_2: u8 = 1 << 5;

/// Memory is refreshed every 15 microseconds, and each time the bit changes.
const REFRESH_PERIOD: u64 = 15_000;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ChipsetPort {
    latch: u8,
}

impl ChipsetPort {
    pub(crate) const RESET: ChipsetPort = ChipsetPort { latch: 0 };

    pub(crate) fn read(self, output_2: bool, now: u64) -> u8 {
        let refresh = if now / REFRESH_PERIOD % 2 == 1 { REFRESH } else { 0 };
        self.latch | refresh | if output_2 { OUTPUT_2 } else { 0 }
    }

    /// Returns the level of timer 2's gate.
    pub(crate) fn write(&mut self, value: u8) -> bool {
        self.latch = value & WRITABLE;
        value & GATE_2 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_are_kept_and_high_bits_are_inputs() {
        let mut port = ChipsetPort::RESET;
        assert!(port.write(0xFF) && !port.write(0xFE));
        assert_eq!(port.read(false, 0), 0x0E);
        assert_eq!(port.read(true, 0), 0x2E);
        assert_eq!(port.read(false, REFRESH_PERIOD), 0x1E);
    }
}
