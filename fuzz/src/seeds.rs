//! The seed corpora, made from the guests and cases of the repository: `seeds/TARGET/NAME` each.
//! They are committed, so that a fuzzer begins where these have been; this says where they come
//! from.

use std::fs;
use std::path::{Path, PathBuf};

use crate::snapshot::{HONEST_MACHINES, HONEST_PROCESSORS};

/// Files of a target that are made from cases, and those that are made from nothing.
const FROM_CASES: usize = 60;
const FROM_NOTHING: u64 = 48;
/// Bytes that are enough for a processor in any state.
const PROCESSOR: usize = 1200;

/// A file of a seed corpus.
pub struct Seed {
    /// The target it is for.
    pub target: &'static str,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Where the seed corpora lie.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

/// All seeds, the same every time.
pub fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut add = |target, name: String, bytes| seeds.push(Seed { target, name, bytes });
    for (i, code) in code().into_iter().enumerate() {
        let name = format!("code-{i:02}");
        add("decode", name.clone(), [&[i as u8], &code.bytes[..]].concat());
        add("decode_vs_iced", name.clone(), [&[code.size], &code.bytes[..]].concat());
        add("step", name, step(i as u64, &code));
    }
    for n in 0..FROM_NOTHING {
        for target in ["run", "cached_vs_uncached", "restart"] {
            add(target, format!("tape-{n:02}"), random(n, 500));
        }
        add("step_vs_native", format!("tape-{n:02}"), random(n, 200));
    }
    snapshots(&mut add);
    boots(&mut add);
    seeds
}

/// Bytes out of nothing, but always the same (Knuth's MMIX generator).
fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    });
    // The first ones still show the seed.
    next.skip(16).take(len).collect()
}

/// Instructions.
struct Code {
    /// As in `CodeSize`.
    size: u8,
    bytes: Vec<u8>,
}

/// Instructions of every kind that the vector maps have, which no case executes.
const VECTORS: [&[u8]; 8] = [
    &[0x0F, 0x58, 0x04, 0x25, 0x00, 0x10, 0x00, 0x00], // addps
    &[0xC5, 0xFC, 0x58, 0xC1],                         // vaddps
    &[0xC4, 0xE2, 0x71, 0x92, 0x04, 0x91],             // vgatherdps
    &[0x62, 0xF1, 0x7C, 0x48, 0x58, 0x40, 0x01],       // vaddps zmm
    &[0x62, 0xF5, 0x7C, 0x18, 0x58, 0x40, 0x01],       // vaddph, broadcast
    &[0x8F, 0xE9, 0x78, 0x81, 0xC1],                   // vfrczpd
    &[0x0F, 0x0F, 0xC1, 0x9E],                         // pfadd
    &[0xC4, 0xE2, 0x7B, 0x49, 0xC0],                   // tilezero
];

/// Some of the cases' code, and of what they do not have.
fn code() -> Vec<Code> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/cases");
    let entries = fs::read_dir(&cases).expect("the cases lie beside this directory");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "case")) {
        let text = fs::read_to_string(path).expect("a case file is text");
        all.extend(text.split("\ncase ").filter_map(code_of_case));
    }
    let every = all.len().div_ceil(FROM_CASES).max(1);
    let vectors = VECTORS.map(|bytes| Code { size: 2, bytes: bytes.to_vec() });
    all.into_iter().step_by(every).chain(vectors).collect()
}

fn code_of_case(case: &str) -> Option<Code> {
    let lines = || case.lines().map(|line| line.split(';').next().unwrap_or("").trim());
    let bytes: Vec<u8> = lines()
        .filter_map(|line| line.strip_prefix("code ").or_else(|| line.strip_prefix("row ")))
        .flat_map(|line| {
            line.split_whitespace().map_while(|word| u8::from_str_radix(word, 16).ok())
        })
        .take(40)
        .collect();
    let size = u8::from(lines().any(|line| line.starts_with("protected")));
    (!bytes.is_empty()).then_some(Code { size, bytes })
}

/// A processor that executes the code: awake, with a cache, in real, big real or protected mode.
fn step(number: u64, code: &Code) -> Vec<u8> {
    let mode = if code.size == 0 { number as u8 & 1 } else { 2 };
    let answers = random(number, 40);
    let head = [number as u8, mode, 0b111, code.bytes.len() as u8, answers.len() as u8, 0, 0, 0, 0];
    [&head[..], &code.bytes, &answers, &random(!number, PROCESSOR)].concat()
}

/// Honest snapshots as they are, and with bytes replaced.
fn snapshots(add: &mut impl FnMut(&'static str, String, Vec<u8>)) {
    for (kind, honest) in [(0, &HONEST_MACHINES), (1, &HONEST_PROCESSORS)] {
        for (choice, bytes) in honest.iter().enumerate() {
            add(
                "snapshot",
                format!("honest-{kind}-{choice}"),
                [&[kind, 0xFF], &bytes[..]].concat(),
            );
            for edits in 0..10 {
                let edited = [&[kind, choice as u8][..], &random(edits, 3 << (edits % 6))].concat();
                add("snapshot", format!("edited-{kind}-{choice}-{edits}"), edited);
            }
        }
    }
}

/// The guests, as whatever they may be taken for.
fn boots(add: &mut impl FnMut(&'static str, String, Vec<u8>)) {
    let guests: [(&str, &[u8]); 7] = [
        ("demo", include_bytes!("../../testdata/guests/demo.bin")),
        ("disk", include_bytes!("../../testdata/guests/disk.bin")),
        ("interrupts", include_bytes!("../../testdata/guests/interrupts.bin")),
        ("multiboot", include_bytes!("../../testdata/guests/multiboot.elf")),
        ("ports", include_bytes!("../../testdata/guests/ports.bin")),
        ("services", include_bytes!("../../testdata/guests/services.bin")),
        ("transfers", include_bytes!("../../testdata/guests/transfers.bin")),
    ];
    for (name, image) in guests {
        for kind in 0..6 {
            for flags in [0b0010_1101, 0b0001_0111] {
                let head = [kind, flags, 0xC0, 0x07];
                add("boot", format!("{name}-{kind}-{flags:02x}"), [&head, image].concat());
            }
        }
    }
}
