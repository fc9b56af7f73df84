//! The live screen: draws a display on the user's terminal, and only what has changed of it.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::display::{Display, Style, Tile, sequence};

/// About 30 pictures a second.
const FRAME: Duration = Duration::from_millis(33);

/// The drawing of one terminal.
pub(super) struct Live {
    style: Style,
    /// The terminal's columns and rows, and what it shows of the display.
    size: (usize, usize),
    /// The first row of the display that is shown.
    top: usize,
    drawn: Vec<Vec<Tile>>,
    cursor: Option<(usize, usize)>,
    status: String,
    next: Option<Instant>,
}

impl Live {
    pub(super) fn new(style: Style) -> Live {
        Live {
            style,
            size: (0, 0),
            top: 0,
            drawn: Vec::new(),
            cursor: None,
            status: String::new(),
            next: None,
        }
    }

    /// Is it time for the next picture?
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.next.is_none_or(|next| now >= next);
        if is_due {
            self.next = Some(now + FRAME);
        }
        is_due
    }

    /// The escape sequences that bring a terminal of `size` columns and rows from what was drawn
    /// last to `display`, with `status` on a line below if there is room for one. If there is not
    /// even room for all rows, those up to the cursor are shown.
    pub(super) fn draw(&mut self, size: (usize, usize), display: &Display, status: &str) -> String {
        let mut out = String::new();
        if size != self.size {
            self.size = size;
            let rows = size.1.min(Display::ROWS);
            // Nothing is drawn yet, so that all differs from it.
            self.drawn = vec![Vec::new(); rows];
            self.status.clear();
            self.cursor = None;
            self.top = 0;
            out.push_str("\x1b[0m\x1b[2J\x1b[?25l");
        }
        if let Some((row, _)) = display.cursor {
            self.top = (row + 1).saturating_sub(self.drawn.len());
        }
        let before = out.len();
        for row in 0..self.drawn.len() {
            self.draw_row(row, display, &mut out);
        }
        self.draw_status(status, &mut out);
        self.draw_cursor(display, out.len() > before, &mut out);
        out
    }

    fn draw_row(&mut self, row: usize, display: &Display, out: &mut String) {
        let columns = self.size.0.min(Display::COLUMNS);
        let tiles = &display.row(self.top + row)[..columns];
        let drawn = std::mem::replace(&mut self.drawn[row], tiles.to_vec());
        let changed = (0..columns).filter(|at| drawn.get(*at) != tiles.get(*at));
        let mut at = None;
        let mut colours = None;
        for column in changed {
            if at != Some(column) {
                put_cursor(row, column, out);
            }
            let tile = tiles[column];
            if colours != Some((tile.foreground, tile.background)) {
                colours = Some((tile.foreground, tile.background));
                out.push_str(&sequence(tile, self.style));
            }
            out.push(tile.character);
            at = Some(column + 1);
        }
        if at.is_some() {
            out.push_str("\x1b[0m");
        }
    }

    fn draw_status(&mut self, status: &str, out: &mut String) {
        if self.size.1 <= Display::ROWS || self.status == status {
            return;
        }
        self.status = status.to_owned();
        let text: String = status.chars().take(self.size.0).collect();
        put_cursor(Display::ROWS, 0, out);
        out.push_str("\x1b[0;7m");
        out.push_str(&text);
        out.push_str("\x1b[0m\x1b[K");
    }

    /// Drawing has moved the terminal's own cursor, so it is put back.
    fn draw_cursor(&mut self, display: &Display, has_moved: bool, out: &mut String) {
        let is_inside =
            |(row, column): &(usize, usize)| *row < self.size.1 && *column < self.size.0;
        let cursor = display.cursor.map(|(row, column)| (row.saturating_sub(self.top), column));
        let cursor = cursor.filter(is_inside);
        if cursor == self.cursor && !has_moved {
            return;
        }
        if let Some((row, column)) = cursor {
            put_cursor(row, column, out);
        }
        if cursor.is_some() != self.cursor.is_some() {
            out.push_str(if cursor.is_some() { "\x1b[?25h" } else { "\x1b[?25l" });
        }
        self.cursor = cursor;
    }
}

/// Rows and columns count from 1 in a terminal.
fn put_cursor(row: usize, column: usize, out: &mut String) {
    // A String takes all.
    let _ = write!(out, "\x1b[{};{}H", row + 1, column + 1);
}

#[cfg(test)]
mod tests {
    use super::super::serial_screen::SerialScreen;
    use super::super::sinks::User;
    use super::*;

    fn words(text: &str, cursor: Option<(usize, usize)>) -> Display {
        let tile = |row, column| match text.chars().nth(column) {
            Some(character) if row == 24 => {
                Tile { character, foreground: 14, background: column as u8 & 0x07 }
            }
            _ => Tile { character: '.', ..Tile::CLEAR },
        };
        Display::new(tile, cursor)
    }

    fn shown(columns: u16, rows: u16, bytes: &str) -> vt100::Parser {
        let size = |number| std::num::NonZeroU16::new(number).expect("a terminal has a size");
        let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
        parser.process(bytes.as_bytes());
        parser
    }

    #[test]
    fn a_terminal_shows_the_display_its_colours_and_its_cursor() {
        let display = words("╔═ hello ═╗", Some((24, 3)));
        let drawn = Live::new(Style::Coloured).draw((80, 25), &display, "status");
        let mut terminal = SerialScreen::new(User::AtOnce);
        terminal.take(drawn.as_bytes());
        assert_eq!(terminal.display(), display);
    }

    #[test]
    fn only_what_has_changed_is_drawn() {
        let mut live = Live::new(Style::Coloured);
        live.draw((80, 26), &words("abc", None), "one");
        assert_eq!(live.draw((80, 26), &words("abc", None), "one"), "");
        let drawn = live.draw((80, 26), &words("abd", None), "one");
        assert_eq!(drawn, "\x1b[25;3H\x1b[0;93;42md\x1b[0m");
        let moved = live.draw((80, 26), &words("abd", Some((1, 2))), "one");
        assert_eq!(moved, "\x1b[2;3H\x1b[?25h");
        let told = live.draw((80, 26), &words("abd", Some((1, 2))), "two");
        assert_eq!(told, "\x1b[26;1H\x1b[0;7mtwo\x1b[0m\x1b[K\x1b[2;3H");
    }

    #[test]
    fn a_terminal_that_changes_its_size_is_drawn_anew_as_far_as_it_reaches() {
        let mut live = Live::new(Style::Plain);
        live.draw((80, 26), &words("abc", Some((24, 0))), "status");
        let small = live.draw((5, 3), &words("abc", Some((24, 0))), "status");
        let terminal = shown(5, 3, &small);
        assert_eq!(terminal.screen().contents(), ".....\n.....\nabc..");
        assert_eq!(terminal.screen().cursor_position(), (2, 0));
        assert!(!terminal.screen().hide_cursor());
        let large = live.draw((100, 30), &words("abc", Some((24, 0))), "status");
        let terminal = shown(100, 30, &large);
        let rows: Vec<String> = terminal.screen().rows(0, 100).collect();
        assert_eq!((rows[23].len(), &rows[24][..4], rows[25].as_str()), (80, "abc.", "status"));
        assert!(!terminal.screen().hide_cursor());
        assert_eq!(live.draw((0, 0), &words("abc", None), "status"), "\x1b[0m\x1b[2J\x1b[?25l");
    }

    #[test]
    fn a_terminal_without_room_for_all_rows_shows_those_up_to_the_cursor() {
        let mut live = Live::new(Style::Plain);
        let mut drawn = live.draw((80, 24), &words("abc", Some((23, 0))), "status");
        let last = |drawn: &str| shown(80, 24, drawn).screen().rows(0, 3).last();
        assert_eq!(last(&drawn).as_deref(), Some("..."));
        drawn += &live.draw((80, 24), &words("abc", Some((24, 2))), "status");
        assert_eq!(last(&drawn).as_deref(), Some("abc"));
        assert_eq!(shown(80, 24, &drawn).screen().cursor_position(), (23, 2));
        drawn += &live.draw((80, 24), &words("abd", None), "status");
        assert_eq!(last(&drawn).as_deref(), Some("abd"));
        drawn += &live.draw((80, 24), &words("abd", Some((0, 0))), "status");
        assert_eq!(last(&drawn).as_deref(), Some("..."));
    }

    #[test]
    fn pictures_keep_a_distance() {
        let mut live = Live::new(Style::Plain);
        let start = Instant::now();
        let due = [0, 1, 32, 33, 40, 66].map(|ms| live.is_due(start + Duration::from_millis(ms)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
