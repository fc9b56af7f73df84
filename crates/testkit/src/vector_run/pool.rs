//! Many files, a few threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use realmode::{CacheLine, Profile};

use super::compare::Failure;
use super::memory::VectorMemory;
use super::registers::profile_for;
use super::worker::{Contradiction, VectorWorker};
use crate::moo::{MooError, Suite};

/// Lines of decode cache a worker's emulator gets.
const CACHE_LINES: usize = 256;

/// What to run and how.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The processor, or the one that each file names.
    pub profile: Option<&'static Profile>,
    /// Threads; at least one runs.
    pub jobs: usize,
    /// Run the tests whose number is a multiple of this; 0 counts as 1.
    pub every: u32,
    /// Keep the details of this many failures of each file.
    pub keep: usize,
}

/// What became of one file.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The opcode it is about.
    pub opcode: String,
    /// Tests passed.
    pub passed: usize,
    /// Tests failed.
    pub failed: usize,
    /// Tests not run because they are revoked.
    pub revoked: usize,
    /// Tests that contradict themselves, by number: see [`VectorWorker::contradiction`].
    pub contradictions: Vec<(u32, Contradiction)>,
    /// The first of the failures.
    pub failures: Vec<Failure>,
}

/// A file that could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The file cannot be read.
    #[error(transparent)]
    Moo(#[from] MooError),
    /// The file names a processor that no profile stands for.
    #[error("{}: captured from \"{cpu}\", which no profile stands for: name a profile",
        path.display())]
    UnknownProcessor {
        /// The file.
        path: PathBuf,
        /// The processor it names.
        cpu: String,
    },
}

/// Runs the suite's files and calls `done` after each, from any thread. The reports come in the
/// order of the files, whichever thread ran them.
///
/// # Errors
/// The first file, in their order, that could not be read to its end.
pub fn run_files(
    suite: &Suite,
    options: &RunOptions,
    done: &(dyn Fn(&FileReport) + Sync),
) -> Result<Vec<FileReport>, RunError> {
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let results = Mutex::new(BTreeMap::new());
    let work = || {
        let memory = VectorMemory::new();
        while !is_over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = suite.files().get(number) else { break };
            let result = run_file(suite, path, options, &memory);
            match &result {
                Ok(report) => done(report),
                Err(_) => is_over.store(true, Ordering::Relaxed),
            }
            if let Ok(mut results) = results.lock() {
                results.insert(number, result);
            }
        }
    };
    let jobs = options.jobs.clamp(1, suite.files().len().max(1));
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    results.into_inner().unwrap_or_default().into_values().collect()
}

fn run_file(
    suite: &Suite,
    path: &Path,
    options: &RunOptions,
    memory: &VectorMemory,
) -> Result<FileReport, RunError> {
    let file = suite.load(path)?;
    let Some(profile) = options.profile.or_else(|| profile_for(file.cpu())) else {
        let cpu = file.cpu().to_owned();
        return Err(RunError::UnknownProcessor { path: path.to_owned(), cpu });
    };
    let mut lines = vec![CacheLine::EMPTY; CACHE_LINES];
    let mut worker = VectorWorker::new(profile, memory, &mut lines);
    let opcode = Suite::opcode(path);
    let mut report = FileReport { path: path.to_owned(), opcode, ..FileReport::default() };
    for (number, test) in (0_u32..).zip(file.tests()) {
        let test = test?;
        if number % options.every.max(1) != 0 {
            continue;
        }
        if suite.is_revoked(test.hash) {
            report.revoked += 1;
            continue;
        }
        if let Some(contradiction) = worker.contradiction(&test) {
            report.contradictions.push((test.index, contradiction));
        }
        match worker.run(&test, file.masks()) {
            Ok(()) => report.passed += 1,
            Err(failure) => {
                report.failed += 1;
                if report.failures.len() < options.keep {
                    report.failures.push(*failure);
                }
            }
        }
    }
    Ok(report)
}
