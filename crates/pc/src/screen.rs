//! The text screen, as the guest left it in memory at B8000h.

use core::sync::atomic::{AtomicU8, Ordering};

/// Where text memory starts.
pub(crate) const TEXT_BASE: u64 = 0xB_8000;
/// How much there is.
const TEXT_BYTES: usize = 0x8000;

/// A view of the 80 by 25 characters; it shows what the guest has written at the time of a call.
#[derive(Clone, Copy)]
pub struct Screen<'m> {
    cells: &'m [AtomicU8],
}

/// One character on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The character, in code page 437.
    pub code: u8,
    /// Its colours: foreground in bits 0-3, background in bits 4-6, blinking in bit 7.
    pub attribute: u8,
}

impl Cell {
    /// Grey on black, as a BIOS clears the screen.
    pub const CLEAR: Cell = Cell { code: b' ', attribute: 0x07 };

    /// Can nothing be seen of it?
    pub fn is_blank(self) -> bool {
        matches!(self.code, 0 | b' ' | 0xFF) && self.attribute & 0x70 == 0
    }
}

impl<'m> Screen<'m> {
    /// Characters in a row.
    pub const COLUMNS: usize = 80;
    /// Rows.
    pub const ROWS: usize = 25;
    /// Bytes of memory: a character and an attribute each.
    pub const BYTES: usize = 2 * Self::COLUMNS * Self::ROWS;

    /// The character of text memory that a screen begins with which was told to begin at `start`:
    /// the first, if it would not end in text memory.
    pub(crate) const fn first(start: usize) -> usize {
        if 2 * start + Self::BYTES <= TEXT_BYTES { start } else { 0 }
    }

    /// The screen in `ram` that was told to begin at character `start`; `None` where RAM ends
    /// before it.
    pub(crate) fn in_ram(ram: &'m [AtomicU8], start: usize) -> Option<Self> {
        let base = TEXT_BASE as usize + 2 * Self::first(start);
        Some(Screen { cells: ram.get(base..base + Self::BYTES)? })
    }

    /// The character at `row` and `column`; blank outside the screen.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        if column >= Self::COLUMNS {
            return Cell::CLEAR;
        }
        match self.cells.chunks_exact(2).nth(row * Self::COLUMNS + column) {
            Some([code, attribute]) => Cell {
                code: code.load(Ordering::Relaxed),
                attribute: attribute.load(Ordering::Relaxed),
            },
            _ => Cell::CLEAR,
        }
    }

    /// The characters of `row`, from the left.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell> {
        (0..Self::COLUMNS).map(move |column| self.cell(row, column))
    }

    /// Is there nothing to see?
    pub fn is_blank(&self) -> bool {
        (0..Self::ROWS).all(|row| self.row(row).all(Cell::is_blank))
    }

    /// Fills it with grey on black.
    pub(crate) fn clear(&self) {
        for pair in self.cells.chunks_exact(2) {
            pair[0].store(Cell::CLEAR.code, Ordering::Relaxed);
            pair[1].store(Cell::CLEAR.attribute, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn ram(bytes: usize) -> Vec<AtomicU8> {
        (0..bytes).map(|_| AtomicU8::new(0)).collect()
    }

    #[test]
    fn ram_that_ends_before_b8fa0_has_no_screen() {
        assert!(Screen::in_ram(&ram(0xB_8F9F), 0).is_none());
        assert!(Screen::in_ram(&ram(0xB_8FA0), 0).is_some());
    }

    #[test]
    fn a_character_is_found_at_its_row_and_column() {
        let ram = ram(0xB_9000);
        let screen = Screen::in_ram(&ram, 0).expect("RAM reaches past text memory");
        screen.clear();
        assert!(screen.is_blank());
        ram[0xB_8000 + 2 * (80 * 24 + 79)].store(b'Z', Ordering::Relaxed);
        ram[0xB_8000 + 2 * (80 * 24 + 79) + 1].store(0x1E, Ordering::Relaxed);
        assert_eq!(screen.cell(24, 79), Cell { code: b'Z', attribute: 0x1E });
        assert_eq!(screen.row(24).last(), Some(screen.cell(24, 79)));
        assert!(!screen.is_blank());
    }

    #[test]
    fn the_screen_begins_where_the_controller_says() {
        let ram = ram(0xC_0000);
        ram[0xB_8000 + 160].store(b'A', Ordering::Relaxed);
        let code = |start| Screen::in_ram(&ram, start).map(|screen| screen.cell(0, 0).code);
        assert_eq!([code(80), code(0), code(0x3FFF)], [Some(b'A'), Some(0), Some(0)]);
    }

    #[test]
    fn outside_the_screen_all_is_blank() {
        let ram = ram(0xB_9000);
        let screen = Screen::in_ram(&ram, 0).expect("RAM reaches past text memory");
        assert!(screen.cell(0, 80).is_blank());
        assert!(screen.cell(25, 0).is_blank());
    }

    #[test]
    fn a_coloured_space_is_not_blank() {
        assert!(!Cell { code: b' ', attribute: 0x1F }.is_blank());
        assert!(Cell { code: b' ', attribute: 0x0F }.is_blank());
    }
}
