//! `cargo xtask mutants`: do the tests notice when the emulator is wrong?

mod copy;
mod planted;
mod sample;

use std::process::ExitCode;

use serde_json::{Value, json};

use copy::Copy;
use planted::Found;
use sample::{Outcome, Sample};

/// Changes the emulator where it executes instructions, computes flags and delivers events, one
/// place at a time, in a copy below target/, and runs the tests. What no test notices survives.
///
/// Needs cargo-mutants (cargo install cargo-mutants --locked), but not with --planted.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask mutants                     300 mutants: hours
  cargo xtask mutants --minutes 30        as many of the 300 as can be tested in half an hour
  cargo xtask mutants --list              only name them
  cargo xtask mutants --planted           the faults of xtask/planted.toml instead

Survivors are listed with file and line. Exit code 1 if a planted fault was not found; survivors
do not count, since some mutants do the same as what they replace.")]
pub(crate) struct Options {
    /// Mutants to test
    #[arg(long, default_value_t = 300, value_name = "N")]
    count: usize,
    /// What the choice is made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When to stop, though not all are tested
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Only list the chosen mutants
    #[arg(long = "list")]
    only_lists: bool,
    /// Plant the faults of xtask/planted.toml instead
    #[arg(long = "planted")]
    plants: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    if options.plants {
        return plant(options.json);
    }
    let copy = Copy::of_the_repository()?;
    let sample = Sample::choose(&copy, options.count, options.seed)?;
    if options.only_lists {
        sample.names().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    copy.passes()?;
    let tested = sample.test(&copy, options.minutes)?;
    let count = |outcome| tested.iter().filter(|(_, o)| *o == outcome).count();
    let survivors: Vec<&str> =
        tested.iter().filter(|(_, o)| *o == Outcome::Survived).map(|(name, _)| &**name).collect();
    let [caught, slow, unviable] =
        [Outcome::Caught, Outcome::Timeout, Outcome::Unviable].map(count);
    if options.json {
        let result = json!({
            "chosen": sample.names().count(), "caught": caught, "timeout": slow,
            "unviable": unviable, "survived": survivors,
        });
        println!("{result:#}");
    } else {
        survivors.iter().for_each(|name| println!("SURVIVED {name}"));
        println!(
            "{} of {} mutants tested: {caught} caught, {slow} out of time, {unviable} do not \
             compile, {} survived",
            tested.len(),
            sample.names().count(),
            survivors.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Plants each fault, and says which test found it.
fn plant(as_json: bool) -> Result<ExitCode, String> {
    let faults = planted::all()?;
    let copy = Copy::of_the_repository()?;
    copy.passes()?;
    let mut found = Vec::new();
    let bar = crate::bar(faults.len() as u64);
    for fault in &faults {
        bar.set_message(fault.name.clone());
        found.push(fault.plant(&copy)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let missed = found.iter().filter(|found| matches!(found, Found::Nowhere)).count();
    if as_json {
        let rows = faults.iter().zip(&found).map(|(fault, found)| {
            json!({ "fault": fault.name, "file": fault.file, "found_by": found.as_text() })
        });
        let result = json!({ "faults": rows.collect::<Vec<Value>>(), "missed": missed });
        println!("{result:#}");
    } else {
        for (fault, found) in faults.iter().zip(&found) {
            println!("{:60} {}", fault.name, found.as_text().unwrap_or("NOT FOUND"));
        }
        println!("{} passed, {missed} failed", found.len() - missed);
    }
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
