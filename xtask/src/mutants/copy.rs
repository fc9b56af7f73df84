//! A copy of the repository that may be broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests that have to notice: the recorded outcomes, the unit tests, the cases and the
/// properties. They take seconds where all of them take minutes.
pub(super) const TESTS: [&str; 8] =
    ["-p", "realmode", "-p", "realmode-testkit", "--lib", "--test", "it", "--test=recorded"];

/// Seconds for building everything and testing it.
const BUILD_AND_TEST: u32 = 1200;

/// The copy.
pub(super) struct Copy {
    /// Its root.
    pub(super) root: PathBuf,
}

/// What the tests said.
pub(super) enum Tested {
    /// All is well.
    Passed,
    /// The first test that failed.
    Failed(String),
    /// It did not compile, for this reason.
    Broken(String),
}

impl Copy {
    /// Copies every file that git knows, as it is now. A file that has not changed is left, so that
    /// nothing is built again that need not be.
    pub(super) fn of_the_repository() -> Result<Copy, String> {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent")?;
        let root = from.join("target/mutants/tree");
        let listed = Command::new("git").arg("-C").arg(from).args(["ls-files", "-z"]).output();
        let listed = listed.map_err(|e| format!("cannot run git: {e}"))?;
        let names = String::from_utf8_lossy(&listed.stdout);
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            copy_file(&from.join(name), &root.join(name))?;
        }
        Ok(Copy { root })
    }

    /// A cargo command in the copy.
    pub(super) fn cargo(&self) -> Command {
        self.within(Command::new("cargo"))
    }

    /// A command that is run in the copy.
    pub(super) fn within(&self, mut command: Command) -> Command {
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", self.root.join("../target"));
        // A build that was killed leaves what later incremental ones cannot link.
        command.env("CARGO_INCREMENTAL", "0");
        command
    }

    /// Runs the tests, up to the first that fails. What does not end within `seconds` is killed,
    /// with all that it has started: the program `timeout` sees to that.
    pub(super) fn test(&self, seconds: u32) -> Result<Tested, String> {
        let mut command = self.within(Command::new("timeout"));
        command.args(["--kill-after=5", &seconds.to_string(), "cargo", "test"]).args(TESTS);
        let output = command.output().map_err(|e| format!("cannot run timeout: {e}"))?;
        match output.status.code() {
            Some(0) => return Ok(Tested::Passed),
            Some(124) => return Ok(Tested::Failed(format!("no end within {seconds} s"))),
            _ => {}
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = text.lines().find_map(|line| line.strip_suffix(" ... FAILED"));
        Ok(match failed {
            Some(name) => Tested::Failed(name.trim_start_matches("test ").to_owned()),
            None => Tested::Broken(String::from_utf8_lossy(&output.stderr).into_owned()),
        })
    }

    /// Do the tests pass before anything is broken?
    pub(super) fn passes(&self) -> Result<(), String> {
        match self.test(BUILD_AND_TEST)? {
            Tested::Passed => Ok(()),
            Tested::Failed(name) => Err(format!("{name} fails as it is: mend that first")),
            Tested::Broken(why) => Err(format!("the tests do not run as they are:\n{why}")),
        }
    }
}

/// Copies a file if it differs; one that is gone is removed.
fn copy_file(from: &Path, to: &Path) -> Result<(), String> {
    let fail = |e| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    let Ok(bytes) = fs::read(from) else {
        let _ = fs::remove_file(to);
        return Ok(());
    };
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(to, bytes)).map_err(fail)
}
