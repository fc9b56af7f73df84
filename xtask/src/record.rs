//! `cargo xtask record`: outcomes of the host's processor, for machines without it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use realmode_testkit::proof::{Mode, record};

/// The modes that can be recorded, with the names of their files.
const MODES: [(Mode, &str); 3] =
    [(Mode::Bits16, "bits16"), (Mode::Bits32, "bits32"), (Mode::Bits64, "bits64")];

/// Executes cases of every form on the host's processor and writes down what it left, so that
/// `cargo test` can hold the emulator against it anywhere.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask record                    rewrites testdata/native for this processor
  cargo xtask record --out /tmp/mine    compare two processors' recordings

Prove first (`cargo xtask prove`): what is recorded is what the emulator is held against.")]
pub(crate) struct Options {
    /// The directory to write to
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/native"))]
    out: PathBuf,
    /// Cases of each form
    #[arg(long, default_value_t = 200)]
    cases: u32,
    /// What the cases are made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    std::fs::create_dir_all(&options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    let mut sum = 0;
    for (mode, name) in MODES {
        let bar = progress(name);
        let tick = |number: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(number as u64);
        };
        let recording = record::take(mode, options.seed, options.cases, &tick);
        let recording = recording.map_err(|why| why.to_string())?;
        bar.finish_and_clear();
        let file = options.out.join(format!("{name}.rec"));
        let bytes = recording.to_bytes();
        std::fs::write(&file, &bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        println!(
            "{name}: {} forms, {} cases each, {} bytes, {}",
            recording.forms.len(),
            recording.cases,
            bytes.len(),
            recording.processor
        );
        sum += bytes.len();
    }
    println!("{sum} bytes in {}", options.out.display());
    Ok(ExitCode::SUCCESS)
}

fn progress(name: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} forms");
    let bar = ProgressBar::new(1).with_prefix(name);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
