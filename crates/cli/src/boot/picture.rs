//! The text screen as text and as a picture.

use std::fs::File;
use std::io::BufWriter;

use font8x8::{
    BASIC_FONTS, BLOCK_FONTS, BOX_FONTS, GREEK_FONTS, LATIN_FONTS, MISC_FONTS, UnicodeFonts,
};
use realmode_pc::{Cell, Screen};

use super::cp437;

/// A glyph is 8 by 8 dots and each of its rows is drawn twice.
const GLYPH: usize = 8;
const ROW_HEIGHT: usize = 2 * GLYPH;
const WIDTH: usize = GLYPH * Screen::COLUMNS;
const HEIGHT: usize = ROW_HEIGHT * Screen::ROWS;

/// What stands for a character the font does not have.
const NO_GLYPH: [u8; GLYPH] = [0x00, 0x7E, 0x42, 0x42, 0x42, 0x42, 0x7E, 0x00];

/// The sixteen colours of a CGA; colour 6 is brown and not dark yellow.
const PALETTE: [[u8; 3]; 16] = [
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

/// The rows as text, without the blanks at their ends.
pub(super) fn rows(screen: &Screen<'_>) -> Vec<String> {
    (0..Screen::ROWS)
        .map(|row| {
            let text: String = screen.row(row).map(|cell| cp437::to_char(cell.code)).collect();
            text.trim_end().to_owned()
        })
        .collect()
}

/// The rows with colours, as escape sequences of a terminal.
pub(super) fn coloured_rows(screen: &Screen<'_>) -> Vec<String> {
    (0..Screen::ROWS).map(|row| coloured_row(screen, row)).collect()
}

fn coloured_row(screen: &Screen<'_>, row: usize) -> String {
    let mut text = String::new();
    let mut current = None;
    for cell in screen.row(row) {
        if current != Some(cell.attribute) {
            current = Some(cell.attribute);
            text.push_str(&colours(cell.attribute));
        }
        text.push(cp437::to_char(cell.code));
    }
    text.push_str("\x1b[0m");
    text
}

/// An attribute as an escape sequence. CGA's colour bits are blue, green, red from bit 0; a
/// terminal's are red, green, blue.
fn colours(attribute: u8) -> String {
    let swap = |bits: u8| (bits & 1) << 2 | bits & 2 | bits >> 2 & 1;
    let bright = if attribute & 0x08 != 0 { 90 } else { 30 };
    format!("\x1b[0;{};{}m", bright + swap(attribute & 7), 40 + swap(attribute >> 4 & 7))
}

/// Writes the screen as a PNG of 640 by 400.
pub(super) fn write_png(screen: &Screen<'_>, file: &File) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(BufWriter::new(file), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(PALETTE.concat());
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&dots(screen))?;
    writer.finish()
}

/// The colour number of each dot.
fn dots(screen: &Screen<'_>) -> Vec<u8> {
    let mut dots = vec![0; WIDTH * HEIGHT];
    for (y, line) in dots.chunks_exact_mut(WIDTH).enumerate() {
        let cells = screen.row(y / ROW_HEIGHT);
        for (cell, dots) in cells.zip(line.chunks_exact_mut(GLYPH)) {
            draw(cell, y % ROW_HEIGHT / 2, dots);
        }
    }
    dots
}

/// Draws one row of one character. A blinking one is drawn in its visible phase.
fn draw(cell: Cell, glyph_row: usize, dots: &mut [u8]) {
    let (foreground, background) = (cell.attribute & 0x0F, cell.attribute >> 4 & 0x07);
    let bits = glyph(cell.code)[glyph_row];
    for (x, dot) in dots.iter_mut().enumerate() {
        *dot = if bits >> x & 1 != 0 { foreground } else { background };
    }
}

/// The dots of a character, a byte a row, the leftmost dot in bit 0.
fn glyph(code: u8) -> [u8; GLYPH] {
    let character = cp437::to_char(code);
    BASIC_FONTS
        .get(character)
        .or_else(|| LATIN_FONTS.get(character))
        .or_else(|| BOX_FONTS.get(character))
        .or_else(|| BLOCK_FONTS.get(character))
        .or_else(|| GREEK_FONTS.get(character))
        .or_else(|| MISC_FONTS.get(character))
        .unwrap_or(NO_GLYPH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_blocks_and_frames_have_glyphs() {
        for code in (0x20..0x7F).chain(0xB0..=0xDF) {
            assert_ne!(glyph(code), NO_GLYPH, "{code:#04x}");
        }
        assert_eq!(glyph(0xDB), [0xFF; 8]);
        assert_eq!(glyph(0x00), [0x00; 8]);
    }

    #[test]
    fn a_dot_is_foreground_or_background() {
        let mut dots = [9; 8];
        draw(Cell { code: 0xDD, attribute: 0x9E }, 3, &mut dots);
        assert_eq!(dots, [14, 14, 14, 14, 1, 1, 1, 1]);
    }

    #[test]
    fn attributes_become_a_terminals_colours() {
        assert_eq!(colours(0x1F), "\x1b[0;97;44m");
        assert_eq!(colours(0x07), "\x1b[0;37;40m");
        assert_eq!(colours(0x4E), "\x1b[0;93;41m");
    }
}
