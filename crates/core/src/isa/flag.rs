//! CLC, STC, CMC, CLD, STD, CLI, STI.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
