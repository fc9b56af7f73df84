//! Holds the emulator against a recording.

use super::outcome::{Entry, take};
use super::{RecordError, Recording, digest};
use crate::proof::case::Case;
use crate::proof::compare::{Difference, compare};
use crate::proof::emulate::{Emulated, Ground};
use crate::proof::form::{Form, Setting};
use crate::proof::generate;
use crate::proof::layout::Layout;
use crate::proof::memory::PAGE_WORDS;
use crate::proof::outcome::Outcome;
use crate::proof::prove::Failure;
use crate::proof::tolerated::{self, Seen};

/// What a replay came to.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Forms.
    pub forms: usize,
    /// Cases that were compared.
    pub cases: u64,
    /// Cases whose difference is on the list of tolerated ones.
    pub tolerated: u64,
    /// The first failure of each form.
    pub failures: Vec<Failure>,
    /// How many cases failed.
    pub mismatches: u64,
}

/// Executes every recorded case on the emulator.
///
/// # Errors
/// If the recording does not fit the cases that are made here.
pub fn replay(recording: &Recording) -> Result<Replay, RecordError> {
    let profile = recording.profile();
    let layout = Layout::native(0);
    let ground = Ground::new(layout);
    let mut emulated = Emulated::new(&ground, layout, &profile);
    let forms: Vec<_> = Setting::ALL
        .into_iter()
        .flat_map(|setting| Form::all_within(setting, recording.mode, &profile))
        .collect();
    let mut replay = Replay { forms: recording.forms.len(), ..Replay::default() };
    for recorded in &recording.forms {
        let form = forms.iter().find(|form| form.to_string() == recorded.key);
        let form = form.ok_or_else(|| RecordError::Form(recorded.key.clone()))?;
        let cases: Vec<_> = (0..u64::from(recording.cases))
            .map(|index| generate::case(form, layout, &profile, recording.seed, index))
            .collect();
        if cases.iter().fold(0, digest) != recorded.digest {
            return Err(RecordError::Cases(recorded.key.clone()));
        }
        let mut bytes = &recorded.outcomes[..];
        let mut has_failed = false;
        for (index, case) in (0..).zip(&cases) {
            let Some(entry) = take(&mut bytes, case)? else { continue };
            replay.cases += 1;
            let Err(failed) = check(&mut emulated, case, &entry) else { continue };
            let (difference, ours) = *failed;
            if let (Some(ours), Some(difference)) = (&ours, difference)
                && let theirs = &entry.outcome
                && tolerated::find(&Seen { form, case, ours, theirs, difference }).is_some()
            {
                replay.tolerated += 1;
                continue;
            }
            replay.mismatches += 1;
            if !has_failed {
                has_failed = true;
                let what = difference.map_or("not executed".into(), |d| d.to_string());
                let (form, seed) = (recorded.key.clone(), recording.seed);
                replay.failures.push(Failure { form, seed, index, what });
            }
        }
    }
    Ok(replay)
}

/// A difference, unless the emulator did not execute the case, and what it left.
type Failed = (Option<Difference>, Option<Outcome>);

/// One case. Afterwards the arena is what it was.
fn check(emulated: &mut Emulated<'_>, case: &Case, entry: &Entry) -> Result<(), Box<Failed>> {
    let Ok(ours) = emulated.run(case) else {
        emulated.restore(case);
        return Err(Box::new((None, None)));
    };
    let result = compare(&ours, &entry.outcome).and(same_memory(emulated, case, entry));
    emulated.restore(case);
    result.map_err(|difference| Box::new((Some(difference), Some(ours))))
}

/// Did it change the recorded words, and no other?
fn same_memory(emulated: &Emulated<'_>, case: &Case, entry: &Entry) -> Result<(), Difference> {
    let memory = emulated.memory();
    let mut expected = entry.words.iter();
    let mut next = expected.next();
    let mut pages = emulated.dirty();
    case.poked_words().for_each(|words| pages.insert(words.start / PAGE_WORDS));
    for page in pages {
        let words = memory.page(page).iter().zip(memory.background(page)).enumerate();
        for (i, (ours, background)) in words {
            let (at, ours) = ((page * 4096 + i * 8) as u32, ours.get());
            let theirs = match next {
                Some(word) if word.at == at => {
                    next = expected.next();
                    word.value
                }
                _ if ours == *background && !case.is_poked(at) => continue,
                _ => case.word_before(at, *background),
            };
            if ours != theirs {
                return Err(Difference::Memory { at, ours, theirs });
            }
        }
    }
    next.map_or(Ok(()), |word| {
        let ours = memory.background(word.at as usize / 4096)[word.at as usize % 4096 / 8];
        Err(Difference::Memory { at: word.at, ours, theirs: word.value })
    })
}
