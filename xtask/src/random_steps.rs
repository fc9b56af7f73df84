//! `xtask random-steps`: runs random cases on several threads, and replays one.
//!
//! A failing case is one line, `FAIL seed S index I: what`; `--seed S --index I` replays it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use realmode_testkit::random_step::{self, Failure, GROUP, Selection, Tally};

/// A case that takes longer than this hangs; they take microseconds.
const LONGEST_CASE: Duration = Duration::from_secs(20);
/// How often the run says how far it is.
const BETWEEN_REPORTS: Duration = Duration::from_secs(60);
const IDLE: u64 = u64::MAX;

/// Random processors execute random bytes, cached and uncached, whole and in steps, with every
/// device access left open, and have to agree.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask random-steps --count 1000000        a million cases on all cores
  cargo xtask random-steps --seed 1 --index 77    what one case does, step by step")]
pub(crate) struct Options {
    /// How many cases to run
    #[arg(long, default_value = "100000", value_parser = number)]
    count: u64,
    /// What they are made from
    #[arg(long, default_value = "1", value_parser = number)]
    seed: u64,
    /// Threads, as many as there are processors if not given
    #[arg(long)]
    jobs: Option<usize>,
    /// Failures after which to stop
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Run one case alone, after those of its group that come before it
    #[arg(long, value_parser = number)]
    index: Option<u64>,
    /// With --index: only say whether it agrees
    #[arg(long = "quiet")]
    is_quiet: bool,
}

/// A number that may have underscores in it.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

/// What the threads share.
struct Shared<'o> {
    options: &'o Options,
    next_group: AtomicU64,
    /// The case each thread is at.
    at: Vec<AtomicU64>,
    tally: Mutex<Tally>,
    failures: Mutex<Vec<Failure>>,
    is_done: AtomicBool,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    let jobs = crate::jobs(options.jobs);
    note_panics();
    if let Some(index) = options.index {
        return Ok(replay(options, index));
    }
    let started = Instant::now();
    let shared = Shared {
        options,
        next_group: AtomicU64::new(0),
        at: (0..jobs).map(|_| AtomicU64::new(IDLE)).collect(),
        tally: Mutex::new(Tally::default()),
        failures: Mutex::new(Vec::new()),
        is_done: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|n| {
                scope.spawn({
                    let s = &shared;
                    move || work(s, n)
                })
            })
            .collect();
        scope.spawn(|| watch(&shared));
        for worker in workers {
            // A panic outside a case is a bug of the runner.
            worker.join().expect("workers catch the panics of their cases");
        }
        shared.is_done.store(true, Relaxed);
    });
    report(&shared, started.elapsed());
    let failures = shared.failures.lock().map_err(|e| e.to_string())?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Takes group after group.
fn work(shared: &Shared<'_>, number: usize) {
    let options = shared.options;
    let groups = options.count.div_ceil(GROUP);
    let at = &shared.at[number];
    loop {
        let group = shared.next_group.fetch_add(1, Relaxed);
        if group >= groups || is_full(shared) {
            break;
        }
        let mut selection = Selection::group(options.seed, group);
        selection.end = selection.end.min(options.count);
        let (tally, failures) = run_caught(selection, at);
        shared.tally.lock().expect("no panic holds the tally").add(&tally);
        for failure in failures {
            let kept = &mut *shared.failures.lock().expect("no panic holds the failures");
            if kept.len() < options.failures.max(1) {
                println!("FAIL {failure}{}", alone(&failure));
                kept.push(failure);
            }
        }
    }
    at.store(IDLE, Relaxed);
}

fn is_full(shared: &Shared<'_>) -> bool {
    shared.failures.lock().is_ok_and(|kept| kept.len() >= shared.options.failures.max(1))
}

/// Runs cases; a panic becomes the failure of the case it came from.
fn run_caught(selection: Selection, at: &AtomicU64) -> (Tally, Vec<Failure>) {
    let run = || random_step::run(selection, &|index| at.store(index, Relaxed));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let what = PANIC.take();
        let failure = Failure { seed: selection.seed, index: at.load(Relaxed), what };
        (Tally::default(), vec![failure])
    })
}

thread_local! {
    /// The last panic of this thread, with its place.
    static PANIC: Cell<String> = const { Cell::new(String::new()) };
}

/// Keeps what a panic says for the line of its case, instead of printing it.
fn note_panics() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        PANIC.set(text);
    }));
}

/// Whether a case fails without the caches that its group left behind.
fn alone(failure: &Failure) -> &'static str {
    let Failure { seed, index, .. } = *failure;
    let selection = Selection { seed, first: index, end: index + 1, is_loud: false };
    let (_, failures) = run_caught(selection, &AtomicU64::new(index));
    if failures.is_empty() { " (only after the cases before it)" } else { "" }
}

/// Says how far it is from time to time, and ends the process if a case hangs.
fn watch(shared: &Shared<'_>) {
    let mut seen = vec![(IDLE, Instant::now()); shared.at.len()];
    let mut told = Instant::now();
    while !shared.is_done.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if told.elapsed() > BETWEEN_REPORTS {
            told = Instant::now();
            let cases = shared.next_group.load(Relaxed).saturating_mul(GROUP);
            eprintln!("{cases} of {} cases", shared.options.count);
        }
        for (at, (last, since)) in shared.at.iter().zip(&mut seen) {
            let now = at.load(Relaxed);
            if now != *last {
                (*last, *since) = (now, Instant::now());
            } else if now != IDLE && since.elapsed() > LONGEST_CASE {
                println!("FAIL seed {} index {now}: hangs", shared.options.seed);
                std::process::exit(1);
            }
        }
    }
}

fn report(shared: &Shared<'_>, time: Duration) {
    let tally = *shared.tally.lock().expect("no panic holds the tally");
    let seconds = time.as_secs_f64();
    let per_case = |n: u64| n as f64 / tally.cases.max(1) as f64;
    println!(
        "{} cases in {seconds:.1} s, {:.0} a second; {} steps, {} over all runs",
        tally.cases,
        tally.cases as f64 / seconds,
        tally.steps,
        tally.all_steps,
    );
    println!(
        "a case: {:.2} steps, {:.2} faults, {:.2} bus calls, {:.2} requests answered; \
         {:.0} % end unimplemented; {} blocks retired",
        per_case(tally.steps),
        per_case(tally.faults),
        per_case(tally.accesses),
        per_case(tally.requests),
        100.0 * per_case(tally.unimplemented),
        tally.blocks_retired,
    );
    for line in tally.census.lines() {
        println!("{line}");
    }
}

/// Runs a case after those of its group that come before it, and prints what it does.
fn replay(options: &Options, index: u64) -> ExitCode {
    let seed = options.seed;
    let first = index / GROUP * GROUP;
    let selection = Selection { seed, first, end: index + 1, is_loud: !options.is_quiet };
    let (_, failures) = run_caught(selection, &AtomicU64::new(index));
    let mine: Vec<_> = failures.iter().filter(|failure| failure.index == index).collect();
    for failure in &mine {
        println!("FAIL {failure}{}", alone(failure));
    }
    if mine.is_empty() {
        println!("seed {seed} index {index}: all runs agree");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
