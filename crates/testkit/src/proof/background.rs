//! What an arena holds before a case: INT3 where there is code, numbers with edges where there is
//! data.

use super::generate::value;
use super::layout::{ARENA_SIZE, DATA};
use crate::prng::Prng;

/// The words of an arena.
pub(super) fn words() -> Vec<u64> {
    let mut random = Prng::new(0x6261_636B);
    let code = u64::from_ne_bytes([0xCC; 8]);
    (0..ARENA_SIZE / 8)
        .map(|word| if word < DATA / 8 { code } else { value(&mut random) })
        .collect()
}
