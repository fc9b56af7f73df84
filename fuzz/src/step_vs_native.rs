//! The emulator against the processor that the fuzzer runs on.

use std::cell::RefCell;

use nix::sys::signal::{SigSet, Signal};
use realmode_testkit::proof::prove::Judge;

use crate::Reached;

thread_local! {
    /// Nothing where the processor cannot be asked.
    static JUDGE: RefCell<Option<Judge>> = RefCell::new(judge());
}

fn judge() -> Option<Judge> {
    // libFuzzer's clock would call a handler on the stack of a case. A case that hangs is ended by
    // the oracle's own.
    let is_blocked = SigSet::from(Signal::SIGALRM).thread_block();
    is_blocked.expect("a thread may block a signal");
    Judge::new(0).map_err(|why| eprintln!("step_vs_native compares nothing: {why}")).ok()
}

/// A case of one form of an instruction, with operands and flags that the bytes choose, ends as
/// on the host's processor.
pub fn step_vs_native(data: &[u8]) -> Reached {
    JUDGE.with_borrow_mut(|judge| match judge.as_mut().map(|judge| judge.from_bytes(data)) {
        Some(Ok(true)) => Reached { instructions: 1, accepted: 1, ..Reached::default() },
        Some(Ok(false)) => Reached { refused: 1, ..Reached::default() },
        Some(Err(what)) => panic!("{what}"),
        None => Reached::default(),
    })
}
