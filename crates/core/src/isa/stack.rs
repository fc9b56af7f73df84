//! PUSH, POP, PUSHA, POPA, PUSHF, POPF, ENTER, LEAVE.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
