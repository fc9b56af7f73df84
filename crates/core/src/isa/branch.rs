//! Near transfers: JMP, Jcc, CALL, RET, LOOP, JCXZ.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
