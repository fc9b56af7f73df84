//! What a terminal of 80 by 25 characters on COM1 shows. A program that draws on a serial console
//! places words with escape sequences, so that they do not follow each other in its output.

use std::num::NonZeroU16;

use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};
use vt100::{Callbacks, Cell, Color, Parser};

use super::display::{Display, Tile};
use super::palette;
use super::sinks::User;

const ROWS: NonZeroU16 = NonZeroU16::new(Display::ROWS as u16).expect("a screen has rows");
const COLUMNS: NonZeroU16 = NonZeroU16::new(Display::COLUMNS as u16).expect("a row has characters");
/// Stands for a character that takes two columns.
const WIDE: char = '□';
/// How much of what was sent is kept at least. Few screens hold anything older.
const MOST_SENT: usize = 1 << 20;
/// How much of what scrolled away is kept.
const MOST_HISTORY: usize = 4 << 20;

/// The terminal.
pub(super) struct SerialScreen {
    parser: Parser<History>,
    is_used: bool,
    /// What the guest sent, the end of it, for a snapshot: what is shown follows from it.
    sent: Vec<u8>,
}

/// The rows that have scrolled off the top.
struct History {
    user: User,
    text: String,
    state: BasicFormattedCaptureState,
    dropped: usize,
}

impl SerialScreen {
    /// A blank one. Rows that scroll off the top are kept for a user who has not got them yet.
    pub(super) fn new(user: User) -> SerialScreen {
        let state = BasicFormattedCaptureState::new();
        let history = History { user, text: String::new(), state, dropped: 0 };
        let parser = Parser::new_with_callbacks(ROWS, COLUMNS, 0, history);
        SerialScreen { parser, is_used: false, sent: Vec::new() }
    }

    /// What the guest sent.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.is_used |= !bytes.is_empty();
        self.parser.process(bytes);
        self.sent.extend_from_slice(bytes);
        if self.sent.len() > 2 * MOST_SENT {
            self.sent.drain(..self.sent.len() - MOST_SENT);
        }
    }

    /// Shows what it showed when it had been sent this. The user got it then.
    pub(super) fn resume(&mut self, sent: &[u8]) {
        self.take(sent);
        self.parser.callbacks_mut().text.clear();
    }

    /// What makes another one show the same.
    pub(super) fn sent(&self) -> &[u8] {
        &self.sent
    }

    /// Did the guest ever send anything?
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// What is to be seen now.
    pub(super) fn display(&self) -> Display {
        let screen = self.parser.screen();
        let tile = |row: usize, column: usize| {
            screen.cell(row as u16, column as u16).map_or(Tile::CLEAR, tile)
        };
        let (row, column) = screen.cursor_position();
        // After the last column of a row it stands on that column until the next character.
        let column = usize::from(column).min(Display::COLUMNS - 1);
        let cursor = (!screen.hide_cursor()).then_some((usize::from(row), column));
        Display::new(tile, cursor)
    }

    /// The rows that have scrolled off the top, without the end of the last, and how many bytes
    /// more there were before them.
    pub(super) fn history(&self) -> (&str, usize) {
        let history = self.parser.callbacks();
        (&history.text, history.dropped)
    }
}

impl Callbacks for History {
    fn on_scroll(&mut self, contents: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen || self.user == User::AtOnce {
            return;
        }
        let mut row = String::new();
        // A String takes all.
        let _ = contents.write_formatted_basic(&mut row, &mut self.state);
        self.text.extend(basic_formatted_to_plain(&row));
        if self.text.len() > MOST_HISTORY {
            let lines = self.text[..].char_indices().filter(|(_, character)| *character == '\n');
            let half = lines.map(|(at, _)| at + 1).find(|at| *at >= MOST_HISTORY / 2);
            let dropped = half.unwrap_or(self.text.len());
            self.text.drain(..dropped);
            self.dropped += dropped;
        }
    }
}

fn tile(cell: &Cell) -> Tile {
    let number = |colour, default| match colour {
        Color::Default => default,
        Color::Idx(index) => palette::of_terminal(index),
        Color::Rgb(red, green, blue) => palette::nearest([red, green, blue]),
    };
    let bright = if cell.bold() { 0x08 } else { 0 };
    let foreground = number(cell.fgcolor(), Tile::CLEAR.foreground) | bright;
    let background = number(cell.bgcolor(), Tile::CLEAR.background);
    let (foreground, background) =
        if cell.inverse() { (background, foreground) } else { (foreground, background) };
    let character = match cell.contents().chars().next() {
        Some(_) if cell.is_wide() => WIDE,
        Some(character) => character,
        None => ' ',
    };
    Tile { character, foreground, background }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> SerialScreen {
        let mut screen = SerialScreen::new(User::Later);
        screen.take(bytes);
        screen
    }

    #[test]
    fn words_are_found_where_the_cursor_was_placed() {
        let screen = shown(b"\x1b[2J\x1b[3;10Hworld\x1b[3;4Hhello\x1b[25;80H!");
        let display = screen.display();
        assert_eq!(display.rows()[2], "   hello world");
        assert_eq!(display.count("hello world"), 1);
        assert_eq!(display.cursor, Some((24, 79)));
    }

    #[test]
    fn colours_are_counted_as_a_cga_does() {
        let bytes =
            b"\x1b[33;44ma\x1b[1mb\x1b[0;7mc\x1b[0;38;5;196md\x1b[38;2;0;0;170me\x1b[97;104mf";
        let display = shown(bytes).display();
        let colours = |at: usize| (display.row(0)[at].foreground, display.row(0)[at].background);
        assert_eq!([0, 1, 2].map(colours), [(6, 1), (14, 1), (0, 7)]);
        assert_eq!([3, 4, 5].map(colours), [(4, 0), (1, 0), (15, 9)]);
    }

    #[test]
    fn another_shows_the_same_within_an_escape_sequence() {
        let mut screen = shown(b"\x1b[2;5Hone\x1b[31");
        let mut other = SerialScreen::new(User::Later);
        other.resume(screen.sent());
        for screen in [&mut screen, &mut other] {
            screen.take(b"mtwo");
        }
        let tiles = |screen: &SerialScreen| screen.display().row(1).to_vec();
        assert_eq!(tiles(&screen), tiles(&other));
        assert_eq!(screen.display().rows()[1], "    onetwo");
        assert_eq!(tiles(&other)[7].foreground, 4);
        other.take(&vec![b'x'; 3 * MOST_SENT]);
        assert!((MOST_SENT..=2 * MOST_SENT).contains(&other.sent().len()));
    }

    #[test]
    fn rows_that_scroll_away_are_kept_in_order() {
        let mut screen = SerialScreen::new(User::Later);
        for line in 0..30 {
            screen.take(format!("line \x1b[31m{line}\x1b[0m\r\n").as_bytes());
        }
        let expected: Vec<String> = (0..6).map(|line| format!("line {line}")).collect();
        assert_eq!(screen.history(), (expected.join("\n").as_str(), 0));
        assert_eq!(screen.display().rows()[0], "line 6");
    }

    #[test]
    fn history_has_an_end_and_tells_what_it_lost() {
        let mut screen = SerialScreen::new(User::Later);
        let line = format!("{}\r\n", "x".repeat(79));
        let lines = MOST_HISTORY / 80 + 2;
        screen.take(line.repeat(lines + 24).as_bytes());
        let (kept, dropped) = screen.history();
        assert_eq!(kept.len() + dropped, lines * 80 - 1);
        assert!(dropped >= MOST_HISTORY / 2 && dropped.is_multiple_of(80));
    }

    #[test]
    fn a_cursor_that_is_switched_off_is_not_there_and_wide_characters_are_boxes() {
        let screen = shown("\x1b[?25l語é\u{301}".as_bytes());
        let display = screen.display();
        assert_eq!((display.cursor, display.rows()[0].as_str()), (None, "□ é"));
        assert!(screen.is_used() && !SerialScreen::new(User::Later).is_used());
    }

    #[test]
    fn no_bytes_stop_the_terminal() {
        let mut screen = SerialScreen::new(User::Later);
        let mut seed = 1_u64;
        let interesting =
            b"\x1b[];?0123456789ABCDHJKLMPSTXfhlmrst\x9b\xe8\xaa\x9e \r\n\t\x08\x0e\x7f";
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % (interesting.len() + 8);
            screen.take(&[interesting.get(at).copied().unwrap_or((seed >> 40) as u8)]);
        }
        assert_eq!(screen.display().rows().len(), Display::ROWS);
    }
}
