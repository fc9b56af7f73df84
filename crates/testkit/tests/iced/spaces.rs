//! The spaces of bytes that are compared: every set of prefixes with every opcode and ModRM byte,
//! and random bytes behind them.
//!
//! All of it is some hundred million instructions. A test takes one of so many; `DECODE_EVERY=1`
//! in the environment takes all, `DECODE_SEED` other bytes.

use realmode::CodeSize;

use crate::compare::LONGEST;

/// What is done with bytes.
pub(crate) type Check<'c> = &'c mut dyn FnMut(&[u8; LONGEST]);

/// One instruction of so many is taken; a prime, so that no column of a table is left out.
const EVERY: u64 = 251;
const SEED: u64 = 0x1234_5678_9ABC_DEF0;

/// Goes through a space.
pub(crate) type Space = fn(CodeSize, Check<'_>);

/// The spaces, and names for them.
pub(crate) const SPACES: [(&str, Space); 6] = [
    ("opcodes", opcodes),
    ("prefixes", legacy),
    ("VEX", vex),
    ("XOP", xop),
    ("EVEX", evex),
    ("random bytes", random),
];

/// A walk through a space, which takes some of its instructions.
struct Walk<'c> {
    check: Check<'c>,
    /// A fixed sequence of bytes for what follows ModRM: SIB, displacement, immediates.
    tail: u64,
    every: usize,
    /// How many are passed over before the next one is taken.
    skip: usize,
}

impl<'c> Walk<'c> {
    /// Through all of a space, or a part of it that depends on the environment.
    fn new(check: Check<'c>) -> Walk<'c> {
        let every = number("DECODE_EVERY", EVERY).max(1) as usize;
        Walk { check, tail: number("DECODE_SEED", SEED), every, skip: 0 }
    }

    /// Through all of a space.
    fn whole(check: Check<'c>) -> Walk<'c> {
        Walk { every: 1, ..Walk::new(check) }
    }

    /// The next of a fixed sequence of bytes.
    fn random(&mut self) -> u8 {
        // Knuth's MMIX generator.
        let next = self.tail.wrapping_mul(6364136223846793005);
        self.tail = next.wrapping_add(1442695040888963407);
        (self.tail >> 56) as u8
    }

    /// Takes `start` with these bytes behind it, one of so many.
    fn each(&mut self, start: &[&[u8]], modrms: &[u8]) {
        let mut at = self.skip;
        if at >= modrms.len() {
            self.skip -= modrms.len();
            return;
        }
        let mut bytes = [0; LONGEST];
        let mut len = 0;
        for part in start {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        while let Some(modrm) = modrms.get(at) {
            bytes[len] = *modrm;
            bytes[len + 1..].fill_with(|| self.random());
            (self.check)(&bytes);
            at += self.every;
        }
        self.skip = at - modrms.len();
    }
}

/// A number of the environment.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}: give a decimal number"))
}

/// Every ModRM byte.
const MODRM: [u8; 256] = {
    let mut all = [0; 256];
    let mut i = 0;
    while i < 256 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// ModRM bytes that reach every digit, every form of address, and whatever a register form is.
fn few_modrm() -> Vec<u8> {
    const FORMS: [u8; 8] = [0x00, 0x04, 0x05, 0x06, 0x42, 0x44, 0x83, 0x84];
    let digits = (0..8).flat_map(|digit| FORMS.map(|form| form | digit << 3));
    digits.chain(0xC0..=0xFF).collect()
}

/// The same without those that EVEX does not tell apart.
fn fewer_modrm() -> Vec<u8> {
    const FORMS: [u8; 5] = [0x04, 0x05, 0x44, 0x84, 0xC3];
    (0..8).flat_map(|digit| FORMS.map(|form| form | digit << 3)).collect()
}

const MAPS: [&[u8]; 4] = [&[], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]];

/// All opcodes of the four legacy maps behind the prefixes that choose among them.
fn opcodes(size: CodeSize, check: Check<'_>) {
    const PREFIXES: [&[u8]; 6] = [&[], &[0x66], &[0xF3], &[0xF2], &[0x66, 0xF3], &[0xF0]];
    const REX: [&[u8]; 4] = [&[0x48], &[0x66, 0x48], &[0xF3, 0x48], &[0xF2, 0x48]];
    let rex: &[&[u8]] = if size == CodeSize::Bits64 { &REX } else { &[] };
    let modrms = few_modrm();
    let mut walk = Walk::whole(check);
    for prefix in PREFIXES.iter().chain(rex) {
        for map in MAPS {
            for opcode in 0..=255 {
                walk.each(&[*prefix, map, &[opcode]], &modrms);
            }
        }
    }
    // 3DNow! has its opcode behind the operands.
    for opcode in 0..=255 {
        (walk.check)(&[0x0F, 0x0F, 0xC1, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        (walk.check)(&[0x0F, 0x0F, 0x01, opcode, 0, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

/// All opcodes of the vector maps with what chooses among them.
pub(crate) fn vector_opcodes(check: Check<'_>) {
    const FORMS: [u8; 3] = [0x04, 0xC0, 0xC3];
    let modrms: Vec<u8> = (0..8).flat_map(|digit| FORMS.map(|form| form | digit << 3)).collect();
    let mut walk = Walk::whole(check);
    for bits in 0..8 {
        for vvvv in [0x78, 0x48] {
            let last = (bits & 4) << 5 | vvvv | bits & 3;
            for opcode in 0..=255 {
                for map in [1, 2, 3, 7] {
                    walk.each(&[&[0xC4, 0xE0 | map, last, opcode]], &modrms);
                    walk.each(&[&[0xC4, 0xE0 | map, last | 4, opcode]], &modrms);
                }
                for map in [8, 9, 10] {
                    walk.each(&[&[0x8F, 0xE0 | map, last, opcode]], &modrms);
                    walk.each(&[&[0x8F, 0xE0 | map, last | 4, opcode]], &modrms);
                }
                for (map, third) in [1, 2, 3, 5, 6]
                    .into_iter()
                    .flat_map(|map| [0x08, 0x28, 0x48, 0x09, 0x29, 0x49].map(|third| (map, third)))
                {
                    walk.each(&[&[0x62, 0xF0 | map, last | 4, third, opcode]], &modrms);
                }
            }
        }
    }
}

/// All sets of prefixes, before all opcodes of the legacy maps with all ModRM bytes.
fn legacy(size: CodeSize, check: Check<'_>) {
    let mut walk = Walk::new(check);
    for prefixes in prefix_sets(size) {
        for map in MAPS {
            for opcode in 0..=255 {
                walk.each(&[&prefixes, map, &[opcode]], &MODRM);
            }
        }
    }
}

/// Every subset of 66, 67, LOCK, a repeat and a segment prefix, forwards and backwards; in 64-bit
/// code with every REX behind it, and with one that is not the last prefix and so is none.
fn prefix_sets(size: CodeSize) -> Vec<Vec<u8>> {
    const REPEATS: [&[u8]; 5] = [&[], &[0xF2], &[0xF3], &[0xF2, 0xF3], &[0xF3, 0xF2]];
    const SEGMENTS: [&[u8]; 5] = [&[], &[0x26], &[0x36], &[0x3E, 0x2E], &[0x65, 0x2E]];
    const SEGMENTS_64: [&[u8]; 3] = [&[], &[0x36], &[0x65, 0x2E]];
    let is_long = size == CodeSize::Bits64;
    let repeats = if is_long { &REPEATS[..3] } else { &REPEATS };
    let segments: &[&[u8]] = if is_long { &SEGMENTS_64 } else { &SEGMENTS };
    let mut sets: Vec<Vec<u8>> = vec![Vec::new()];
    for choices in [&[&[][..], &[0x66]][..], &[&[], &[0x67]], &[&[], &[0xF0]], repeats, segments] {
        let longer = |set: &Vec<u8>| choices.iter().map(|c| [set, *c].concat()).collect::<Vec<_>>();
        sets = sets.iter().flat_map(longer).collect();
    }
    if is_long {
        let none = sets.clone();
        let every = none.iter().flat_map(|set| (0x40..0x50).map(|rex| [&set[..], &[rex]].concat()));
        sets.extend(every);
        sets.extend(none.iter().map(|set| [&[0x4F], &set[..]].concat()));
    } else {
        let backwards = sets.iter().map(|set| set.iter().rev().copied().collect());
        sets.extend(backwards.collect::<Vec<Vec<u8>>>());
    }
    sets
}

/// VEX: every map, W, L and pp, R, X and B; vvvv is 1111b or not.
fn vex(_: CodeSize, check: Check<'_>) {
    let mut walk = Walk::new(check);
    for map in [0, 1, 2, 3, 7] {
        three_bytes(0xC4, map, &[0x78, 0x48, 0x08], &mut walk);
    }
    // The two-byte form: R, vvvv, L and pp.
    for second in 0..=255 {
        for opcode in 0..=255 {
            walk.each(&[&[0xC5, second, opcode]], &MODRM);
        }
    }
}

/// XOP, likewise.
fn xop(_: CodeSize, check: Check<'_>) {
    let mut walk = Walk::new(check);
    for map in [8, 9, 10, 11] {
        three_bytes(0x8F, map, &[0x78, 0x48], &mut walk);
    }
}

fn three_bytes(lead: u8, map: u8, vvvv: &[u8], walk: &mut Walk<'_>) {
    for rxb in [0xE0, 0x60, 0xA0, 0xC0, 0x00] {
        for bits in 0..16 {
            for vvvv in vvvv {
                let last = (bits & 8) << 4 | vvvv | bits & 7;
                for opcode in 0..=255 {
                    walk.each(&[&[lead, rxb | map, last, opcode]], &MODRM);
                }
            }
        }
    }
}

/// EVEX: every map, W and pp; zeroing, L'L, b, V' and the mask each alone and the usual ones
/// together; vvvv is 1111b or not; R, X, B and R' together and apart; the fixed bits wrong.
fn evex(_: CodeSize, check: Check<'_>) {
    const THIRD: [u8; 18] = [
        0x08, 0x28, 0x48, 0x68, 0x18, 0x38, 0x58, 0x78, 0x09, 0x29, 0x49, 0x89, 0xA9, 0xC9, 0x59,
        0x00, 0x01, 0xDA,
    ];
    let mut walk = Walk::new(check);
    let modrms = fewer_modrm();
    for map in [0, 1, 2, 3, 5, 6, 9] {
        for rxb in [0xF0, 0xD0, 0x60, 0x80] {
            for bits in 0..8 {
                for (third, fixed) in THIRD.map(|third| (third, 4)).into_iter().chain([(8, 0)]) {
                    for vvvv in [0x78, 0x48] {
                        let second = (bits & 4) << 5 | vvvv | fixed | bits & 3;
                        for opcode in 0..=255 {
                            walk.each(&[&[0x62, rxb | map, second, third, opcode]], &modrms);
                        }
                    }
                }
            }
        }
    }
}

/// Random bytes behind some random prefixes and the beginning of a map.
fn random(_: CodeSize, check: Check<'_>) {
    const COUNT: usize = 50_000_000;
    const PREFIXES: [u8; 16] = [
        0x66, 0x67, 0xF2, 0xF3, 0xF0, 0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x40, 0x41, 0x44, 0x48,
        0x4F,
    ];
    const MAPS: [&[u8]; 8] =
        [&[], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A], &[0xC4], &[0xC5], &[0x62], &[0x8F]];
    let mut walk = Walk::new(check);
    for _ in 0..COUNT / walk.every {
        let mut bytes = [0; LONGEST].map(|_| walk.random());
        let prefixes = usize::from((walk.random() & 7).saturating_sub(3));
        for byte in &mut bytes[..prefixes] {
            *byte = PREFIXES[usize::from(*byte & 15)];
        }
        let map = MAPS[usize::from(walk.random() & 7)];
        bytes[prefixes..prefixes + map.len()].copy_from_slice(map);
        (walk.check)(&bytes);
    }
}
