//! `unsafe`: where it may stand, and that it says why it is sound.

use super::Report;
use super::text::{Source, find_word};

/// Files and directories that may contain `unsafe`: the host pages, the backends, the oracles.
const ALLOWED: &[&str] = &[
    "crates/core/src/mem/host.rs",
    "crates/core/tests/it/native",
    "crates/core/tests/it/string.rs",
    "crates/core/no-std-check/",
    "crates/kvm/",
    "crates/bare/",
    "crates/harness/",
    "crates/testkit/src/random_step/memory.rs",
    "crates/testkit/src/proof/kvm/vm.rs",
    "crates/testkit/src/proof/kvm/watchdog.rs",
    "crates/testkit/src/proof/memory.rs",
    "crates/testkit/src/proof/native/",
    "fuzz/",
];

/// Checks every `unsafe` of a file.
pub(crate) fn check(source: &Source<'_>, report: &mut Report<'_>) {
    let is_allowed = ALLOWED.iter().any(|place| report.path.starts_with(place));
    for (at, line) in source.code.iter().enumerate() {
        let Some(column) = find_word(line, "unsafe") else { continue };
        if !is_allowed {
            report.at(at, "no unsafe here");
            continue;
        }
        let rest = line[column + "unsafe".len()..].trim_start();
        // The type of an unsafe function, and the attributes that are written unsafe(..).
        if rest.starts_with('(') || rest.starts_with("fn(") || rest.starts_with("extern") {
            continue;
        }
        let (mark, what) = if rest.starts_with("fn ") {
            ("# Safety", "unsafe fn without # Safety")
        } else {
            ("SAFETY:", "unsafe without SAFETY")
        };
        if !source.lines[at].contains(mark) && !is_explained(source, at, mark) {
            report.at(at, what);
        }
    }
}

/// Does `mark` stand in the comment above, with attributes and the rest of the statement between?
fn is_explained(source: &Source<'_>, at: usize, mark: &str) -> bool {
    let mut comment = false;
    for line in source.lines[..at].iter().rev().map(|line| line.trim()) {
        if line.starts_with("//") {
            comment = true;
            if line.contains(mark) {
                return true;
            }
            continue;
        }
        let goes_on = !line.ends_with(';') && !line.ends_with('}') && !line.is_empty();
        if comment || !goes_on {
            return false;
        }
    }
    false
}
