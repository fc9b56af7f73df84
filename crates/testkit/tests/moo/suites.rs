//! Directories of files, with their lists.

use std::path::Path;

use realmode_testkit::moo::{Register, Suite, TestHash};

use crate::builder::*;
use crate::directory::Directory;

const METADATA: &[u8] = br#"{ "cpu": "286", "opcodes": {
    "27": { "status": "normal", "flags": "o.......", "flags-mask": 63487 },
    "40": { "status": "normal" },
    "0FA4": { "flags-mask": 1 },
    "8F": { "reg": { "0": {}, "1": { "flags-mask": 2 } } },
    "F7": { "reg": { "0": { "flags-mask": 65519 }, "2": {}, "4": { "flags-mask": 65323 } } }
} }"#;

#[test]
fn a_suite_is_the_moo_files_of_a_directory_by_name() {
    let directory = Directory::new(
        "files",
        &[("F7.4.MOO.gz", b""), ("00.MOO", b""), ("0fa4.moo.GZ", b""), ("README.md", b"")],
    );
    let suite = directory.open();
    let opcodes: Vec<String> = suite.files().iter().map(|file| Suite::opcode(file)).collect();
    assert_eq!(opcodes, ["00", "0fa4", "F7.4"]);
}

#[test]
fn a_directory_without_moo_files_is_an_error_that_says_so() {
    let message = Directory::new("empty", &[]).complaint();
    assert!(message.ends_with("no .MOO or .MOO.gz file in this directory"), "{message}");
    let message = Directory::new("others", &[("a.txt", b""), ("MOO", b"")]).complaint();
    assert!(message.ends_with("no .MOO or .MOO.gz file in this directory"), "{message}");
    let missing = Suite::open(Path::new("/nonexistent/suite")).unwrap_err().to_string();
    assert!(missing.starts_with("/nonexistent/suite: "), "{missing}");
}

#[test]
fn metadata_gives_flags_by_opcode_and_by_group() {
    let files: [(&str, &[u8]); 2] = [("27.MOO", b""), ("metadata.json", METADATA)];
    let suite = Directory::new("masks", &files).open();
    assert_eq!(suite.flags_mask("27"), Some(63487));
    assert_eq!(suite.flags_mask("40"), None);
    assert_eq!(suite.flags_mask("0fa4"), Some(1));
    assert_eq!(suite.flags_mask("F7.4"), Some(65323));
    assert_eq!(suite.flags_mask("F7.2"), None);
    assert_eq!(suite.flags_mask("8F"), None);
    assert_eq!(suite.flags_mask("99"), None);
}

#[test]
fn a_file_is_loaded_with_the_flags_of_its_opcode() {
    let bytes = gzip(&sample());
    let files: [(&str, &[u8]); 2] = [("F7.4.MOO.gz", &bytes), ("metadata.json", METADATA)];
    let directory = Directory::new("load", &files);
    let suite = directory.open();
    let file = suite.load(&suite.files()[0]).expect("a file");
    // 0xFF2B from the metadata and 0xF7FF from the file's own mask.
    assert_eq!(file.masks().get(Register::Eflags), 0xFFFF_F72B);
}

#[test]
fn a_single_file_is_a_suite_with_the_lists_beside_it() {
    let directory = Directory::new("single", &[("27.MOO", &sample()), ("metadata.json", METADATA)]);
    let suite = Suite::open(&directory.0.join("27.MOO")).expect("a suite");
    assert_eq!(suite.files().len(), 1);
    assert_eq!(suite.flags_mask("27"), Some(63487));
}

#[test]
fn revoked_tests_are_known_by_hash() {
    let list = format!("# bad ones\n\n  {}  # twice\n{}\n", "07".repeat(20), "AB".repeat(20));
    let files: [(&str, &[u8]); 2] = [("27.MOO", b""), ("revocation_list.txt", list.as_bytes())];
    let suite = Directory::new("revoked", &files).open();
    assert!(suite.is_revoked(Some(TestHash([7; 20]))));
    assert!(suite.is_revoked(Some(TestHash([0xAB; 20]))));
    assert!(!suite.is_revoked(Some(TestHash([8; 20]))));
    assert!(!suite.is_revoked(None));
}

#[test]
fn lists_may_stand_one_directory_above() {
    let list = "07".repeat(20);
    let files: [(&str, &[u8]); 2] = [("v1/27.MOO", b""), ("revocation_list.txt", list.as_bytes())];
    let directory = Directory::new("above", &files);
    let suite = Suite::open(&directory.0.join("v1")).expect("a suite");
    assert!(suite.is_revoked(Some(TestHash([7; 20]))));
}

#[test]
fn damaged_lists_are_errors_that_name_the_line() {
    let with = |name: &str, list: &str| {
        let files: [(&str, &[u8]); 2] = [("27.MOO", b""), (name, list.as_bytes())];
        Directory::new("lists", &files).complaint()
    };
    let message = with("revocation_list.txt", "# fine\n12345\n");
    assert!(message.contains("revocation_list.txt: line 2: \"12345\" is not a hash"), "{message}");
    let message = with("metadata.json", "{\n  \"opcodes\": [}\n");
    assert!(message.contains("metadata.json: line 2: "), "{message}");
    let message = with("metadata.json", "[]");
    assert!(message.contains("no object \"opcodes\""), "{message}");
    let wide = r#"{"opcodes": {"F7": {"reg": {"4": {"flags-mask": 65536}}}}}"#;
    let message = with("metadata.json", wide);
    assert!(message.contains("opcode F7: flags-mask 65536 is not 16 bits"), "{message}");
    let deep = with("metadata.json", &"[".repeat(100_000));
    assert!(deep.contains("recursion limit"), "{deep}");
}
