//! Tests of `isa/mov.rs` and its neighbours.
