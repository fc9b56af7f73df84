//! The two 8259A interrupt controllers, the second on line 2 of the first.
//!
//! After Intel's data sheet, in the 8086 mode of a PC. Not modelled: buffered mode, the special
//! fully nested mode, and the CALL vectors of an 8080.

/// Command and data port of the first and of the second.
pub(crate) const PIC_1: u16 = 0x20;
pub(crate) const PIC_2: u16 = 0xA0;
/// The edge/level control registers of EISA, which firmware writes.
pub(crate) const ELCR: u16 = 0x4D0;

const CASCADE: u8 = 2;
/// The vector of an interrupt that went away before it was acknowledged.
const SPURIOUS: u8 = 7;

const ICW1: u8 = 1 << 4;
const ICW1_ICW4: u8 = 1 << 0;
const ICW1_SINGLE: u8 = 1 << 1;
const ICW1_LEVEL: u8 = 1 << 3;
const ICW4_AUTO_EOI: u8 = 1 << 1;
const OCW3: u8 = 1 << 3;
const OCW3_POLL: u8 = 1 << 2;

/// Both of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pics {
    pics: [Pic; 2],
}

/// What a write to the data port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Expects {
    Icw2,
    Icw3,
    Icw4,
    Mask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Pic {
    /// The levels of the input lines.
    lines: u8,
    requests: u8,
    in_service: u8,
    mask: u8,
    /// Lines that request as long as they are high, by ELCR or ICW1.
    level: u8,
    all_level: bool,
    vector: u8,
    /// The line of lowest priority; the next one has the highest.
    lowest: u8,
    expects: Expects,
    /// ICW1, for the words that follow it; none yet after power-on.
    icw1: Option<u8>,
    auto_eoi: bool,
    rotates: bool,
    special_mask: bool,
    reads_in_service: bool,
    polled: bool,
}

impl Pics {
    /// After power-on: no interrupt passes before ICW1 to ICW4 have been written.
    pub(crate) const RESET: Pics = Pics { pics: [Pic::RESET; 2] };

    /// Sets the level of line 0 to 15.
    pub(crate) fn set(&mut self, line: u8, high: bool) {
        self.pics[usize::from(line >> 3 & 1)].set(line & 7, high);
        self.cascade();
    }

    /// The INTR pin.
    pub(crate) fn is_requesting(&self) -> bool {
        self.pics[0].request().is_some()
    }

    /// Both INTA cycles: the vector.
    pub(crate) fn acknowledge(&mut self) -> u8 {
        let [first, second] = &mut self.pics;
        let vector = match first.acknowledge() {
            Some(CASCADE) => {
                let line = second.acknowledge().unwrap_or(SPURIOUS);
                // INTA drops the second's INT, so that what still waits there is an edge again.
                first.set(CASCADE, false);
                second.vector | line
            }
            line => first.vector | line.unwrap_or(SPURIOUS),
        };
        self.cascade();
        vector
    }

    /// IN of the command port (0) or data port (1) of the first or second.
    pub(crate) fn read(&mut self, which: usize, register: u16) -> u8 {
        let value = self.pics[which & 1].read(register);
        self.cascade();
        value
    }

    /// OUT to them.
    pub(crate) fn write(&mut self, which: usize, register: u16, value: u8) {
        let pic = &mut self.pics[which & 1];
        match register {
            0 if value & ICW1 != 0 => pic.initialise(value),
            0 if value & OCW3 != 0 => pic.write_ocw3(value),
            0 => pic.write_ocw2(value),
            _ => pic.write_data(value),
        }
        self.cascade();
    }

    pub(crate) fn read_elcr(&self, which: usize) -> u8 {
        self.pics[which & 1].level
    }

    pub(crate) fn write_elcr(&mut self, which: usize, value: u8) {
        // The timer, the keyboard, the cascade, the clock and the coprocessor are edges.
        self.pics[which & 1].level = value & if which == 0 { 0xF8 } else { 0xDE };
    }

    /// Can the registers have come to hold this?
    pub(crate) fn is_sound(&self) -> bool {
        self.pics.iter().all(|pic| pic.lowest < 8 && pic.vector & 7 == 0)
    }

    fn cascade(&mut self) {
        let [first, second] = &mut self.pics;
        first.set(CASCADE, second.request().is_some());
    }
}

impl Pic {
    const RESET: Pic = Pic {
        lines: 0,
        requests: 0,
        in_service: 0,
        mask: 0,
        level: 0,
        all_level: false,
        vector: 0,
        lowest: 7,
        expects: Expects::Mask,
        icw1: None,
        auto_eoi: false,
        rotates: false,
        special_mask: false,
        reads_in_service: false,
        polled: false,
    };

    fn set(&mut self, line: u8, high: bool) {
        let bit = 1 << line;
        let rises = high && self.lines & bit == 0;
        if !high {
            // A request is held by its line until it is acknowledged, also one by edge.
            self.lines &= !bit;
            self.requests &= !bit;
            return;
        }
        self.lines |= bit;
        if rises || self.is_level(bit) {
            self.requests |= bit;
        }
    }

    fn is_level(&self, bit: u8) -> bool {
        self.all_level || self.level & bit != 0
    }

    /// Lines from the highest priority to the lowest.
    fn order(&self) -> impl Iterator<Item = u8> + use<> {
        let lowest = self.lowest;
        (1..=8).map(move |i| (lowest + i) & 7)
    }

    /// The line that interrupts, if one outranks what is in service.
    fn request(&self) -> Option<u8> {
        if self.icw1.is_none() || self.expects != Expects::Mask {
            return None;
        }
        for line in self.order() {
            let bit = 1 << line;
            if self.requests & !self.mask & bit != 0 && self.in_service & bit == 0 {
                return Some(line);
            }
            // In special mask mode a masked level does not hold lower ones off.
            let holds_off = !(self.special_mask && self.mask & bit != 0);
            if self.in_service & bit != 0 && holds_off {
                return None;
            }
        }
        None
    }

    fn acknowledge(&mut self) -> Option<u8> {
        let line = self.request()?;
        let bit = 1 << line;
        if !self.is_level(bit) {
            self.requests &= !bit;
        }
        if !self.auto_eoi {
            self.in_service |= bit;
        } else if self.rotates {
            self.lowest = line;
        }
        Some(line)
    }

    fn read(&mut self, register: u16) -> u8 {
        if core::mem::take(&mut self.polled) {
            return self.acknowledge().map_or(0, |line| 0x80 | line);
        }
        match register {
            0 if self.reads_in_service => self.in_service,
            0 => self.requests,
            _ => self.mask,
        }
    }

    fn initialise(&mut self, icw1: u8) {
        *self = Pic {
            lines: self.lines,
            level: self.level,
            all_level: icw1 & ICW1_LEVEL != 0,
            vector: self.vector,
            icw1: Some(icw1),
            expects: Expects::Icw2,
            ..Pic::RESET
        };
    }

    fn write_data(&mut self, value: u8) {
        let icw1 = self.icw1.unwrap_or(0);
        let after_icw3 = if icw1 & ICW1_ICW4 != 0 { Expects::Icw4 } else { Expects::Mask };
        self.expects = match self.expects {
            Expects::Icw2 => {
                self.vector = value & 0xF8;
                if icw1 & ICW1_SINGLE == 0 { Expects::Icw3 } else { after_icw3 }
            }
            Expects::Icw3 => after_icw3,
            Expects::Icw4 => {
                self.auto_eoi = value & ICW4_AUTO_EOI != 0;
                Expects::Mask
            }
            Expects::Mask => {
                self.mask = value;
                Expects::Mask
            }
        };
    }

    /// End of interrupt and rotation: R, SL, EOI in bits 7 to 5.
    fn write_ocw2(&mut self, value: u8) {
        let level = value & 7;
        match value >> 5 {
            0 => self.rotates = false,
            4 => self.rotates = true,
            6 => self.lowest = level,
            operation @ (1 | 5) => {
                let eligible = if self.special_mask { !self.mask } else { 0xFF };
                let served = self.in_service & eligible;
                if let Some(line) = self.order().find(|line| served >> line & 1 != 0) {
                    self.end(line, operation == 5);
                }
            }
            operation @ (3 | 7) => self.end(level, operation == 7),
            _ => {}
        }
    }

    fn end(&mut self, line: u8, rotate: bool) {
        self.in_service &= !(1 << line);
        if rotate {
            self.lowest = line;
        }
    }

    fn write_ocw3(&mut self, value: u8) {
        match value & 3 {
            2 => self.reads_in_service = false,
            3 => self.reads_in_service = true,
            _ => {}
        }
        match value >> 5 & 3 {
            2 => self.special_mask = false,
            3 => self.special_mask = true,
            _ => {}
        }
        self.polled = value & OCW3_POLL != 0;
    }
}

#[cfg(test)]
#[path = "pic_tests.rs"]
mod tests;
