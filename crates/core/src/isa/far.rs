//! Far transfers: JMP, CALL, RET, IRET, INT, INTO, BOUND.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
