//! MOVS, CMPS, STOS, LODS, SCAS with REP.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
