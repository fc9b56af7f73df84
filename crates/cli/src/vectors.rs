//! `realmode vectors`.

use std::process::ExitCode;

/// Run MOO test vectors.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub fn run(_args: &Args) -> Result<ExitCode, String> {
    Err("not built yet".into())
}
