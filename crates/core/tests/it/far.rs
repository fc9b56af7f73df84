//! Tests of `isa/far.rs` and its neighbours.
