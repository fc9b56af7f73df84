//! BT and its family, BSF, BSR, TZCNT, LZCNT, POPCNT, CRC32, ADCX, ADOX.

use crate::isa::row::Row;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[];
