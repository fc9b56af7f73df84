//! Tests of `isa/string.rs` and its neighbours.
