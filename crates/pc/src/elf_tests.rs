//! Program headers, right and wrong.

extern crate std;
use super::*;
use std::vec;
use std::vec::Vec;

/// A program header: type, offset, virtual and physical address, sizes in file and memory.
type Segment = [u32; 6];

const LEN: usize = 0x200;

fn file(entry: u32, segments: &[Segment]) -> Vec<u8> {
    let mut file: Vec<u8> = (0..LEN).map(|i| i as u8).collect();
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7FELF\x01\x01\x01");
    put(TYPE, &EXECUTABLE.to_le_bytes());
    put(MACHINE, &I386.to_le_bytes());
    put(ENTRY, &entry.to_le_bytes());
    put(PROGRAM_HEADERS, &(HEADER_END as u32).to_le_bytes());
    put(PROGRAM_HEADER_SIZE, &(SEGMENT_END as u16).to_le_bytes());
    put(PROGRAM_HEADER_COUNT, &(segments.len() as u16).to_le_bytes());
    for (index, segment) in segments.iter().enumerate() {
        for (field, value) in segment.iter().enumerate() {
            put(HEADER_END + SEGMENT_END * index + 4 * field, &value.to_le_bytes());
        }
    }
    file
}

/// The parts, or the first error.
fn parts(file: &[u8]) -> Result<Vec<Part<'_>>, Error> {
    Elf::new(file)?.parts().collect()
}

#[test]
fn segments_that_take_memory_are_parts() {
    let file = file(
        0,
        &[
            [LOAD, 0x100, 0xC010_0000, 0x10_0000, 0x10, 0x30],
            [4, 0xFFFF, 0, 0, 0xFFFF, 1],
            [LOAD, 0xFFFF_FFFF, 0, 0x30_0000, 0, 0],
            [LOAD, 0x20_0020, 0, 0x20_0020, 0, 0x100],
            [LOAD, 0x1FF, 0x20_0000, 0x20_0000, 1, 1],
        ],
    );
    let first = Part { start: 0x10_0000, bytes: &file[0x100..0x110], len: 0x30 };
    // GNU ld gives a .bss of its own an offset that fits its address, also past the end.
    let bss = Part { start: 0x20_0020, bytes: &[], len: 0x100 };
    let last = Part { start: 0x20_0000, bytes: &file[0x1FF..], len: 1 };
    assert_eq!(parts(&file), Ok(vec![first, bss, last]));
    assert!(first.contains(0x10_002F) && !first.contains(0x10_0030) && !first.contains(0xF_FFFF));
}

#[test]
fn the_entry_is_virtual_where_a_segment_has_it() {
    let segments = [[LOAD, 0, 0xC010_0000, 0x10_0000, 0x10, 0x30]];
    let entry = |entry| Elf::new(&file(entry, &segments)).map(|elf| elf.entry());
    assert_eq!(entry(0xC010_002F), Ok(0x10_002F));
    assert_eq!(entry(0x10_0004), Ok(0x10_0004));
    assert_eq!(entry(0xC010_0030), Ok(0xC010_0030));
}

#[test]
fn other_elfs_are_refused_by_what_they_are() {
    let good = file(0, &[]);
    assert_eq!(parts(&good), Ok(vec![]));
    let with = |at: usize, value: u8| {
        let mut file = good.clone();
        file[at] = value;
        parts(&file).err()
    };
    let other = |class, data, kind, machine| Some(Error::ElfOther { class, data, kind, machine });
    assert_eq!(with(0, 0x7E), Some(Error::MultibootNoAddresses));
    assert_eq!(with(CLASS, 2), Some(Error::Elf64));
    assert_eq!(with(CLASS, 0), other(0, 1, 2, 3));
    assert_eq!(with(DATA, 2), other(1, 2, 2, 3));
    assert_eq!(with(TYPE, 3), other(1, 1, 3, 3));
    assert_eq!(with(MACHINE, 62), other(1, 1, 2, 62));
}

#[test]
fn headers_and_segments_past_the_end_are_refused() {
    let cut_off = |len: usize| Err(Error::MultibootCutOff { len: len as u64 });
    let segment = [LOAD, 0x1F0, 0, 0x10_0000, 0x10, 0x10];
    let good = file(0, &[segment; 2]);
    assert_eq!(parts(&good).map(|parts| parts.len()), Ok(2));
    for len in 4..LEN {
        assert_eq!(parts(&good[..len]), cut_off(len));
    }
    let more = file(0, &[[LOAD, 0x1F0, 0, 0x10_0000, 0x11, 0x11]]);
    assert_eq!(parts(&more), cut_off(LEN));
    let wrong = Error::ElfSegment { start: 0x10_0000, file: 0x10, memory: 0xF };
    assert_eq!(parts(&file(0, &[[LOAD, 0, 0, 0x10_0000, 0x10, 0xF]])), Err(wrong));
    let with = |at: usize, value: u16| {
        let mut file = good.clone();
        file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        parts(&file).err()
    };
    assert_eq!(with(PROGRAM_HEADERS + 2, 0xFFFF), cut_off(LEN).err());
    assert_eq!(with(PROGRAM_HEADER_COUNT, 0xFFFF), cut_off(LEN).err());
    assert_eq!(with(PROGRAM_HEADER_SIZE, 31), Some(Error::ElfHeaderSize { size: 31 }));
}
