//! MMX, SSE, AVX, AVX-512 and every other VEX, EVEX, XOP and 3DNow! row.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
