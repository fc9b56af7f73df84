//! MOO suites: single-instruction tests captured from silicon.
//!
//! A suite is a directory of `.MOO` or `.MOO.gz` files, one an opcode, with an optional
//! `metadata.json` (which flags an opcode leaves undefined) and an optional
//! `revocation_list.txt` (tests found to be wrong). A file is a sequence of chunks, each a
//! four-byte tag, a length and that many bytes; chunks that are not known are skipped.
//!
//! Nothing in a file is trusted: a count or a length that does not fit is an error that names
//! the file and the byte, and tests are read one at a time out of the file's bytes, so that no
//! number in a file decides how much memory is allocated.

mod chunk;
mod error;
mod file;
mod registers;
mod suite;
mod test;

pub use error::MooError;
pub use file::{MAX_FILE_BYTES, MooFile, Tests};
pub use registers::{Register, RegisterFile, RegisterMasks, RegisterWidth};
pub use suite::Suite;
pub use test::{CapturedException, MAX_RAM_ENTRIES, Ram, State, Test, TestHash};
