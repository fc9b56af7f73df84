//! `docs/PROOF.md` says what the code says.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use realmode::{Features, Profile};
use realmode_testkit::proof::oracle::unproved;
use realmode_testkit::proof::tolerated::TOLERATED;

fn document() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/PROOF.md");
    std::fs::read_to_string(file).expect("docs/PROOF.md can be read")
}

/// The table of rows that no processor can be asked about, of any processor there is.
fn table() -> String {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for nearest in [Profile::INTEL, Profile::AMD] {
        let profile = Profile { features: Features::all(), ..nearest };
        for (reason, rows) in unproved(&profile) {
            let list = all.entry(reason).or_default();
            list.extend(rows.into_iter().map(|row| format!("`{row}`")));
            list.sort();
            list.dedup();
        }
    }
    let mut table = String::from("| rows | why not |\n|---|---|\n");
    for (reason, rows) in all {
        writeln!(table, "| {} | {reason} |", rows.join(", ")).expect("a String takes everything");
    }
    table
}

#[test]
fn the_rows_without_silicon_are_in_the_document() {
    let table = table();
    assert!(document().contains(&table), "docs/PROOF.md lacks this table:\n{table}");
}

#[test]
fn the_tolerated_differences_are_in_the_document() {
    let mut table = String::from("| tolerated | manual |\n|---|---|\n");
    for entry in TOLERATED {
        let (what, section) = (entry.what, entry.section);
        writeln!(table, "| {what} | {section} |").expect("a String takes everything");
    }
    assert!(document().contains(&table), "docs/PROOF.md lacks this table:\n{table}");
}
