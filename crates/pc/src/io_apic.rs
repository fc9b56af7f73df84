//! The I/O APIC: 24 pins, of which the first 16 are the interrupt lines of the board, with the
//! timer on pin 2 as on every PC (Intel 82093AA data sheet).

use crate::local_apic::LocalApic;

/// Where it is.
pub(crate) const IO_APIC: u64 = 0xFEC0_0000;

const SELECT: u64 = 0x00;
const WINDOW: u64 = 0x10;
const PINS: usize = 24;
/// 24 pins, version 11h.
const VERSION: u32 = (PINS as u32 - 1) << 16 | 0x11;

/// Bits of a redirection entry.
const LOGICAL: u64 = 1 << 11;
const PENDING: u64 = 1 << 12;
const ACTIVE_LOW: u64 = 1 << 13;
const REMOTE_REQUEST: u64 = 1 << 14;
const LEVEL: u64 = 1 << 15;
const MASKED: u64 = 1 << 16;
/// What software may write.
const WRITABLE: u64 = 0xFF00_0000_0001_AFFF;

const IRQ_TIMER: u8 = 0;
const PIN_TIMER: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct IoApic {
    id: u32,
    selected: u8,
    /// The levels of the pins.
    lines: u32,
    entries: [u64; PINS],
}

impl IoApic {
    pub(crate) const RESET: IoApic =
        IoApic { id: 0, selected: 0, lines: 0, entries: [MASKED; PINS] };

    /// Is it at this address?
    pub(crate) fn has(address: u64) -> bool {
        address & !0xFFF == IO_APIC
    }

    /// The level of an interrupt line of the board.
    pub(crate) fn set(&mut self, line: u8, high: bool, local: &mut LocalApic) {
        let pin = match line {
            IRQ_TIMER => PIN_TIMER,
            // The cascade of the interrupt controllers is no line.
            2 => return,
            _ => usize::from(line & 15),
        };
        let was_high = self.lines >> pin & 1 != 0;
        self.lines = self.lines & !(1 << pin) | u32::from(high) << pin;
        let rises = self.is_active(pin) && was_high != high;
        if rises || self.entries[pin] & LEVEL != 0 {
            self.deliver(pin, local);
        }
    }

    fn is_active(&self, pin: usize) -> bool {
        (self.lines >> pin & 1 != 0) != (self.entries[pin] & ACTIVE_LOW != 0)
    }

    /// Sends what a pin requests, unless it is masked or waits for the end of the last one.
    fn deliver(&mut self, pin: usize, local: &mut LocalApic) {
        let entry = self.entries[pin];
        let is_level = entry & LEVEL != 0;
        let is_waiting = is_level && (entry & REMOTE_REQUEST != 0 || !self.is_active(pin));
        let is_plain = entry >> 8 & 6 == 0;
        if entry & MASKED != 0 || is_waiting || !is_plain {
            return;
        }
        if local.is_addressed((entry >> 56) as u8, entry & LOGICAL != 0) {
            local.request(entry as u8, is_level);
            if is_level {
                self.entries[pin] |= REMOTE_REQUEST;
            }
        }
    }

    /// The processor has ended an interrupt that a level requested.
    pub(crate) fn end(&mut self, vector: u8, local: &mut LocalApic) {
        for pin in 0..PINS {
            if self.entries[pin] & REMOTE_REQUEST != 0 && self.entries[pin] as u8 == vector {
                self.entries[pin] &= !REMOTE_REQUEST;
                self.deliver(pin, local);
            }
        }
    }

    /// Reads 32 bits.
    pub(crate) fn read(&self, address: u64) -> u32 {
        match address & 0xFF {
            SELECT => self.selected.into(),
            WINDOW => self.register(),
            _ => 0,
        }
    }

    fn register(&self) -> u32 {
        match self.selected {
            0 | 2 => self.id,
            1 => VERSION,
            number => {
                let (pin, shift) = place(number);
                self.entries.get(pin).map_or(0, |entry| (entry >> shift) as u32)
            }
        }
    }

    /// Writes 32 bits.
    pub(crate) fn write(&mut self, address: u64, value: u32, local: &mut LocalApic) {
        match (address & 0xFF, self.selected) {
            (SELECT, _) => self.selected = value as u8,
            (WINDOW, 0) => self.id = value & 0x0F00_0000,
            (WINDOW, number @ 0x10..) => {
                let (pin, shift) = place(number);
                let Some(entry) = self.entries.get_mut(pin) else { return };
                let writable = WRITABLE & 0xFFFF_FFFF << shift;
                *entry = *entry & !writable | u64::from(value) << shift & writable;
                if *entry & LEVEL == 0 {
                    *entry &= !REMOTE_REQUEST;
                } else {
                    self.deliver(pin, local);
                }
            }
            _ => {}
        }
    }

    /// Can it have come to this?
    pub(crate) fn is_sound(&self) -> bool {
        self.entries.iter().all(|entry| entry & !(WRITABLE | REMOTE_REQUEST) == 0)
            && self.entries.iter().all(|entry| entry & PENDING == 0)
    }
}

/// The pin of a register from 10h on, and where in its entry the register is.
fn place(number: u8) -> (usize, u32) {
    let index = usize::from(number.wrapping_sub(0x10));
    (index / 2, 32 * (index as u32 & 1))
}
