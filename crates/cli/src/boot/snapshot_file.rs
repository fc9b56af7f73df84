//! The file a snapshot lies in. It is found out to be damaged before anything of it is used, and
//! an older one is only replaced by a whole one.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | the version of the format |
//! | 12 | 4 | CRC-32 of what follows offset 24, then of what precedes 12, then of the length |
//! | 16 | 8 | the length of what follows |
//! | 24 | | a deflate stream |
//!
//! Numbers are little endian. The stream holds the length of the contents in 8 bytes, the contents
//! in postcard's format, and then RAM: for each page of 4096 bytes 0 if it is all zeros, or 1 and
//! the page.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;
use realmode::PAGE_SIZE;
use realmode_pc::MAX_RAM;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::{Builder, NamedTempFile};

use super::files;

/// Tells a snapshot from all else, and from one that went through a change of line ends.
const MAGIC: [u8; 8] = *b"\x89RMSNAP\n";
const HEADER: usize = 24;
/// More contents than any machine has, RAM aside.
const MOST_CONTENTS: u64 = 1 << 30;
/// More than any snapshot has, even of RAM that cannot be made smaller.
const MOST_FILE: u64 = MAX_RAM + 2 * MOST_CONTENTS;

/// Where a snapshot will be written. That it can be is found out at once.
pub(super) struct Target {
    path: PathBuf,
    folder: PathBuf,
}

impl Target {
    /// Checks the place; `inputs` are the files it must not be the same as.
    pub(super) fn new(path: &Path, inputs: &[&Path]) -> Result<Target, String> {
        let shown = path.display();
        files::require_no_directory(path, "write")?;
        files::require_another(path, inputs)?;
        // A link stays one: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(meta) if !meta.is_file() => {
                return Err(format!("cannot write {shown}: a snapshot is only saved to a file"));
            }
            _ => {}
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let target = Target { path, folder };
        target.temporary()?;
        Ok(target)
    }

    /// Writes a snapshot. The file is as it was unless all of it could be written.
    pub(super) fn write<T: Serialize>(
        &self,
        version: u32,
        contents: &T,
        ram: &[AtomicU8],
    ) -> Result<(), String> {
        let failed = |error: io::Error| self.failed(&error);
        let contents = postcard::to_stdvec(contents).map_err(|error| self.failed(&error))?;
        let mut file = self.temporary()?;
        write_all(file.as_file_mut(), version, &contents, ram).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|error| self.failed(&error.error))?;
        Ok(())
    }

    fn temporary(&self) -> Result<NamedTempFile, String> {
        let file = Builder::new().prefix(".realmode-").suffix(".tmp").tempfile_in(&self.folder);
        // The name of the temporary file comes last, and says nothing to the user.
        file.map_err(|error| {
            let text = error.to_string();
            let what = text.split(" at path ").next().unwrap_or(&text);
            self.failed(&what)
        })
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

fn write_all(file: &mut File, version: u32, contents: &[u8], ram: &[AtomicU8]) -> io::Result<()> {
    file.write_all(&[0; HEADER])?;
    let summed = Summed { to: BufWriter::new(&mut *file), sum: crc32fast::Hasher::new(), len: 0 };
    let mut stream = DeflateEncoder::new(summed, Compression::fast());
    stream.write_all(&(contents.len() as u64).to_le_bytes())?;
    stream.write_all(contents)?;
    write_ram(&mut stream, ram)?;
    let Summed { mut to, sum, len } = stream.finish()?;
    to.flush()?;
    drop(to);
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[16..].copy_from_slice(&len.to_le_bytes());
    let sum = with_header(sum, &header);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)
}

fn with_header(mut sum: crc32fast::Hasher, header: &[u8]) -> u32 {
    sum.update(&header[..12]);
    sum.update(&header[16..]);
    sum.finalize()
}

/// Adds up what passes.
struct Summed<W> {
    to: W,
    sum: crc32fast::Hasher,
    len: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.to.write(bytes)?;
        self.sum.update(&bytes[..done]);
        self.len += done as u64;
        Ok(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn write_ram(to: &mut impl Write, ram: &[AtomicU8]) -> io::Result<()> {
    let mut page = [0; 1 + PAGE_SIZE];
    page[0] = 1;
    for cells in ram.chunks_exact(PAGE_SIZE) {
        for (byte, cell) in page[1..].iter_mut().zip(cells) {
            *byte = cell.load(Ordering::Relaxed);
        }
        let is_zero = page[1..].iter().all(|byte| *byte == 0);
        to.write_all(if is_zero { &[0] } else { &page })?;
    }
    Ok(())
}

/// A snapshot that was read and is whole.
pub(super) struct Source<T> {
    pub(super) contents: T,
    path: PathBuf,
    /// The file, of which RAM has not been read.
    stream: DeflateDecoder<io::Cursor<Vec<u8>>>,
}

impl<T: DeserializeOwned> Source<T> {
    /// Reads a file of this version of the format.
    pub(super) fn open(path: &Path, version: u32) -> Result<Source<T>, String> {
        let bytes = files::read(path, MOST_FILE, "any snapshot")?;
        check(&bytes, version).map_err(|what| format!("{}: {what}", path.display()))?;
        let mut bytes = io::Cursor::new(bytes);
        bytes.set_position(HEADER as u64);
        let mut stream = DeflateDecoder::new(bytes);
        let contents = read_contents(&mut stream).ok_or_else(|| contradicts(path))?;
        Ok(Source { contents, path: path.to_owned(), stream })
    }

    /// What to say of a part that is not as it was saved, although the file is whole.
    pub(super) fn contradiction(&self) -> String {
        contradicts(&self.path)
    }

    /// Fills RAM, and returns the contents.
    pub(super) fn fill(mut self, ram: &[AtomicU8]) -> Result<T, String> {
        let is_filled = read_ram(&mut self.stream, ram).is_ok();
        let is_over = is_filled && matches!(self.stream.read(&mut [0]), Ok(0));
        if is_over { Ok(self.contents) } else { Err(contradicts(&self.path)) }
    }
}

fn contradicts(path: &Path) -> String {
    format!(
        "{}: the snapshot contradicts itself, so this program has not written it; save it anew",
        path.display()
    )
}

/// Is it a whole snapshot of this version?
fn check(bytes: &[u8], version: u32) -> Result<(), String> {
    let Some(header) = bytes.get(..HEADER).filter(|header| header.starts_with(&MAGIC)) else {
        return Err("this is no snapshot: it does not begin as one; see boot --save".to_owned());
    };
    let number = |at: usize, len: usize| -> u64 {
        header[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let found = number(8, 4);
    if found != u64::from(version) {
        return Err(format!(
            "the snapshot has version {found} of the format, and this program reads version \
             {version}: load it with the program that saved it, or save it anew"
        ));
    }
    let (len, stated) = ((bytes.len() - HEADER) as u64, number(16, 8));
    if len != stated {
        return Err(format!(
            "the snapshot is damaged: {stated} bytes are to follow its header, and {len} do; \
             copy or save it anew"
        ));
    }
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[HEADER..]);
    if u64::from(with_header(sum, header)) != number(12, 4) {
        return Err("the snapshot is damaged: its checksum is wrong; copy or save it anew".into());
    }
    Ok(())
}

fn read_contents<T: DeserializeOwned>(stream: &mut impl Read) -> Option<T> {
    let mut len = [0; 8];
    stream.read_exact(&mut len).ok()?;
    let len = Some(u64::from_le_bytes(len)).filter(|len| *len <= MOST_CONTENTS)?;
    let mut bytes = Vec::new();
    stream.take(len).read_to_end(&mut bytes).ok()?;
    let (contents, rest) = postcard::take_from_bytes(&bytes).ok()?;
    (bytes.len() as u64 == len && rest.is_empty()).then_some(contents)
}

fn read_ram(stream: &mut impl Read, ram: &[AtomicU8]) -> io::Result<()> {
    let mut page = [0; PAGE_SIZE];
    for cells in ram.chunks_exact(PAGE_SIZE) {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        match kind {
            // A page that nobody has written to stays untouched.
            [0] if cells.iter().all(|cell| cell.load(Ordering::Relaxed) == 0) => continue,
            [0] => page.fill(0),
            [1] => stream.read_exact(&mut page)?,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        cells.iter().zip(page).for_each(|(cell, byte)| cell.store(byte, Ordering::Relaxed));
    }
    Ok(())
}

#[cfg(test)]
#[path = "snapshot_file_tests.rs"]
mod tests;
