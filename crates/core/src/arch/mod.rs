//! Facts of the architecture: names and numbers, no behaviour.

pub mod control;
pub mod cpuid;
pub mod descriptor;
pub mod msr;
pub mod paging;
pub mod registers;
pub mod rflags;
pub mod vector;
