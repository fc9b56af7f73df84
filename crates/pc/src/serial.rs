//! COM1: a 16550A.
//!
//! Bytes leave at once, so the transmitter always reads empty. Bytes for the guest wait in a queue
//! before the port, and enter as fast as it takes them: there is no overrun, and a byte below the
//! FIFO's trigger level has timed out at once.

use crate::queue::Queue;

/// The first of its eight ports.
pub(crate) const COM1: u16 = 0x3F8;
/// The last of its eight ports.
pub(crate) const COM1_LAST: u16 = COM1 + 7;

/// LCR: the first two registers are the divisor latch.
const LCR_DLAB: u8 = 1 << 7;
/// FCR: FIFOs on; clear the receiver; how many bytes interrupt.
const FCR_ENABLE: u8 = 1 << 0;
const FCR_CLEAR_RECEIVER: u8 = 1 << 1;
const TRIGGERS: [usize; 4] = [1, 4, 8, 14];
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
const IER_MODEM: u8 = 1 << 3;
/// IIR: what interrupts, most urgent first.
const IIR_DATA: u8 = 0x04;
const IIR_TIMEOUT: u8 = 0x0C;
const IIR_EMPTY: u8 = 0x02;
const IIR_MODEM: u8 = 0x00;
const IIR_NONE: u8 = 0x01;
const IIR_FIFOS: u8 = 0xC0;

/// How much input waits at most before the port.
pub(crate) const MOST_INPUT: usize = 256;

/// The registers of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Serial {
    divisor: u16,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    received: Queue<16>,
    /// What is to be received.
    input: Queue<MOST_INPUT>,
    /// "Transmitter empty" has not been acknowledged by reading IIR or by sending.
    empty_event: bool,
    /// Which modem inputs have changed since MSR was read, as its bits 0 to 3.
    changes: u8,
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
        received: Queue::EMPTY,
        input: Queue::EMPTY,
        empty_event: false,
        changes: 0,
    };

    /// As at power-on. What is to be received still is.
    pub(crate) fn reset(&mut self) {
        *self = Serial { input: self.input, ..Serial::BOOTED };
    }

    /// IN of register 0 to 7.
    pub(crate) fn read(&mut self, register: u16) -> u8 {
        let [divisor_low, divisor_high] = self.divisor.to_le_bytes();
        let value = match register {
            0 if self.has_divisor_access() => divisor_low,
            1 if self.has_divisor_access() => divisor_high,
            0 => self.received.pop().unwrap_or(0),
            1 => self.interrupt_enable,
            2 => self.identify_and_acknowledge(),
            3 => self.line_control,
            4 => self.modem_control,
            5 => LSR_EMPTY | if self.received.is_empty() { 0 } else { LSR_DATA },
            6 => self.modem_status() | core::mem::take(&mut self.changes),
            _ => self.scratch,
        };
        self.fill();
        value
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
            2 => self.write_fifo_control(value),
            3 => self.line_control = value,
            4 => self.write_modem_control(value),
            5 | 6 => {}
            _ => self.scratch = value,
        }
        self.fill();
        None
    }

    /// Adds bytes to what the guest will receive. Returns how many there was room for.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.iter().take_while(|byte| self.input.push(**byte)).count();
        self.fill();
        taken
    }

    /// The level of IRQ 4. OUT2 connects it on a PC.
    pub(crate) fn interrupts(&self) -> bool {
        let is_connected = self.modem_control & (MCR_OUT2 | MCR_LOOP) == MCR_OUT2;
        is_connected && self.identify() != IIR_NONE
    }

    /// Can it have come to this?
    pub(crate) fn is_sound(&self) -> bool {
        self.received.is_sound() && self.input.is_sound()
    }

    fn transmit(&mut self, value: u8) -> Option<u8> {
        self.empty_event = true;
        if self.modem_control & MCR_LOOP == 0 {
            return Some(value);
        }
        if self.received.len() < self.depth() {
            self.received.push(value);
        }
        None
    }

    /// Lets waiting input in, as far as there is room. In loopback the line is cut off.
    fn fill(&mut self) {
        while self.modem_control & MCR_LOOP == 0 && self.received.len() < self.depth() {
            match self.input.pop() {
                Some(byte) => self.received.push(byte),
                None => return,
            };
        }
    }

    fn has_fifos(&self) -> bool {
        self.fifo_control & FCR_ENABLE != 0
    }

    fn depth(&self) -> usize {
        if self.has_fifos() { 16 } else { 1 }
    }

    fn has_divisor_access(&self) -> bool {
        self.line_control & LCR_DLAB != 0
    }

    fn write_fifo_control(&mut self, value: u8) {
        // The receiver is emptied also when the FIFOs are switched on or off.
        if value & FCR_CLEAR_RECEIVER != 0 || (value ^ self.fifo_control) & FCR_ENABLE != 0 {
            self.received.clear();
        }
        self.fifo_control = value;
    }

    fn write_modem_control(&mut self, value: u8) {
        let before = self.modem_status();
        self.modem_control = value & 0x1F;
        let now = self.modem_status();
        // The ring indicator tells only its trailing edge.
        let changed = (before ^ now) & !MSR_RI | before & !now & MSR_RI;
        self.changes |= changed >> 4;
    }

    /// IIR without the bits of the FIFOs.
    fn identify(&self) -> u8 {
        let trigger = match self.has_fifos() {
            true => TRIGGERS[usize::from(self.fifo_control >> 6)],
            false => 1,
        };
        let enabled = |event| self.interrupt_enable & event != 0;
        match self.received.len() {
            len if enabled(IER_DATA) && len >= trigger => IIR_DATA,
            len if enabled(IER_DATA) && len > 0 => IIR_TIMEOUT,
            _ if enabled(IER_EMPTY) && self.empty_event => IIR_EMPTY,
            _ if enabled(IER_MODEM) && self.changes != 0 => IIR_MODEM,
            _ => IIR_NONE,
        }
    }

    /// IIR. Reading it acknowledges the "transmitter empty" event if it is the one reported.
    fn identify_and_acknowledge(&mut self) -> u8 {
        let event = self.identify();
        if event == IIR_EMPTY {
            self.empty_event = false;
        }
        event | if self.has_fifos() { IIR_FIFOS } else { 0 }
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
#[path = "serial_tests.rs"]
mod tests;
