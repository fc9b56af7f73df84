//! What a multiboot kernel is told: one page at the end of low memory with the boot information,
//! the memory map, the loader's name and the command line.

use realmode::PAGE_SIZE;

use crate::command_line::{self, MOST_COMMAND_LINE};
use crate::error::Error;
use crate::memory::{HOLE, UPPER_END};
use crate::screen::{Screen, TEXT_BASE};

/// Where it lies.
pub(crate) const INFO: u64 = HOLE - PAGE_SIZE as u64;

/// Offsets in the structure.
const FLAGS: usize = 0;
const MEMORY_LOWER: usize = 4;
const MEMORY_UPPER: usize = 8;
const COMMAND_LINE: usize = 16;
const MAP_LENGTH: usize = 44;
const MAP_ADDRESS: usize = 48;
const LOADER_NAME: usize = 64;
const FRAME_ADDRESS: usize = 88;
const FRAME_PITCH: usize = 96;
const FRAME_WIDTH: usize = 100;
const FRAME_HEIGHT: usize = 104;
/// A byte each: bits in a character, and the type.
const FRAME_BITS: usize = 108;
const FRAME_TEXT: u32 = 2;

/// Which fields mean something: memory sizes, command line, modules (none), memory map, name of
/// the loader, framebuffer.
const PRESENT: u32 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9 | 1 << 12;

/// Where what it points to lies in the page.
const MAP: usize = 0x80;
const MAP_ENTRY: usize = 24;
const NAME: usize = 0x100;
const TEXT: usize = 0x200;
const _: () = assert!(TEXT + MOST_COMMAND_LINE < PAGE_SIZE);

const LOADER: &[u8] = b"realmode";

/// A range of memory is RAM, or not.
const AVAILABLE: u32 = 1;
const RESERVED: u32 = 2;

/// Builds the page; what is not set stays 0, which also ends the texts.
pub(crate) fn info(ram: u64, command_line: &str) -> Result<[u8; PAGE_SIZE], Error> {
    command_line::check(command_line)?;
    let high = ram.checked_sub(UPPER_END).ok_or(Error::MultibootNoRam { len: ram })?;
    let mut page = [0; PAGE_SIZE];
    let mut put = |at: usize, bytes: &[u8]| {
        for (slot, byte) in page.iter_mut().skip(at).zip(bytes) {
            *slot = *byte;
        }
    };
    put(TEXT, command_line.as_bytes());
    put(NAME, LOADER);

    let upper = UPPER_END - HOLE;
    let ranges = [(0, HOLE, AVAILABLE), (HOLE, upper, RESERVED), (UPPER_END, high, AVAILABLE)];
    let mut map_len = 0;
    for (start, len, kind) in ranges.into_iter().filter(|(_, len, _)| *len > 0) {
        let at = MAP + map_len;
        // The size that comes first does not count itself.
        put(at, &(MAP_ENTRY as u32 - 4).to_le_bytes());
        put(at + 4, &start.to_le_bytes());
        put(at + 12, &len.to_le_bytes());
        put(at + 20, &kind.to_le_bytes());
        map_len += MAP_ENTRY;
    }

    let address = |offset: usize| INFO as u32 + offset as u32;
    for (at, value) in [
        (FLAGS, PRESENT),
        (MEMORY_LOWER, (HOLE >> 10) as u32),
        (MEMORY_UPPER, (high >> 10) as u32),
        (COMMAND_LINE, address(TEXT)),
        (MAP_LENGTH, map_len as u32),
        (MAP_ADDRESS, address(MAP)),
        (LOADER_NAME, address(NAME)),
        (FRAME_ADDRESS, TEXT_BASE as u32),
        (FRAME_PITCH, 2 * Screen::COLUMNS as u32),
        (FRAME_WIDTH, Screen::COLUMNS as u32),
        (FRAME_HEIGHT, Screen::ROWS as u32),
        (FRAME_BITS, FRAME_TEXT << 8 | 16),
    ] {
        put(at, &value.to_le_bytes());
    }
    Ok(page)
}
