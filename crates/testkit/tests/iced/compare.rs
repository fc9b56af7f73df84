//! One comparison, and the report of those that failed.

use std::collections::{BTreeMap, HashSet};

use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use realmode::{CodeSize, Features, Profile, Segmentation, decode_one};

use super::differences::{is_known, spelling};

/// How two decoders see the same bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Difference {
    pub(crate) bits: u8,
    pub(crate) iced: Seen,
    pub(crate) ours: Seen,
}

/// What a decoder makes of bytes: length and name, unless they are undefined.
pub(crate) type Seen = Option<(usize, String)>;

/// A modern Intel processor with whatever any processor has, as iced sees the world.
pub(crate) fn profile() -> Profile {
    // LOCK MOV CR0 is MOV CR8 for AMD alone.
    let features = Features::all().difference(Features::CR8_LEGACY);
    Profile { features, ..Profile::INTEL }
}

/// The longest instruction.
pub(crate) const LONGEST: usize = 15;

/// Comparisons of one space of bytes.
pub(crate) struct Comparison {
    profile: Profile,
    pub(crate) checked: u64,
    failed: BTreeMap<Difference, (u64, [u8; LONGEST])>,
    /// Every encoding that was met.
    pub(crate) codes: HashSet<Code>,
}

impl Comparison {
    pub(crate) fn new() -> Comparison {
        let (failed, codes) = (BTreeMap::new(), HashSet::new());
        Comparison { profile: profile(), checked: 0, failed, codes }
    }

    /// Joins the results of another one.
    pub(crate) fn add(&mut self, other: Comparison) {
        self.checked += other.checked;
        self.failed.extend(other.failed);
        self.codes.extend(other.codes);
    }

    /// Compares what the decoders make of the instruction that `bytes` begin with.
    pub(crate) fn check(&mut self, size: CodeSize, bytes: &[u8; LONGEST]) {
        self.checked += 1;
        let mut decoder = Decoder::with_ip(u32::from(size.bits()), bytes, 0, DecoderOptions::MPX);
        let theirs = decoder.decode();
        self.codes.insert(theirs.code());
        let ours = decode_one(bytes, size, &self.profile, Segmentation::Protected)
            .ok()
            .filter(|ours| !ours.is_undefined());
        let same = match &ours {
            None => theirs.is_invalid(),
            Some(ours) => {
                !theirs.is_invalid()
                    && theirs.len() == ours.len()
                    && same_name(theirs.mnemonic(), &ours.to_string())
            }
        };
        if same {
            return;
        }
        let difference = Difference {
            bits: size.bits(),
            iced: (!theirs.is_invalid()).then(|| (theirs.len(), format!("{:?}", theirs.code()))),
            ours: ours.map(|ours| (ours.len(), ours.mnemonic().to_string())),
        };
        if !is_known(&difference) {
            self.failed.entry(difference).or_insert((0, *bytes)).0 += 1;
        }
    }

    /// Panics with a report if any comparison failed.
    pub(crate) fn assert_equal(&self) {
        for (Difference { bits, iced, ours }, (count, bytes)) in self.failed.iter().take(40) {
            println!("{bits}-bit {bytes:02x?}: iced {iced:?}, ours {ours:?} ({count} times)");
        }
        let kinds = self.failed.len();
        assert!(kinds == 0, "{kinds} kinds of differences in {} comparisons", self.checked);
    }
}

/// Is the first word of the text, prefixes aside, what iced calls the instruction?
fn same_name(theirs: Mnemonic, text: &str) -> bool {
    const PREFIXES: [&str; 16] = [
        "lock", "rep", "repe", "repne", "o16", "o32", "o64", "a16", "a32", "a64", "es", "cs", "ss",
        "ds", "fs", "gs",
    ];
    let name = text.split(' ').find(|word| !PREFIXES.contains(word)).unwrap_or("");
    spelling(theirs) == name
}
