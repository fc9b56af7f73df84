//! Repository chores: `cargo xtask help`.
#![forbid(unsafe_code)]

mod fuzz;
mod mutants;
mod prove;
mod random_steps;
mod record;
mod replay;
mod tidy;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

/// Repository chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, about)]
struct Command {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the house style
    Tidy,
    /// Run random cases in several ways that have to agree
    RandomSteps(random_steps::Options),
    /// Compare the emulator with the host's processor, instruction by instruction
    Prove(prove::Options),
    /// Run the fuzz targets
    Fuzz(fuzz::Options),
    /// Break the emulator in places and see whether the tests notice
    Mutants(mutants::Options),
    /// Record what the host's processor makes of every form, for machines without it
    Record(record::Options),
    /// Run one case of the proof and show what either side makes of it
    Replay(replay::Options),
}

fn main() -> ExitCode {
    let result = match Command::parse().chore {
        Chore::Tidy => tidy::main(),
        Chore::RandomSteps(options) => random_steps::main(&options),
        Chore::Prove(options) => prove::main(&options),
        Chore::Fuzz(options) => fuzz::main(&options),
        Chore::Mutants(options) => mutants::main(&options),
        Chore::Record(options) => record::main(&options),
        Chore::Replay(options) => replay::main(&options),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Threads to use: what was asked for, or one a processor.
fn jobs(asked: Option<usize>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(all).clamp(1, 256)
}

/// A bar of so many steps, which is seen only on a terminal.
fn bar(steps: u64) -> ProgressBar {
    styled_bar(steps, "{wide_bar} {pos} of {len}, {elapsed} {msg}")
}

/// The same, drawn from another template.
fn styled_bar(steps: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new(steps);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
