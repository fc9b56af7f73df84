//! A directory of files, with its lists of undefined flags and of revoked tests.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::MooError;
use super::file::MooFile;
use super::test::TestHash;

/// How much is read of `metadata.json` and of `revocation_list.txt`.
const MAX_LIST_BYTES: u64 = 16 << 20;

/// A suite: the files to run and what its lists say of them.
#[derive(Debug)]
pub struct Suite {
    files: Vec<PathBuf>,
    metadata: Value,
    revoked: HashSet<TestHash>,
}

impl Suite {
    /// Looks through a directory, or takes a single file with the lists beside it. A list may
    /// also stand one directory above, where the public suites keep their revocations.
    ///
    /// # Errors
    /// If a directory or list cannot be read, or the directory has no MOO file.
    pub fn open(path: &Path) -> Result<Suite, MooError> {
        let io = |source| MooError::Io { path: path.to_owned(), source };
        let is_directory = fs::metadata(path).map_err(io)?.is_dir();
        let mut files = Vec::new();
        if is_directory {
            for entry in fs::read_dir(path).map_err(io)? {
                let file = entry.map_err(io)?.path();
                if opcode_of(&file).is_some() && !file.is_dir() {
                    files.push(file);
                }
            }
            files.sort();
            if files.is_empty() {
                return Err(MooError::NoFiles { path: path.to_owned() });
            }
        } else {
            files.push(path.to_owned());
        }
        let directory = if is_directory { path } else { path.parent().unwrap_or(path) };
        let metadata = match find_list(directory, "metadata.json")? {
            Some((file, text)) => parse_metadata(&file, &text)?,
            None => Value::Null,
        };
        let revoked = match find_list(directory, "revocation_list.txt")? {
            Some((file, text)) => parse_revocations(&file, &text)?,
            None => HashSet::new(),
        };
        Ok(Suite { files, metadata, revoked })
    }

    /// The files, sorted by name.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Keeps only the files that `wanted` says yes to, by opcode.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.files.retain(|file| wanted(&Suite::opcode(file)));
    }

    /// The opcode a file is about, from its name: `F7.6`, or the whole name if it is no suite's.
    pub fn opcode(file: &Path) -> String {
        opcode_of(file).unwrap_or_else(|| file.display().to_string())
    }

    /// Reads one of the files and narrows its masks to the flags that its opcode defines.
    ///
    /// # Errors
    /// As [`MooFile::open`].
    pub fn load(&self, file: &Path) -> Result<MooFile, MooError> {
        let mut moo = MooFile::open(file)?;
        if let Some(mask) = self.flags_mask(&Suite::opcode(file)) {
            moo.narrow_flags(mask);
        }
        Ok(moo)
    }

    /// The flags that `opcode` (`27`, `F7.6`) leaves defined, where the metadata says so.
    pub fn flags_mask(&self, opcode: &str) -> Option<u16> {
        let (byte, extension) = match opcode.split_once('.') {
            Some((byte, extension)) => (byte, Some(extension)),
            None => (opcode, None),
        };
        let entry = self.metadata.get("opcodes")?.get(byte.to_ascii_uppercase())?;
        let group = extension.and_then(|extension| entry.get("reg")?.get(extension));
        let mask = group.unwrap_or(entry).get("flags-mask")?;
        u16::try_from(mask.as_u64()?).ok()
    }

    /// Was the test found to be wrong?
    pub fn is_revoked(&self, hash: Option<TestHash>) -> bool {
        hash.is_some_and(|hash| self.revoked.contains(&hash))
    }
}

/// The name of a MOO file without its ending; none for other files.
fn opcode_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let strip = |name: &str, ending: &str| {
        let at = name.len().checked_sub(ending.len())?;
        let (stem, tail) = (name.get(..at)?, name.get(at..)?);
        tail.eq_ignore_ascii_case(ending).then(|| stem.to_owned())
    };
    let unpacked = strip(name, ".gz").unwrap_or_else(|| name.to_owned());
    strip(&unpacked, ".moo")
}

/// Reads a list in the directory or in the one above.
fn find_list(directory: &Path, name: &str) -> Result<Option<(PathBuf, String)>, MooError> {
    for file in [directory.join(name), directory.join("..").join(name)] {
        let io = |source| MooError::Io { path: file.clone(), source };
        if !file.is_file() {
            continue;
        }
        let mut text = String::new();
        let mut reader = fs::File::open(&file).map_err(io)?.take(MAX_LIST_BYTES);
        reader.read_to_string(&mut text).map_err(io)?;
        return Ok(Some((file, text)));
    }
    Ok(None)
}

fn parse_metadata(path: &Path, text: &str) -> Result<Value, MooError> {
    let bad = |line, what: String| MooError::BadList { path: path.to_owned(), line, what };
    let metadata: Value = serde_json::from_str(text).map_err(|e| bad(e.line(), e.to_string()))?;
    let opcodes = metadata.get("opcodes").and_then(Value::as_object);
    let Some(opcodes) = opcodes else {
        return Err(bad(1, "no object \"opcodes\"".into()));
    };
    for (opcode, entry) in opcodes {
        let groups = entry.get("reg").and_then(Value::as_object);
        let masks = groups.into_iter().flat_map(serde_json::Map::values).chain([entry]);
        for mask in masks.filter_map(|entry| entry.get("flags-mask")) {
            if mask.as_u64().is_none_or(|mask| mask > 0xFFFF) {
                return Err(bad(1, format!("opcode {opcode}: flags-mask {mask} is not 16 bits")));
            }
        }
    }
    Ok(metadata)
}

fn parse_revocations(path: &Path, text: &str) -> Result<HashSet<TestHash>, MooError> {
    let mut revoked = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or("").trim();
        if entry.is_empty() {
            continue;
        }
        let Some(hash) = TestHash::from_hex(entry) else {
            return Err(MooError::BadList {
                path: path.to_owned(),
                line: number + 1,
                what: format!("\"{}\" is not a hash of 40 digits", entry.escape_default()),
            });
        };
        revoked.insert(hash);
    }
    Ok(revoked)
}
