//! The emulator against what a processor left: the recordings in `testdata/native`.

use std::path::Path;

use realmode_testkit::proof::record::{Recording, replay};

/// One test a mode, so that they run side by side.
macro_rules! recorded {
    ($($name:ident $file:literal)*) => {
        $(#[test]
        fn $name() {
            hold_against($file);
        })*
    };
}

recorded! {
    recorded_16_bit_code_is_executed_alike "bits16.rec"
    recorded_32_bit_code_is_executed_alike "bits32.rec"
    recorded_64_bit_code_is_executed_alike "bits64.rec"
}

fn hold_against(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/native").join(name);
    let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let recording = Recording::from_bytes(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    let result = replay(&recording).unwrap_or_else(|e| panic!("{name}: {e}"));
    println!(
        "{name}: {} forms, {} cases, {} tolerated, {}",
        result.forms, result.cases, result.tolerated, recording.processor
    );
    for failure in result.failures.iter().take(20) {
        let (seed, index) = (failure.seed, failure.index);
        println!("{}", failure.what);
        println!("  cargo xtask replay '{}' --seed {seed} --index {index}", failure.form);
    }
    let forms = result.failures.len();
    assert_eq!(result.mismatches, 0, "{} cases of {forms} forms differ", result.mismatches);
    assert!(result.cases > 100_000, "only {} cases are recorded", result.cases);
}
