//! The ladder of core's modules: a file uses only rungs below its own, or other files of its own
//! rung. ARCHITECTURE.md explains it.

use super::Report;
use super::text::Source;

/// The rungs from the bottom. A name covers the modules below it that are not named themselves.
const RUNGS: &[&[&str]] = &[
    &["arch"],
    &["flags", "width"],
    &["profile"],
    &["fault", "stop", "error"],
    &["state"],
    &["mem::host"],
    &["bus", "policy"],
    &["observe", "flight"],
    &["mem::tlb", "mem::code_map"],
    &["op", "machine", "mem", "event"],
    &["isa"],
    &["decode", "disasm", "encodings"],
    &["view", "cache"],
    &["run"],
];

/// Checks every path through `crate::` of a file of `crates/core/src`.
pub(crate) fn check(file: &str, source: &Source<'_>, report: &mut Report<'_>) {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    if module == "lib" {
        return;
    }
    let Some(own) = rung(&module) else {
        report.whole(format!("{module} has no rung: add it to the ladder in xtask"));
        return;
    };
    let text = source.code.join("\n");
    for (at, _) in text.match_indices("crate::") {
        // `$crate::` and the like are someone else's.
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = text[..at].matches('\n').count();
        for used in paths(&text[at + "crate::".len()..]) {
            match rung(&used) {
                Some(rung) if rung > own => {
                    let used = named(&used);
                    report
                        .at(line, format!("{module} uses {used}, which is above it on the ladder"));
                }
                _ => {}
            }
        }
    }
}

/// The paths that follow `crate::`, groups taken apart.
fn paths(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let (path, rest) = text.split_at(end.unwrap_or(text.len()));
    if !rest.starts_with('{') {
        return vec![path.to_owned()];
    }
    let close = rest.find('}').unwrap_or(rest.len());
    let items = rest[1..close].split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| format!("{path}{item}")).collect()
}

/// The name on the ladder that covers a path.
fn named(path: &str) -> &str {
    let covers = |name: &&&str| {
        path.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let names = RUNGS.iter().flat_map(|rung| rung.iter());
    names.filter(covers).max_by_key(|name| name.len()).copied().unwrap_or_default()
}

fn rung(path: &str) -> Option<usize> {
    let name = named(path);
    RUNGS.iter().position(|rung| rung.contains(&name))
}
