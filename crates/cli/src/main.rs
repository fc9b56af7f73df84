//! The command `realmode`: boot images, run test vectors, decode bytes.
#![forbid(unsafe_code)]

mod boot;
mod decode;
mod processor;
mod run_image;
mod stdout;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Boots images, runs test vectors and decodes bytes with the x86 emulator realmode.
#[derive(Parser)]
#[command(name = "realmode", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Boot(Box<boot::Args>),
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
        stdout::explain(&format!("realmode: {message}\n"));
        ExitCode::from(2)
    })
}
