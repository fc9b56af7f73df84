//! System control port A (92h): the fast A20 gate and the fast reset.

/// Where it is.
pub(crate) const SYSTEM_PORT: u16 = 0x92;

const RESET: u8 = 1 << 0;
const A20: u8 = 1 << 1;

/// The latch behind port 92h.
#[derive(Clone, Copy, Debug)]
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
    /// The gate is open, as firmware leaves it for what it boots.
    pub(crate) const BOOTED: SystemPort = SystemPort { latch: A20 };

    pub(crate) fn read(self) -> u8 {
        self.latch
    }

    pub(crate) fn write(&mut self, value: u8) -> SystemWrite {
        // Only the change from 0 to 1 resets, so that the bit may be written back as it was read.
        let rises = value & RESET != 0 && self.latch & RESET == 0;
        self.latch = value;
        if rises { SystemWrite::Reset } else { SystemWrite::A20(value & A20 != 0) }
    }

    pub(crate) fn is_a20_open(self) -> bool {
        self.latch & A20 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_1_is_the_a20_gate_and_reads_back() {
        let mut port = SystemPort::BOOTED;
        assert_eq!(port.write(0x00), SystemWrite::A20(false));
        assert_eq!(port.read(), 0x00);
        assert_eq!(port.write(0x02), SystemWrite::A20(true));
        assert_eq!(port.read(), 0x02);
        assert!(port.is_a20_open());
    }

    #[test]
    fn bit_0_resets_only_when_it_rises() {
        let mut port = SystemPort::BOOTED;
        assert_eq!(port.write(0x03), SystemWrite::Reset);
        assert_eq!(port.write(0x03), SystemWrite::A20(true));
    }
}
