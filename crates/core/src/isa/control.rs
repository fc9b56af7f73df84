//! MOV CR, MOV DR, LMSW, SMSW, CLTS, LGDT, LIDT, SGDT, SIDT, INVLPG.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
