//! The bytes of a recording, compressed by DEFLATE in a gzip file.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use realmode::{Features, Vendor};

use super::{FORMAT, RecordError, Recorded, Recording};
use crate::proof::case::Mode;
use crate::proof::generate::VERSION;

const MAGIC: &[u8; 8] = b"realmode";
/// No recording is larger once it is decompressed.
const LARGEST: u64 = 256 << 20;

const MODES: [Mode; 4] = [Mode::Real, Mode::Bits16, Mode::Bits32, Mode::Bits64];

impl Recording {
    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put(&mut bytes, FORMAT);
        put(&mut bytes, VERSION);
        bytes.push(MODES.iter().position(|mode| *mode == self.mode).unwrap_or(0) as u8);
        bytes.push(u8::from(self.vendor == Vendor::Amd));
        put(&mut bytes, self.signature);
        put_text(&mut bytes, &self.processor);
        let names: Vec<_> = self.features.iter_names().map(|(name, _)| name).collect();
        put_text(&mut bytes, &names.join(" "));
        bytes.extend(self.seed.to_le_bytes());
        put(&mut bytes, self.cases);
        put(&mut bytes, self.forms.len() as u32);
        for form in &self.forms {
            put_text(&mut bytes, &form.key);
            put(&mut bytes, form.digest);
            put(&mut bytes, form.outcomes.len() as u32);
        }
        self.forms.iter().for_each(|form| bytes.extend(&form.outcomes));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Neither a Vec nor the encoder over it fails.
        let written = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        written.unwrap_or_default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is no recording that this version can use.
    pub fn from_bytes(file: &[u8]) -> Result<Recording, RecordError> {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(file).take(LARGEST).read_to_end(&mut bytes);
        read.map_err(|_| RecordError::Format)?;
        let mut cursor = Cursor { rest: &bytes };
        if cursor.take(MAGIC.len()).ok() != Some(MAGIC) || cursor.number()? != FORMAT {
            return Err(RecordError::Format);
        }
        let found = cursor.number()?;
        if found != VERSION {
            return Err(RecordError::Generator { found, expected: VERSION });
        }
        let mode = usize::from(cursor.byte()?);
        let mode = *MODES.get(mode).ok_or(RecordError::Damaged("it has no such mode"))?;
        let vendor = if cursor.byte()? == 1 { Vendor::Amd } else { Vendor::Intel };
        let signature = cursor.number()?;
        let processor = cursor.text()?;
        let features = features(&cursor.text()?)?;
        let seed = u64::from(cursor.number()?) | u64::from(cursor.number()?) << 32;
        let cases = cursor.number()?;
        let count = cursor.number()?;
        let mut forms = Vec::new();
        let mut lengths = Vec::new();
        for _ in 0..count {
            let (key, digest) = (cursor.text()?, cursor.number()?);
            lengths.push(cursor.number()? as usize);
            forms.push(Recorded { key, digest, outcomes: Vec::new() });
        }
        for (form, length) in forms.iter_mut().zip(lengths) {
            form.outcomes = cursor.take(length)?.to_vec();
        }
        Ok(Recording { mode, processor, vendor, signature, features, seed, cases, forms })
    }
}

fn features(names: &str) -> Result<Features, RecordError> {
    names.split_whitespace().try_fold(Features::empty(), |set, name| {
        let feature = Features::from_name(name);
        feature.map(|f| set | f).ok_or_else(|| RecordError::Feature(name.to_string()))
    })
}

fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u32);
    bytes.extend(text.as_bytes());
}

/// Bytes not yet read.
struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8], RecordError> {
        let taken = self.rest.split_at_checked(len);
        let (taken, rest) = taken.ok_or(RecordError::Damaged("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, RecordError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, RecordError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<String, RecordError> {
        let len = self.number()? as usize;
        let text = String::from_utf8(self.take(len)?.to_vec());
        text.map_err(|_| RecordError::Damaged("a name in it is not UTF-8"))
    }
}
