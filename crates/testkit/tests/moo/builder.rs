//! Builds MOO files in memory.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A chunk: tag, length, payload.
pub(crate) fn chunk(tag: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut bytes = tag.to_vec();
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// `NAME` and `BYTS`: a count, then as many bytes.
pub(crate) fn counted(tag: &[u8; 4], bytes: &[u8]) -> Vec<u8> {
    chunk(tag, &[&(bytes.len() as u32).to_le_bytes()[..], bytes].concat())
}

/// A 16-bit register chunk from values by bit number.
pub(crate) fn words(tag: &[u8; 4], values: &[(u32, u16)]) -> Vec<u8> {
    let mask: u16 = values.iter().map(|(bit, _)| 1 << bit).sum();
    let mut payload = mask.to_le_bytes().to_vec();
    payload.extend(values.iter().flat_map(|(_, value)| value.to_le_bytes()));
    chunk(tag, &payload)
}

/// A 32-bit register chunk from values by bit number.
pub(crate) fn dwords(tag: &[u8; 4], values: &[(u32, u32)]) -> Vec<u8> {
    let mask: u32 = values.iter().map(|(bit, _)| 1 << bit).sum();
    let mut payload = mask.to_le_bytes().to_vec();
    payload.extend(values.iter().flat_map(|(_, value)| value.to_le_bytes()));
    chunk(tag, &payload)
}

/// A memory chunk.
pub(crate) fn ram(entries: &[(u32, u8)]) -> Vec<u8> {
    let mut payload = (entries.len() as u32).to_le_bytes().to_vec();
    for (address, value) in entries {
        payload.extend(address.to_le_bytes());
        payload.push(*value);
    }
    chunk(b"RAM ", &payload)
}

/// One test.
pub(crate) fn test(index: u32, code: &[u8], initial: &[Vec<u8>], expected: &[Vec<u8>]) -> Vec<u8> {
    test_with(index, code, initial, expected, &[])
}

/// One test with more chunks at its end.
pub(crate) fn test_with(
    index: u32,
    code: &[u8],
    initial: &[Vec<u8>],
    expected: &[Vec<u8>],
    more: &[Vec<u8>],
) -> Vec<u8> {
    let parts = [
        index.to_le_bytes().to_vec(),
        chunk(b"GMET", &[0xAA; 10]),
        counted(b"NAME", format!("test {index}").as_bytes()),
        counted(b"BYTS", code),
        chunk(b"INIT", &initial.concat()),
        chunk(b"FINA", &expected.concat()),
        more.concat(),
        chunk(b"HASH", &[index as u8; 20]),
    ];
    chunk(b"TEST", &parts.concat())
}

/// A file of these chunks that promises `count` tests.
pub(crate) fn file(cpu: &[u8; 4], count: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let header = [&[1, 1, 0, 0], &count.to_le_bytes()[..], cpu].concat();
    let meta = chunk(b"META", &[0x55; 31]);
    [chunk(b"MOO ", &header), meta, chunks.concat()].concat()
}

/// All fourteen 16-bit registers: zero but for CS, SS, DS, ES, SP, IP and FLAGS.
pub(crate) fn initial_words() -> Vec<u8> {
    let special = [(4, 0x1000), (5, 0x2000), (6, 0x3000), (7, 0x4000), (8, 0x100), (13, 2)];
    let value = |bit| special.iter().find(|(b, _)| *b == bit).map_or(0, |(_, value)| *value);
    let values: Vec<(u32, u16)> = (0..14).map(|bit| (bit, value(bit))).collect();
    words(b"REGS", &values)
}

/// All twenty 32-bit registers: zero but for CS, SS, ESP and EFLAGS.
pub(crate) fn initial_dwords() -> Vec<u8> {
    let special = [(0, 0x7FFE_FFF0), (9, 0x100), (10, 0x1000), (15, 0x2000), (17, 0xFFFC_0002)];
    let value = |bit| special.iter().find(|(b, _)| *b == bit).map_or(0, |(_, value)| *value);
    let values: Vec<(u32, u32)> = (0..20).map(|bit| (bit, value(bit))).collect();
    dwords(b"RG32", &values)
}

/// Code at 1000:0000.
pub(crate) fn code(bytes: &[u8]) -> Vec<u8> {
    let entries: Vec<(u32, u8)> = (0x10000..).zip(bytes.iter().copied()).collect();
    ram(&entries)
}

/// Compressed.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// A small file with everything in it: both register widths, masks at both levels, an exception.
pub(crate) fn sample() -> Vec<u8> {
    let plain = test(
        7,
        &[0x40, 0xF4],
        &[initial_words(), code(&[0x40, 0xF4]), chunk(b"QUEU", &[0; 4])],
        &[words(b"REGS", &[(0, 1), (12, 2)]), words(b"RMSK", &[(13, 0xFFEF)]), ram(&[])],
    );
    let wide = test_with(
        8,
        &[0x66, 0x40, 0xF4],
        &[initial_dwords(), code(&[0x66, 0x40, 0xF4])],
        &[
            dwords(b"RG32", &[(2, 1), (16, 3)]),
            dwords(b"RM32", &[(2, 0x0FFF_FFFF)]),
            ram(&[(0x2_0000, 3)]),
        ],
        &[chunk(b"EXCP", &[6, 0x10, 0x20, 0x03, 0]), chunk(b"CYCL", &[1; 12])],
    );
    let mask = words(b"RMSK", &[(0, 0xFF00), (13, 0xF7FF)]);
    file(b"C286", 2, &[mask, plain, wide])
}
