//! The native oracle against what the manuals say: one case at a time, then many at once.

#[path = "native/cases.rs"]
mod cases;
#[path = "native/exceptions.rs"]
mod exceptions;
#[path = "native/fpu.rs"]
mod fpu;
#[path = "native/process.rs"]
mod process;
#[path = "native/registers.rs"]
mod registers;
#[path = "native/segments.rs"]
mod segments;
#[path = "native/soak.rs"]
mod soak;
