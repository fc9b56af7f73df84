//! A sample of what cargo-mutants would change.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::copy::{Copy, TESTS};

/// Where instructions are executed, flags computed and events delivered.
#[rustfmt::skip]
const WHERE: [&str; 8] = [
    "-p", "realmode",
    "-f", "crates/core/src/isa/**",
    "-f", "crates/core/src/flags.rs",
    "-f", "crates/core/src/event/**",
];
/// Seconds that the tests of one mutant may take.
const LONGEST: &str = "120";

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// The tests did not end.
    Timeout,
    /// It does not compile.
    Unviable,
    /// No test noticed.
    Survived,
}

/// Mutants that were chosen, by their names.
pub(super) struct Sample(Vec<String>);

impl Sample {
    /// Chooses some. Those of the same name are chosen again when others come and go.
    pub(super) fn choose(copy: &Copy, count: usize, seed: u64) -> Result<Sample, String> {
        let mut command = copy.cargo();
        command.args(["mutants", "--list", "--json"]).args(WHERE);
        let output = command.output().map_err(|e| format!("cannot run cargo: {e}"))?;
        let mutants: Vec<Value> = serde_json::from_slice(&output.stdout).map_err(|_| {
            let why = String::from_utf8_lossy(&output.stderr);
            format!("cargo mutants lists nothing (cargo install cargo-mutants --locked?): {why}")
        })?;
        let mut names: Vec<String> = mutants
            .iter()
            .filter_map(|mutant| mutant["name"].as_str().map(str::to_owned))
            .collect();
        // cargo-mutants deletes fields whatever --re says: those are always chosen.
        names.sort_by_cached_key(|name| {
            let is_optional = !name.contains("delete field");
            (is_optional, crc32fast::hash(format!("{seed} {name}").as_bytes()))
        });
        names.truncate(count);
        Ok(Sample(names))
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Tests them, for so long at most.
    pub(super) fn test(
        &self,
        copy: &Copy,
        minutes: Option<f64>,
    ) -> Result<Vec<(String, Outcome)>, String> {
        let out = copy.root.join("..");
        let report = out.join("mutants.out/outcomes.json");
        let _ = fs::remove_file(&report);
        // The program `timeout` ends whatever has been started, too; 0 is without end.
        let seconds = minutes.map_or(0.0, |minutes| (60.0 * minutes).max(1.0));
        let mut command = copy.within(Command::new("timeout"));
        command.args(["--signal=INT", "--kill-after=20", &format!("{seconds:.0}"), "cargo"]);
        command.args(["mutants", "--in-place", "--baseline=skip", "--timeout", LONGEST]);
        command.args(WHERE).arg("--output").arg(&out);
        self.names().for_each(|name| {
            command.arg("--re").arg(format!("^{}$", regex_syntax::escape(name)));
        });
        command.arg("--").args(TESTS);
        let log = fs::File::create(out.join("log")).map_err(|e| format!("cannot write: {e}"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut child = child.map_err(|e| format!("cannot run cargo mutants: {e}"))?;
        let bar = crate::bar(self.0.len() as u64);
        while child.try_wait().map_err(|e| e.to_string())?.is_none() {
            thread::sleep(Duration::from_secs(1));
            bar.set_position(outcomes(&report).map_or(0, |tested| tested.len() as u64));
        }
        bar.finish_and_clear();
        outcomes(&report)
    }
}

/// Reads what cargo-mutants has written so far.
fn outcomes(report: &PathBuf) -> Result<Vec<(String, Outcome)>, String> {
    let text = fs::read(report).map_err(|e| format!("cannot read {}: {e}", report.display()))?;
    let report: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let all = report["outcomes"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(all.iter().filter_map(outcome).collect())
}

fn outcome(entry: &Value) -> Option<(String, Outcome)> {
    let name = entry["scenario"]["Mutant"]["name"].as_str()?.to_owned();
    let outcome = match entry["summary"].as_str()? {
        "CaughtMutant" => Outcome::Caught,
        "Timeout" => Outcome::Timeout,
        "Unviable" => Outcome::Unviable,
        "MissedMutant" => Outcome::Survived,
        _ => return None,
    };
    Some((name, outcome))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, outcome};
    use serde_json::json;

    #[test]
    fn outcomes_are_those_of_mutants() {
        let entry =
            |summary| json!({ "scenario": { "Mutant": { "name": "n" } }, "summary": summary });
        assert_eq!(outcome(&entry("MissedMutant")), Some(("n".into(), Outcome::Survived)));
        assert_eq!(outcome(&entry("CaughtMutant")), Some(("n".into(), Outcome::Caught)));
        assert_eq!(outcome(&json!({ "scenario": "Baseline", "summary": "Success" })), None);
    }
}
