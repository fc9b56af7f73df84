//! The cases of the random steps, with a fuzzer's choices: the same case in several ways, which
//! have to end alike.

use realmode::{Cpu, InFlight};
use realmode_testkit::random_step::{Focus, Tally, from_bytes};

use crate::Reached;

/// Blocks and code that modifies itself: cached as uncached.
pub fn run(data: &[u8]) -> Reached {
    all_ways(data, Focus::Blocks)
}

/// Short cases in six ways.
pub fn cached_vs_uncached(data: &[u8]) -> Reached {
    all_ways(data, Focus::EveryWay)
}

/// Every access to a device waits, and goes on in another emulator, which gets the processor and
/// the restart record as a file would hold them.
pub fn restart(data: &[u8]) -> Reached {
    all_ways(data, Focus::Restart(through_a_file))
}

fn all_ways(data: &[u8], focus: Focus) -> Reached {
    match from_bytes(data, focus) {
        Ok(tally) => reached(&tally),
        Err(what) => panic!("{what}"),
    }
}

fn reached(tally: &Tally) -> Reached {
    Reached {
        instructions: tally.steps,
        faults: tally.faults,
        blocks_retired: tally.blocks_retired,
        requests: tally.requests,
        ..Reached::default()
    }
}

fn through_a_file(cpu: &Cpu, record: &InFlight) -> (Cpu, InFlight) {
    let bytes = postcard::to_stdvec(&(cpu, record)).expect("both are plain data");
    let (there, record_there) = postcard::from_bytes(&bytes).expect("it was just written");
    assert!((&there, &record_there) == (cpu, record), "a snapshot is another processor");
    (there, record_there)
}
