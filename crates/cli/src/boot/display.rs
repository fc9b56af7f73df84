//! What a user would see: characters, colours and a cursor, of the VGA's text screen or of a
//! terminal on COM1.

use realmode_pc::{Console, Pc, Screen};

use super::cp437;
use super::palette::{luminance, swapped};

/// One character with its colours, numbers from 0 to 15 as a CGA counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) character: char,
    pub(super) foreground: u8,
    pub(super) background: u8,
}

impl Tile {
    /// Grey on black.
    pub(super) const CLEAR: Tile = Tile { character: ' ', foreground: 7, background: 0 };

    fn is_blank(self) -> bool {
        matches!(self.character, ' ' | '\u{A0}') && self.background == 0
    }
}

/// How a terminal is told of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// By escape sequences.
    Coloured,
    /// Not at all, as NO_COLOR asks, but what is dark on light is shown in reverse.
    Plain,
}

impl Style {
    /// What the environment asks for.
    pub(super) fn of_environment() -> Style {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if is_plain { Style::Plain } else { Style::Coloured }
    }
}

/// 80 by 25 tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Display {
    tiles: Vec<Tile>,
    /// Row and column, where it is to be seen.
    pub(super) cursor: Option<(usize, usize)>,
}

impl Display {
    pub(super) const COLUMNS: usize = Screen::COLUMNS;
    pub(super) const ROWS: usize = Screen::ROWS;

    /// A display of `tile(row, column)`.
    pub(super) fn new(
        tile: impl Fn(usize, usize) -> Tile,
        cursor: Option<(usize, usize)>,
    ) -> Display {
        let all = (0..Self::ROWS).flat_map(|row| (0..Self::COLUMNS).map(move |at| (row, at)));
        Display { tiles: all.map(|(row, column)| tile(row, column)).collect(), cursor }
    }

    /// The VGA's text screen; `None` if RAM ends before it. What blinks is shown all the time.
    pub(super) fn of_vga<C: Console>(pc: &Pc<'_, C>) -> Option<Display> {
        let screen = pc.screen()?;
        let backgrounds = if pc.blinks() { 0x07 } else { 0x0F };
        let tile = |row, column| {
            let cell = screen.cell(row, column);
            Tile {
                character: cp437::to_char(cell.code),
                foreground: cell.attribute & 0x0F,
                background: cell.attribute >> 4 & backgrounds,
            }
        };
        Some(Display::new(tile, pc.cursor()))
    }

    /// The tiles of a row, from the left.
    pub(super) fn row(&self, row: usize) -> &[Tile] {
        self.tiles.chunks_exact(Self::COLUMNS).nth(row).unwrap_or_default()
    }

    /// Is there nothing to see?
    pub(super) fn is_blank(&self) -> bool {
        self.tiles.iter().all(|tile| tile.is_blank())
    }

    /// The rows as text, without the blanks at their ends.
    pub(super) fn rows(&self) -> Vec<String> {
        (0..Self::ROWS).map(|row| text(self.row(row)).trim_end().to_owned()).collect()
    }

    /// How often `text` is on its rows.
    pub(super) fn count(&self, text: &str) -> usize {
        self.rows().iter().map(|row| row.matches(text).count()).sum()
    }

    /// The rows as a terminal shows them.
    pub(super) fn styled_rows(&self, style: Style) -> Vec<String> {
        (0..Self::ROWS).map(|row| styled(self.row(row), style)).collect()
    }
}

fn text(tiles: &[Tile]) -> String {
    tiles.iter().map(|tile| tile.character).collect()
}

fn styled(tiles: &[Tile], style: Style) -> String {
    let mut text = String::new();
    for run in tiles.chunk_by(|a, b| sequence(*a, style) == sequence(*b, style)) {
        text.extend(run.first().map(|tile| sequence(*tile, style)));
        text.extend(run.iter().map(|tile| tile.character));
    }
    text.push_str("\x1b[0m");
    text
}

/// The colours of a tile as an escape sequence. CGA's colour bits are blue, green, red from
/// bit 0; a terminal's are red, green, blue.
pub(super) fn sequence(tile: Tile, style: Style) -> String {
    let Tile { foreground, background, .. } = tile;
    if style == Style::Plain {
        let is_reverse = luminance(background) > luminance(foreground);
        return if is_reverse { "\x1b[0;7m" } else { "\x1b[0m" }.to_owned();
    }
    let number = |colour: u8| swapped(colour & 7) + if colour & 8 != 0 { 90 } else { 30 };
    format!("\x1b[0;{};{}m", number(foreground), number(background) + 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(character: char, attribute: u8) -> Tile {
        Tile { character, foreground: attribute & 0x0F, background: attribute >> 4 }
    }

    #[test]
    fn colours_become_a_terminals() {
        let coloured = |attribute| sequence(tile('x', attribute), Style::Coloured);
        assert_eq!(coloured(0x1F), "\x1b[0;97;44m");
        assert_eq!(coloured(0x07), "\x1b[0;37;40m");
        assert_eq!(coloured(0x4E), "\x1b[0;93;41m");
        assert_eq!(coloured(0x9C), "\x1b[0;91;104m");
    }

    #[test]
    fn without_colours_dark_on_light_is_reverse() {
        let plain = |attribute| sequence(tile('x', attribute), Style::Plain);
        assert_eq!([0x07, 0x1F, 0x4E].map(plain), ["\x1b[0m"; 3]);
        assert_eq!([0x70, 0x30, 0x3F].map(plain), ["\x1b[0;7m", "\x1b[0;7m", "\x1b[0m"]);
    }

    #[test]
    fn a_row_changes_colours_only_where_they_change() {
        let row = |row: usize, column: usize| match (row, column) {
            (3, 0..2) => tile('a', 0x70),
            _ => Tile::CLEAR,
        };
        let display = Display::new(row, None);
        let rows = display.styled_rows(Style::Coloured);
        let rest = " ".repeat(78);
        assert_eq!(rows[3], format!("\x1b[0;30;47maa\x1b[0;37;40m{rest}\x1b[0m"));
        assert_eq!(display.rows()[3], "aa");
        assert!(display.count("aa") == 1 && display.count("aaa") == 0 && !display.is_blank());
    }

    #[test]
    fn a_coloured_space_is_not_blank() {
        assert!(Display::new(|_, _| Tile::CLEAR, Some((0, 0))).is_blank());
        assert!(!Display::new(|_, column| tile(' ', column as u8 & 0x10), None).is_blank());
    }
}
