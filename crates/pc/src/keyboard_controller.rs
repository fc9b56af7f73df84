//! The 8042 between keyboard and processor, as of the AT: no mouse.

use crate::keyboard::Keyboard;
use crate::keymap::to_set_1;
use crate::system_port::SystemWrite;

/// Its ports.
pub(crate) const KEYBOARD_DATA: u16 = 0x60;
pub(crate) const KEYBOARD_COMMAND: u16 = 0x64;

/// What a byte takes from the keyboard.
const BYTE: u64 = 100_000;

const STATUS_OUTPUT: u8 = 1 << 0;
const STATUS_SYSTEM: u8 = 1 << 2;
const STATUS_COMMAND: u8 = 1 << 3;
const STATUS_UNLOCKED: u8 = 1 << 4;

/// The command byte, which is byte 0 of its memory.
const INTERRUPTS: u8 = 1 << 0;
const DISABLED: u8 = 1 << 4;
const TRANSLATES: u8 = 1 << 6;

/// The output port.
const NO_RESET: u8 = 1 << 0;
const A20: u8 = 1 << 1;
const OUTPUT_FULL: u8 = 1 << 4;

/// Controller and keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct KeyboardController {
    pub(crate) keyboard: Keyboard,
    memory: [u8; 32],
    output: Option<u8>,
    /// The last write was a command, not data.
    was_command: bool,
    /// The command whose argument comes next.
    command: Option<u8>,
    /// When the next byte of the keyboard has arrived.
    ready: u64,
    /// F0 has come: the next code is that of a release.
    is_release: bool,
}

impl KeyboardController {
    /// As a BIOS leaves it: translating, with interrupts.
    pub(crate) const BOOTED: KeyboardController = KeyboardController {
        keyboard: Keyboard::RESET,
        memory: {
            let mut memory = [0; 32];
            memory[0] = INTERRUPTS | STATUS_SYSTEM | TRANSLATES;
            memory
        },
        output: None,
        was_command: false,
        command: None,
        ready: 0,
        is_release: false,
    };

    /// As at power-on. What is to be typed still is.
    pub(crate) fn reset(&mut self) {
        *self = KeyboardController { keyboard: self.keyboard, ..KeyboardController::BOOTED };
        self.keyboard.restart(true);
    }

    /// IN of the data port.
    pub(crate) fn read_data(&mut self, now: u64) -> u8 {
        self.settle(now);
        let value = self.output.take();
        if value.is_some() {
            self.ready = now.saturating_add(BYTE);
        }
        value.unwrap_or(0)
    }

    /// IN of the status port.
    pub(crate) fn read_status(&mut self, now: u64) -> u8 {
        self.settle(now);
        STATUS_UNLOCKED
            | if self.output.is_some() { STATUS_OUTPUT } else { 0 }
            | self.memory[0] & STATUS_SYSTEM
            | if self.was_command { STATUS_COMMAND } else { 0 }
    }

    /// OUT to the data port: the argument of a command, or a byte for the keyboard.
    pub(crate) fn write_data(&mut self, value: u8, now: u64) -> Option<SystemWrite> {
        self.was_command = false;
        let ask = match self.command.take() {
            Some(command @ 0x60..=0x7F) => {
                self.memory[usize::from(command & 0x1F)] = value;
                None
            }
            Some(0xD1) if value & NO_RESET == 0 => Some(SystemWrite::Reset),
            Some(0xD1) => Some(SystemWrite::A20(value & A20 != 0)),
            Some(0xD2) => {
                self.output = Some(value);
                None
            }
            // There is no mouse to write to.
            Some(_) => None,
            None => {
                // A byte for the keyboard opens its line.
                self.memory[0] &= !DISABLED;
                self.keyboard.write(value);
                self.ready = now.saturating_add(BYTE);
                None
            }
        };
        self.settle(now);
        ask
    }

    /// OUT to the command port. `a20` is whether the gate is open.
    pub(crate) fn write_command(&mut self, value: u8, a20: bool) -> Option<SystemWrite> {
        self.was_command = true;
        self.command = None;
        match value {
            0x20..=0x3F => self.output = Some(self.memory[usize::from(value & 0x1F)]),
            0x60..=0x7F | 0xD1..=0xD4 => self.command = Some(value),
            0xAA => {
                self.memory[0] |= STATUS_SYSTEM | DISABLED;
                self.output = Some(0x55);
            }
            0xAB => self.output = Some(0),
            0xAD => self.memory[0] |= DISABLED,
            0xAE => self.memory[0] &= !DISABLED,
            // Not locked, and a colour screen.
            0xC0 => self.output = Some(0xA0),
            0xD0 => {
                let full = if self.output.is_some() { OUTPUT_FULL } else { 0 };
                self.output = Some(0xCC & !OUTPUT_FULL | NO_RESET | full | u8::from(a20) << 1);
            }
            0xF0..=0xFF if value & NO_RESET == 0 => return Some(SystemWrite::Reset),
            _ => {}
        }
        None
    }

    /// The level of IRQ 1.
    pub(crate) fn interrupts(&self) -> bool {
        self.output.is_some() && self.memory[0] & INTERRUPTS != 0
    }

    /// When the next byte comes from the keyboard.
    pub(crate) fn next_event(&self) -> Option<u64> {
        if self.output.is_some() || self.memory[0] & DISABLED != 0 {
            return None;
        }
        self.keyboard.next_event().map(|at| at.max(self.ready))
    }

    /// Takes the byte that has come from the keyboard by `now`.
    pub(crate) fn settle(&mut self, now: u64) {
        while self.next_event().is_some_and(|at| at <= now) {
            let Some(byte) = self.keyboard.take(now) else { return };
            self.output = self.receive(byte);
        }
    }

    /// Can it have come to this by `now`?
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        self.keyboard.is_sound(now) && self.ready <= now.saturating_add(BYTE)
    }

    /// A byte as it is shown to the processor. With translation, F0 becomes a bit of the next.
    fn receive(&mut self, byte: u8) -> Option<u8> {
        if self.memory[0] & TRANSLATES == 0 {
            return Some(byte);
        }
        if byte == 0xF0 {
            self.is_release = true;
            return None;
        }
        let released = core::mem::take(&mut self.is_release);
        Some(to_set_1(byte) | if released { 0x80 } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const LATER: u64 = 1_000_000;

    fn data(controller: &mut KeyboardController) -> Vec<u8> {
        let mut now = LATER;
        let mut bytes = Vec::new();
        while controller.read_status(now) & STATUS_OUTPUT != 0 {
            bytes.push(controller.read_data(now));
            now += LATER;
        }
        bytes
    }

    fn command(controller: &mut KeyboardController, value: u8) -> Vec<u8> {
        assert_eq!(controller.write_command(value, true), None);
        data(controller)
    }

    #[test]
    fn it_passes_its_tests() {
        let mut controller = KeyboardController::BOOTED;
        assert_eq!(command(&mut controller, 0xAA), [0x55]);
        assert_eq!(command(&mut controller, 0xAB), [0x00]);
        assert_eq!(controller.read_status(0), 0x1C);
    }

    #[test]
    fn the_command_byte_reads_back() {
        let mut controller = KeyboardController::BOOTED;
        assert_eq!(command(&mut controller, 0x20), [0x45]);
        assert_eq!(command(&mut controller, 0x60), []);
        controller.write_data(0x04, 0);
        assert_eq!(command(&mut controller, 0x20), [0x04]);
        assert_eq!(controller.read_status(0) & 0x04, 0x04);
    }

    #[test]
    fn the_output_port_has_the_a20_gate_and_the_reset_line() {
        let mut controller = KeyboardController::BOOTED;
        assert_eq!(command(&mut controller, 0xD0), [0xCF]);
        controller.write_command(0xD1, true);
        assert_eq!(controller.write_data(0xDD, 0), Some(SystemWrite::A20(false)));
        controller.write_command(0xD1, false);
        assert_eq!(controller.write_data(0xDF, 0), Some(SystemWrite::A20(true)));
        controller.write_command(0xD1, false);
        assert_eq!(controller.write_data(0xDE, 0), Some(SystemWrite::Reset));
        assert_eq!(controller.write_command(0xFE, true), Some(SystemWrite::Reset));
        assert_eq!(controller.write_command(0xFF, true), None);
    }

    #[test]
    fn keys_arrive_in_set_1_one_byte_and_one_interrupt_at_a_time() {
        let mut controller = KeyboardController::BOOTED;
        controller.keyboard.type_text("a");
        assert!(!controller.interrupts());
        controller.settle(0);
        assert!(controller.interrupts());
        assert_eq!(controller.read_data(0), 0x1E);
        assert!(!controller.interrupts());
        assert_eq!(controller.next_event(), Some(BYTE));
        controller.settle(BYTE);
        assert!(controller.interrupts());
        assert_eq!(controller.read_data(BYTE), 0x9E);
    }

    #[test]
    fn without_translation_keys_arrive_in_set_2() {
        let mut controller = KeyboardController::BOOTED;
        controller.write_command(0x60, true);
        controller.write_data(0x00, 0);
        controller.keyboard.type_text("a");
        controller.settle(LATER);
        assert!(!controller.interrupts());
        assert_eq!(data(&mut controller), [0x1C, 0xF0, 0x1C]);
    }

    #[test]
    fn a_disabled_keyboard_waits_and_a_byte_for_it_enables_it() {
        let mut controller = KeyboardController::BOOTED;
        controller.keyboard.type_text("a");
        assert_eq!(command(&mut controller, 0xAD), []);
        assert_eq!(controller.next_event(), None);
        controller.write_data(0xFF, 0);
        assert_eq!(data(&mut controller), [0xFA, 0xAA, 0x1E, 0x9E]);
    }
}
