//! `xtask tidy`: the mechanical part of the house style. Prints `path:line: what` and fails if
//! there is anything to print.

mod ladder;
mod leftovers;
mod shape;
mod text;
mod unsafety;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use text::Source;

/// Something against the style.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    path: String,
    /// Counted from 1; 0 is the whole file.
    line: usize,
    what: String,
}

/// Collects the problems of one file.
struct Report<'p> {
    path: &'p str,
    problems: Vec<Problem>,
}

impl Report<'_> {
    /// Notes a problem at a line, counted from 0.
    fn at(&mut self, line: usize, what: impl Into<String>) {
        let path = self.path.to_owned();
        self.problems.push(Problem { path, line: line + 1, what: what.into() });
    }

    /// Notes a problem of the whole file.
    fn whole(&mut self, what: impl Into<String>) {
        let path = self.path.to_owned();
        self.problems.push(Problem { path, line: 0, what: what.into() });
    }
}

/// Runs the command in the repository.
pub(crate) fn main() -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent")?;
    let mut problems = Vec::new();
    let files = tracked(root)?;
    for path in &files {
        // Binaries are not text, and a file may be tracked and deleted.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            problems.extend(check(&path.to_string_lossy(), &text));
        }
    }
    problems.sort();
    for Problem { path, line, what } in &problems {
        match line {
            0 => println!("{path}: {what}"),
            _ => println!("{path}:{line}: {what}"),
        }
    }
    println!("tidy: {} files, {} problems", files.len(), problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files of the repository, also those that are new and not ignored.
fn tracked(root: &Path) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("tidy asks git for the list of files: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut files: Vec<PathBuf> = list.lines().map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut report = Report { path, problems: Vec::new() };
    leftovers::places(text, &mut report);
    if path.ends_with(".rs") {
        let source = Source::new(text);
        shape::file(&source, &mut report);
        shape::functions(&source, &mut report);
        leftovers::code(&source, &mut report);
        unsafety::check(&source, &mut report);
        if let Some(module) = path.strip_prefix("crates/core/src/") {
            ladder::check(module, &source, &mut report);
        }
    }
    report.problems
}

#[cfg(test)]
mod tests {
    use super::check;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    #[test]
    fn a_tidy_file_has_no_problems() {
        let text =
            "//! Fine.\n\n/// Fine.\nfn fine() -> &'static str {\n    \"unsafe todo!() {\"\n}\n";
        assert_eq!(problems("crates/core/src/run.rs", text), [""; 0]);
    }

    #[test]
    fn each_rule_is_seen() {
        let long = format!("//! X.\n{}\n", "x".repeat(101));
        assert_eq!(problems("a.rs", &long), ["2: 101 columns, at most 100"]);
        assert_eq!(problems("a.rs", "fn f() {}\n"), ["1: the file does not begin with //!"]);
        let stem = problems("src/utils.rs", "//! X.\n");
        assert_eq!(stem, ["0: utils names no idea: name the file for what is in it"]);
        let body = "    x;\n".repeat(70);
        let function = format!("//! X.\nfn long() {{\n{body}}}\n");
        assert_eq!(problems("a.rs", &function), ["2: long has 72 lines, at most 70"]);
        let mark = concat!("//! X.\n#[ign", "ore]\n");
        assert_eq!(problems("a.rs", mark).len(), 1);
        let place = concat!("/ho", "me/someone/x\n");
        assert_eq!(problems("notes.md", place).len(), 1);
    }

    #[test]
    fn unsafe_is_allowed_in_few_places_and_explained_there() {
        let bare = "//! X.\nfn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(problems("crates/core/src/run.rs", bare), ["3: no unsafe here"]);
        assert_eq!(problems("crates/core/src/mem/host.rs", bare), ["3: unsafe without SAFETY"]);
        let explained =
            "//! X.\nfn f() {\n    // SAFETY: g has no conditions.\n    unsafe { g() }\n}\n";
        assert_eq!(problems("crates/core/src/mem/host.rs", explained), [""; 0]);
    }

    #[test]
    fn a_rung_uses_only_rungs_below() {
        let up = "//! X.\nuse crate::run::Emulator;\n";
        let found = problems("crates/core/src/flags.rs", up);
        assert_eq!(found, ["2: flags uses run, which is above it on the ladder"]);
        let group = "//! X.\nuse crate::mem::{host::HostPage, tlb::Tlb};\n";
        assert_eq!(problems("crates/core/src/state.rs", group).len(), 2);
        assert_eq!(problems("crates/core/src/run.rs", up), [""; 0]);
    }
}
