//! What is wrong with a suite, and where.

use std::path::PathBuf;

/// A suite cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MooError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// The file contradicts its format.
    #[error("{}: byte {offset:#x}{}: {what}", path.display(), unpacked_note(*unpacked))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, from its start; in the unpacked data if it is compressed.
        offset: usize,
        /// Whether the file is compressed.
        unpacked: bool,
        /// What was expected and what was found.
        what: String,
    },
    /// The file is larger than any suite's, compressed or not.
    #[error("{}: byte {limit:#x}{}: the file goes on; at most {} MiB are read",
        path.display(), unpacked_note(*unpacked), limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How much is read of a file.
        limit: usize,
        /// Whether the file is compressed.
        unpacked: bool,
    },
    /// `metadata.json` or `revocation_list.txt` cannot be used.
    #[error("{}: line {line}: {what}", path.display())]
    BadList {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was expected and what was found.
        what: String,
    },
    /// The directory is not a suite.
    #[error("{}: no .MOO or .MOO.gz file in this directory", path.display())]
    NoFiles {
        /// The directory.
        path: PathBuf,
    },
}

fn unpacked_note(unpacked: bool) -> &'static str {
    if unpacked { " of the unpacked data" } else { "" }
}

/// What is wrong at one place of a file whose name is not known here.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

impl Damage {
    pub(crate) fn new(offset: usize, what: impl Into<String>) -> Damage {
        Damage { offset, what: what.into() }
    }
}
