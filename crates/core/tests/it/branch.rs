//! Tests of `isa/branch.rs` and its neighbours.
