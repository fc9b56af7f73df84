//! Shifts and rotates, SHLD and SHRD.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
