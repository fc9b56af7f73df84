//! Tests of `isa/bits.rs`.
