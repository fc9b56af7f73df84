//! Guest memory: host pages, translation, segments, operands.

pub(crate) mod access;
pub(crate) mod code_map;
pub(crate) mod descriptor;
pub(crate) mod fetch;
pub(crate) mod host;
pub(crate) mod segment;
pub(crate) mod stretch;
pub(crate) mod tlb;
pub(crate) mod walk;
