//! What IDENTIFY DEVICE tells of the disk (ATA/ATAPI-6, "IDENTIFY DEVICE data").

use crate::ata::MOST_MULTIPLE;
use crate::disk::SECTOR;

const MODEL: &[u8; 40] = b"realmode disk                           ";
const SERIAL: &[u8; 20] = b"0                   ";
const REVISION: &[u8; 8] = b"1       ";

/// Sectors that 28 bits reach.
const MOST_SHORT: u64 = 0x0FFF_FFFF;

pub(crate) fn identify(sectors: u64, multiple: u8) -> [u8; SECTOR] {
    let mut data = [0; SECTOR];
    let mut put = |word: usize, value: u64, words: usize| {
        let bytes = value.to_le_bytes();
        data[2 * word..2 * (word + words)].copy_from_slice(&bytes[..2 * words]);
    };
    let cylinders = (sectors / (16 * 63)).min(16_383);
    let in_cylinders = cylinders * 16 * 63;
    let multiple = u64::from(multiple);
    for (word, value) in [
        (0, 0x0040),
        (1, cylinders),
        (3, 16),
        (6, 63),
        (47, 0x8000 | u64::from(MOST_MULTIPLE)),
        // LBA and IORDY; no DMA.
        (49, 0x0A00),
        (50, 0x4000),
        // Words 54 to 58 and 64 to 70 are valid.
        (53, 0x0003),
        (54, cylinders),
        (55, 16),
        (56, 63),
        (59, if multiple > 0 { 0x100 | multiple } else { 0 }),
        // PIO modes 3 and 4, 120 ns.
        (64, 0x0003),
        (67, 120),
        (68, 120),
        (80, 0x007E),
        // Device reset, flush cache, 48-bit addresses: supported, then enabled.
        (82, 0x4200),
        (83, 0x7400),
        (84, 0x4000),
        (85, 0x4200),
        (86, 0x3400),
        (87, 0x4000),
        // Device 0 has passed its diagnostic.
        (93, 0x400B),
    ] {
        put(word, value, 1);
    }
    put(57, in_cylinders, 2);
    put(60, sectors.min(MOST_SHORT), 2);
    put(100, sectors, 4);
    for (word, text) in [(10, &SERIAL[..]), (23, REVISION), (27, MODEL)] {
        // The first of two characters is in the high byte.
        for (i, pair) in text.chunks_exact(2).enumerate() {
            put(word + i, u64::from(u16::from_be_bytes([pair[0], pair[1]])), 1);
        }
    }
    data
}
