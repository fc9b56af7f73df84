//! Tests of `isa/shift.rs` and its neighbours.
