//! The command `realmode`: boot images, run test vectors, decode bytes.
#![forbid(unsafe_code)]

mod boot;
mod decode;
mod run_image;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An x86 emulator for the code that hardware cannot enter.
#[derive(Parser)]
#[command(name = "realmode", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Boot(boot::Args),
    Vectors(vectors::Args),
    RunImage(run_image::Args),
    Decode(decode::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Boot(args) => boot::run(&args),
        Command::Vectors(args) => vectors::run(&args),
        Command::RunImage(args) => run_image::run(&args),
        Command::Decode(args) => decode::run(&args),
    };
    result.unwrap_or_else(|message| {
        eprintln!("realmode: {message}");
        ExitCode::from(2)
    })
}
