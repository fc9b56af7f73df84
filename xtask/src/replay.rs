//! `cargo xtask replay`: one case of the proof.

use std::process::ExitCode;

use realmode_testkit::proof::host_profile;
use realmode_testkit::proof::{Form, kvm, prove};

/// Makes one case, executes it on both sides, and prints the case and what either left.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask replay '16+66 mem 0F A4 SHLD Ev,Gv,Ib' --seed 1 --index 512
  cargo xtask replay kvm --seed 1 --index 512")]
pub(crate) struct Options {
    /// The form, as the proof prints it, or `kvm` for a case of real mode that KVM executes
    form: String,
    /// What the case is made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the case
    #[arg(long)]
    index: u64,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    if options.form == "kvm" {
        let text = kvm::replay(options.seed, options.index).map_err(|why| why.to_string())?;
        print!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    let form = Form::find(&options.form, &host_profile()).ok_or_else(|| {
        format!(
            "there is no form '{}' on this processor: copy it as `cargo xtask prove` prints it",
            options.form
        )
    })?;
    let replayed = prove::replay(&form, options.seed, options.index);
    let replayed = replayed.map_err(|why| why.to_string())?;
    print!("{}", replayed.text);
    Ok(if replayed.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
