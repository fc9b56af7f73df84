//! Little-endian numbers, as files and the structures of boot loaders have them.

/// The 16-bit number at an offset, if the bytes reach so far.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|number| u16::from_le_bytes(*number))
}

/// The 32-bit number at an offset, if the bytes reach so far.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}
