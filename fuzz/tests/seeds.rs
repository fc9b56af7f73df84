//! The seed corpora are what they are made from, and reach what the targets are about.

use std::collections::BTreeMap;
use std::fs;

use realmode_fuzz::{Reached, TARGETS, seeds};

/// What all seeds of a target reach.
fn reached(target: &str) -> Reached {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("it is a target");
    let mut all = Reached::default();
    for seed in seeds::all().iter().filter(|seed| seed.target == target) {
        all.add(&run(&seed.bytes));
    }
    println!("{target}: {all:?}");
    all
}

#[test]
fn the_committed_seeds_are_those_that_are_made() {
    let mut made: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for seed in seeds::all() {
        made.insert(format!("{}/{}", seed.target, seed.name), seed.bytes);
    }
    let mut found = BTreeMap::new();
    for (target, _) in TARGETS {
        let files = fs::read_dir(seeds::directory().join(target)).expect("each target has seeds");
        for file in files.map(|file| file.expect("it can be listed")) {
            let name = format!("{target}/{}", file.file_name().to_string_lossy());
            found.insert(name, fs::read(file.path()).expect("it can be read"));
        }
    }
    assert!(found == made, "write them anew: cargo xtask fuzz --seeds");
}

#[test]
fn decode_seeds_are_instructions_of_every_processor() {
    let all = reached("decode");
    assert!(all.instructions > 300 && all.refused > 2, "{all:?}");
}

#[test]
fn decode_vs_iced_seeds_are_compared() {
    assert!(reached("decode_vs_iced").instructions > 40);
}

#[test]
fn step_seeds_execute_fault_and_wait_for_devices() {
    let all = reached("step");
    assert!(all.instructions > 100 && all.faults > 20 && all.requests > 5, "{all:?}");
}

#[test]
fn run_seeds_execute_blocks_and_write_into_them() {
    let all = reached("run");
    assert!(all.instructions > 1_000 && all.blocks_retired > 50, "{all:?}");
}

#[test]
fn cached_vs_uncached_seeds_execute_fault_and_wait() {
    let all = reached("cached_vs_uncached");
    assert!(all.instructions > 200 && all.faults > 50 && all.requests > 20, "{all:?}");
}

#[test]
fn restart_seeds_wait_for_devices() {
    let all = reached("restart");
    assert!(all.requests > 100, "{all:?}");
}

#[test]
fn snapshot_seeds_are_refused_or_run() {
    let all = reached("snapshot");
    assert!(all.accepted > 10 && all.refused > 10, "{all:?}");
    assert!(all.instructions > 10_000 && all.requests > 10, "{all:?}");
}

#[test]
fn boot_seeds_run_print_and_modify_themselves() {
    let all = reached("boot");
    assert!(all.accepted > 40 && all.refused > 5, "{all:?}");
    assert!(all.instructions > 100_000 && all.requests > 100, "{all:?}");
}

#[test]
fn step_vs_native_seeds_are_compared_where_the_processor_can_be_asked() {
    let all = reached("step_vs_native");
    let can_be_asked = realmode_testkit::proof::Native::new(1).is_ok();
    assert!(all.accepted > 10 || !can_be_asked, "{all:?}");
}
