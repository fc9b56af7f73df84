//! HLT, CPUID, RDTSC, MSRs, RDRAND, hypercalls and other system instructions.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
