//! What should not have been left: unfinished code, and names of the machine it was written on.

use super::Report;
use super::text::Source;

/// Code that says it is not finished.
const UNFINISHED: [&str; 4] = [
    concat!("tod", "o!("),
    concat!("unimple", "mented!("),
    concat!("db", "g!("),
    concat!("#[ign", "ore"),
];

/// Code that nobody uses: whoever keeps it says why on the same line.
const UNUSED: &str = concat!("allow(dead", "_code)");

/// Where somebody's files lie. Written in halves, so that this file does not name them.
const PLACES: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// The registry that everybody has.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Unfinished code.
pub(crate) fn code(source: &Source<'_>, report: &mut Report<'_>) {
    for (at, line) in source.code.iter().enumerate() {
        for mark in UNFINISHED.iter().filter(|mark| line.contains(**mark)) {
            report.at(at, format!("left over: {}", mark.trim_matches(['#', '[', '('])));
        }
        if line.contains(UNUSED) && !source.lines[at].contains("//") {
            report.at(at, format!("{UNUSED} without a reason beside it"));
        }
    }
}

/// Paths of a machine and registries that not everybody has, in any text file.
pub(crate) fn places(text: &str, report: &mut Report<'_>) {
    for (at, line) in text.lines().enumerate() {
        if let Some(place) = PLACES.iter().find(|place| names_place(line, place)) {
            report.at(at, format!("names a place of one machine: {place}"));
        }
        let other = line.match_indices("registry+").any(|(i, _)| !line[i..].starts_with(REGISTRY));
        if other && report.path.ends_with(".lock") {
            report.at(at, "names a registry that not everybody has");
        }
    }
}

/// Does an absolute path begin with `place` here?
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}'))
    })
}
