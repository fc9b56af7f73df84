//! The sixteen colours of a text screen, and a terminal's in their terms.

/// Red, green and blue, by the number a CGA gives them; colour 6 is brown and not dark yellow.
pub(super) const PALETTE: [[u8; 3]; 16] = [
    [0x00, 0x00, 0x00],
    [0x00, 0x00, 0xAA],
    [0x00, 0xAA, 0x00],
    [0x00, 0xAA, 0xAA],
    [0xAA, 0x00, 0x00],
    [0xAA, 0x00, 0xAA],
    [0xAA, 0x55, 0x00],
    [0xAA, 0xAA, 0xAA],
    [0x55, 0x55, 0x55],
    [0x55, 0x55, 0xFF],
    [0x55, 0xFF, 0x55],
    [0x55, 0xFF, 0xFF],
    [0xFF, 0x55, 0x55],
    [0xFF, 0x55, 0xFF],
    [0xFF, 0xFF, 0x55],
    [0xFF, 0xFF, 0xFF],
];

/// The levels of the colour cube of a terminal with 256 colours.
const CUBE: [u8; 6] = [0x00, 0x5F, 0x87, 0xAF, 0xD7, 0xFF];

/// A colour with its blue and red bits exchanged: from CGA's count to a terminal's, and back.
pub(super) fn swapped(colour: u8) -> u8 {
    colour & 0b1010 | (colour & 1) << 2 | colour >> 2 & 1
}

/// Green is brighter than red, red than blue, and any of them brighter with bit 3.
pub(super) fn luminance(colour: u8) -> u8 {
    let parts = [(1, 1), (2, 5), (4, 3), (8, 4)];
    parts.iter().filter(|(bit, _)| colour & bit != 0).map(|(_, light)| light).sum()
}

/// One of a terminal's 256 colours: the sixteen, a cube, and a ramp of greys.
pub(super) fn of_terminal(index: u8) -> u8 {
    match index {
        0..=15 => swapped(index),
        16..=231 => {
            let at = usize::from(index - 16);
            nearest([CUBE[at / 36], CUBE[at / 6 % 6], CUBE[at % 6]])
        }
        232..=255 => nearest([8 + 10 * (index - 232); 3]),
    }
}

/// The colour that differs least from red, green and blue.
pub(super) fn nearest(rgb: [u8; 3]) -> u8 {
    let distance = |colour: &[u8; 3]| -> u32 {
        colour.iter().zip(rgb).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    (0..16).min_by_key(|number| distance(&PALETTE[usize::from(*number)])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_colours_are_the_nearest_of_the_sixteen() {
        assert_eq!([0, 1, 3, 4, 9, 15].map(of_terminal), [0, 4, 6, 1, 12, 15]);
        assert_eq!([16, 196, 21, 231].map(of_terminal), [0, 4, 1, 15]);
        assert_eq!([232, 240, 248, 255].map(of_terminal), [0, 8, 7, 15]);
    }

    #[test]
    fn each_of_the_sixteen_is_nearest_to_itself() {
        for (number, colour) in (0..16).zip(PALETTE) {
            assert_eq!(nearest(colour), number);
            assert_eq!(swapped(swapped(number)), number);
        }
    }
}
