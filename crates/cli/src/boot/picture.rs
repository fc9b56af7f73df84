//! A display as a picture.

use std::fs::File;
use std::io::BufWriter;

use super::display::{Display, Tile};
use super::font::{self, Glyph};
use super::palette::PALETTE;

const WIDTH: usize = font::WIDTH * Display::COLUMNS;
const HEIGHT: usize = font::HEIGHT * Display::ROWS;
/// The rows of a character that the cursor covers: an underline, as a BIOS sets it.
const CURSOR: std::ops::Range<usize> = 13..15;

/// Writes the display as a PNG of 640 by 400.
pub(super) fn write_png(display: &Display, file: &File) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(BufWriter::new(file), WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(PALETTE.concat());
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&dots(display))?;
    writer.finish()
}

/// The colour number of each dot.
fn dots(display: &Display) -> Vec<u8> {
    let mut dots = vec![0; WIDTH * HEIGHT];
    for (row, band) in dots.chunks_exact_mut(WIDTH * font::HEIGHT).enumerate() {
        for (column, tile) in display.row(row).iter().enumerate() {
            let mut glyph = font::glyph(tile.character);
            if display.cursor == Some((row, column)) {
                glyph[CURSOR].fill(0xFF);
            }
            draw(*tile, &glyph, column * font::WIDTH, band);
        }
    }
    dots
}

/// Draws a character at `x` of a band of rows.
fn draw(tile: Tile, glyph: &Glyph, x: usize, band: &mut [u8]) {
    for (bits, line) in glyph.iter().zip(band.chunks_exact_mut(WIDTH)) {
        for (i, dot) in line[x..x + font::WIDTH].iter_mut().enumerate() {
            *dot = if bits << i & 0x80 != 0 { tile.foreground } else { tile.background };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_is_foreground_or_background() {
        let half = Tile { character: '▌', foreground: 14, background: 9 };
        let tile = |row, column| if (row, column) == (1, 2) { half } else { Tile::CLEAR };
        let dots = dots(&Display::new(tile, None));
        let line = &dots[(16 + 3) * WIDTH..][..WIDTH];
        assert_eq!(line[14..26], [0, 0, 14, 14, 14, 14, 9, 9, 9, 9, 0, 0]);
    }

    #[test]
    fn the_cursor_is_an_underline_in_the_colour_of_its_character() {
        let tile = |_, _| Tile { foreground: 10, ..Tile::CLEAR };
        let dots = dots(&Display::new(tile, Some((24, 79))));
        let lit: Vec<usize> = (0..dots.len()).filter(|at| dots[*at] == 10).collect();
        let line = |y: usize| (y * WIDTH + 632..y * WIDTH + 640).collect::<Vec<_>>();
        assert_eq!(lit, [line(397), line(398)].concat());
    }
}
