//! Guest memory: host pages, translation, segments, operands.

pub mod host;
