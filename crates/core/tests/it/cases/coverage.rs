//! Every line of FACTS has a case or a test named by it, or a reason why it has to wait.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use crate::cases::all;

/// The lines of FACTS.
const LINES: [&str; 119] = [
    // 1: instructions that reach a device
    "M01", "M02", "M04", "M05", "M07", "M08", "M10", "M11", "M13", "M14", "M16", "M17", "M19",
    "M20", "M22", // 2: restart, double access, splitting
    "R01", "R02", "R04", "R05", "R07", "R08", "R10", "R11", "R13", "R14", "R16", "R17", "R19",
    "R20", // 3: fetch, length, prefixes, decode
    "D01", "D02", "D04", "D05", "D07", "D08", "D10", "D11", "D13", "D14", "D16", "D17", "D19",
    "D20", "D22", "D23", "D25", "D26", "D28", // 4: real mode
    "W01", "W02", "W04", "W05", "W07", "W08", "W10", "W11", "W13", "W14", "W16", "W17", "W19",
    "W20", "W22", "W23", "W25", "W26", "W28", "W29", "W31", "W32",
    // 5: protected mode, segments, gates, privilege
    "P01", "P02", "P04", "P05", "P07", "P08", "P10", "P11", "P13", "P14", "P16", "P17", "P19",
    "P20", "P22", "P23", "P25", "P26", "P28", "P29", "P31", "P32",
    // 6: debug, TF, shadow, RF, NMI
    "B01", "B02", "B04", "B05", "B07", "B08", "B10", "B11", "B13", "B14", "B16", "B17",
    // 7: arithmetic, flags, read-modify-write
    "A01", "A02", "A04", "A05", "A07", "A08", "A10", "A11", "A13", "A14", "A16", "A17", "A19",
    "A20", "A22",
];

/// Lines about what is not executed yet, for the issues that they belong to.
const LATER: &[(&str, &str)] =
    &[("B04", "a matter of the VMX backend"), ("A17", "masked moves and gathers are AVX")];

/// Prints past the test harness, which would keep it to itself.
pub fn say(line: &str) {
    let mut out = std::io::stderr().lock();
    write!(out, "\n{line}\n").expect("stderr takes a line");
}

/// The lines that tests are named by: `fn r04_...` is R04. Of every file beside this directory.
fn named_tests() -> BTreeSet<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut ids = BTreeSet::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("fn "));
        ids.extend(names.filter_map(|name| name.get(..3)).map(str::to_ascii_uppercase));
    }
    ids
}

#[test]
fn every_line_of_facts_is_covered_or_has_to_wait() {
    let cases: BTreeSet<String> = all().into_iter().flat_map(|case| case.ids).collect();
    let mut covered = named_tests();
    covered.extend(cases.iter().cloned());
    let later: BTreeSet<&str> = LATER.iter().map(|(id, _)| *id).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for id in LINES {
        match (covered.contains(id), later.contains(id)) {
            (true, false) => count += 1,
            (false, true) => {}
            (false, false) => wrong.push(format!("{id} has neither a case nor a reason")),
            (true, true) => wrong.push(format!("{id} has a case and a reason not to have one")),
        }
    }
    let unknown = cases.iter().filter(|id| !LINES.contains(&id.as_str()));
    wrong.extend(unknown.map(|id| format!("{id} is no line of FACTS")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rest = later.len();
    say(&format!("FACTS: {count} lines covered, {rest} left for later"));
    for (id, reason) in LATER {
        say(&format!("       {id}: {reason}"));
    }
}
