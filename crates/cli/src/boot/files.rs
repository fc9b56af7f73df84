//! Files in and out: all that may be wrong with one is found before the guest starts, and no
//! file that was named as input is ever opened for writing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Reads an input of at most `most` bytes; `what_holds` names what it has to fit into.
pub(super) fn read(path: &Path, most: u64, what_holds: &str) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("cannot read {shown}: {error}");
    if fs::metadata(path).map_err(failed)?.is_dir() {
        return Err(format!("cannot read {shown}: it is a directory"));
    }
    let mut bytes = Vec::new();
    // A file may be endless, as /dev/zero is: one byte too many is enough to know.
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    match bytes.len() as u64 {
        0 => Err(format!("{shown} is empty")),
        len if len > most => Err(format!("{shown} is larger than {what_holds}")),
        _ => Ok(bytes),
    }
}

/// How long a file is, and its CRC-32.
pub(super) fn sum(path: &Path) -> Result<(u64, u32), String> {
    let failed = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok((bytes, hasher.finalize())),
            len => {
                hasher.update(&buffer[..len]);
                bytes += len as u64;
            }
        }
    }
}

/// Refuses a file to be written that is the same as one of `others`.
pub(super) fn require_another(path: &Path, others: &[&Path]) -> Result<(), String> {
    // An error means that one of the two does not exist, so they are not the same.
    let same = |other: &&&Path| same_file::is_same_file(path, other).unwrap_or(false);
    others.iter().find(same).map_or(Ok(()), |other| {
        let (shown, other) = (path.display(), other.display());
        Err(format!("cannot write {shown}: it is the same file as {other}"))
    })
}

/// A file that will be written; open from before the run on, changed only by `replace`.
pub(super) struct OutputFile {
    file: File,
    path: PathBuf,
}

impl OutputFile {
    /// Opens or creates the file, and leaves what is in it. `others` are the files it must not
    /// be the same as.
    pub(super) fn open(path: &Path, others: &[&Path]) -> Result<OutputFile, String> {
        let shown = path.display();
        if path.is_dir() {
            return Err(format!("cannot write {shown}: it is a directory"));
        }
        require_another(path, others)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| format!("cannot write {shown}: {error}"))?;
        Ok(OutputFile { file, path: path.to_owned() })
    }

    /// The file, to go on writing.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Drops the old content and gives the file to write.
    pub(super) fn replace(&self) -> Result<&File, String> {
        let failed = |error: io::Error| format!("cannot write {}: {error}", self.path.display());
        // A pipe or a terminal has no length to set.
        if self.file.metadata().map_err(failed)?.is_file() {
            self.file.set_len(0).map_err(failed)?;
        }
        Ok(&self.file)
    }
}
