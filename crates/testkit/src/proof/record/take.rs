//! Takes a recording.

use realmode::Profile;

use super::outcome::{Entry, Word, put, put_unfit};
use super::{Recorded, Recording, digest};
use crate::proof::case::{Case, Mode};
use crate::proof::emulate::{Emulated, Ground};
use crate::proof::form::{Form, Setting};
use crate::proof::host_profile;
use crate::proof::memory::{Memory, PAGE_WORDS, restore};
use crate::proof::native::{FpuImage, Native, Unavailable};
use crate::proof::outcome::End;
use crate::proof::{generate, oracle};

/// Records `cases` cases of every form of a mode, in some settings, that the host's processor can
/// judge. `progress` is told each form's number and how many there are.
///
/// # Errors
/// If the host's processor cannot be asked.
pub fn take(
    mode: Mode,
    settings: &[Setting],
    seed: u64,
    cases: u32,
    progress: &dyn Fn(usize, usize),
) -> Result<Recording, Unavailable> {
    let mut native = Native::new(0)?;
    let profile = host_profile();
    let ground = Ground::new(native.layout());
    let mut emulated = Emulated::new(&ground, native.layout(), &profile);
    let memory = emulated.memory();
    clean(&native, memory, 0..crate::proof::PAGES);
    let forms: Vec<_> = settings
        .iter()
        .flat_map(|setting| Form::all_within(*setting, mode, &profile))
        .filter(|form| oracle::reason(form).is_none())
        .collect();
    let mut recorded = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        progress(number, forms.len());
        let mut taken = Recorded { key: form.to_string(), digest: 0, outcomes: Vec::new() };
        for index in 0..u64::from(cases) {
            let case = generate::case(form, native.layout(), &profile, seed, index);
            taken.digest = digest(taken.digest, &case);
            // Which pages to look at, and whether it is safe to run at all.
            let is_fit = emulated.run(&case).is_ok();
            let mut pages = emulated.dirty();
            case.poked_words().for_each(|words| pages.insert(words.start / PAGE_WORDS));
            emulated.restore(&case);
            if !is_fit {
                put_unfit(&mut taken.outcomes);
                continue;
            }
            let outcome = if form.has_fpu() {
                native.run_with_fpu(&case, &FpuImage::CLEAN).0
            } else {
                native.run(&case)
            };
            if outcome.end != End::Returned && form.moves_several() {
                case.stack_pages().for_each(|page| pages.insert(page));
            }
            let words = pages.flat_map(|page| changes(&native, memory, &case, page)).collect();
            clean(&native, memory, pages);
            put(&mut taken.outcomes, &case, &Entry { outcome, words });
        }
        recorded.push(taken);
    }
    let processor = name(&profile);
    let Profile { vendor, signature, features, .. } = profile;
    Ok(Recording { mode, processor, vendor, signature, features, seed, cases, forms: recorded })
}

/// The processor's own name for itself, with family, model and stepping in hexadecimal.
fn name(profile: &Profile) -> String {
    let brand = String::from_utf8_lossy(profile.brand);
    let brand = brand.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    format!("{brand}, signature {:x}", profile.signature)
}

/// The words of a page that the case changed.
fn changes(native: &Native, memory: &Memory, case: &Case, page: usize) -> Vec<Word> {
    let words = native.page(page).iter().zip(memory.background(page)).enumerate();
    words
        .filter_map(|(i, (now, background))| {
            let at = (page * 4096 + i * 8) as u32;
            let value = now.get();
            (value != case.word_before(at, *background)).then_some(Word { at, value })
        })
        .collect()
}

/// Makes pages what they are before a case.
fn clean(native: &Native, memory: &Memory, pages: impl Iterator<Item = usize>) {
    for page in pages {
        restore(native.page(page), memory.background(page));
    }
}
