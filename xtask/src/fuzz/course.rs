//! One target's run, and the crash it found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::programs::Programs;

/// An input that takes longer than this hangs; they take milliseconds.
const LONGEST_INPUT: u64 = 20;
/// MiB that a target may use: most of it is the corpus.
const MEMORY: u64 = 3000;
/// Seconds spent on making a crash smaller.
const MINIMISING: u64 = 60;

/// What a run of a target came to.
pub(super) struct Course {
    /// The target.
    pub(super) target: String,
    /// Inputs executed.
    pub(super) executions: u64,
    /// The same, a second.
    pub(super) per_second: u64,
    /// Inputs that reached something new, and were kept.
    pub(super) new: u64,
    /// The input that ended it before its time.
    pub(super) crash: Option<Crash>,
}

/// An input that crashes a target.
pub(super) struct Crash {
    /// What went wrong, in one line.
    pub(super) what: String,
    /// The input, unless there is none.
    input: Option<PathBuf>,
    /// All that the target printed.
    log: PathBuf,
}

impl Crash {
    /// The command that shows it again.
    pub(super) fn replay(&self, target: &str) -> String {
        match &self.input {
            Some(input) => {
                format!("cargo xtask fuzz --target {target} --input {}", input.display())
            }
            None => format!("no input was kept: see {}", self.log.display()),
        }
    }
}

impl Programs {
    /// Runs a target for a while.
    pub(super) fn run(&self, target: &str, time: Duration) -> Result<Course, String> {
        let (corpus, artifacts) = (self.place("corpus", target)?, self.place("artifacts", target)?);
        let log = artifacts.join("log");
        let output =
            File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let status = self
            .limited(target, time.as_secs())
            .arg("-print_final_stats=1")
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args([corpus, self.fuzz.join("seeds").join(target)])
            .stdout(Stdio::null())
            .stderr(output)
            .status()
            .map_err(|e| format!("cannot run {target}: {e}"))?;
        let text = fs::read(&log).map_err(|e| format!("cannot read {}: {e}", log.display()))?;
        let text = String::from_utf8_lossy(&text);
        let crash = (!status.success()).then(|| {
            let found = after(&text, "Test unit written to ").map(PathBuf::from);
            let input = found.map(|found| self.minimised(target, &found));
            Crash { what: cause(&text, &status.to_string()), input, log }
        });
        let number = |name| after(&text, name).and_then(|n| n.trim().parse().ok()).unwrap_or(0);
        Ok(Course {
            target: target.to_owned(),
            executions: number("stat::number_of_executed_units:"),
            per_second: number("stat::average_exec_per_sec:"),
            new: number("stat::new_units_added:"),
            crash,
        })
    }

    /// The program of a target, with limits for all of its inputs and for each.
    fn limited(&self, target: &str, seconds: u64) -> Command {
        let mut command = self.command(target);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={LONGEST_INPUT}"))
            .arg(format!("-rss_limit_mb={MEMORY}"));
        command
    }

    /// A directory of the target, which is made if it is not there.
    fn place(&self, kind: &str, target: &str) -> Result<PathBuf, String> {
        let place = self.fuzz.join(kind).join(target);
        fs::create_dir_all(&place).map_err(|e| format!("cannot make {}: {e}", place.display()))?;
        Ok(place)
    }

    /// A smaller input that crashes too, or else the same.
    fn minimised(&self, target: &str, found: &Path) -> PathBuf {
        let smaller = found.with_extension("small");
        let status = self
            .limited(target, MINIMISING)
            .arg("-minimize_crash=1")
            .arg(format!("-exact_artifact_path={}", smaller.display()))
            .arg(found)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let len = |path: &Path| path.metadata().map_or(u64::MAX, |file| file.len());
        let is_smaller = status.is_ok() && len(&smaller) < len(found);
        if is_smaller { smaller } else { found.to_owned() }
    }
}

/// The rest of the line behind `mark`.
fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(mark)?;
    rest.lines().next()
}

/// Why a target ended: what it panicked with, or what the sanitizer says.
fn cause(text: &str, status: &str) -> String {
    let mut lines = text.lines();
    let panic = lines.find(|line| line.contains("panicked at")).map(|place| {
        let place = place.split_once("panicked at ").map_or(place, |(_, place)| place);
        format!("{place} {}", lines.next().unwrap_or(""))
    });
    let error = || text.lines().find(|line| line.contains("ERROR:")).map(str::to_owned);
    panic.or_else(error).unwrap_or_else(|| status.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{after, cause};

    #[test]
    fn the_cause_is_the_panic_or_what_the_sanitizer_says() {
        let panic = "x\nthread 'a' (1) panicked at src/a.rs:1:2:\nso it went\n== ERROR: deadly";
        assert_eq!(cause(panic, "signal"), "src/a.rs:1:2: so it went");
        assert_eq!(cause("a\n==1== ERROR: heap\nb", "signal"), "==1== ERROR: heap");
        assert_eq!(cause("a", "signal: 9"), "signal: 9");
    }

    #[test]
    fn figures_stand_behind_their_names() {
        assert_eq!(after("a: 1\nb:   23\nc: 4", "b:"), Some("   23"));
        assert_eq!(after("a: 1", "b:"), None);
    }
}
