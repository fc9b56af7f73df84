//! The registers of a VGA in text mode: kept and read back, nothing is drawn. Text memory is RAM.

/// Its ports.
pub(crate) const VGA: u16 = 0x3B0;
pub(crate) const VGA_LAST: u16 = 0x3DF;

/// Vertical retrace, and display disabled: the two bits of input status 1 that programs wait for.
const RETRACE: u8 = 0x09;
const MISC_COLOUR: u8 = 1 << 0;
/// The register of the attribute controller that says what bit 7 of an attribute means.
const ATTRIBUTE_MODE: usize = 0x10;
const BLINKS: u8 = 1 << 3;

/// An index and the registers it chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Indexed<const N: usize> {
    index: u8,
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    values: [u8; N],
}

impl<const N: usize> Indexed<N> {
    const RESET: Self = Indexed { index: 0, values: [0; N] };

    fn read(&self) -> u8 {
        self.values.get(usize::from(self.index)).copied().unwrap_or(0xFF)
    }

    fn write(&mut self, value: u8) {
        if let Some(slot) = self.values.get_mut(usize::from(self.index)) {
            *slot = value;
        }
    }
}

/// The colours. A colour is three writes or reads, then the index moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Palette {
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    colours: [[u8; 3]; 256],
    mask: u8,
    read_index: u8,
    write_index: u8,
    part: usize,
    /// What the state register tells: the last index written was the one for reading.
    is_reading: bool,
}

/// Its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Vga {
    misc: u8,
    feature: u8,
    sequencer: Indexed<8>,
    graphics: Indexed<16>,
    attribute: Indexed<32>,
    /// The next write to 3C0h is data, not an index.
    attribute_data: bool,
    crtc: Indexed<32>,
    palette: Palette,
    /// Input status 1 alternates.
    retrace: bool,
}

impl Vga {
    pub(crate) const RESET: Vga = Vga {
        misc: 0x67,
        feature: 0,
        sequencer: Indexed::RESET,
        graphics: Indexed::RESET,
        attribute: {
            let mut values = [0; 32];
            values[ATTRIBUTE_MODE] = BLINKS;
            Indexed { index: 0, values }
        },
        attribute_data: false,
        crtc: Indexed::RESET,
        palette: Palette {
            colours: [[0; 3]; 256],
            mask: 0xFF,
            read_index: 0,
            write_index: 0,
            part: 0,
            is_reading: false,
        },
        retrace: false,
    };

    /// The ports of the CRTC and of input status 1 move with the colour bit.
    fn is_moved(&self, port: u16) -> bool {
        let is_colour = self.misc & MISC_COLOUR != 0;
        match port {
            0x3B0..=0x3BF => is_colour,
            0x3D0..=0x3DF => !is_colour,
            _ => false,
        }
    }

    pub(crate) fn read(&mut self, port: u16) -> u8 {
        if self.is_moved(port) {
            return 0xFF;
        }
        match port {
            0x3C0 => self.attribute.index,
            0x3C1 => Indexed { index: self.attribute.index & 0x1F, ..self.attribute }.read(),
            // Input status 0: the monitor is in colour.
            0x3C2 => 0x10,
            0x3C4 => self.sequencer.index,
            0x3C5 => self.sequencer.read(),
            0x3C6 => self.palette.mask,
            0x3C7 => {
                if self.palette.is_reading {
                    3
                } else {
                    0
                }
            }
            0x3C8 => self.palette.write_index,
            0x3C9 => self.palette.read(),
            0x3CA => self.feature,
            0x3CC => self.misc,
            0x3CE => self.graphics.index,
            0x3CF => self.graphics.read(),
            0x3B4 | 0x3D4 => self.crtc.index,
            0x3B5 | 0x3D5 => self.crtc.read(),
            0x3BA | 0x3DA => {
                self.attribute_data = false;
                self.retrace = !self.retrace;
                if self.retrace { RETRACE } else { 0 }
            }
            _ => 0xFF,
        }
    }

    pub(crate) fn write(&mut self, port: u16, value: u8) {
        if self.is_moved(port) {
            return;
        }
        match port {
            0x3C0 if self.attribute_data => {
                let index = self.attribute.index;
                self.attribute.index &= 0x1F;
                self.attribute.write(value);
                self.attribute.index = index;
                self.attribute_data = false;
            }
            0x3C0 => {
                self.attribute.index = value & 0x3F;
                self.attribute_data = true;
            }
            0x3C2 => self.misc = value,
            0x3C4 => self.sequencer.index = value & 0x07,
            0x3C5 => self.sequencer.write(value),
            0x3C6 => self.palette.mask = value,
            0x3C7 => self.palette.select(value, true),
            0x3C8 => self.palette.select(value, false),
            0x3C9 => self.palette.write(value),
            0x3CE => self.graphics.index = value & 0x0F,
            0x3CF => self.graphics.write(value),
            0x3B4 | 0x3D4 => self.crtc.index = value & 0x1F,
            0x3B5 | 0x3D5 => self.write_crtc(value),
            0x3BA | 0x3DA => self.feature = value,
            _ => {}
        }
    }

    /// Bit 7 of register 11h protects 0 to 7, except for a bit of 7.
    fn write_crtc(&mut self, value: u8) {
        let is_protected = self.crtc.values[0x11] & 0x80 != 0;
        match self.crtc.index {
            0..=6 if is_protected => {}
            7 if is_protected => {
                let kept = self.crtc.read() & !0x10;
                self.crtc.write(kept | value & 0x10);
            }
            _ => self.crtc.write(value),
        }
    }

    /// Can the registers have come to hold this?
    pub(crate) fn is_sound(&self) -> bool {
        self.palette.part < 3
    }

    /// The character the screen begins with, counted in text memory.
    pub(crate) fn start(&self) -> usize {
        usize::from(u16::from_be_bytes([self.crtc.values[0x0C], self.crtc.values[0x0D]]))
    }

    /// Does bit 7 of an attribute blink? Otherwise the background is bright.
    pub(crate) fn blinks(&self) -> bool {
        self.attribute.values[ATTRIBUTE_MODE] & BLINKS != 0
    }

    /// The character the cursor is on, counted likewise, unless it is off.
    pub(crate) fn cursor(&self) -> Option<usize> {
        let is_off = self.crtc.values[0x0A] & 0x20 != 0;
        let at = u16::from_be_bytes([self.crtc.values[0x0E], self.crtc.values[0x0F]]);
        (!is_off).then_some(usize::from(at))
    }
}

impl Palette {
    fn select(&mut self, index: u8, is_reading: bool) {
        if is_reading {
            self.read_index = index;
        } else {
            self.write_index = index;
        }
        (self.part, self.is_reading) = (0, is_reading);
    }

    fn next(&mut self) -> usize {
        let part = self.part;
        self.part = (part + 1) % 3;
        part
    }

    fn read(&mut self) -> u8 {
        let (index, part) = (self.read_index, self.next());
        if part == 2 {
            self.read_index = index.wrapping_add(1);
        }
        self.colours[usize::from(index)][part]
    }

    fn write(&mut self, value: u8) {
        let (index, part) = (self.write_index, self.next());
        if part == 2 {
            self.write_index = index.wrapping_add(1);
        }
        self.colours[usize::from(index)][part] = value & 0x3F;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexed_registers_read_back() {
        let mut vga = Vga::RESET;
        for (index, value) in [(0x3C4, 2), (0x3CE, 6), (0x3D4, 0x0E)] {
            vga.write(index, value);
            vga.write(index + 1, 0x5A);
            assert_eq!((vga.read(index), vga.read(index + 1)), (value, 0x5A));
        }
        vga.write(0x3D4, 0x0F);
        vga.write(0x3D5, 0x01);
        assert_eq!(vga.cursor(), Some(0x5A01));
    }

    #[test]
    fn the_attribute_controller_takes_index_and_data_by_turns() {
        let mut vga = Vga::RESET;
        vga.write(0x3C0, 0x05);
        vga.write(0x3C0, 0x33);
        vga.write(0x3C0, 0x06);
        vga.read(0x3DA);
        vga.write(0x3C0, 0x25);
        assert_eq!((vga.read(0x3C0), vga.read(0x3C1)), (0x25, 0x33));
    }

    #[test]
    fn a_character_blinks_unless_the_attribute_controller_makes_its_background_bright() {
        let mut vga = Vga::RESET;
        assert!(vga.blinks());
        vga.write(0x3C0, 0x30);
        vga.write(0x3C0, 0x04);
        assert!(!vga.blinks());
    }

    #[test]
    fn retrace_comes_and_goes() {
        let mut vga = Vga::RESET;
        assert_ne!(vga.read(0x3DA) & 8, vga.read(0x3DA) & 8);
        assert_eq!(vga.read(0x3BA), 0xFF, "the monochrome ports are elsewhere");
    }

    #[test]
    fn colours_pass_in_threes() {
        let mut vga = Vga::RESET;
        vga.write(0x3C8, 7);
        (1..=6).for_each(|value| vga.write(0x3C9, value));
        vga.write(0x3C7, 7);
        assert_eq!([0; 6].map(|_| vga.read(0x3C9)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(vga.read(0x3C7), 3);
    }

    #[test]
    fn the_first_crtc_registers_can_be_protected() {
        let mut vga = Vga::RESET;
        for (index, value) in [(0x11, 0x80), (0x01, 0x4F), (0x07, 0xFF)] {
            vga.write(0x3D4, index);
            vga.write(0x3D5, value);
        }
        assert_eq!(vga.read(0x3D5), 0x10);
        vga.write(0x3D4, 0x01);
        assert_eq!(vga.read(0x3D5), 0);
    }
}
