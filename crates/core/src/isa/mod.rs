//! The instruction set: one family a file, each with its rows and its handlers.
//!
//! Nothing outside a family names its instructions: decode finds rows through the table below.

pub(crate) mod alu;
pub(crate) mod bcd;
pub(crate) mod bits;
pub(crate) mod branch;
pub(crate) mod condition;
pub(crate) mod control;
pub(crate) mod exchange;
pub(crate) mod far;
pub(crate) mod flag;
pub(crate) mod fpu;
pub(crate) mod hint;
pub(crate) mod mov;
pub(crate) mod msr;
pub(crate) mod muldiv;
pub(crate) mod operand;
pub(crate) mod port;
pub(crate) mod protected;
pub(crate) mod repeat;
pub(crate) mod row;
pub(crate) mod segment;
pub(crate) mod shift;
pub(crate) mod simd;
pub(crate) mod stack;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod vmx;

use crate::isa::row::{MAPS, NO_DIGIT, Row};

/// Every family. Within an opcode the first row that fits wins, so a family that refines another
/// one's encoding by a prefix comes first.
const FAMILIES: &[&[Row]] = &[
    alu::ROWS,
    hint::ROWS,
    mov::ROWS,
    segment::ROWS,
    condition::ROWS,
    exchange::ROWS,
    stack::ROWS,
    branch::ROWS,
    far::ROWS,
    shift::ROWS,
    muldiv::ROWS,
    bits::ROWS,
    bcd::ROWS,
    string::ROWS,
    port::ROWS,
    flag::ROWS,
    system::ROWS,
    msr::ROWS,
    vmx::ROWS,
    control::ROWS,
    protected::ROWS,
    fpu::ROWS,
    simd::ROWS,
];

/// How many rows there are.
pub(crate) const ROW_COUNT: usize = {
    let mut count = 0;
    let mut i = 0;
    while i < FAMILIES.len() {
        count += FAMILIES[i].len();
        i += 1;
    }
    count
};

/// Every row, by the number an `Op` carries.
pub(crate) static ROWS: [Row; ROW_COUNT] = flatten();

const fn flatten() -> [Row; ROW_COUNT] {
    let mut rows = [FAMILIES[0][0]; ROW_COUNT];
    let mut at = 0;
    let mut i = 0;
    while i < FAMILIES.len() {
        let mut j = 0;
        while j < FAMILIES[i].len() {
            rows[at] = FAMILIES[i][j];
            at += 1;
            j += 1;
        }
        i += 1;
    }
    rows
}

/// A link of an opcode's chain of rows.
#[derive(Clone, Copy)]
struct Link {
    row: u16,
    /// Index of the next link plus one; 0 ends the chain.
    next: u16,
}

/// Maps whose opcodes are also told apart by ModRM.reg when they are looked up.
const DIGIT_MAPS: usize = 2;
const LINKS: usize = 6144;

/// Opcode to rows.
struct Table {
    /// First link plus one of the one-byte and 0F maps, by opcode and ModRM.reg.
    digits: [[[u16; 8]; 256]; DIGIT_MAPS],
    /// First link plus one of the other maps.
    opcodes: [[u16; 256]; MAPS - DIGIT_MAPS],
    links: [Link; LINKS],
}

static TABLE: Table = build();

const fn build() -> Table {
    let rows = flatten();
    let mut table = Table {
        digits: [[[0; 8]; 256]; DIGIT_MAPS],
        opcodes: [[0; 256]; MAPS - DIGIT_MAPS],
        links: [Link { row: 0, next: 0 }; LINKS],
    };
    let mut used = 0;
    // Backwards, so that each chain begins with the first row.
    let mut i = ROW_COUNT;
    while i > 0 {
        i -= 1;
        let row = &rows[i];
        let map = row.map as usize;
        let mut k = 0;
        while k < row.span as usize {
            let opcode = row.opcode as usize + k;
            if map >= DIGIT_MAPS {
                let head = &mut table.opcodes[map - DIGIT_MAPS][opcode];
                used = link(&mut table.links, used, i, head);
            } else {
                used = link_digits(&mut table.links, used, i, row, &mut table.digits[map][opcode]);
            }
            k += 1;
        }
    }
    table
}

/// Puts a row before the chain that starts at `head`.
const fn link(links: &mut [Link; LINKS], used: usize, row: usize, head: &mut u16) -> usize {
    assert!(used < LINKS, "LINKS is too small for the rows there are");
    links[used] = Link { row: row as u16, next: *head };
    *head = used as u16 + 1;
    used + 1
}

/// The same for an opcode that ModRM.reg divides; chains that are still equal share links.
const fn link_digits(
    links: &mut [Link; LINKS],
    mut used: usize,
    row: usize,
    data: &Row,
    heads: &mut [u16; 8],
) -> usize {
    let digit = match data.form {
        row::Form::Exact(byte) => byte >> 3 & 7,
        _ => data.digit,
    };
    if digit != NO_DIGIT {
        return link(links, used, row, &mut heads[digit as usize]);
    }
    let mut d = 0;
    while d < 8 {
        // Chains that were one until here stay one.
        let old = heads[d];
        used = link(links, used, row, &mut heads[d]);
        let new = heads[d];
        let mut e = d + 1;
        while e < 8 && heads[e] == old {
            heads[e] = new;
            e += 1;
        }
        d = e;
    }
    used
}

/// The rows of an opcode, first choice first. `digit` is ModRM.reg, or 0 where there is none.
pub(crate) fn candidates(map: usize, opcode: u8, digit: u8) -> Candidates {
    let next = if map < DIGIT_MAPS {
        TABLE.digits[map][usize::from(opcode)][usize::from(digit & 7)]
    } else {
        TABLE.opcodes.get(map - DIGIT_MAPS).map_or(0, |heads| heads[usize::from(opcode)])
    };
    Candidates { next }
}

/// An iterator over the rows of an opcode.
pub(crate) struct Candidates {
    next: u16,
}

impl Iterator for Candidates {
    type Item = (u16, &'static Row);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let link = TABLE.links.get(usize::from(self.next).checked_sub(1)?)?;
        self.next = link.next;
        Some((link.row, ROWS.get(usize::from(link.row))?))
    }
}
