//! The run over many cases, and the replay of one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use realmode::{CodeSize, CpuidResult, Features, Instruction, Profile, Segmentation, decode_one};

use super::Unavailable;
use super::case::{Family, SystemCase};
use super::compare::{Difference, differences, values};
use super::emulate::emulate;
use super::generate;
use super::known::{self, Met};
use super::outcome::{SystemEnd, SystemOutcome};
use super::probe::probe;
use super::quirk::Quirks;
use super::ram::Ram;
use super::vm::Kvm;

/// Mismatches that a tally keeps; it counts all.
const MOST_KEPT: usize = 100;

/// KVM and the emulator, which is the processor that KVM offers.
pub struct Oracle {
    kvm: Kvm,
    profile: Profile,
    ram: Ram,
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both ended alike.
    Agreed,
    /// KVM does not emulate the instruction.
    NotOffered,
    /// They differ as known errors of KVM say: their numbers in the table.
    Known(Vec<usize>),
    /// They differ.
    Mismatch(Vec<Difference>),
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many cases.
    Cases(u64),
    /// So long.
    Time(Duration),
}

/// What the cases of a family did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FamilyTally {
    /// Cases.
    pub cases: u64,
    /// Cases that both ended alike.
    pub agreed: u64,
    /// Cases that KVM does not emulate.
    pub not_offered: u64,
    /// Cases in which it errs in a known way.
    pub known: u64,
    /// Cases that differ otherwise.
    pub mismatches: u64,
}

/// A case that differs: replay it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The seed.
    pub seed: u64,
    /// The number of the case.
    pub index: u64,
    /// What it is about.
    pub family: Family,
    /// What differs, in one line.
    pub what: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mismatch { seed, index, family, what } = self;
        write!(f, "kvm seed {seed} index {index} ({}): {what}", family.name())
    }
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// By family, in the order of [`Family::ALL`].
    pub families: [FamilyTally; Family::ALL.len()],
    /// Cases that KVM does not emulate, by instruction.
    pub not_offered: BTreeMap<&'static str, u64>,
    /// Cases that each entry of [`known::all`] explains.
    pub known: Vec<u64>,
    /// The first mismatches.
    pub mismatches: Vec<Mismatch>,
}

impl Tally {
    /// All families together.
    pub fn total(&self) -> FamilyTally {
        self.families.iter().fold(FamilyTally::default(), |sum, one| FamilyTally {
            cases: sum.cases + one.cases,
            agreed: sum.agreed + one.agreed,
            not_offered: sum.not_offered + one.not_offered,
            known: sum.known + one.known,
            mismatches: sum.mismatches + one.mismatches,
        })
    }

    /// The known errors that no case met: in a long run they are there no more.
    pub fn stale(&self) -> impl Iterator<Item = &'static str> {
        let never = known::all().zip(&self.known).filter(|(_, count)| **count == 0);
        never.map(|(known, _)| known.name)
    }

    fn add(&mut self, seed: u64, index: u64, case: &SystemCase, verdict: Verdict) {
        let family = &mut self.families[case.family as usize];
        family.cases += 1;
        match verdict {
            Verdict::Agreed => family.agreed += 1,
            Verdict::NotOffered => {
                family.not_offered += 1;
                *self.not_offered.entry(name(case)).or_default() += 1;
            }
            Verdict::Known(entries) => {
                family.known += 1;
                entries.iter().for_each(|entry| self.known[*entry] += 1);
            }
            Verdict::Mismatch(found) => {
                family.mismatches += 1;
                if self.mismatches.len() < MOST_KEPT {
                    let what = format!("{}: {:x?}", text(case), found);
                    let family = case.family;
                    self.mismatches.push(Mismatch { seed, index, family, what });
                }
            }
        }
    }
}

impl Oracle {
    /// Opens KVM and makes an emulator like it.
    ///
    /// # Errors
    /// If there is no KVM that can serve.
    pub fn open() -> Result<Oracle, Unavailable> {
        let mut kvm = Kvm::open()?;
        probe(&mut kvm)?;
        let profile = profile(kvm.cpuid());
        Ok(Oracle { kvm, profile, ram: Ram::new() })
    }

    /// The profile that the emulator has.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Executes a case both ways: in KVM, and in the emulator.
    pub fn run(&mut self, case: &SystemCase) -> (SystemOutcome, SystemOutcome) {
        let kvm = self.kvm.run(case);
        let emulator = emulate(&self.profile, &self.ram, case, &kvm.cpu, Quirks::NONE);
        (kvm, emulator)
    }

    /// Compares what [`run`](Oracle::run) came to.
    pub fn verdict(
        &self,
        case: &SystemCase,
        kvm: &SystemOutcome,
        emulator: &SystemOutcome,
    ) -> Verdict {
        if kvm.end == SystemEnd::NotOffered {
            return Verdict::NotOffered;
        }
        let found = differences((kvm, &self.kvm.ram), (emulator, &self.ram));
        if found.is_empty() {
            return Verdict::Agreed;
        }
        let met = Met { case, kvm, emulator, ram: &self.kvm.ram };
        let rest = match known::explain(&met, &found) {
            Ok(entries) => return Verdict::Known(entries),
            Err(rest) => rest,
        };
        self.repeated(&met).map_or(Verdict::Mismatch(rest), Verdict::Known)
    }

    /// The known errors that the emulator has to repeat to end as KVM did, if there are such: as
    /// few as possible.
    fn repeated(&self, met: &Met<'_>) -> Option<Vec<usize>> {
        let candidates = known::repeatable(met.case);
        let mut sets: Vec<u32> = (1..1 << candidates.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        sets.into_iter().find_map(|set| {
            let chosen = candidates.iter().enumerate().filter(|(bit, _)| set >> bit & 1 != 0);
            let (mut entries, quirks): (Vec<_>, Vec<_>) = chosen.map(|(_, pair)| *pair).unzip();
            let quirks = Quirks::of(&quirks);
            let emulator = &emulate(&self.profile, &self.ram, met.case, &met.kvm.cpu, quirks);
            let found = differences((met.kvm, &self.kvm.ram), (emulator, &self.ram));
            entries.extend(known::explain(&Met { emulator, ..*met }, &found).ok()?);
            entries.sort_unstable();
            Some(entries)
        })
    }
}

/// The processor that KVM offers, as a profile: its vendor's, less what its CPUID does not have.
fn profile(cpuid: &[(u32, u32, CpuidResult)]) -> Profile {
    let leaf = |leaf, subleaf| {
        let found = cpuid.iter().find(|(l, s, _)| (*l, *s) == (leaf, subleaf));
        found.map_or(CpuidResult::default(), |(_, _, result)| *result)
    };
    let is_amd = matches!(&leaf(0, 0).ebx.to_le_bytes(), b"Auth" | b"Hygo");
    let nearest = if is_amd { Profile::AMD } else { Profile::INTEL };
    let features = nearest.features & Features::from_cpuid(leaf);
    Profile { features, ..nearest }
}

/// Compares cases from number 0 on.
///
/// # Errors
/// If there is no KVM that can serve.
pub fn prove_kvm(
    seed: u64,
    extent: Extent,
    progress: &mut dyn FnMut(&Tally),
) -> Result<Tally, Unavailable> {
    let mut oracle = Oracle::open()?;
    let mut tally = Tally { known: vec![0; known::all().count()], ..Tally::default() };
    let start = Instant::now();
    for index in 0.. {
        let goes_on = match extent {
            Extent::Cases(cases) => index < cases,
            Extent::Time(time) => index % 64 != 0 || start.elapsed() < time,
        };
        if !goes_on {
            break;
        }
        let case = generate::case(seed, index);
        let (kvm, emulator) = oracle.run(&case);
        let verdict = oracle.verdict(&case, &kvm, &emulator);
        tally.add(seed, index, &case, verdict);
        if index % 1024 == 1023 {
            progress(&tally);
        }
    }
    Ok(tally)
}

/// Executes one case again, and describes it and its two ends.
///
/// # Errors
/// If there is no KVM that can serve.
pub fn replay(seed: u64, index: u64) -> Result<String, Unavailable> {
    let mut oracle = Oracle::open()?;
    let case = generate::case(seed, index);
    let (kvm, emulator) = oracle.run(&case);
    let verdict = oracle.verdict(&case, &kvm, &emulator);
    let mut out = String::new();
    let mut line = |what: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{what}");
    };
    line(format!("kvm seed {seed} index {index}, {}: {}", case.family.name(), text(&case)));
    line(format!("code {:02x?} at {:x}", case.code.as_slice(), case.start()));
    for poke in &case.pokes {
        line(format!("memory {:x}: {:02x?}", poke.at, poke.as_slice()));
    }
    let columns = [&case.cpu, &kvm.cpu, &emulator.cpu].map(values);
    line(format!("{:16} {:>16} {:>16} {:>16}", "", "before", "kvm", "emulator"));
    for ((name, before), ((_, kvm), (_, emulator))) in
        columns[0].iter().zip(columns[1].iter().zip(&columns[2]))
    {
        if *before != 0 || *kvm != 0 || *emulator != 0 {
            let mark = if kvm == emulator { "" } else { "  <-" };
            line(format!("{name:16} {before:>16x} {kvm:>16x} {emulator:>16x}{mark}"));
        }
    }
    for (name, outcome) in [("kvm", &kvm), ("emulator", &emulator)] {
        line(format!("{name}: {:?}, devices {:x?}", outcome.end, outcome.accesses));
    }
    line(format!("{verdict:x?}"));
    Ok(out)
}

fn decode(case: &SystemCase) -> Option<Instruction> {
    let code = case.code.as_slice();
    decode_one(code, CodeSize::Bits16, &Profile::INTEL, Segmentation::Real).ok()
}

/// The instruction as text.
fn text(case: &SystemCase) -> String {
    let bytes = || format!("{:02x?}", case.code.as_slice());
    decode(case).map_or_else(bytes, |instruction| instruction.to_string())
}

/// The name of the instruction.
fn name(case: &SystemCase) -> &'static str {
    decode(case).map_or("?", |instruction| instruction.mnemonic())
}

#[cfg(test)]
mod tests {
    use super::{Oracle, Verdict};
    use crate::proof::kvm::generate;

    #[test]
    fn telling_kvm_to_step_each_time_anew_changes_nothing() {
        let (mut first, mut second) = match (Oracle::open(), Oracle::open()) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(why), _) | (_, Err(why)) => return eprintln!("skipped: {why}"),
        };
        second.kvm.renew();
        for index in 0..650 {
            let case = generate::case(3, index);
            assert_eq!(first.run(&case), second.run(&case), "index {index}");
        }
    }

    #[test]
    fn one_bit_that_differs_anywhere_is_a_mismatch() {
        let mut oracle = match Oracle::open() {
            Ok(oracle) => oracle,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let mut agreed = 0;
        for index in 0..260 {
            let case = generate::case(4, index);
            let (kvm, emulator) = oracle.run(&case);
            if oracle.verdict(&case, &kvm, &emulator) != Verdict::Agreed {
                continue;
            }
            agreed += 1;
            let changes: [fn(&mut realmode::Cpu); 6] = [
                |cpu| cpu.gpr[realmode::Reg::Rbx] ^= 0x8000_0000,
                |cpu| cpu.rflags ^= 1 << 14,
                |cpu| cpu.seg[5].limit ^= 1,
                |cpu| cpu.seg[0].base ^= 0x10,
                |cpu| cpu.nmi_blocked ^= true,
                |cpu| cpu.cr0 ^= 8,
            ];
            for (number, change) in changes.into_iter().enumerate() {
                let mut wrong = kvm.clone();
                change(&mut wrong.cpu);
                let verdict = oracle.verdict(&case, &wrong, &emulator);
                assert!(matches!(verdict, Verdict::Mismatch(_)), "index {index} change {number}");
            }
        }
        assert!(agreed > 130, "{agreed} of 260 cases agree");
    }
}
