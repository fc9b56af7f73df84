//! COM1: as much of a 16550A as polled output and its usual probes need.
//!
//! Bytes leave at once, so the transmitter always reads empty. Nothing is connected to the
//! receiver except the transmitter itself in loopback mode, which drivers use to find the port.

/// The first of its eight ports.
pub(crate) const COM1: u16 = 0x3F8;
/// The last of its eight ports.
pub(crate) const COM1_LAST: u16 = COM1 + 7;

/// LCR: the first two registers are the divisor latch.
const LCR_DLAB: u8 = 1 << 7;
/// FCR: FIFOs on; clear the receiver.
const FCR_ENABLE: u8 = 1 << 0;
const FCR_CLEAR_RECEIVER: u8 = 1 << 1;
/// MCR: outputs, and loopback.
const MCR_DTR: u8 = 1 << 0;
const MCR_RTS: u8 = 1 << 1;
const MCR_OUT1: u8 = 1 << 2;
const MCR_OUT2: u8 = 1 << 3;
const MCR_LOOP: u8 = 1 << 4;
/// MSR: inputs.
const MSR_CTS: u8 = 1 << 4;
const MSR_DSR: u8 = 1 << 5;
const MSR_RI: u8 = 1 << 6;
const MSR_DCD: u8 = 1 << 7;
/// LSR: a byte waits; the transmitter is empty, its holding register too.
const LSR_DATA: u8 = 1 << 0;
const LSR_EMPTY: u8 = 0x60;
/// IER: which events interrupt.
const IER_DATA: u8 = 1 << 0;
const IER_EMPTY: u8 = 1 << 1;
/// IIR: what interrupts, most urgent first.
const IIR_DATA: u8 = 0x04;
const IIR_EMPTY: u8 = 0x02;
const IIR_NONE: u8 = 0x01;
const IIR_FIFOS: u8 = 0xC0;

/// The registers of one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serial {
    divisor: u16,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    /// A byte sent to itself.
    received: Option<u8>,
    /// "Transmitter empty" has not been acknowledged by reading IIR or by sending.
    empty_event: bool,
}

impl Serial {
    /// As a BIOS leaves it: 9600 baud, 8 bits, no parity, one stop bit.
    pub(crate) const BOOTED: Serial = Serial {
        divisor: 12,
        interrupt_enable: 0,
        fifo_control: 0,
        line_control: 0x03,
        modem_control: 0,
        scratch: 0,
        received: None,
        empty_event: false,
    };

    /// IN of register 0 to 7.
    pub(crate) fn read(&mut self, register: u16) -> u8 {
        let [divisor_low, divisor_high] = self.divisor.to_le_bytes();
        match register {
            0 if self.has_divisor_access() => divisor_low,
            1 if self.has_divisor_access() => divisor_high,
            0 => self.received.take().unwrap_or(0),
            1 => self.interrupt_enable,
            2 => self.identify_interrupt(),
            3 => self.line_control,
            4 => self.modem_control,
            5 => LSR_EMPTY | if self.received.is_some() { LSR_DATA } else { 0 },
            6 => self.modem_status(),
            _ => self.scratch,
        }
    }

    /// OUT to register 0 to 7. Returns the byte that leaves the machine, if one does.
    pub(crate) fn write(&mut self, register: u16, value: u8) -> Option<u8> {
        match register {
            0 if self.has_divisor_access() => {
                self.divisor = self.divisor & 0xFF00 | u16::from(value);
            }
            1 if self.has_divisor_access() => {
                self.divisor = self.divisor & 0x00FF | u16::from(value) << 8;
            }
            0 => return self.transmit(value),
            1 => {
                // An enabled "transmitter empty" event is raised at once: it is empty.
                self.empty_event |= value & !self.interrupt_enable & IER_EMPTY != 0;
                self.interrupt_enable = value & 0x0F;
            }
            2 => {
                self.fifo_control = value;
                if value & FCR_CLEAR_RECEIVER != 0 {
                    self.received = None;
                }
            }
            3 => self.line_control = value,
            4 => self.modem_control = value & 0x1F,
            5 | 6 => {}
            _ => self.scratch = value,
        }
        None
    }

    fn transmit(&mut self, value: u8) -> Option<u8> {
        self.empty_event = true;
        if self.modem_control & MCR_LOOP != 0 {
            self.received = Some(value);
            return None;
        }
        Some(value)
    }

    fn has_divisor_access(&self) -> bool {
        self.line_control & LCR_DLAB != 0
    }

    /// IIR. Reading it acknowledges the "transmitter empty" event if it is the one reported.
    fn identify_interrupt(&mut self) -> u8 {
        let fifos = if self.fifo_control & FCR_ENABLE != 0 { IIR_FIFOS } else { 0 };
        if self.interrupt_enable & IER_DATA != 0 && self.received.is_some() {
            return fifos | IIR_DATA;
        }
        if self.interrupt_enable & IER_EMPTY != 0 && self.empty_event {
            self.empty_event = false;
            return fifos | IIR_EMPTY;
        }
        fifos | IIR_NONE
    }

    /// MSR: a terminal that is always ready, or in loopback this port's own outputs.
    fn modem_status(&self) -> u8 {
        if self.modem_control & MCR_LOOP == 0 {
            return MSR_CTS | MSR_DSR | MSR_DCD;
        }
        [(MCR_RTS, MSR_CTS), (MCR_DTR, MSR_DSR), (MCR_OUT1, MSR_RI), (MCR_OUT2, MSR_DCD)]
            .into_iter()
            .filter(|(output, _)| self.modem_control & output != 0)
            .fold(0, |status, (_, input)| status | input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_written_to_the_data_register_leaves_and_the_line_stays_ready() {
        let mut serial = Serial::BOOTED;
        assert_eq!(serial.read(5), 0x60);
        assert_eq!(serial.write(0, b'A'), Some(b'A'));
        assert_eq!(serial.read(5), 0x60);
        assert_eq!(serial.read(0), 0);
    }

    #[test]
    fn with_dlab_set_the_divisor_is_written_and_nothing_is_sent() {
        let mut serial = Serial::BOOTED;
        serial.write(3, 0x83);
        assert_eq!(serial.write(0, 0x01), None);
        assert_eq!(serial.write(1, 0x02), None);
        assert_eq!((serial.read(0), serial.read(1)), (0x01, 0x02));
        serial.write(3, 0x03);
        assert_eq!(serial.read(1), 0, "the divisor's high byte is not IER");
        assert_eq!(serial.write(0, b'B'), Some(b'B'));
    }

    #[test]
    fn the_scratch_register_keeps_its_value_and_status_registers_ignore_writes() {
        let mut serial = Serial::BOOTED;
        serial.write(7, 0xA5);
        serial.write(5, 0x00);
        serial.write(6, 0x00);
        assert_eq!((serial.read(7), serial.read(5), serial.read(6)), (0xA5, 0x60, 0xB0));
    }

    #[test]
    fn fifos_are_reported_once_enabled() {
        let mut serial = Serial::BOOTED;
        assert_eq!(serial.read(2), 0x01);
        serial.write(2, 0xC7);
        assert_eq!(serial.read(2), 0xC1);
    }

    #[test]
    fn loopback_returns_bytes_and_modem_lines_to_the_guest_alone() {
        let mut serial = Serial::BOOTED;
        serial.write(4, 0x1E);
        assert_eq!(serial.read(6), 0xD0);
        assert_eq!(serial.write(0, 0xAE), None);
        assert_eq!(serial.read(5), 0x61);
        assert_eq!(serial.read(0), 0xAE);
        assert_eq!(serial.read(5), 0x60);
    }

    #[test]
    fn the_empty_event_is_identified_until_it_is_read() {
        let mut serial = Serial::BOOTED;
        serial.write(1, 0x02);
        assert_eq!((serial.read(2), serial.read(2)), (0x02, 0x01));
        serial.write(0, b'x');
        assert_eq!((serial.read(2), serial.read(2)), (0x02, 0x01));
    }
}
