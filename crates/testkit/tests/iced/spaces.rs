//! The spaces of bytes that are compared.

use realmode::CodeSize;

use crate::compare::LONGEST;

/// What is done with bytes.
pub(crate) type Check<'c> = &'c mut dyn FnMut(&[u8; LONGEST]);

/// Bytes that follow whatever is enumerated: SIB, displacement, immediates. A fixed sequence.
struct Tail(u64);

impl Tail {
    fn new() -> Tail {
        Tail(0x1234_5678_9ABC_DEF0)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // Knuth's MMIX generator.
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

/// Checks `start` with each of these ModRM bytes behind it.
fn each_modrm(
    start: &[&[u8]],
    modrms: impl Iterator<Item = u8>,
    tail: &mut Tail,
    check: &mut dyn FnMut(&[u8; LONGEST]),
) {
    let mut bytes = [0; LONGEST];
    let mut at = 0;
    for part in start {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    for modrm in modrms {
        bytes[at] = modrm;
        tail.fill(&mut bytes[at + 1..]);
        check(&bytes);
    }
}

/// ModRM bytes that reach every digit and every form of address.
pub(crate) fn few_modrm() -> impl Iterator<Item = u8> + Clone {
    let forms = [0x00, 0x04, 0x05, 0x06, 0x42, 0x44, 0x83, 0x84, 0xC0, 0xC3, 0xC6];
    (0..8u8).flat_map(move |digit| forms.map(|form| form | digit << 3))
}

/// The same without those that EVEX does not tell apart.
fn fewer_modrm() -> impl Iterator<Item = u8> + Clone {
    let forms = [0x04, 0x05, 0x44, 0x84, 0xC3];
    (0..8u8).flat_map(move |digit| forms.map(|form| form | digit << 3))
}

const PREFIXES: [&[u8]; 15] = [
    &[],
    &[0x66],
    &[0xF3],
    &[0xF2],
    &[0x66, 0xF3],
    &[0x66, 0xF2],
    &[0xF0],
    &[0x67],
    &[0x66, 0x67],
    &[0x2E],
    &[0x65],
    &[0xF0, 0xF2],
    &[0xF0, 0xF3],
    &[0xF3, 0xF2],
    &[0x66, 0xF0],
];
const REX_PREFIXES: [&[u8]; 11] = [
    &[0x48],
    &[0x41],
    &[0x44],
    &[0x66, 0x48],
    &[0xF3, 0x48],
    &[0xF2, 0x48],
    &[0xF0, 0x48],
    &[0x67, 0x4A],
    // The first REX is not the last prefix, and so none.
    &[0x48, 0x66],
    &[0xF3, 0x41],
    &[0x66, 0xF3, 0x48],
];

/// The one-byte, 0F, 0F 38 and 0F 3A maps behind several prefixes.
pub(crate) fn legacy<M: Iterator<Item = u8> + Clone>(size: CodeSize, modrms: &M, check: Check<'_>) {
    const MAPS: [&[u8]; 4] = [&[], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]];
    let rex: &[&[u8]] = if size == CodeSize::Bits64 { &REX_PREFIXES } else { &[] };
    let mut tail = Tail::new();
    for prefix in PREFIXES.iter().chain(rex) {
        for map in MAPS {
            for opcode in 0..=255 {
                each_modrm(&[*prefix, map, &[opcode]], modrms.clone(), &mut tail, check);
            }
        }
    }
    // 3DNow! has its opcode behind the operands.
    for opcode in 0..=255 {
        check(&[0x0F, 0x0F, 0xC1, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(&[0x0F, 0x0F, 0x01, opcode, 0, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

/// VEX: every map, W, L and pp; vvvv is 1111b or not.
pub(crate) fn vex(check: Check<'_>) {
    three_bytes(0xC4, &[1, 2, 3, 7], &[0x78, 0x48, 0x08], check);
}

/// XOP, likewise.
pub(crate) fn xop(check: Check<'_>) {
    three_bytes(0x8F, &[8, 9, 10], &[0x78, 0x48], check);
}

fn three_bytes(lead: u8, maps: &[u8], vvvv: &[u8], check: Check<'_>) {
    let mut tail = Tail::new();
    for map in maps {
        for bits in 0..16u8 {
            for vvvv in vvvv {
                let last = (bits & 8) << 4 | vvvv | bits & 7;
                for opcode in 0..=255 {
                    let start = [lead, 0xE0 | map, last, opcode];
                    each_modrm(&[&start], few_modrm(), &mut tail, check);
                }
            }
        }
    }
}

/// EVEX: every map, W and pp; zeroing, L'L, b, V' and the mask each alone and the usual ones
/// together; vvvv is 1111b or not.
pub(crate) fn evex(check: Check<'_>) {
    const THIRD: [u8; 15] =
        [0x08, 0x28, 0x48, 0x68, 0x18, 0x38, 0x58, 0x78, 0x09, 0x29, 0x49, 0x89, 0xC9, 0x00, 0xDA];
    let mut tail = Tail::new();
    for map in [1, 2, 3, 5, 6] {
        for bits in 0..8u8 {
            for third in THIRD {
                for vvvv in [0x78, 0x48] {
                    let second = (bits & 4) << 5 | vvvv | 4 | bits & 3;
                    for opcode in 0..=255 {
                        let start = [0x62, 0xF0 | map, second, third, opcode];
                        each_modrm(&[&start], fewer_modrm(), &mut tail, check);
                    }
                }
            }
        }
    }
}
