//! ELF executables for the 80386, by their program headers (Tool Interface Standard, "Executable
//! and Linking Format", and its supplement for the Intel386).

use crate::error::Error;
use crate::little_endian::{u16_at, u32_at};

const MAGIC: &[u8] = b"\x7FELF";

/// Offsets in the header of the file.
const CLASS: usize = 4;
const DATA: usize = 5;
const TYPE: usize = 16;
const MACHINE: usize = 18;
const ENTRY: usize = 24;
const PROGRAM_HEADERS: usize = 28;
const PROGRAM_HEADER_SIZE: usize = 42;
const PROGRAM_HEADER_COUNT: usize = 44;
const HEADER_END: usize = 52;

/// What those fields have to be: 32 bits, little endian, an executable for the 80386.
const CLASS_32: u8 = 1;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const EXECUTABLE: u16 = 2;
const I386: u16 = 3;

/// Offsets in a program header, and the type of those that are loaded.
const SEGMENT_OFFSET: usize = 4;
const SEGMENT_VIRTUAL: usize = 8;
const SEGMENT_PHYSICAL: usize = 12;
const SEGMENT_FILE_SIZE: usize = 16;
const SEGMENT_MEMORY_SIZE: usize = 20;
const SEGMENT_END: usize = 32;
const LOAD: u32 = 1;

/// A stretch of physical memory: bytes of the file, then zeros up to its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'i> {
    pub(crate) start: u32,
    pub(crate) bytes: &'i [u8],
    pub(crate) len: u32,
}

impl Part<'_> {
    pub(crate) fn contains(&self, at: u32) -> bool {
        at.checked_sub(self.start).is_some_and(|offset| offset < self.len)
    }
}

/// An executable; its program headers lie within the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elf<'i> {
    image: &'i [u8],
    headers: usize,
    size: usize,
    count: usize,
    entry: u32,
}

impl<'i> Elf<'i> {
    pub(crate) fn new(image: &'i [u8]) -> Result<Self, Error> {
        if !image.starts_with(MAGIC) {
            return Err(Error::MultibootNoAddresses);
        }
        let cut_off = Error::MultibootCutOff { len: image.len() as u64 };
        let header = image.get(..HEADER_END).ok_or(cut_off)?;
        let (class, data) = (header[CLASS], header[DATA]);
        let half = |at| u16_at(header, at).unwrap_or(0);
        let (kind, machine) = (half(TYPE), half(MACHINE));
        if class == CLASS_64 {
            return Err(Error::Elf64);
        }
        if (class, data, kind, machine) != (CLASS_32, LITTLE_ENDIAN, EXECUTABLE, I386) {
            return Err(Error::ElfOther { class, data, kind, machine });
        }
        let word = |at| u32_at(header, at).unwrap_or(0);
        let elf = Elf {
            image,
            headers: word(PROGRAM_HEADERS) as usize,
            size: usize::from(half(PROGRAM_HEADER_SIZE)),
            count: usize::from(half(PROGRAM_HEADER_COUNT)),
            entry: word(ENTRY),
        };
        if elf.count > 0 && elf.size < SEGMENT_END {
            return Err(Error::ElfHeaderSize { size: elf.size as u16 });
        }
        let end = elf.headers.checked_add(elf.size * elf.count);
        end.filter(|end| *end <= image.len()).ok_or(cut_off)?;
        Ok(elf)
    }

    /// The segments that take memory, where they are loaded.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Result<Part<'i>, Error>> + use<'i> {
        let elf = *self;
        elf.loaded()
            .map(move |header| elf.part(header))
            .filter(|part| part.map_or(true, |part| part.len > 0))
    }

    /// The physical address of the entry, which the file gives as a virtual one.
    pub(crate) fn entry(&self) -> u32 {
        let physical = |header| {
            let word = |at| u32_at(header, at).unwrap_or(0);
            let offset = self.entry.checked_sub(word(SEGMENT_VIRTUAL))?;
            (offset < word(SEGMENT_MEMORY_SIZE))
                .then(|| word(SEGMENT_PHYSICAL).wrapping_add(offset))
        };
        // In none, it is physical already: a kernel that turns paging on itself is linked so.
        self.loaded().find_map(physical).unwrap_or(self.entry)
    }

    fn loaded(self) -> impl Iterator<Item = &'i [u8]> {
        let at = move |index| self.headers + self.size * index;
        (0..self.count)
            .filter_map(move |index| self.image.get(at(index)..))
            .filter(|header| u32_at(header, 0) == Some(LOAD))
    }

    fn part(&self, header: &[u8]) -> Result<Part<'i>, Error> {
        let word = |at| u32_at(header, at).unwrap_or(0);
        let (start, offset) = (word(SEGMENT_PHYSICAL), word(SEGMENT_OFFSET));
        let (file, len) = (word(SEGMENT_FILE_SIZE), word(SEGMENT_MEMORY_SIZE));
        if file > len {
            return Err(Error::ElfSegment { start, file, memory: len });
        }
        // A segment without bytes in the file may have any offset; linkers put some past the end.
        let from = if file == 0 { 0 } else { offset as usize };
        let bytes = self.image.get(from..).and_then(|rest| rest.get(..file as usize));
        let bytes = bytes.ok_or(Error::MultibootCutOff { len: self.image.len() as u64 })?;
        Ok(Part { start, bytes, len })
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
