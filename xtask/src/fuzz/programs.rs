//! The programs of the targets, built by cargo-fuzz.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What watches over memory while a target runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sanitizer {
    /// AddressSanitizer
    Address,
    /// Nothing: some three times as fast
    None,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::None => "none",
        }
    }
}

/// Targets that have been built.
pub(super) struct Programs {
    /// The directory fuzz/.
    pub(super) fuzz: PathBuf,
    directory: PathBuf,
}

impl Programs {
    /// Builds the targets, all in one go.
    pub(super) fn build(
        fuzz: &Path,
        sanitizer: Sanitizer,
        targets: &[String],
    ) -> Result<Programs, String> {
        let built = env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| fuzz.join("../target"), PathBuf::from)
            .join(format!("fuzz-{}", sanitizer.name()));
        let triple = host()?;
        let mut command = cargo_fuzz();
        command
            .args(["build", "--sanitizer", sanitizer.name(), "--target", &triple])
            // A case's choices are not compared with anything, and without it a target does twice
            // as many.
            .arg("--no-trace-compares")
            // The targets are different programs with the same library.
            .args(["--codegen-units", "16"])
            .arg("--fuzz-dir")
            .arg(fuzz)
            .arg("--target-dir")
            .arg(&built);
        if let [target] = targets {
            command.arg(target);
        }
        eprintln!("building the fuzz targets");
        let status = command.stdout(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) if !has_cargo_fuzz() => {
                return Err("cargo-fuzz is missing: cargo install cargo-fuzz --locked".into());
            }
            Ok(status) => return Err(format!("cargo fuzz build ended with {status}")),
            Err(e) => return Err(format!("cannot run cargo: {e}")),
        }
        Ok(Programs { fuzz: fuzz.to_owned(), directory: built.join(triple).join("release") })
    }

    /// The program of a target, about to be run.
    pub(super) fn command(&self, target: &str) -> Command {
        Command::new(self.directory.join(target))
    }

    /// Runs one input and lets its output through. False if it crashed.
    pub(super) fn replay(&self, target: &str, input: &Path) -> Result<bool, String> {
        if !input.is_file() {
            return Err(format!("{} is no file: give an input of {target}", input.display()));
        }
        let status = self.command(target).arg(input).status();
        status.map(|status| status.success()).map_err(|e| format!("cannot run {target}: {e}"))
    }
}

/// `cargo fuzz` of a toolchain that takes the flags it needs: a nightly one if there is one, or
/// else any, told to take them.
fn cargo_fuzz() -> Command {
    let has_nightly = Command::new("rustup")
        .args(["run", "nightly", "rustc", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let mut command = if has_nightly {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz"]);
        command
    } else {
        let mut command = Command::new("cargo");
        command.arg("fuzz").env("RUSTC_BOOTSTRAP", "1");
        command
    };
    // What the cargo that runs this has set is about another toolchain.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command
}

fn has_cargo_fuzz() -> bool {
    let mut command = Command::new("cargo");
    command.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The triple of this machine.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|e| format!("cannot run rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc -vV names no host: {text}"))
}
