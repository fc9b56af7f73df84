//! Running the files of a directory.

use realmode::Profile;
use realmode_testkit::vector_run::{RunOptions, run_files};

use crate::builder::*;
use crate::directory::Directory;

/// A file of HLT tests, of which those with odd numbers expect a wrong AX.
fn halts(count: u32) -> Vec<u8> {
    let tests: Vec<Vec<u8>> = (0..count)
        .map(|index| {
            let after = [words(b"REGS", &[(0, (index & 1) as u16), (12, 1)])];
            test(index, &[0xF4], &[initial_words(), code(&[0xF4])], &after)
        })
        .collect();
    file(b"C286", count, &tests)
}

const OPTIONS: RunOptions =
    RunOptions { profile: Some(&Profile::I80286), jobs: 2, every: 1, keep: 2 };

#[test]
fn reports_come_in_the_order_of_the_files() {
    let (small, large) = (halts(3), gzip(&halts(40)));
    let list = "01".repeat(20);
    let files: [(&str, &[u8]); 4] = [
        ("00.MOO.gz", &large),
        ("01.MOO", &small),
        ("02.MOO", &small),
        ("revocation_list.txt", list.as_bytes()),
    ];
    let directory = Directory::new("run", &files);
    let suite = directory.open();
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let count = |_: &_| {
        seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let reports = run_files(&suite, &OPTIONS, &count).expect("reports");
    assert_eq!(seen.into_inner(), 3);
    let found: Vec<_> = reports
        .iter()
        .map(|r| (r.opcode.as_str(), r.passed, r.failed, r.revoked, r.failures.len()))
        .collect();
    assert_eq!(found, [("00", 20, 19, 1, 2), ("01", 2, 0, 1, 0), ("02", 2, 0, 1, 0)]);
    let sparse = RunOptions { every: 4, profile: None, ..OPTIONS };
    let reports = run_files(&suite, &sparse, &|_| {}).expect("reports");
    assert_eq!((reports[0].passed, reports[0].failed), (10, 0));
}

#[test]
fn a_bad_file_ends_the_run_with_its_name() {
    let mut cut = halts(3);
    cut.pop();
    let files: [(&str, &[u8]); 2] = [("00.MOO", &halts(1)), ("01.MOO", &cut)];
    let directory = Directory::new("bad", &files);
    let error = run_files(&directory.open(), &OPTIONS, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("01.MOO: byte 0x"), "{error}");
}

#[test]
fn a_processor_without_a_profile_has_to_be_named() {
    let file = file(b"V20 ", 0, &[]);
    let directory = Directory::new("v20", &[("00.MOO", &file)]);
    let options = RunOptions { profile: None, ..OPTIONS };
    let error = run_files(&directory.open(), &options, &|_| {}).unwrap_err().to_string();
    assert!(error.ends_with("captured from \"V20\", which no profile stands for: name a profile"));
    assert!(run_files(&directory.open(), &OPTIONS, &|_| {}).is_ok());
}
