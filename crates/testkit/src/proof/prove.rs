//! The proof: cases of every form, executed by the emulator and by the host's processor.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use realmode::{Fpu, Profile};

use super::case::{Case, Mode};
use super::compare::{Difference, bits, compare};
use super::emulate::{Emulated, Ground};
use super::form::{Form, Setting};
use super::fpu;
use super::generate;
use super::host::host_profile;
use super::layout::PAGES;
use super::memory::{PAGE_WORDS, are_alike, restore};
use super::native::{FpuImage, Native, Unavailable};
use super::oracle;
use super::outcome::End;
use super::tolerated::{self, Seen};

/// Cases of a form between two looks at the clock.
const TURN: u64 = 16;
/// Turns between two comparisons of all memory.
const TURNS_BETWEEN_SWEEPS: u64 = 256;

/// What cases of one family in one mode came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Executed by both and compared.
    pub cases: u64,
    /// Of these, how many raised an exception.
    pub exceptions: u64,
    /// Made, and not fit to be compared.
    pub unfit: u64,
    /// Differences.
    pub mismatches: u64,
    /// Differences that an entry of the list of tolerated ones explains.
    pub tolerated: u64,
    /// Bits compared, and bits left out because of the list.
    pub bits: u64,
    /// Bits that the list left out.
    pub masked: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.cases += other.cases;
        self.exceptions += other.exceptions;
        self.unfit += other.unfit;
        self.mismatches += other.mismatches;
        self.tolerated += other.tolerated;
        self.bits += other.bits;
        self.masked += other.masked;
    }
}

/// A case that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The form's key.
    pub form: String,
    /// The seed.
    pub seed: u64,
    /// The index.
    pub index: u64,
    /// What differs.
    pub what: String,
}

/// What a proof came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By family and mode.
    pub tallies: BTreeMap<(&'static str, Mode), Tally>,
    /// The first cases that went wrong, at most one a form.
    pub failures: Vec<Failure>,
    /// How often each entry of the list of tolerated differences was met.
    pub tolerated: BTreeMap<&'static str, u64>,
}

impl Report {
    /// Adds what another thread found.
    pub fn add(&mut self, other: Report) {
        for (key, tally) in &other.tallies {
            self.tallies.entry(*key).or_default().add(tally);
        }
        for (name, count) in other.tolerated {
            *self.tolerated.entry(name).or_default() += count;
        }
        for failure in other.failures {
            if self.failures.iter().all(|known| known.form != failure.form) {
                self.failures.push(failure);
            }
        }
    }

    /// All tallies in one.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tallies.values().for_each(|tally| total.add(tally));
        total
    }
}

/// The forms that the host's processor can judge.
pub fn judged(profile: &Profile) -> Vec<Form> {
    [Mode::Bits16, Mode::Bits32, Mode::Bits64]
        .into_iter()
        .flat_map(|mode| Setting::ALL.map(|setting| (setting, mode)))
        .flat_map(|(setting, mode)| Form::all_within(setting, mode, profile))
        .filter(|form| oracle::reason(form).is_none())
        .collect()
}

/// How long a proof goes on, and with which cases.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// The seed.
    pub seed: u64,
    /// The first index.
    pub first: u64,
    /// Time to spend; whole rounds over all forms are not needed.
    pub time: Duration,
    /// The number of the arena, and of the thread.
    pub arena: u16,
}

/// Compares for a while. `progress` is told how many cases there were since it was last called.
///
/// # Errors
/// If the host's processor cannot be asked.
pub fn prove(selection: Selection, progress: &dyn Fn(u64)) -> Result<Report, Unavailable> {
    let native = Native::new(selection.arena)?;
    let profile = host_profile();
    let ground = Ground::new(native.layout());
    let mut bench = Bench::new(native, &ground, profile);
    let mut forms: Vec<Course> = judged(&bench.profile).into_iter().map(Course::new).collect();
    let start = Instant::now();
    let mut turns = 0u64;
    let mut round = 0;
    loop {
        for course in &mut forms {
            if course.is_dull() && round % 16 != 0 {
                continue;
            }
            bench.turn(course, selection, selection.first + round * TURN);
            turns += 1;
            if turns.is_multiple_of(TURNS_BETWEEN_SWEEPS) {
                bench.sweep();
                progress(TURN * TURNS_BETWEEN_SWEEPS);
                if start.elapsed() >= selection.time {
                    return Ok(bench.report);
                }
            }
        }
        round += 1;
    }
}

/// A case that was run once more.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The case and what either side left.
    pub text: String,
    /// Whether they agree; a case that is not fit to be compared does.
    pub agrees: bool,
}

/// Compares one case, and says what came of it.
///
/// # Errors
/// If the host's processor cannot be asked.
pub fn replay(form: &Form, seed: u64, index: u64) -> Result<Replayed, Unavailable> {
    let native = Native::new(0)?;
    let ground = Ground::new(native.layout());
    let mut bench = Bench::new(native, &ground, host_profile());
    let case = generate::case(form, bench.native.layout(), &bench.profile, seed, index);
    let mut text = format!("{}\n", case.describe(&bench.profile));
    let ours = bench.emulated.run(&case);
    bench.emulated.restore(&case);
    let ours = match ours {
        Ok(outcome) => outcome,
        Err(why) => {
            text += &format!("not fit to be compared: {why:?}\n");
            return Ok(Replayed { text, agrees: true });
        }
    };
    text += &format!("we {ours}\n");
    text += &format!("it {}\n", bench.native.run(&case));
    bench.restore_all();
    let result = bench.compared(form, &case);
    text += &match &result {
        Ok(Some(Compared { tolerated: Some(name), .. })) => format!("tolerated: {name}\n"),
        Ok(_) => "they agree\n".into(),
        Err(difference) => format!("DIFFER {difference}\n"),
    };
    Ok(Replayed { text, agrees: result.is_ok() })
}

/// Both sides, for cases that a fuzzer makes.
pub struct Judge {
    bench: Bench<'static>,
    forms: Vec<Form>,
    cases: u64,
}

impl Judge {
    /// Takes arena `number`, for as long as the process runs.
    ///
    /// # Errors
    /// If the host's processor cannot be asked.
    pub fn new(number: u16) -> Result<Judge, Unavailable> {
        let native = Native::new(number)?;
        let profile = host_profile();
        let ground = Box::leak(Box::new(Ground::new(native.layout())));
        let forms = judged(&profile);
        Ok(Judge { bench: Bench::new(native, ground, profile), forms, cases: 0 })
    }

    /// Compares the case that the bytes describe: the form, and all of its choices. Returns whether
    /// it was fit to be compared.
    ///
    /// # Errors
    /// The two sides differ: the case, and in what.
    pub fn from_bytes(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let (number, choices) = bytes.split_at(bytes.len().min(2));
        let number = number.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let form = self.forms[number % self.forms.len()];
        let bench = &mut self.bench;
        let layout = bench.native.layout();
        let case = generate::case_from_bytes(&form, layout, &bench.profile, choices);
        self.cases += 1;
        let is_fit = bench.compared(&form, &case).map(|compared| compared.is_some());
        let is_swept = self.cases.is_multiple_of(TURN * TURNS_BETWEEN_SWEEPS);
        let told = |difference| format!("{form}: {difference}\n{}", case.describe(&bench.profile));
        if is_swept && let Some(stray) = bench.stray() {
            return Err(told(stray));
        }
        is_fit.map_err(told)
    }
}

/// A form on its way through the proof.
struct Course {
    form: Form,
    cases: u64,
    returned: u64,
}

impl Course {
    fn new(form: Form) -> Course {
        Course { form, cases: 0, returned: 0 }
    }

    /// Has it done nothing yet but raise exceptions, which takes ten times as long?
    fn is_dull(&self) -> bool {
        self.cases > 4 * TURN && self.returned == 0
    }
}

/// Both sides.
struct Bench<'m> {
    native: Native,
    emulated: Emulated<'m>,
    profile: Profile,
    report: Report,
    /// Cases since the last sweep: form, seed, first index.
    unswept: Vec<(Form, u64, u64)>,
}

impl<'m> Bench<'m> {
    fn new(native: Native, ground: &'m Ground, profile: Profile) -> Bench<'m> {
        let emulated = Emulated::new(ground, native.layout(), &profile);
        let mut bench =
            Bench { native, emulated, profile, report: Report::default(), unswept: Vec::new() };
        bench.restore_all();
        bench
    }

    /// Some cases of a form.
    fn turn(&mut self, course: &mut Course, selection: Selection, first: u64) {
        let form = course.form;
        let mut tally = Tally::default();
        for index in first..first + TURN {
            let case =
                generate::case(&form, self.native.layout(), &self.profile, selection.seed, index);
            match self.compared(&form, &case) {
                Ok(None) => tally.unfit += 1,
                Ok(Some(Compared { end, bits, masked, tolerated })) => {
                    tally.cases += 1;
                    tally.bits += bits;
                    tally.masked += masked;
                    course.returned += u64::from(end == End::Returned);
                    tally.exceptions += u64::from(end != End::Returned);
                    if let Some(name) = tolerated {
                        tally.tolerated += 1;
                        *self.report.tolerated.entry(name).or_default() += 1;
                    }
                }
                Err(difference) => {
                    tally.cases += 1;
                    self.restore_all();
                    let again = self.compared(&form, &case);
                    if matches!(difference, Difference::Memory { .. }) && again.is_ok() {
                        // What it found was there before it.
                        self.find_stray();
                    } else {
                        tally.mismatches += 1;
                        self.fail(&form, selection.seed, index, difference.to_string());
                    }
                }
            }
        }
        course.cases += TURN;
        let key = (form.family, form.mode);
        self.report.tallies.entry(key).or_default().add(&tally);
        self.unswept.push((form, selection.seed, first));
    }

    fn fail(&mut self, form: &Form, seed: u64, index: u64, what: String) {
        let form = form.to_string();
        if self.report.failures.iter().all(|known| known.form != form) {
            self.report.failures.push(Failure { form, seed, index, what });
        }
    }

    /// One case; nothing if it is not fit. Afterwards both arenas are what they were.
    fn compared(&mut self, form: &Form, case: &Case) -> Result<Option<Compared>, Difference> {
        let Ok(ours) = self.emulated.run(case) else {
            self.emulated.restore(case);
            return Ok(None);
        };
        let mut result = Ok(());
        let theirs = if form.has_fpu() {
            let (theirs, image) = self.native.run_with_fpu(case, &FpuImage::CLEAN);
            result = same_fpu(self.emulated.fpu(), &image, &self.profile);
            theirs
        } else {
            self.native.run(case)
        };
        let has_moved = theirs.end != End::Returned && form.moves_several();
        let (memory, memory_bits) = self.compare_memory(case, has_moved);
        let result = compare(&ours, &theirs).and(result).and(memory);
        let mut compared = Compared {
            end: ours.end,
            bits: bits(case.mode) + memory_bits,
            masked: 0,
            tolerated: None,
        };
        if let Err(difference) = result {
            let seen = Seen { form, case, ours: &ours, theirs: &theirs, difference };
            let entry = tolerated::find(&seen).ok_or(difference)?;
            compared.tolerated = Some(entry.name);
            compared.masked = entry.masked(case.mode);
        }
        Ok(Some(compared))
    }

    /// Compares the pages that a case may have changed, and makes them what they were. Also says
    /// how many bits that were. An instruction that faults may have stored to its stack on silicon.
    fn compare_memory(&mut self, case: &Case, has_moved: bool) -> (Result<(), Difference>, u64) {
        let mut result = Ok(());
        let mut bits = 0;
        let memory = self.emulated.memory();
        let mut changed = self.emulated.dirty();
        if has_moved {
            case.stack_pages().for_each(|page| changed.insert(page));
        }
        for words in case.poked_words() {
            let (page, first) = (words.start / PAGE_WORDS, words.start % PAGE_WORDS);
            let ours = memory.words(words.clone());
            let theirs = &self.native.page(page)[first..first + words.len()];
            if !are_alike(ours, theirs) && result.is_ok() {
                result = differing_word(words.start, ours, theirs).map_or(Ok(()), Err);
            }
            bits += 64 * words.len() as u64;
        }
        // Pokes can overlap: they are taken away when all of them have been compared.
        for words in case.poked_words() {
            let (page, first) = (words.start / PAGE_WORDS, words.start % PAGE_WORDS);
            if !changed.contains(page) {
                let theirs = &self.native.page(page)[first..first + words.len()];
                restore(theirs, &memory.background(page)[first..first + words.len()]);
            }
        }
        for page in changed {
            bits += 4096 * 8;
            let (ours, theirs) = (memory.page(page), self.native.page(page));
            if !are_alike(ours, theirs) && result.is_ok() {
                result = differing_word(page * PAGE_WORDS, ours, theirs).map_or(Ok(()), Err);
            }
            restore(theirs, memory.background(page));
        }
        self.emulated.restore(case);
        (result, bits)
    }

    /// Makes the oracle's arena what it is before a case.
    fn restore_all(&mut self) {
        let memory = self.emulated.memory();
        (0..PAGES).for_each(|page| restore(self.native.page(page), memory.background(page)));
    }

    /// The first word of the oracle's arena that no case may have left as it is.
    fn stray(&self) -> Option<Difference> {
        let memory = self.emulated.memory();
        (0..PAGES).find_map(|page| {
            let background = memory.background(page);
            let words = self.native.page(page).iter().zip(background);
            let (i, (theirs, ours)) = words.enumerate().find(|(_, (a, b))| a.get() != **b)?;
            let at = (page * 4096 + i * 8) as u32;
            Some(Difference::Memory { at, ours: *ours, theirs: theirs.get() })
        })
    }

    /// Compares all memory: a store of the oracle that the emulator did not make is found here.
    fn sweep(&mut self) {
        if self.stray().is_some() {
            self.find_stray();
        }
        self.unswept.clear();
    }

    /// Runs the cases since the last sweep again to find which one made a store that the emulator
    /// did not make.
    fn find_stray(&mut self) {
        self.restore_all();
        let unswept = std::mem::take(&mut self.unswept);
        let before = self.report.failures.len();
        for (form, seed, first) in unswept {
            for index in first..first + TURN {
                let case = generate::case(&form, self.native.layout(), &self.profile, seed, index);
                // Its own difference was reported when it ran first.
                let _ = self.compared(&form, &case);
                if let Some(difference) = self.stray() {
                    let key = (form.family, form.mode);
                    self.report.tallies.entry(key).or_default().mismatches += 1;
                    self.fail(&form, seed, index, format!("a stray store: {difference}"));
                    self.restore_all();
                }
            }
        }
        if self.report.failures.len() == before {
            // Not to be lost, though it did not come again.
            let what = "a stray store that none of the last cases makes again".into();
            let failure = Failure { form: "?".into(), seed: 0, index: 0, what };
            self.report.tallies.entry(("?", Mode::Bits16)).or_default().mismatches += 1;
            self.report.failures.push(failure);
        }
    }
}

fn differing_word(start: usize, ours: &[Cell<u64>], theirs: &[Cell<u64>]) -> Option<Difference> {
    let pairs = ours.iter().map(Cell::get).zip(theirs.iter().map(Cell::get)).enumerate();
    let (i, (ours, theirs)) = pairs.into_iter().find(|(_, (a, b))| a != b)?;
    Some(Difference::Memory { at: ((start + i) * 8) as u32, ours, theirs })
}

fn same_fpu(ours: &Fpu, theirs: &FpuImage, profile: &Profile) -> Result<(), Difference> {
    match fpu::difference(&fpu::image(ours, profile.vendor), theirs) {
        Some((at, ours, theirs)) => Err(Difference::Fpu { at, ours, theirs }),
        None => Ok(()),
    }
}

/// A case that agreed.
struct Compared {
    end: End,
    bits: u64,
    masked: u64,
    tolerated: Option<&'static str>,
}
