//! The forty characters of code page 437 that frames are made of, drawn so that they join.

use std::ops::RangeInclusive;

use super::font::{Glyph, HEIGHT, WIDTH};

/// The arms of a character.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
const UP_DOWN: u8 = UP | DOWN;
const SIDES: u8 = LEFT | RIGHT;

/// The first of them.
const FIRST: u8 = 0xB3;
/// Each one's arms, and how many strokes its vertical and its horizontal arms have.
const FRAMES: [(u8, u8, u8); 40] = [
    (UP_DOWN, 1, 0),
    (UP_DOWN | LEFT, 1, 1),
    (UP_DOWN | LEFT, 1, 2),
    (UP_DOWN | LEFT, 2, 1),
    (DOWN | LEFT, 2, 1),
    (DOWN | LEFT, 1, 2),
    (UP_DOWN | LEFT, 2, 2),
    (UP_DOWN, 2, 0),
    (DOWN | LEFT, 2, 2),
    (UP | LEFT, 2, 2),
    (UP | LEFT, 2, 1),
    (UP | LEFT, 1, 2),
    (DOWN | LEFT, 1, 1),
    (UP | RIGHT, 1, 1),
    (UP | SIDES, 1, 1),
    (DOWN | SIDES, 1, 1),
    (UP_DOWN | RIGHT, 1, 1),
    (SIDES, 0, 1),
    (UP_DOWN | SIDES, 1, 1),
    (UP_DOWN | RIGHT, 1, 2),
    (UP_DOWN | RIGHT, 2, 1),
    (UP | RIGHT, 2, 2),
    (DOWN | RIGHT, 2, 2),
    (UP | SIDES, 2, 2),
    (DOWN | SIDES, 2, 2),
    (UP_DOWN | RIGHT, 2, 2),
    (SIDES, 0, 2),
    (UP_DOWN | SIDES, 2, 2),
    (UP | SIDES, 1, 2),
    (UP | SIDES, 2, 1),
    (DOWN | SIDES, 1, 2),
    (DOWN | SIDES, 2, 1),
    (UP | RIGHT, 2, 1),
    (UP | RIGHT, 1, 2),
    (DOWN | RIGHT, 1, 2),
    (DOWN | RIGHT, 2, 1),
    (UP_DOWN | SIDES, 2, 1),
    (UP_DOWN | SIDES, 1, 2),
    (UP | LEFT, 1, 1),
    (DOWN | RIGHT, 1, 1),
];

/// One direction of a character.
struct Bar {
    strokes: u8,
    /// Is there an arm towards 0, and one towards the end?
    arms: [bool; 2],
    /// The dots across it. A double one is hollow in the middle.
    across: RangeInclusive<usize>,
    hollow: usize,
    length: usize,
}

/// The dots of a character, if it is one of these.
pub(super) fn glyph(code: u8) -> Option<Glyph> {
    let (arms, vertical, horizontal) = *FRAMES.get(usize::from(code.checked_sub(FIRST)?))?;
    let has = |arm| arms & arm != 0;
    let vertical = Bar {
        strokes: vertical,
        arms: [has(UP), has(DOWN)],
        across: if vertical == 2 { 2..=6 } else { 3..=4 },
        hollow: 4,
        length: HEIGHT,
    };
    let horizontal = Bar {
        strokes: horizontal,
        arms: [has(LEFT), has(RIGHT)],
        across: if horizontal == 2 { 6..=8 } else { 7..=7 },
        hollow: 7,
        length: WIDTH,
    };
    let mut rows = [0; HEIGHT];
    for (y, row) in rows.iter_mut().enumerate() {
        for x in 0..WIDTH {
            if is_lit(&vertical, &horizontal, x, y) {
                *row |= 0x80 >> x;
            }
        }
    }
    Some(rows)
}

fn is_lit(vertical: &Bar, horizontal: &Bar, x: usize, y: usize) -> bool {
    let bars = [(vertical, horizontal, x, y), (horizontal, vertical, y, x)];
    let covers = |strokes| {
        bars.iter().any(|(bar, other, across, along)| {
            bar.strokes == strokes && bar.covers(other, *across, *along)
        })
    };
    let is_hollow = bars.iter().any(|(bar, other, across, along)| {
        bar.strokes == 2 && *across == bar.hollow && bar.inside(other).contains(along)
    });
    covers(1) || covers(2) && !is_hollow
}

impl Bar {
    fn covers(&self, other: &Bar, across: usize, along: usize) -> bool {
        self.across.contains(&across) && self.span(other).contains(&along)
    }

    /// From where to where it goes: to the edges, and where it has no arm to the far side of the
    /// other bar, so that corners close. A single stroke that meets a double one stops at it.
    fn span(&self, other: &Bar) -> RangeInclusive<usize> {
        let stops = self.strokes == 1 && other.strokes == 2 && other.arms == [true; 2];
        let (near, far) = (*other.across.start(), *other.across.end());
        let (first, last) = if stops { (far, near) } else { (near, far) };
        self.reach(first, last)
    }

    /// From where to where a double one is hollow.
    fn inside(&self, other: &Bar) -> RangeInclusive<usize> {
        self.reach(other.hollow, other.hollow)
    }

    fn reach(&self, first: usize, last: usize) -> RangeInclusive<usize> {
        let [to_start, to_end] = self.arms;
        (if to_start { 0 } else { first })..=(if to_end { self.length - 1 } else { last })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cp437;
    use super::*;

    /// The rows of the middle, where lines meet, and one above and below.
    fn middle(character: char) -> Vec<String> {
        let code = (0..=255).find(|code| cp437::to_char(*code) == character).expect("in CP437");
        let rows = glyph(code).expect("a frame character");
        rows[5..=9].iter().map(|row| format!("{row:08b}").replace('0', ".")).collect()
    }

    #[test]
    fn crossings_are_open_and_corners_close() {
        let closed = ["........", "..111111", "..11....", "..11.111", "..11.11."];
        assert_eq!(middle('╔'), closed);
        let open = ["..11.11.", "1111.111", "........", "1111.111", "..11.11."];
        assert_eq!(middle('╬'), open);
        assert_eq!(middle('╠'), ["..11.11.", "..11.111", "..11....", "..11.111", "..11.11."]);
    }

    #[test]
    fn single_strokes_pass_through_double_ones_or_stop_at_them() {
        assert_eq!(middle('╪'), ["...11...", "11111111", "...11...", "11111111", "...11..."]);
        assert_eq!(middle('╫'), ["..11.11.", "..11.11.", "11111111", "..11.11.", "..11.11."]);
        assert_eq!(middle('╤'), ["........", "11111111", "........", "11111111", "...11..."]);
        assert_eq!(middle('╢'), ["..11.11.", "..11.11.", "1111.11.", "..11.11.", "..11.11."]);
        assert_eq!(middle('╓'), ["........", "........", "..111111", "..11.11.", "..11.11."]);
    }

    #[test]
    fn every_arm_reaches_the_edge_as_its_neighbour_continues_it() {
        for (i, (arms, vertical, horizontal)) in FRAMES.iter().enumerate() {
            let rows = glyph(FIRST + i as u8).expect("in the table");
            let vertical = [0, 0b0001_1000, 0b0011_0110][usize::from(*vertical)];
            let edge = |arm, dots| if arms & arm != 0 { dots } else { 0 };
            assert_eq!((rows[0], rows[15]), (edge(UP, vertical), edge(DOWN, vertical)), "{i}");
            let lit = |bit| (0..16).filter(|y| rows[*y] & bit != 0).collect::<Vec<_>>();
            let strokes = [vec![], vec![7], vec![6, 8]][usize::from(*horizontal)].clone();
            assert_eq!(lit(0x80).is_empty(), arms & LEFT == 0, "{i}");
            assert!(arms & LEFT == 0 || lit(0x80) == strokes, "{i}");
            assert!(arms & RIGHT == 0 || lit(0x01) == strokes, "{i}");
        }
    }
}
