//! Vector readers, case generators and oracles, for tests.
//!
//! [`moo`] reads suites of single-instruction tests captured from silicon.
#![forbid(unsafe_code)]

pub mod moo;
