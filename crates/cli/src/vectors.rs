//! `realmode vectors`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use realmode::Profile;
use realmode_testkit::moo::{MooError, Suite};
use realmode_testkit::vector_run::{
    Contradiction, Ending, Failure, FileReport, RunOptions, run_files,
};
use serde_json::{Value, json};

use crate::processor;
use crate::stdout;

/// Run MOO test vectors.
///
/// A vector is one instruction with the state before and after it, captured from silicon. Each is
/// run until HLT; registers and all of memory are compared. metadata.json (which flags an opcode
/// leaves undefined) and revocation_list.txt are used where they stand beside the files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  realmode vectors v1_real_mode                       all of a suite
  realmode vectors v1_real_mode --only F7.6 --show 3  one opcode, three failures
  realmode vectors v1_real_mode --only C0 --every 10  a group, every tenth test
  realmode vectors 27.MOO.gz --profile 386            one file, on another processor

Exit code: 0 if all passed, 1 if any failed, 2 if a file or an argument is bad.")]
pub(crate) struct Args {
    /// Directories of .MOO or .MOO.gz files, or single files.
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,

    /// The processor: 8086, 286, 386, 486, intel or amd. Default: the one a file names.
    #[arg(long, value_name = "P", value_parser = processor::parse)]
    profile: Option<&'static Profile>,

    /// Only the files of this opcode: F7.6, or C0 for its whole group. Can be given again.
    #[arg(long, value_name = "OPCODE")]
    only: Vec<String>,

    /// Print this many failures in full.
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,

    /// Threads. Default: one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Run every K-th test of a file.
    #[arg(long, value_name = "K", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,

    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let start = Instant::now();
    let suites = open_suites(args)?;
    let files = suites.iter().map(|suite| suite.files().len()).sum();
    let bar = progress_bar(files);
    let options = RunOptions {
        profile: args.profile,
        jobs: args.jobs.map_or_else(available_jobs, usize::from),
        every: args.every,
        keep: args.show,
    };
    let done = |report: &FileReport| {
        bar.set_message(report.opcode.clone());
        bar.inc(1);
    };
    let mut reports = Vec::new();
    for suite in &suites {
        let run = run_files(suite, &options, &done);
        reports.extend(run.map_err(|error| error.to_string())?);
    }
    bar.finish_and_clear();
    let text = if args.json {
        format!("{}\n", as_json(&reports, args.show))
    } else {
        as_text(&reports, args.show, start.elapsed())
    };
    stdout::print(&text)?;
    let is_failed = reports.iter().any(|report| report.failed != 0);
    Ok(ExitCode::from(u8::from(is_failed)))
}

fn available_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn open_suites(args: &Args) -> Result<Vec<Suite>, String> {
    let suites: Result<Vec<Suite>, MooError> =
        args.paths.iter().map(|path| Suite::open(path)).collect();
    let mut suites = suites.map_err(|error| error.to_string())?;
    if args.only.is_empty() {
        return Ok(suites);
    }
    for only in &args.only {
        let matches = |file: &PathBuf| is_of_opcode(&Suite::opcode(file), only);
        if !suites.iter().flat_map(Suite::files).any(matches) {
            return Err(format!("--only {only}: no file for this opcode"));
        }
    }
    for suite in &mut suites {
        suite.retain(|opcode| args.only.iter().any(|only| is_of_opcode(opcode, only)));
    }
    Ok(suites)
}

/// Is a file's opcode the one asked for, or in the group asked for?
fn is_of_opcode(opcode: &str, only: &str) -> bool {
    let group = opcode.split_once('.').map_or(opcode, |(group, _)| group);
    opcode.eq_ignore_ascii_case(only) || group.eq_ignore_ascii_case(only)
}

/// Draws on stderr, and only if that is a terminal.
fn progress_bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files  {msg}  {elapsed}");
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn first_failures(
    reports: &[FileReport],
    show: usize,
) -> impl Iterator<Item = (&FileReport, &Failure)> {
    let all = reports.iter().flat_map(|report| report.failures.iter().map(move |f| (report, f)));
    all.take(show)
}

fn sum(reports: &[FileReport], count: impl Fn(&FileReport) -> usize) -> usize {
    reports.iter().map(count).sum()
}

fn as_text(reports: &[FileReport], show: usize, elapsed: Duration) -> String {
    let mut lines: Vec<String> = first_failures(reports, show)
        .map(|(report, failure)| format!("{} {failure}\n", report.opcode))
        .collect();
    let failing: Vec<&FileReport> = reports.iter().filter(|report| report.failed != 0).collect();
    if !failing.is_empty() {
        lines.push(format!("{:8}  {:>8}  {:>8}", "opcode", "failed", "passed"));
        for report in failing {
            let FileReport { opcode, failed, passed, .. } = report;
            lines.push(format!("{opcode:8}  {failed:>8}  {passed:>8}"));
        }
        lines.push(String::new());
    }
    let revoked = sum(reports, |report| report.revoked);
    if revoked != 0 {
        lines.push(format!("{revoked} revoked, not run"));
    }
    for report in reports {
        for (index, Contradiction { frame, registers }) in &report.contradictions {
            lines.push(format!(
                "{} #{index} contradicts itself: it starts with CS={registers:04x}, but its \
                 exception saved {frame:04x}; run with the selector that was saved",
                report.opcode
            ));
        }
    }
    lines.push(format!("{} files in {:.1} s", reports.len(), elapsed.as_secs_f64()));
    let passed = sum(reports, |report| report.passed);
    let failed = sum(reports, |report| report.failed);
    lines.push(format!("{passed} passed, {failed} failed\n"));
    lines.join("\n")
}

fn as_json(reports: &[FileReport], show: usize) -> Value {
    let files: Vec<Value> = reports
        .iter()
        .map(|report| {
            json!({
                "path": report.path.display().to_string(),
                "opcode": report.opcode,
                "passed": report.passed,
                "failed": report.failed,
                "revoked": report.revoked,
            })
        })
        .collect();
    let failures: Vec<Value> = first_failures(reports, show)
        .map(|(report, failure)| failure_as_json(&report.opcode, failure))
        .collect();
    json!({
        "passed": sum(reports, |report| report.passed),
        "failed": sum(reports, |report| report.failed),
        "revoked": sum(reports, |report| report.revoked),
        "contradictory": sum(reports, |report| report.contradictions.len()),
        "files": files,
        "failures": failures,
    })
}

fn failure_as_json(opcode: &str, failure: &Failure) -> Value {
    let registers: BTreeMap<&str, Value> = failure
        .registers
        .iter()
        .map(|difference| {
            let value = json!({
                "before": difference.before,
                "expected": difference.expected,
                "found": difference.found,
                "mask": difference.mask,
            });
            (difference.register.name(failure.width), value)
        })
        .collect();
    let memory: Vec<Value> = failure
        .memory
        .iter()
        .map(|difference| {
            json!({
                "address": difference.address,
                "before": difference.before,
                "expected": difference.expected,
                "found": difference.found,
                "mask": difference.mask,
                "listed": difference.is_listed,
            })
        })
        .collect();
    let ending = match &failure.ending {
        Ending::Halt => "halt",
        Ending::Other(ending) => ending,
    };
    let faults: Vec<Value> = failure
        .faults
        .iter()
        .map(|(ip, fault)| json!({ "ip": ip, "vector": fault.vector }))
        .collect();
    json!({
        "opcode": opcode,
        "index": failure.index,
        "name": failure.name,
        "bytes": failure.bytes,
        "exception": failure.exception,
        "faults": faults,
        "ending": ending,
        "registers": registers,
        "memory": memory,
        "more_memory": failure.more_memory,
    })
}
