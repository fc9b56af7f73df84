//! XCHG, XADD, CMPXCHG, CMPXCHG8B.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
