//! Instructions of protected mode: LAR LSL VERR VERW ARPL, SLDT STR LLDT LTR. In real and
//! virtual-8086 mode none of them exists.

use crate::isa::operand::Operand::{Ew, Gv, Gw, Mw, Rv};
use crate::isa::row::{Modes, Row, one, two};
use crate::profile::Generation;

const fn group6(name: &'static str, digit: u8) -> Row {
    protected(two(name, 0x00, &[Ew]).digit(digit))
}

const fn protected(row: Row) -> Row {
    row.modes(Modes::Protected).since(Generation::I80286)
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // The memory form stores 16 bits, the register form the operand size.
    protected(two("SLDT", 0x00, &[Mw]).digit(0)),
    protected(two("SLDT", 0x00, &[Rv]).register().digit(0)),
    protected(two("STR", 0x00, &[Mw]).digit(1)),
    protected(two("STR", 0x00, &[Rv]).register().digit(1)),
    group6("LLDT", 2).changes_validity(),
    group6("LTR", 3).changes_validity(),
    group6("VERR", 4),
    group6("VERW", 5),
    protected(two("LAR", 0x02, &[Gv, Ew])),
    protected(two("LSL", 0x03, &[Gv, Ew])),
    one("ARPL", 0x63, &[Ew, Gw]).modes(Modes::Protected32).since(Generation::I80286),
];
