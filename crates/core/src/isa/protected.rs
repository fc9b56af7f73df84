//! Protected-mode instructions: LAR, LSL, VERR, VERW, ARPL, SLDT, STR, LLDT, LTR.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
