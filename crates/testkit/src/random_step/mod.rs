//! Random steps: random processors execute random bytes in a random world, each case in several
//! ways that must agree to the last bit: cached and uncached, whole and instruction by
//! instruction, with the caches dropped in between, with every device access left to the VMM and
//! resumed, and observed.
//!
//! A case is named by a seed and an index. Cases come in groups that share memory and decode
//! caches, so that a case also meets what earlier ones left behind; a replay begins with its
//! group.

mod census;
mod code;
mod drive;
mod from_bytes;
mod memory;
mod paging;
mod protected;
mod state;
mod tables;
mod world;

use realmode::{Cpu, Intercepted, Policy, Profile, SplitLock};

use crate::prng::{Prng, mix};
pub use census::Census;
use code::Code;
use drive::{Bench, Caches, Outcome, Way};
pub use from_bytes::{Carry, Focus, from_bytes};
use memory::{Arena, DIRTY_PAGES, PAGES, RAM_PAGES};
use state::DEVICES;

/// Cases of a group.
pub const GROUP: u64 = 64;

/// A case that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The index: with the seed it names the case.
    pub index: u64,
    /// What went wrong, in one line.
    pub what: String,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "seed {} index {}: {}", self.seed, self.index, self.what)
    }
}

/// What a number of cases did: proof that they reached what they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases.
    pub cases: u64,
    /// Instructions, exceptions and string slices of the first run of each case.
    pub steps: u64,
    /// The same for all runs.
    pub all_steps: u64,
    /// Calls to devices in the first runs.
    pub accesses: u64,
    /// Requests that the VMM answered.
    pub requests: u64,
    /// Exceptions raised in the first runs.
    pub faults: u64,
    /// Blocks retired because the guest wrote to them.
    pub blocks_retired: u64,
    /// Cases that ended because something is not implemented.
    pub unimplemented: u64,
    /// What the instructions of the observed runs were.
    pub census: Census,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.cases += other.cases;
        self.steps += other.steps;
        self.all_steps += other.all_steps;
        self.accesses += other.accesses;
        self.requests += other.requests;
        self.faults += other.faults;
        self.blocks_retired += other.blocks_retired;
        self.unimplemented += other.unimplemented;
        self.census.add(&other.census);
    }
}

/// Which cases of a group to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The seed.
    pub seed: u64,
    /// The first case.
    pub first: u64,
    /// One past the last case, in the same group.
    pub end: u64,
    /// Print what the last case does.
    pub is_loud: bool,
}

impl Selection {
    /// A whole group.
    pub fn group(seed: u64, group: u64) -> Selection {
        Selection { seed, first: group * GROUP, end: (group + 1) * GROUP, is_loud: false }
    }
}

/// Runs cases of one group. `at` always holds the index of the case being run, for whoever has to
/// name it after a panic or a hang. Cases before `first` are made but not run, because the memory
/// of later ones depends on them.
pub fn run(selection: Selection, at: &dyn Fn(u64)) -> (Tally, Vec<Failure>) {
    let seed = selection.seed;
    let group = selection.first / GROUP;
    let mut random = Prng::new(mix(seed ^ mix(group)));
    let profile = Profile::ALL[random.below(Profile::ALL.len() as u64) as usize];
    let arena = Arena::new(random.pick(&SKEWS));
    for page in 0..PAGES {
        arena.poke(page, 0, &background(&mut random, page));
    }
    let mut caches = Caches::new(&mut random);
    let policy = policy(&mut random, profile, &arena);
    let mut bench = Bench::new(&arena, profile, &mut caches, policy);
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for index in group * GROUP..selection.end {
        let mut random = Prng::new(mix(mix(seed).wrapping_add(index)));
        let case = state::case(&mut random, profile, &arena, &DEVICES);
        if index < selection.first {
            continue;
        }
        at(index);
        bench.is_loud = selection.is_loud && index + 1 == selection.end;
        if bench.is_loud {
            print!("{}", describe(profile, &case));
            if let Err(what) = bench.drive(&case, Way::Observed) {
                println!("{what}");
            }
        }
        if let Err(what) = compare(&mut bench, &case, &Way::OTHERS, &mut tally) {
            failures.push(Failure { seed, index, what });
        }
    }
    bench.count(&mut tally);
    (tally, failures)
}

/// How many words pages may lie off their natural alignment.
const SKEWS: [usize; 5] = [0, 0, 1, 8, 511];

/// What a page holds before anything is put into it: code.
fn background(random: &mut Prng, page: usize) -> Vec<u8> {
    let bits = if page % 3 == 2 { 32 } else { 16 };
    let mut code = Code::new(random.next() & 0xFFFF, bits, Some(0));
    code.fill(random, 4096);
    code.bytes.truncate(4096);
    code.bytes
}

/// What the VMM wants to see; mostly nothing. In every third group there are page tables, and
/// nobody may leave them for others that a guest could change under the TLB.
fn policy(random: &mut Prng, profile: &Profile, arena: &Arena) -> Policy {
    let split_locks = [SplitLock::Plain, SplitLock::Stop, SplitLock::AlignmentCheck];
    let mut policy = Policy::default();
    policy.split_lock = random.pick(&split_locks);
    if random.one_in(8) {
        policy.exceptions = random.next() as u32;
    }
    if random.one_in(8) {
        let seen = [
            Intercepted::Cpuid,
            Intercepted::Hlt,
            Intercepted::Rdtsc,
            Intercepted::WriteCr0,
            Intercepted::DebugRegister,
            Intercepted::DescriptorTable,
            Intercepted::SoftwareInterrupt,
            Intercepted::Iret,
            Intercepted::Pause,
        ];
        policy.intercepts = policy.intercepts.with(random.pick(&seen)).with(random.pick(&seen));
    }
    if profile.has_32_bits() && random.one_in(3) {
        paging::place(arena, profile, random.next());
        for write in [Intercepted::WriteCr0, Intercepted::WriteCr3, Intercepted::WriteCr4] {
            policy.intercepts = policy.intercepts.with(write);
        }
    }
    policy
}

/// A case for people.
fn describe(profile: &Profile, case: &state::Case) -> String {
    let cpu = &case.cpu;
    let mut text = format!("profile {}, budget {}, {:x?}\n", profile.name, case.budget, case.map);
    for (name, segment) in ["es", "cs", "ss", "ds", "fs", "gs"].iter().zip(&cpu.seg) {
        text += &format!("{name} {segment:x?}\n");
    }
    text += &format!(
        "rip {:x}, rflags {:x}, gpr {:x?}\ncr0 {:x}, cr4 {:x}, efer {:x}, gdtr {:x?}, idtr {:x?}\n\
         cr3 {:x}, pkru {:x}\n",
        cpu.rip,
        cpu.rflags,
        cpu.gpr,
        cpu.cr0,
        cpu.cr4,
        cpu.msr.efer,
        cpu.gdtr,
        cpu.idtr,
        cpu.cr3,
        cpu.pkru
    );
    text += &format!(
        "dr {:x?}, dr7 {:x}, {:?}, nmi blocked {}, a20 {}, {:?}, {:x?}\n",
        cpu.dr, cpu.dr7, cpu.shadow, cpu.nmi_blocked, cpu.a20, cpu.activity, cpu.pending
    );
    text
}

/// Runs a case uncached and in other ways, and compares.
fn compare(
    bench: &mut Bench<'_>,
    case: &state::Case,
    others: &[Way],
    tally: &mut Tally,
) -> Result<(), String> {
    let way_says = |way: Way| move |what: String| format!("{way:?}: {what}");
    let first = bench.drive(case, Way::Uncached).map_err(way_says(Way::Uncached))?;
    tally.cases += 1;
    tally.steps += first.spent;
    tally.all_steps += first.spent;
    tally.accesses += first.log.len() as u64;
    if matches!(first.end, Ok(realmode::Stop::Unimplemented(_))) {
        tally.unimplemented += 1;
    }
    if bench.is_loud {
        println!("Uncached: {:x?}, bus calls {:x?}", first.end, first.log);
    }
    check_writes(&first).map_err(way_says(Way::Uncached))?;
    for &way in others {
        let other = bench.drive(case, way).map_err(way_says(way))?;
        if bench.is_loud {
            println!("{way:?}: {:x?}, bus calls {:x?}", other.end, other.log);
        }
        tally.all_steps += other.spent;
        tally.requests += other.requests;
        difference(&first, &other, bench.arena).map_err(way_says(way))?;
    }
    Ok(())
}

/// ROM does not change, and whatever changed is marked dirty.
fn check_writes(outcome: &Outcome) -> Result<(), String> {
    let changed = outcome.changes.mask;
    if changed >> RAM_PAGES != 0 {
        return Err(format!("ROM changed: pages {changed:#b}"));
    }
    let unmarked = u64::from(changed) & ((1 << DIRTY_PAGES) - 1) & !outcome.dirty;
    if unmarked != 0 {
        return Err(format!("changed and not marked dirty: pages {unmarked:#b}"));
    }
    Ok(())
}

/// The first thing in which two runs differ.
fn difference(first: &Outcome, other: &Outcome, arena: &Arena) -> Result<(), String> {
    for (i, (a, b)) in first.log.iter().zip(&other.log).enumerate() {
        if a != b {
            return Err(format!("bus call {i}: {a:x?} became {b:x?}"));
        }
    }
    if first.log.len() != other.log.len() {
        let (a, b) = (first.log.len(), other.log.len());
        return Err(format!("{a} bus calls became {b}"));
    }
    if first.end != other.end {
        return Err(format!("{:x?} became {:x?}", first.end, other.end));
    }
    if let Some(line) = cpu_difference(&first.cpu, &other.cpu) {
        return Err(line);
    }
    if let Some((page, offset, a, b)) = first.changes.first_difference(&other.changes, arena) {
        return Err(format!("memory page {page} offset {offset:#x}: {a:02x} became {b:02x}"));
    }
    let numbers = |outcome: &Outcome| (outcome.spent, outcome.retired, outcome.dirty);
    if numbers(first) != numbers(other) {
        let (a, b) = (numbers(first), numbers(other));
        return Err(format!("(spent, retired, dirty) {a:?} became {b:?}"));
    }
    Ok(())
}

/// The first line of the printed states that differs.
fn cpu_difference(first: &Cpu, other: &Cpu) -> Option<String> {
    if first == other {
        return None;
    }
    let (a, b) = (format!("{first:#x?}"), format!("{other:#x?}"));
    let line = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    Some(line.map_or_else(
        || "states differ".into(),
        |(a, b)| format!("{} became {}", a.trim(), b.trim()),
    ))
}
