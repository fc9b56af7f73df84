//! Loads and stores of segment registers: MOV Sreg, LDS, LES, LSS, LFS, LGS.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
