//! Hint and fence encodings: PAUSE, NOP, ENDBR, PREFETCH, LFENCE, CLFLUSH and their kin.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
