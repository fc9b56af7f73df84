//! Recorded outcomes: what a processor made of cases, for machines that have no oracle.
//!
//! Only outcomes are stored: the cases are made again from the seed. A digest of each form's cases
//! tells a generator that changed from an emulator that is wrong. `testdata/native/README.md` has
//! the format.

mod format;
mod outcome;
mod replay;
mod take;

use realmode::{Features, Generation, Profile, UndefinedFlags, Vendor};
use thiserror::Error;

use super::case::{Case, Mode};
use crate::prng::mix;

pub use replay::{Replay, replay};
pub use take::take;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// A recording of one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The mode.
    pub mode: Mode,
    /// The processor's own name for itself.
    pub processor: String,
    /// Its maker.
    pub vendor: Vendor,
    /// CPUID leaf 1 EAX.
    pub signature: u32,
    /// What it offered under its operating system.
    pub features: Features,
    /// The seed of the cases.
    pub seed: u64,
    /// Cases of each form.
    pub cases: u32,
    /// The forms.
    pub forms: Vec<Recorded>,
}

/// What is recorded of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The form's key.
    pub key: String,
    /// Of all its cases.
    pub digest: u32,
    /// The outcomes, one after the other.
    pub outcomes: Vec<u8>,
}

/// Why a recording cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not a recording, or of another version.
    #[error("this is no recording of version {FORMAT}: record anew with `cargo xtask record`")]
    Format,
    /// Made by another version of the case generator.
    #[error(
        "recorded from cases of version {found}, and this generator makes version {expected}: \
         record anew with `cargo xtask record`"
    )]
    Generator {
        /// The version of the recording.
        found: u32,
        /// The version here.
        expected: u32,
    },
    /// It ends too early or contradicts itself.
    #[error("the recording is damaged: {0}")]
    Damaged(&'static str),
    /// It has a form that does not exist here.
    #[error("the recording has a form '{0}' that no row makes: record anew, or find out why not")]
    Form(String),
    /// The cases of a form are others.
    #[error(
        "the cases of '{0}' are not those that were recorded: if the generator was to change, \
         raise its version and record anew with `cargo xtask record`"
    )]
    Cases(String),
    /// It has a feature that is not known here.
    #[error("the recording names a processor feature '{0}' that does not exist")]
    Feature(String),
}

impl Recording {
    /// The processor that was recorded.
    pub fn profile(&self) -> Profile {
        let (base, undefined_flags) = match self.vendor {
            Vendor::Intel => (&Profile::INTEL, UndefinedFlags::Intel),
            Vendor::Amd => (&Profile::AMD, UndefinedFlags::Amd),
        };
        Profile {
            name: "recorded",
            id: 129,
            generation: Generation::Modern,
            undefined_flags,
            features: self.features,
            signature: self.signature,
            ..base.clone()
        }
    }
}

/// A number that two lists of cases share only if they are the same.
fn digest(before: u32, case: &Case) -> u32 {
    let mut hash = u64::from(before);
    let mut add = |word: u64| hash = mix(hash ^ word);
    let (low, high) = case.code.bytes.split_at(8);
    for half in [low, high] {
        add(half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    add(u64::from(case.entry) << 8 | u64::from(case.code.len));
    case.gpr.iter().for_each(|register| add(*register));
    add(case.rflags);
    case.segments.iter().for_each(|kind| add(*kind as u64));
    for poke in &case.pokes {
        add(u64::from(poke.at) << 8 | u64::from(poke.len));
        poke.as_slice().iter().for_each(|byte| add(u64::from(*byte)));
    }
    (hash >> 32) as u32
}
