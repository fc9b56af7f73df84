//! Vector readers, case generators and oracles, for tests.
//!
//! [`moo`] reads suites of single-instruction tests captured from silicon, [`vector_run`]
//! executes them on the emulator and says what differs; [`random_step`] runs random instructions
//! in several ways that have to agree; [`proof`] makes cases out of the instruction rows and
//! compares the emulator with silicon.
// Allowed in random_step::memory, proof::memory, proof::native, proof::kvm::vm and
// proof::kvm::watchdog.
#![deny(unsafe_code)]

pub mod moo;
mod prng;
pub mod proof;
pub mod random_step;
pub mod vector_run;
