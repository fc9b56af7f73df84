//! One file: its header, its masks, and its tests one at a time.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::chunk::Cursor;
use super::error::{Damage, MooError};
use super::registers::{Register, RegisterFile, RegisterMasks, RegisterWidth};
use super::test::Test;

/// How much is read of a file, after decompression. The largest of the public suites are a
/// tenth of it; what is larger is not a suite, or is made to fill memory.
pub const MAX_FILE_BYTES: usize = 256 << 20;

/// A MOO file in memory.
///
/// ```
/// use realmode_testkit::moo::MooFile;
/// let bytes = b"MOO \x0C\0\0\0\x01\x01\0\0\0\0\0\0C286".to_vec();
/// let file = MooFile::from_bytes("empty.MOO".as_ref(), bytes)?;
/// assert_eq!(file.cpu(), "C286");
/// assert!(file.tests().next().is_none());
/// # Ok::<(), realmode_testkit::moo::MooError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MooFile {
    path: PathBuf,
    bytes: Vec<u8>,
    unpacked: bool,
    cpu: String,
    promised: u32,
    masks: RegisterMasks,
    first_chunk: usize,
}

impl MooFile {
    /// Reads a file, compressed or not: its first bytes tell.
    ///
    /// # Errors
    /// If it cannot be read, is larger than [`MAX_FILE_BYTES`], or has no valid header.
    pub fn open(path: &Path) -> Result<MooFile, MooError> {
        let io = |source| MooError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
        MooFile::from_bytes(path, bytes)
    }

    /// Reads a file's bytes, compressed or not; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`open`](MooFile::open).
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<MooFile, MooError> {
        let unpacked = bytes.starts_with(&[0x1F, 0x8B]);
        let bytes = if unpacked { unpack(path, &bytes)? } else { bytes };
        if bytes.len() > MAX_FILE_BYTES {
            let path = path.to_owned();
            return Err(MooError::TooLarge { path, limit: MAX_FILE_BYTES, unpacked });
        }
        let mut file = MooFile {
            path: path.to_owned(),
            bytes,
            unpacked,
            cpu: String::new(),
            promised: 0,
            masks: RegisterMasks::ALL,
            first_chunk: 0,
        };
        file.read_header().map_err(|damage| file.error(damage))?;
        file.masks = file.read_masks().map_err(|damage| file.error(damage))?;
        Ok(file)
    }

    fn read_header(&mut self) -> Result<(), Damage> {
        let mut cursor = Cursor::new(&self.bytes);
        if !self.bytes.starts_with(b"MOO ") {
            return Err(Damage::new(0, "not a MOO file: it does not start with \"MOO \""));
        }
        let header = cursor.chunk()?;
        let Some(mut header) = header else {
            return Err(Damage::new(0, "an empty file"));
        };
        let [version, ..] = header.payload.array::<4>("the file's version")?;
        if version != 1 {
            return Err(Damage::new(8, format!("version {version}; only version 1 is known")));
        }
        let promised = header.payload.u32("the file's test count")?;
        let cpu: [u8; 4] = header.payload.array("the file's processor name")?;
        self.promised = promised;
        self.cpu = cpu.escape_ascii().to_string().trim_end().to_owned();
        self.first_chunk = cursor.offset();
        Ok(())
    }

    /// The masks at file level hold for every test, wherever in the file they stand.
    fn read_masks(&self) -> Result<RegisterMasks, Damage> {
        let mut masks = RegisterMasks::ALL;
        let mut cursor = self.chunks();
        while let Some(mut chunk) = cursor.chunk()? {
            let width = match &chunk.tag {
                b"RMSK" => RegisterWidth::Word,
                b"RM32" => RegisterWidth::Dword,
                _ => continue,
            };
            masks.narrow_all(&RegisterFile::read(&mut chunk.payload, width)?);
        }
        Ok(masks)
    }

    fn chunks(&self) -> Cursor<'_> {
        let mut cursor = Cursor::new(&self.bytes);
        // `first_chunk` was reached by reading, so that many bytes are there.
        let _ = cursor.take(self.first_chunk, "the header");
        cursor
    }

    fn error(&self, damage: Damage) -> MooError {
        MooError::Damaged {
            path: self.path.clone(),
            offset: damage.offset,
            unpacked: self.unpacked,
            what: damage.what,
        }
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The processor the tests were captured from, as the file calls it: `C286`, `386E`.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// The bits that count in all of the file's tests.
    pub fn masks(&self) -> &RegisterMasks {
        &self.masks
    }

    /// Lets only these bits of FLAGS count, besides the file's own masks.
    pub fn narrow_flags(&mut self, mask: u16) {
        self.masks.narrow(Register::Eflags, u32::from(mask) | 0xFFFF_0000);
    }

    /// How many tests the header promises. No reason to believe it.
    pub fn promised(&self) -> u32 {
        self.promised
    }

    /// The tests, one at a time. After an error there are no more. A file that ends with fewer
    /// tests than its header promises was cut short, and that is the last item's error.
    pub fn tests(&self) -> Tests<'_> {
        Tests { file: self, cursor: self.chunks(), seen: 0, is_over: false }
    }
}

/// Iterates over the tests of a file.
#[derive(Clone, Debug)]
pub struct Tests<'a> {
    file: &'a MooFile,
    cursor: Cursor<'a>,
    seen: u32,
    is_over: bool,
}

impl<'a> Tests<'a> {
    fn read(&mut self) -> Result<Option<Test<'a>>, Damage> {
        while let Some(mut chunk) = self.cursor.chunk()? {
            if &chunk.tag == b"TEST" {
                self.seen = self.seen.saturating_add(1);
                return Test::read(&mut chunk.payload, chunk.offset).map(Some);
            }
        }
        let (seen, promised) = (self.seen, self.file.promised);
        if seen < promised {
            let what = format!("the file ends after {seen} tests, its header promises {promised}");
            return Err(Damage::new(self.cursor.offset(), what));
        }
        Ok(None)
    }
}

impl<'a> Iterator for Tests<'a> {
    type Item = Result<Test<'a>, MooError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.read().map_err(|damage| self.file.error(damage)).transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Decompresses at most [`MAX_FILE_BYTES`].
fn unpack(path: &Path, packed: &[u8]) -> Result<Vec<u8>, MooError> {
    let mut bytes = Vec::new();
    let mut decoder = MultiGzDecoder::new(packed).take(MAX_FILE_BYTES as u64 + 1);
    if let Err(error) = decoder.read_to_end(&mut bytes) {
        return Err(MooError::Damaged {
            path: path.to_owned(),
            offset: bytes.len(),
            unpacked: true,
            what: format!("damaged gzip data: {error}"),
        });
    }
    Ok(bytes)
}
