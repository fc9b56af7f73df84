//! The dots of characters: the font Spleen, which has most of code page 437, and what it lacks.

use spleen_font::FONT_8X16;

use super::{cp437, frames};

/// A character is 8 by 16 dots.
pub(super) const WIDTH: usize = 8;
pub(super) const HEIGHT: usize = 16;

/// The font is a PSF file of version 1: after a magic number, a byte of modes and the height of a
/// character follow the characters.
const FONT_HEADER: [u8; 4] = [0x36, 0x04, 0x03, HEIGHT as u8];

/// A byte a row, the leftmost dot in bit 7.
pub(super) type Glyph = [u8; HEIGHT];

/// What stands for a character that code page 437 does not have.
const NO_GLYPH: Glyph =
    [0, 0, 0x7E, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7E, 0, 0, 0, 0];

/// Spleen has other characters in their places: arrow heads, a right angle, a house, Greek.
const MISSING: [(char, Glyph); 14] = [
    ('►', [0, 0, 0, 0x80, 0xE0, 0xF0, 0xFC, 0xFE, 0xFC, 0xF0, 0xE0, 0x80, 0, 0, 0, 0]),
    ('◄', [0, 0, 0, 0x02, 0x0E, 0x1E, 0x7E, 0xFE, 0x7E, 0x1E, 0x0E, 0x02, 0, 0, 0, 0]),
    ('∟', [0, 0, 0, 0, 0, 0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0xFE, 0, 0, 0, 0]),
    ('▲', [0, 0, 0, 0, 0x10, 0x10, 0x38, 0x38, 0x7C, 0x7C, 0xFE, 0xFE, 0, 0, 0, 0]),
    ('▼', [0, 0, 0, 0, 0xFE, 0xFE, 0x7C, 0x7C, 0x38, 0x38, 0x10, 0x10, 0, 0, 0, 0]),
    ('⌂', [0, 0, 0, 0, 0x10, 0x38, 0x6C, 0xC6, 0xC6, 0xC6, 0xC6, 0xFE, 0, 0, 0, 0]),
    ('α', [0, 0, 0, 0, 0, 0x76, 0xDC, 0xD8, 0xD8, 0xD8, 0xDC, 0x76, 0, 0, 0, 0]),
    ('Σ', [0, 0, 0xFE, 0xC0, 0x60, 0x30, 0x18, 0x18, 0x30, 0x60, 0xC0, 0xFE, 0, 0, 0, 0]),
    ('σ', [0, 0, 0, 0, 0, 0x7E, 0xD8, 0xCC, 0xC6, 0xC6, 0xC6, 0x7C, 0, 0, 0, 0]),
    ('τ', [0, 0, 0, 0, 0, 0xFE, 0x18, 0x18, 0x18, 0x18, 0x18, 0x0E, 0, 0, 0, 0]),
    ('Θ', [0, 0, 0x7C, 0xC6, 0xC6, 0xC6, 0xFE, 0xC6, 0xC6, 0xC6, 0xC6, 0x7C, 0, 0, 0, 0]),
    ('δ', [0, 0, 0x3E, 0x60, 0x30, 0x38, 0x6C, 0xC6, 0xC6, 0xC6, 0xC6, 0x7C, 0, 0, 0, 0]),
    ('φ', [0, 0, 0, 0x10, 0x10, 0x7C, 0xD6, 0xD6, 0xD6, 0xD6, 0xD6, 0x7C, 0x10, 0x10, 0, 0]),
    ('ε', [0, 0, 0, 0, 0, 0x7C, 0xC6, 0xC0, 0x78, 0xC0, 0xC6, 0x7C, 0, 0, 0, 0]),
];

/// The dots of a character; a box if there are none.
pub(super) fn glyph(character: char) -> Glyph {
    let drawn = MISSING.iter().find(|(other, _)| *other == character).map(|(_, glyph)| *glyph);
    drawn.or_else(|| of_code(cp437::from_char(character)?)).unwrap_or(NO_GLYPH)
}

/// The font has the other characters at the places that code page 437 gives them.
fn of_code(code: u8) -> Option<Glyph> {
    if matches!(code, 0x00 | b' ' | 0xFF) {
        return Some([0; HEIGHT]);
    }
    let at = FONT_HEADER.len() + HEIGHT * usize::from(code);
    let of_font = || FONT_8X16.get(at..at + HEIGHT)?.try_into().ok();
    frames::glyph(code).or_else(of_font)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_the_code_page_has_dots_of_its_own() {
        let mut glyphs: Vec<(Glyph, char)> =
            (0..=255).map(cp437::to_char).map(|character| (glyph(character), character)).collect();
        glyphs.sort_unstable();
        glyphs.dedup_by_key(|(glyph, _)| *glyph);
        // The spaces 00h, 20h and FFh look alike.
        assert_eq!(glyphs.len(), 254, "{:?}", glyphs.iter().map(|(_, c)| c).collect::<String>());
        assert!(glyphs.iter().all(|(glyph, _)| *glyph != NO_GLYPH));
    }

    #[test]
    fn the_font_has_the_form_that_is_read() {
        assert_eq!(FONT_8X16[..4], FONT_HEADER);
    }

    #[test]
    fn blocks_fill_their_part_of_the_cell() {
        assert_eq!(glyph('█'), [0xFF; 16]);
        assert_eq!(glyph('▌'), [0xF0; 16]);
        assert_eq!(glyph('▀')[..8], [0xFF; 8]);
        assert_eq!(glyph('▀')[8..], [0; 8]);
        assert_eq!(glyph(' '), [0; 16]);
    }

    #[test]
    fn a_character_of_another_script_is_a_box() {
        assert_eq!(glyph('語'), NO_GLYPH);
    }
}
