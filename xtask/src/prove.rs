//! `cargo xtask prove`: the emulator against silicon.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use realmode_testkit::proof::host_profile;
use realmode_testkit::proof::prove::{Report, Selection, Tally, prove};
use realmode_testkit::proof::tolerated::TOLERATED;
use realmode_testkit::proof::{Unavailable, kvm, oracle};
use serde_json::{Value, json};

/// Cases of every row, form and operand size in 16-, 32- and 64-bit code are executed by the
/// emulator and by the host's processor, and whatever either leaves is compared: registers, flags,
/// memory, exceptions. Then KVM steps through what a program cannot do, in real mode.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask prove                       ten seconds on every core, one with KVM
  cargo xtask prove --seconds 60 --jobs 1
  cargo xtask prove --seed 7 --json > proof.json

A case that differs is printed as the command that replays it. Exit code 1 if one did.")]
pub(crate) struct Options {
    /// How long to go on; KVM has a tenth of it besides
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
    let native = native(options).map_err(|why| why.to_string());
    let seconds = start.elapsed().as_secs_f64();
    let proof = Proof { native, seconds, kvm: with_kvm(options) };
    if options.json {
        println!("{:#}", proof.as_json());
    } else {
        proof.print();
    }
    Ok(if proof.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What both oracles said, or why they cannot be asked.
struct Proof {
    native: Result<Report, String>,
    /// What the host's processor took.
    seconds: f64,
    kvm: Result<kvm::Tally, String>,
}

/// KVM's part: a tenth of the time.
fn with_kvm(options: &Options) -> Result<kvm::Tally, String> {
    let time = Duration::from_millis(options.seconds * 100);
    let tally = kvm::prove_kvm(options.seed, kvm::Extent::Time(time), &mut |_| ());
    tally.map_err(|why| why.to_string())
}

/// The proof against the host's processor, on several threads.
fn native(options: &Options) -> Result<Report, Unavailable> {
    let jobs = crate::jobs(options.jobs).min(8);
    let bar = crate::styled_bar(options.seconds * 1000, "{wide_bar} {elapsed} of {msg}");
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
            report.add(part?);
        }
        Ok::<(), Unavailable>(())
    })?;
    bar.finish_and_clear();
    Ok(report)
}

impl Proof {
    fn passed(&self) -> u64 {
        let native = self.native.as_ref().map_or(0, |report| {
            let total = report.total();
            total.cases - total.mismatches
        });
        native + self.kvm.as_ref().map_or(0, |tally| tally.total().agreed + tally.total().known)
    }

    fn failed(&self) -> u64 {
        let native = self.native.as_ref().map_or(0, |report| report.total().mismatches);
        native + self.kvm.as_ref().map_or(0, |tally| tally.total().mismatches)
    }

    /// The tables for people.
    fn print(&self) {
        println!(
            "{:20} {:>4}  {:7} {:>11} {:>11} {:>9} {:>9} {:>10}",
            "family", "bits", "oracle", "cases", "exceptions", "unfit", "tolerated", "mismatches"
        );
        match &self.native {
            Ok(report) => print_families(report),
            Err(why) => println!("native: skipped, {why}"),
        }
        match &self.kvm {
            Ok(tally) => print_kvm(tally),
            Err(why) => println!("kvm: skipped, {why}"),
        }
        println!();
        for (reason, rows) in unproved() {
            println!("no silicon: {}: {reason}", rows.join(", "));
        }
        if let Ok(report) = &self.native {
            print_native(report, self.seconds);
        }
        if let Ok(tally) = &self.kvm {
            for (known, count) in kvm::known::all().zip(&tally.known) {
                println!("KVM errs {count} times: {} ({})", known.kvm, known.manual);
            }
            for mismatch in &tally.mismatches {
                let (seed, index) = (mismatch.seed, mismatch.index);
                println!(
                    "DIFFER {}\n  cargo xtask replay kvm --seed {seed} --index {index}",
                    mismatch.what
                );
            }
        }
        println!("{} passed, {} failed", self.passed(), self.failed());
    }

    fn as_json(&self) -> Value {
        json!({
            "native": self.native.as_ref().map_or_else(
                |why| json!({ "skipped": why }),
                |report| native_json(report, self.seconds),
            ),
            "kvm": self.kvm.as_ref().map_or_else(|why| json!({ "skipped": why }), kvm_json),
            "no_silicon": unproved(),
            "passed": self.passed(),
            "failed": self.failed(),
        })
    }
}

fn print_families(report: &Report) {
    for ((family, mode), tally) in &report.tallies {
        let bits = mode.code_size().bits();
        let Tally { cases, exceptions, unfit, tolerated, mismatches, .. } = tally;
        println!(
            "{family:20} {bits:>4}  {:7} {cases:>11} {exceptions:>11} {unfit:>9} {tolerated:>9} \
             {mismatches:>10}",
            "native"
        );
    }
}

/// KVM's families are of real mode; what it does not emulate is unfit.
fn print_kvm(tally: &kvm::Tally) {
    for (family, count) in kvm::Family::ALL.iter().zip(&tally.families) {
        let kvm::FamilyTally { cases, not_offered, known, mismatches, .. } = count;
        println!(
            "{:20} {:>4}  {:7} {:>11} {:>11} {not_offered:>9} {known:>9} {mismatches:>10}",
            family.name(),
            "real",
            "kvm",
            cases - not_offered,
            "-"
        );
    }
}

fn print_native(report: &Report, seconds: f64) {
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
    println!("{} native cases, {:.0} a second", total.cases, total.cases as f64 / seconds);
}

/// Rows that the host's processor cannot judge in any mode, by the reason.
fn unproved() -> BTreeMap<&'static str, Vec<String>> {
    oracle::unproved(&host_profile())
}

fn native_json(report: &Report, seconds: f64) -> Value {
    let families: Vec<_> = report
        .tallies
        .iter()
        .map(|((family, mode), tally)| {
            json!({
                "family": family,
                "bits": mode.code_size().bits(),
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
        "cases": total.cases,
        "families": families,
        "failures": failures,
        "tolerated": report.tolerated,
        "tolerated_entries": TOLERATED.len(),
        "bits": total.bits,
        "masked_bits": total.masked,
    })
}

fn kvm_json(tally: &kvm::Tally) -> Value {
    let families: Vec<_> = kvm::Family::ALL
        .iter()
        .zip(&tally.families)
        .map(|(family, count)| {
            json!({
                "family": family.name(),
                "cases": count.cases,
                "agreed": count.agreed,
                "not_offered": count.not_offered,
                "known": count.known,
                "mismatches": count.mismatches,
            })
        })
        .collect();
    let known: BTreeMap<_, _> =
        kvm::known::all().map(|known| known.name).zip(tally.known.iter().copied()).collect();
    let failures: Vec<_> = tally
        .mismatches
        .iter()
        .map(|m| json!({ "seed": m.seed, "index": m.index, "what": m.what }))
        .collect();
    json!({
        "families": families,
        "known": known,
        "not_offered": tally.not_offered,
        "failures": failures,
    })
}
