//! The command `realmode`.
fn main() {}
