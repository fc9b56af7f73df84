//! Tests of `isa/exchange.rs`.
