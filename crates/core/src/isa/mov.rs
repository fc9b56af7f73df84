//! MOV, MOVZX, MOVSX, LEA, XLAT, LAHF, SAHF, SALC, CBW, CWD, BSWAP, MOVBE, MOVNTI, MOVDIRI, MOVDIR64B.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
