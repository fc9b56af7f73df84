//! `cargo xtask record`: outcomes of the host's processor, for machines without it.

use std::path::PathBuf;
use std::process::ExitCode;

use realmode::Vendor;
use realmode_testkit::proof::{Mode, Setting, host_profile, record};

/// The settings at edges.
const EDGES: &[Setting] = &[Setting::Segments, Setting::Pages];

/// The modes and settings that can be recorded, with the names of their files.
const FILES: [(Mode, &[Setting], &str); 6] = [
    (Mode::Bits16, &[Setting::Usual], "bits16"),
    (Mode::Bits32, &[Setting::Usual], "bits32"),
    (Mode::Bits64, &[Setting::Usual], "bits64"),
    (Mode::Bits16, EDGES, "edges16"),
    (Mode::Bits32, EDGES, "edges32"),
    (Mode::Bits64, EDGES, "edges64"),
];

/// Executes cases of every form on the host's processor and writes down what it left, so that
/// `cargo test` can hold the emulator against it anywhere.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask record                    writes testdata/native/VENDOR-SIGNATURE for this processor
  cargo xtask record --out /tmp/mine    elsewhere, to compare

Prove first (`cargo xtask prove`): what is recorded is what the emulator is held against.")]
pub(crate) struct Options {
    /// The directory that gets the processor's own
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/native"))]
    out: PathBuf,
    /// Cases of each form; a quarter of them at the edges of segments and pages
    #[arg(long, default_value_t = 256)]
    cases: u32,
    /// What the cases are made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    let out = options.out.join(directory());
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut sum = 0;
    for (mode, settings, name) in FILES {
        let is_edge = settings == EDGES;
        let cases = if is_edge { options.cases.div_ceil(4) } else { options.cases };
        let bar = crate::bar(0);
        bar.set_message(name);
        let tick = |number: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(number as u64);
        };
        let recording = record::take(mode, settings, options.seed, cases, &tick);
        let recording = recording.map_err(|why| why.to_string())?;
        bar.finish_and_clear();
        let file = out.join(format!("{name}.rec"));
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
    println!("{sum} bytes in {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The host's processor in a word: its maker, and CPUID leaf 1 EAX.
fn directory() -> String {
    let profile = host_profile();
    let vendor = match profile.vendor {
        Vendor::Intel => "intel",
        Vendor::Amd => "amd",
    };
    format!("{vendor}-{:x}", profile.signature)
}
