//! Vector readers, case generators and oracles, for tests.
//!
//! [`moo`] reads suites of single-instruction tests captured from silicon, [`vector_run`]
//! executes them on the emulator and says what differs.
#![forbid(unsafe_code)]

pub mod moo;
pub mod vector_run;
