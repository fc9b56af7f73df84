//! The spaces of bytes that are compared.

use realmode::CodeSize;

use crate::compare::Comparison;

/// Bytes that follow whatever is enumerated: SIB, displacement, immediates.
struct Tail(u64);

impl Tail {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // Knuth's MMIX constants.
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

/// ModRM bytes that reach every digit and every form of address.
fn few_modrm() -> impl Iterator<Item = u8> + Clone {
    let forms = [0x00, 0x04, 0x05, 0x06, 0x42, 0x44, 0x83, 0x84, 0xC0, 0xC3, 0xC6];
    (0..8u8).flat_map(move |digit| forms.map(|form| form | digit << 3))
}

const PREFIXES: [&[u8]; 14] = [
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
];
const REX_PREFIXES: [&[u8]; 9] = [
    &[0x48],
    &[0x41],
    &[0x44],
    &[0x66, 0x48],
    &[0xF3, 0x48],
    &[0xF2, 0x48],
    &[0xF0, 0x48],
    &[0x67, 0x4A],
    &[0x48, 0x66],
];

fn each(
    comparison: &mut Comparison,
    size: CodeSize,
    starts: impl Iterator<Item = Vec<u8>>,
    modrms: impl Iterator<Item = u8> + Clone,
) {
    let mut tail = Tail(0x1234_5678_9ABC_DEF0);
    for start in starts {
        for modrm in modrms.clone() {
            let mut bytes = [0; 32];
            bytes[..start.len()].copy_from_slice(&start);
            bytes[start.len()] = modrm;
            tail.fill(&mut bytes[start.len() + 1..]);
            comparison.check(size, &bytes);
        }
    }
}

/// Opcodes of the legacy maps, each after some prefixes.
fn legacy<'p>(prefixes: &'p [&'p [u8]]) -> impl Iterator<Item = Vec<u8>> + 'p {
    const MAPS: [&[u8]; 4] = [&[], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]];
    prefixes.iter().flat_map(|prefix| {
        MAPS.iter().flat_map(move |map| {
            (0..=255).map(move |opcode| [*prefix, *map, &[opcode]].concat())
        })
    })
}

fn vex(maps: &'static [u8]) -> impl Iterator<Item = Vec<u8>> {
    maps.iter().flat_map(|map| {
        // W, L, pp; vvvv is 1111b or not.
        (0..16u8).flat_map(move |bits| {
            [0x78, 0x48, 0x08].into_iter().flat_map(move |vvvv| {
                let last = (bits & 8) << 4 | vvvv | bits & 7;
                (0..=255).map(move |opcode| vec![0xC4, 0xE0 | map, last, opcode])
            })
        })
    })
}

fn xop() -> impl Iterator<Item = Vec<u8>> {
    (8..11).flat_map(|map| {
        (0..16u8).flat_map(move |bits| {
            [0x78, 0x48].into_iter().flat_map(move |vvvv| {
                let last = (bits & 8) << 4 | vvvv | bits & 7;
                (0..=255).map(move |opcode| vec![0x8F, 0xE0 | map, last, opcode])
            })
        })
    })
}

fn evex() -> impl Iterator<Item = Vec<u8>> {
    // Zeroing, L'L, b, V', mask: each alone, and the usual ones together.
    const THIRD: [u8; 14] = [
        0x08, 0x28, 0x48, 0x68, 0x18, 0x38, 0x58, 0x78, 0x09, 0x49, 0x89, 0xC9, 0x00, 0xDA,
    ];
    [1, 2, 3, 5, 6].into_iter().flat_map(|map| {
        (0..8u8).flat_map(move |bits| {
            THIRD.into_iter().flat_map(move |third| {
                [0x78, 0x48].into_iter().flat_map(move |vvvv| {
                    let second = (bits & 4) << 5 | vvvv | 4 | bits & 3;
                    (0..=255).map(move |opcode| vec![0x62, 0xF0 | map, second, third, opcode])
                })
            })
        })
    })
}

#[test]
fn legacy_maps_in_16_bit_code() {
    let mut comparison = Comparison::new();
    each(&mut comparison, CodeSize::Bits16, legacy(&PREFIXES), 0..=255);
    comparison.finish();
}

#[test]
fn legacy_maps_in_32_bit_code() {
    let mut comparison = Comparison::new();
    each(&mut comparison, CodeSize::Bits32, legacy(&PREFIXES), 0..=255);
    comparison.finish();
}

#[test]
fn legacy_maps_in_64_bit_code() {
    let mut comparison = Comparison::new();
    each(&mut comparison, CodeSize::Bits64, legacy(&PREFIXES), 0..=255);
    each(&mut comparison, CodeSize::Bits64, legacy(&REX_PREFIXES), 0..=255);
    comparison.finish();
}

#[test]
fn vex_and_xop() {
    let mut comparison = Comparison::new();
    for size in [CodeSize::Bits32, CodeSize::Bits64] {
        each(&mut comparison, size, vex(&[1, 2, 3, 7]), few_modrm());
        each(&mut comparison, size, xop(), few_modrm());
    }
    comparison.finish();
}

#[test]
fn evex_maps() {
    let mut comparison = Comparison::new();
    for size in [CodeSize::Bits32, CodeSize::Bits64] {
        each(&mut comparison, size, evex(), few_modrm());
    }
    comparison.finish();
}
