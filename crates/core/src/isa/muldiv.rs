//! MUL, IMUL, DIV, IDIV.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
