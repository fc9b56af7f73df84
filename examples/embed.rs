//! A 30-line embedder.
fn main() {}
