//! Names, heads, and lengths: of files, lines and functions.

use super::Report;
use super::text::{Source, find_word};

const FILE_LINES: usize = 800;
const LINE_COLUMNS: usize = 100;
const FUNCTION_LINES: usize = 70;
/// Names of files that say nothing.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];

/// The file as a whole, and its lines.
pub(crate) fn file(source: &Source<'_>, report: &mut Report<'_>) {
    let name = report.path.rsplit('/').next().unwrap_or_default();
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    if EMPTY_NAMES.contains(&stem) {
        report.whole(format!("{stem} names no idea: name the file for what is in it"));
    }
    if source.lines.len() > FILE_LINES {
        report.whole(format!("{} lines, at most {FILE_LINES}", source.lines.len()));
    }
    let first = source.lines.iter().position(|line| !line.is_empty());
    if !first.is_some_and(|at| source.lines[at].starts_with("//!")) {
        report.at(first.unwrap_or(0), "the file does not begin with //!");
    }
    for (at, line) in source.lines.iter().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS {
            report.at(at, format!("{columns} columns, at most {LINE_COLUMNS}"));
        }
    }
}

/// The lengths of functions, from `fn` to the brace that closes the body.
pub(crate) fn functions(source: &Source<'_>, report: &mut Report<'_>) {
    for (first, line) in source.code.iter().enumerate() {
        let Some(at) = find_word(line, "fn") else { continue };
        let rest = line[at + 2..].trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // `fn(` is a type.
        if name.is_empty() {
            continue;
        }
        if let Some(lines) = body_lines(&source.code[first..], at)
            && lines > FUNCTION_LINES
        {
            report.at(first, format!("{name} has {lines} lines, at most {FUNCTION_LINES}"));
        }
    }
}

/// The number of lines to the end of the body that begins after column `at` of the first line;
/// `None` for a declaration without body.
fn body_lines(code: &[String], at: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0, 0);
    for (number, line) in code.iter().enumerate() {
        let line = if number == 0 { &line[at..] } else { line };
        for c in line.chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                '{' => braces += 1,
                '}' => {
                    braces -= 1;
                    if braces == 0 && brackets == 0 {
                        return Some(number + 1);
                    }
                }
                ';' if braces == 0 && brackets == 0 => return None,
                _ => {}
            }
        }
    }
    None
}
