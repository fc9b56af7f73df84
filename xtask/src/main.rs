//! Repository chores: `cargo xtask help`.
#![forbid(unsafe_code)]

mod fuzz;
mod prove;
mod random_steps;
mod record;
mod replay;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
