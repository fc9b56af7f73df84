//! DAA, DAS, AAA, AAS, AAM, AAD.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
