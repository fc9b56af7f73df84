//! Numbers with an inclination to edges.

use crate::prng::Prng;

/// A number: small, near a sign bit of any width, one bit, all ones from or up to a bit, halves
/// of different kinds, or any.
pub(in crate::proof) fn value(random: &mut Prng) -> u64 {
    match random.below(16) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => edge(random),
        4 => 1 << random.below(64),
        5 => u64::MAX << random.below(64),
        6 => u64::MAX >> random.below(64),
        7 => random.below(32),
        8 => u64::MAX - random.below(32),
        // Each width has its own edge.
        9 => edge(random) << 32 | edge(random) & 0xFFFF_FFFF,
        10 => random.next() << 32 | small_edges(random),
        11 => u64::from(random.next() as u8) * 0x0101_0101_0101_0101,
        _ => random.next(),
    }
}

/// The largest and smallest signed number of a width, and their neighbours.
fn edge(random: &mut Prng) -> u64 {
    let sign = 1u64 << random.pick(&[7, 15, 31, 63]);
    sign.wrapping_add(random.below(5)).wrapping_sub(2)
}

/// Bytes that are edges by themselves: for 8-bit operands and high halves.
fn small_edges(random: &mut Prng) -> u64 {
    const EDGES: [u64; 10] = [0, 1, 0x7F, 0x80, 0xFF, 0x0F, 0x10, 0x99, 0x9A, 0xFE];
    (0..4).fold(0, |word, _| word << 8 | random.pick(&EDGES))
}
