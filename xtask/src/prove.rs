//! `cargo xtask prove`: the emulator against silicon.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use realmode_testkit::proof::host_profile;
use realmode_testkit::proof::oracle;
use realmode_testkit::proof::prove::{Report, Selection, Tally, prove};
use realmode_testkit::proof::tolerated::TOLERATED;
use serde_json::{Value, json};

/// Cases of every row, form and operand size in 16-, 32- and 64-bit code are executed by the
/// emulator and by the host's processor, and whatever either leaves is compared: registers, flags,
/// memory, exceptions.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask prove                       ten seconds on every core
  cargo xtask prove --seconds 60 --jobs 1
  cargo xtask prove --seed 7 --json > proof.json

A case that differs is printed as the command that replays it. Exit code 1 if one did.")]
pub(crate) struct Options {
    /// How long to go on
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// What the cases are made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads, as many as there are processors if not given
    #[arg(long)]
    jobs: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    let start = Instant::now();
    let report = native(options)?;
    let seconds = start.elapsed().as_secs_f64();
    if options.json {
        println!("{:#}", as_json(&report, seconds));
    } else {
        print(&report, seconds);
    }
    let failed = report.total().mismatches != 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The proof against the host's processor, on several threads.
fn native(options: &Options) -> Result<Report, String> {
    let jobs = crate::jobs(options.jobs).min(8);
    let bar = progress(options.seconds);
    let start = Instant::now();
    let tick = |cases| {
        bar.set_position(start.elapsed().as_millis() as u64);
        bar.set_message(format!("{cases}"));
    };
    let work = |arena: u16| {
        let first = u64::from(arena) << 40;
        let time = Duration::from_secs(options.seconds);
        prove(Selection { seed: options.seed, first, time, arena }, &tick)
    };
    let mut report = Report::default();
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..jobs).map(|n| scope.spawn(move || work(n as u16))).collect();
        for thread in threads {
            // A panic is a bug of the proof itself.
            let part = thread.join().expect("the proof does not panic");
            report.add(part.map_err(|why| why.to_string())?);
        }
        Ok::<(), String>(())
    })?;
    bar.finish_and_clear();
    Ok(report)
}

fn progress(seconds: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {elapsed} of {msg}");
    let bar = ProgressBar::new(seconds * 1000);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The table for people.
fn print(report: &Report, seconds: f64) {
    println!(
        "{:14} {:>4}  {:7} {:>11} {:>11} {:>9} {:>9} {:>10}",
        "family", "bits", "oracle", "cases", "exceptions", "unfit", "tolerated", "mismatches"
    );
    for ((family, mode), tally) in &report.tallies {
        let bits = mode.code_size().bits();
        let Tally { cases, exceptions, unfit, tolerated, mismatches, .. } = tally;
        println!(
            "{family:14} {bits:>4}  {:7} {cases:>11} {exceptions:>11} {unfit:>9} {tolerated:>9} \
             {mismatches:>10}",
            "native"
        );
    }
    println!();
    for (reason, rows) in unproved() {
        println!("no oracle: {}: {reason}", rows.join(", "));
    }
    for entry in TOLERATED {
        let count = report.tolerated.get(entry.name).copied().unwrap_or(0);
        println!("tolerated {count} times: {} ({})", entry.what, entry.section);
    }
    let total = report.total();
    println!("{} tolerated differences are listed", TOLERATED.len());
    println!(
        "{} bits compared, {} masked: {:.4} %",
        total.bits,
        total.masked,
        100.0 * total.masked as f64 / total.bits.max(1) as f64
    );
    for failure in &report.failures {
        println!(
            "DIFFER {}\n  cargo xtask replay '{}' --seed {} --index {}",
            failure.what, failure.form, failure.seed, failure.index
        );
    }
    println!("{:.0} cases a second", total.cases as f64 / seconds);
    println!("{} passed, {} failed", total.cases - total.mismatches, total.mismatches);
}

/// Rows that the host's processor cannot judge in any mode, by the reason.
fn unproved() -> BTreeMap<&'static str, Vec<String>> {
    oracle::unproved(&host_profile())
}

fn as_json(report: &Report, seconds: f64) -> Value {
    let families: Vec<_> = report
        .tallies
        .iter()
        .map(|((family, mode), tally)| {
            json!({
                "family": family,
                "bits": mode.code_size().bits(),
                "oracle": "native",
                "cases": tally.cases,
                "exceptions": tally.exceptions,
                "unfit": tally.unfit,
                "tolerated": tally.tolerated,
                "mismatches": tally.mismatches,
            })
        })
        .collect();
    let failures: Vec<_> = report
        .failures
        .iter()
        .map(|f| json!({ "form": f.form, "seed": f.seed, "index": f.index, "what": f.what }))
        .collect();
    let total = report.total();
    json!({
        "seconds": seconds,
        "families": families,
        "failures": failures,
        "tolerated": report.tolerated,
        "tolerated_entries": TOLERATED.len(),
        "bits": total.bits,
        "masked_bits": total.masked,
        "unproved": unproved(),
        "passed": total.cases - total.mismatches,
        "failed": total.mismatches,
    })
}
