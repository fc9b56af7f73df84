//! System control port A (92h): the fast A20 gate and the fast reset.

/// Where it is.
pub(crate) const SYSTEM_PORT: u16 = 0x92;

const RESET: u8 = 1 << 0;
const A20: u8 = 1 << 1;

/// The latch behind port 92h. The A20 gate is the machine's, since the keyboard controller has it
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SystemPort {
    latch: u8,
}

/// What a write asks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemWrite {
    /// Open or close the A20 gate.
    A20(bool),
    /// Reset the processor.
    Reset,
}

impl SystemPort {
    pub(crate) const RESET: SystemPort = SystemPort { latch: 0 };

    pub(crate) fn read(self, a20: bool) -> u8 {
        self.latch & !A20 | if a20 { A20 } else { 0 }
    }

    pub(crate) fn write(&mut self, value: u8) -> SystemWrite {
        // Only the change from 0 to 1 resets, so that the bit may be written back as it was read.
        let rises = value & RESET != 0 && self.latch & RESET == 0;
        self.latch = value;
        if rises { SystemWrite::Reset } else { SystemWrite::A20(value & A20 != 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_1_is_the_a20_gate() {
        let mut port = SystemPort::RESET;
        assert_eq!(port.write(0x00), SystemWrite::A20(false));
        assert_eq!(port.write(0x02), SystemWrite::A20(true));
        assert_eq!((port.read(true), port.read(false)), (0x02, 0x00));
    }

    #[test]
    fn bit_0_resets_only_when_it_rises() {
        let mut port = SystemPort::RESET;
        assert_eq!(port.write(0x03), SystemWrite::Reset);
        assert_eq!(port.write(0x03), SystemWrite::A20(true));
    }
}
