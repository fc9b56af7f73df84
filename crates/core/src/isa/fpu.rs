//! x87: control instructions, and the rows of the arithmetic.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
