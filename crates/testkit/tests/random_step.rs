//! The short form of the random-step run: `cargo xtask random-steps` is the long one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use realmode_testkit::random_step::{GROUP, Selection, Tally, run};

/// Cases of the short form.
const CASES: u64 = 1600 * GROUP;

/// Runs a group; a panic says which case it came from.
fn run_group(seed: u64, group: u64) -> Tally {
    let at = Cell::new(0);
    let run = || run(Selection::group(seed, group), &|index| at.set(index));
    let (tally, failures) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        eprintln!("FAIL seed {seed} index {}: panic", at.get());
        resume_unwind(payload)
    });
    let lines: Vec<String> = failures.iter().map(|failure| format!("FAIL {failure}")).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    tally
}

#[test]
fn random_steps_end_alike_in_every_way_of_running() {
    let mut all = Tally::default();
    for group in 0..CASES / GROUP {
        all.add(&run_group(7, group));
    }
    // The run is about devices, restarts, faults and code that changes itself: it has met them.
    assert_eq!(all.cases, CASES);
    assert!(all.steps > CASES, "{all:?}");
    assert!(all.accesses > CASES / 4, "{all:?}");
    assert!(all.requests > CASES / 4, "{all:?}");
    assert!(all.faults > CASES / 4, "{all:?}");
    assert!(all.blocks_retired > CASES / 100, "{all:?}");
    assert!(all.unimplemented < CASES / 4, "{all:?}");
    // And about protected mode: a sixth of its instructions at least, with transfers that succeed.
    assert!(all.census.protected() > all.steps / 6, "{all:?}");
    assert!(all.census.completed() > CASES / 4, "{all:?}");
}

#[test]
fn a_case_depends_on_nothing_but_seed_and_index() {
    let selection = Selection { seed: 5, first: 10, end: 20, is_loud: false };
    assert_eq!(run(selection, &|_| ()), run(selection, &|_| ()));
}
