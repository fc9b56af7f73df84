//! Repository chores: `cargo xtask tidy` and `cargo xtask random-steps`.
#![forbid(unsafe_code)]

mod random_steps;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  tidy                                                            check the house style
  random-steps [--count N] [--seed S] [--jobs J] [--failures N]   run random cases
  random-steps --seed S --index I [--quiet]                       replay one of them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "random-steps" => random_steps::main(rest),
        Some((command, [])) if command == "tidy" => tidy::main(),
        Some((help, _)) if help == "--help" || help == "help" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
