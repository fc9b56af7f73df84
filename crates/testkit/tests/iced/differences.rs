//! What the two decoders are known to see differently, and who is right.

use crate::compare::Difference;

pub fn is_known(_: &Difference, _: &[u8; 32]) -> bool {
    false
}
