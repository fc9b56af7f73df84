//! One comparison, and the report of those that failed.

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use realmode::{CodeSize, Features, Profile, Segmentation, decode_one};

use crate::differences::is_known;

/// How two decoders see the same bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    pub bits: u8,
    pub iced: Seen,
    pub ours: Seen,
}

/// What a decoder makes of bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Seen {
    Undefined,
    Instruction { len: usize, name: String },
}

/// Comparisons of one space of bytes.
pub struct Comparison {
    profile: Profile,
    checked: u64,
    failed: BTreeMap<Difference, (u64, [u8; 32])>,
    pub codes: Vec<bool>,
}

impl Comparison {
    pub fn new() -> Comparison {
        let profile = Profile { features: Features::all(), ..Profile::INTEL };
        Comparison { profile, checked: 0, failed: BTreeMap::new(), codes: vec![false; Code::values().len()] }
    }

    pub fn check(&mut self, size: CodeSize, bytes: &[u8; 32]) {
        self.checked += 1;
        let mut decoder =
            Decoder::with_ip(u32::from(size.bits()), &bytes[..15], 0, DecoderOptions::MPX);
        let theirs = decoder.decode();
        self.codes[theirs.code() as usize] = true;
        let ours = decode_one(&bytes[..15], size, &self.profile, Segmentation::Protected);
        let same = match &ours {
            Ok(ours) if ours.is_undefined() => theirs.is_invalid(),
            Ok(ours) => {
                !theirs.is_invalid() && theirs.len() == ours.len()
                    && same_name(theirs.mnemonic(), &ours.to_string())
            }
            Err(_) => theirs.is_invalid(),
        };
        if same {
            return;
        }
        let iced = if theirs.is_invalid() {
            Seen::Undefined
        } else {
            Seen::Instruction { len: theirs.len(), name: format!("{:?}", theirs.code()) }
        };
        let ours = match ours {
            Ok(ours) if !ours.is_undefined() => {
                Seen::Instruction { len: ours.len(), name: ours.mnemonic().to_string() }
            }
            _ => Seen::Undefined,
        };
        let difference = Difference { bits: size.bits(), iced, ours };
        if !is_known(&difference, bytes) {
            self.failed.entry(difference).or_insert((0, *bytes)).0 += 1;
        }
    }

    /// Panics with a report if any comparison failed.
    pub fn finish(&self) {
        for (difference, (count, bytes)) in self.failed.iter().take(2000) {
            let hex: Vec<String> = bytes[..15].iter().map(|byte| format!("{byte:02x}")).collect();
            println!("DIFF {count:7} {} {:?} | {:?} | {}", difference.bits, difference.iced, difference.ours, hex.join(" "));
        }
        assert!(
            self.failed.is_empty(),
            "{} kinds of differences in {} comparisons",
            self.failed.len(),
            self.checked
        );
    }
}

/// Is the first word of the text, prefixes aside, what iced calls the instruction?
fn same_name(theirs: Mnemonic, text: &str) -> bool {
    let prefixes =
        ["lock", "rep", "repe", "repne", "o16", "o32", "o64", "es", "cs", "ss", "ds", "fs", "gs"];
    let name = text.split(' ').find(|word| !prefixes.contains(word)).unwrap_or("");
    let theirs = format!("{theirs:?}").to_ascii_lowercase();
    name == theirs || spelling(&theirs) == name
}

/// Our spelling of a name that iced has otherwise.
fn spelling(theirs: &str) -> String {
    for (before, after) in [("j", ""), ("set", ""), ("cmov", "")] {
        let Some(condition) = theirs.strip_prefix(before).and_then(|c| c.strip_suffix(after))
        else {
            continue;
        };
        let condition = match condition {
            "e" => "z",
            "ne" => "nz",
            "ae" => "nb",
            "a" => "nbe",
            "ge" => "nl",
            "g" => "nle",
            _ => continue,
        };
        return format!("{before}{condition}{after}");
    }
    theirs.to_string()
}
