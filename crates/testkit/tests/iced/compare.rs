//! One comparison, and the report of those that failed.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction as Theirs, Mnemonic};
use realmode::{CodeSize, Features, Instruction as Ours, Profile, Segmentation, decode_one};

use super::differences::{is_known, spelling};
use super::operands::IP;
use super::properties;

/// How two decoders see the same bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Difference {
    pub(crate) bits: u8,
    pub(crate) iced: Seen,
    pub(crate) ours: Seen,
}

impl Difference {
    pub(crate) fn new(bits: u8, theirs: &Theirs, ours: Option<&Ours>) -> Difference {
        let iced = (theirs.len(), format!("{:?}", theirs.code()));
        Difference {
            bits,
            iced: (!theirs.is_invalid()).then_some(iced),
            ours: ours.map(|ours| (ours.len(), ours.mnemonic().to_string())),
        }
    }
}

/// What a decoder makes of bytes: length and name, unless they are undefined.
pub(crate) type Seen = Option<(usize, String)>;

/// A modern Intel processor with whatever any processor has, as iced sees the world.
pub(crate) fn profile() -> Profile {
    // LOCK MOV CR0 is MOV CR8 for AMD alone.
    let features = Features::all().difference(Features::CR8_LEGACY);
    Profile { features, ..Profile::INTEL }
}

/// What iced makes of bytes.
pub(crate) fn theirs(size: CodeSize, bytes: &[u8]) -> Theirs {
    Decoder::with_ip(u32::from(size.bits()), bytes, IP, DecoderOptions::MPX).decode()
}

/// What we make of them, if they are an instruction.
pub(crate) fn ours(size: CodeSize, bytes: &[u8], profile: &Profile) -> Option<Ours> {
    decode_one(bytes, size, profile, Segmentation::Protected)
        .ok()
        .filter(|ours| !ours.is_undefined())
        .map(|ours| ours.at(IP))
}

/// The longest instruction.
pub(crate) const LONGEST: usize = 15;

/// Comparisons of one space of bytes.
pub(crate) struct Comparison {
    profile: Profile,
    pub(crate) checked: u64,
    failed: BTreeMap<Difference, (u64, [u8; LONGEST])>,
    /// The first differences in operands, by code size, encoding and property.
    operands: BTreeMap<(u8, Code, &'static str), String>,
    /// Every encoding that was met.
    pub(crate) codes: HashSet<Code>,
    /// Our text and iced's.
    text: [String; 2],
}

impl Comparison {
    pub(crate) fn new() -> Comparison {
        Comparison {
            profile: profile(),
            checked: 0,
            failed: BTreeMap::new(),
            operands: BTreeMap::new(),
            codes: HashSet::new(),
            text: [String::new(), String::new()],
        }
    }

    /// Joins the results of another one.
    pub(crate) fn add(&mut self, other: Comparison) {
        self.checked += other.checked;
        self.failed.extend(other.failed);
        self.operands.extend(other.operands);
        self.codes.extend(other.codes);
    }

    /// Compares what the decoders make of the instruction that `bytes` begin with.
    pub(crate) fn check(&mut self, size: CodeSize, bytes: &[u8; LONGEST]) {
        self.checked += 1;
        let theirs = theirs(size, bytes);
        let ours = ours(size, bytes, &self.profile);
        self.codes.insert(theirs.code());
        if theirs.is_invalid() && ours.is_none() {
            return;
        }
        let [our_text, their_text] = &mut self.text;
        our_text.clear();
        if let Some(ours) = &ours {
            let _ = write!(our_text, "{ours}");
            let same = theirs.len() == ours.len() && same_name(theirs.mnemonic(), our_text);
            if same && !theirs.is_invalid() {
                let found = properties::difference(&theirs, ours, size, (our_text, their_text));
                if let Some(property) = found {
                    let key = (size.bits(), theirs.code(), property);
                    self.operands.entry(key).or_insert_with(|| {
                        format!("{bytes:02x?}: iced {their_text:?}, ours {our_text:?}")
                    });
                }
                return;
            }
        }
        let difference = Difference::new(size.bits(), &theirs, ours.as_ref());
        if !is_known(&difference) {
            self.failed.entry(difference).or_insert((0, *bytes)).0 += 1;
        }
    }

    /// Panics with a report if any comparison failed.
    pub(crate) fn assert_equal(&self) {
        for (Difference { bits, iced, ours }, (count, bytes)) in self.failed.iter().take(40) {
            println!("{bits}-bit {bytes:02x?}: iced {iced:?}, ours {ours:?} ({count} times)");
        }
        for ((bits, code, property), texts) in self.operands.iter().take(40) {
            println!("{bits}-bit {code:?}: {property}: {texts}");
        }
        let kinds = self.failed.len() + self.operands.len();
        assert!(kinds == 0, "{kinds} kinds of differences in {} comparisons", self.checked);
    }
}

const PREFIXES: [&str; 16] = [
    "lock", "rep", "repe", "repne", "o16", "o32", "o64", "a16", "a32", "a64", "es", "cs", "ss",
    "ds", "fs", "gs",
];

/// Words in front of a name.
pub(crate) fn is_prefix(word: &str) -> bool {
    PREFIXES.contains(&word)
}

/// Is the first word of the text, prefixes aside, what iced calls the instruction?
fn same_name(theirs: Mnemonic, text: &str) -> bool {
    let name = text.split(' ').find(|word| !is_prefix(word)).unwrap_or("");
    spelling(theirs) == name
}
