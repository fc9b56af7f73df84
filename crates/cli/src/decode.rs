//! `realmode decode`.

use std::process::ExitCode;

/// Decode instruction bytes.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub fn run(_args: &Args) -> Result<ExitCode, String> {
    Err("not built yet".into())
}
