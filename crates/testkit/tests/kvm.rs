//! The short form of the comparison with KVM; `cargo xtask prove` is the long one.

use realmode_testkit::proof::kvm::{Extent, Family, case, prove_kvm, replay};

/// Cases of the short form: some hundred of each family.
const CASES: u64 = 400 * Family::ALL.len() as u64;

#[test]
fn kvm_and_the_emulator_end_alike_or_kvm_errs_in_a_known_way() {
    let mut told = 0;
    let tally = match prove_kvm(1, Extent::Cases(CASES), &mut |tally| told = tally.total().cases) {
        Ok(tally) => tally,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let lines: Vec<String> = tally.mismatches.iter().map(|m| format!("FAIL {m}")).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    assert!(told > CASES / 2 && tally.total().cases == CASES);
    for (family, tally) in Family::ALL.iter().zip(&tally.families) {
        // The oracle says something about each family.
        assert!(tally.agreed >= tally.cases / 2, "{}: {tally:?}", family.name());
    }
}

#[test]
fn a_case_depends_on_nothing_but_seed_and_index() {
    for index in 0..130 {
        assert_eq!(case(5, index), case(5, index));
    }
    assert_ne!(case(5, 0), case(6, 0));
}

#[test]
fn a_replay_shows_the_case_and_both_ends() {
    let text = match replay(1, 0) {
        Ok(text) => text,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    for part in ["kvm seed 1 index 0, segment", "before", "emulator: "] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
