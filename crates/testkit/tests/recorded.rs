//! The emulator against what processors left: the recordings in `testdata/native`.

use std::path::{Path, PathBuf};

use realmode_testkit::proof::record::{Recording, replay};

/// The processors that are recorded.
const PROCESSORS: [&str; 3] = ["amd-a00f11", "amd-a10f11", "intel-c06f2"];

/// One test a mode and processor, so that they run side by side.
macro_rules! recorded {
    ($($name:ident $processor:literal $file:literal)*) => {
        $(#[test]
        fn $name() {
            hold_against(&directory().join($processor).join($file));
        })*
    };
}

recorded! {
    zen_3_executes_16_bit_code_alike "amd-a00f11" "bits16.rec"
    zen_3_executes_32_bit_code_alike "amd-a00f11" "bits32.rec"
    zen_3_executes_64_bit_code_alike "amd-a00f11" "bits64.rec"
    zen_3_executes_16_bit_code_at_edges_alike "amd-a00f11" "edges16.rec"
    zen_3_executes_32_bit_code_at_edges_alike "amd-a00f11" "edges32.rec"
    zen_3_executes_64_bit_code_at_edges_alike "amd-a00f11" "edges64.rec"
    zen_4_executes_16_bit_code_alike "amd-a10f11" "bits16.rec"
    zen_4_executes_32_bit_code_alike "amd-a10f11" "bits32.rec"
    zen_4_executes_64_bit_code_alike "amd-a10f11" "bits64.rec"
    raptor_cove_executes_16_bit_code_alike "intel-c06f2" "bits16.rec"
    raptor_cove_executes_32_bit_code_alike "intel-c06f2" "bits32.rec"
    raptor_cove_executes_64_bit_code_alike "intel-c06f2" "bits64.rec"
}

#[test]
fn every_recorded_processor_is_compared() {
    let entries = std::fs::read_dir(directory()).expect("testdata/native can be read");
    let paths = entries.map(|entry| entry.expect("and so can its entries").path());
    let mut found: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    found.sort();
    assert_eq!(found, PROCESSORS.map(|name| directory().join(name)));
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/native")
}

fn hold_against(file: &Path) {
    let name = file.display();
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{name}: {e}"));
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
    let least = if recording.cases < 100 { 30_000 } else { 100_000 };
    assert!(result.cases > least, "only {} cases are recorded", result.cases);
}
