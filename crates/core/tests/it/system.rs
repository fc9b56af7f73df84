//! Tests of `isa/system.rs` and its neighbours.
