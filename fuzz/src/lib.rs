//! What the fuzz targets do with the bytes they are given: one function for each target, which
//! panics where something is wrong, and else says what the bytes reached.
#![forbid(unsafe_code)]

mod boot;
mod cases;
mod decode;
mod decode_vs_iced;
mod machine;
mod parts;
mod reached;
pub mod seeds;
mod snapshot;
mod step;
mod step_vs_native;

pub use boot::boot;
pub use cases::{cached_vs_uncached, restart, run};
pub use decode::decode;
pub use decode_vs_iced::decode_vs_iced;
pub use reached::Reached;
pub use snapshot::snapshot;
pub use step::step;
pub use step_vs_native::step_vs_native;

/// A target: what it does with an input.
pub type Target = fn(&[u8]) -> Reached;

/// All targets, by name.
pub const TARGETS: [(&str, Target); 9] = [
    ("decode", decode),
    ("decode_vs_iced", decode_vs_iced),
    ("step", step),
    ("run", run),
    ("cached_vs_uncached", cached_vs_uncached),
    ("restart", restart),
    ("snapshot", snapshot),
    ("boot", boot),
    ("step_vs_native", step_vs_native),
];
