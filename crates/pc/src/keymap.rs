//! Which keys type a character, as scan codes of set 2 on a US keyboard.

use crate::key::Held;

/// A key and what is held down with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stroke {
    pub(crate) code: u8,
    /// The code is preceded by E0.
    pub(crate) extended: bool,
    pub(crate) held: Held,
}

/// The keys that are held down with others.
pub(crate) const HOLDS: [(Held, u8); 3] =
    [(Held::SHIFT, 0x12), (Held::CONTROL, 0x14), (Held::ALT, 0x11)];

/// Of the keys from 80h on, those whose codes are preceded by E0: arrows, and the six above them.
const EXTENDED: [u8; 10] = [0x75, 0x72, 0x6B, 0x74, 0x6C, 0x69, 0x7D, 0x7A, 0x70, 0x71];
/// F1 to F12, which follow.
const FUNCTIONS: [u8; 12] =
    [0x05, 0x06, 0x04, 0x0C, 0x03, 0x0B, 0x83, 0x0A, 0x01, 0x09, 0x78, 0x07];

/// Set 2 by character, unshifted and shifted.
const KEYS: [(u8, u8, u8); 48] = [
    (b'a', b'A', 0x1C),
    (b'b', b'B', 0x32),
    (b'c', b'C', 0x21),
    (b'd', b'D', 0x23),
    (b'e', b'E', 0x24),
    (b'f', b'F', 0x2B),
    (b'g', b'G', 0x34),
    (b'h', b'H', 0x33),
    (b'i', b'I', 0x43),
    (b'j', b'J', 0x3B),
    (b'k', b'K', 0x42),
    (b'l', b'L', 0x4B),
    (b'm', b'M', 0x3A),
    (b'n', b'N', 0x31),
    (b'o', b'O', 0x44),
    (b'p', b'P', 0x4D),
    (b'q', b'Q', 0x15),
    (b'r', b'R', 0x2D),
    (b's', b'S', 0x1B),
    (b't', b'T', 0x2C),
    (b'u', b'U', 0x3C),
    (b'v', b'V', 0x2A),
    (b'w', b'W', 0x1D),
    (b'x', b'X', 0x22),
    (b'y', b'Y', 0x35),
    (b'z', b'Z', 0x1A),
    (b'1', b'!', 0x16),
    (b'2', b'@', 0x1E),
    (b'3', b'#', 0x26),
    (b'4', b'$', 0x25),
    (b'5', b'%', 0x2E),
    (b'6', b'^', 0x36),
    (b'7', b'&', 0x3D),
    (b'8', b'*', 0x3E),
    (b'9', b'(', 0x46),
    (b'0', b')', 0x45),
    (b'-', b'_', 0x4E),
    (b'=', b'+', 0x55),
    (b'[', b'{', 0x54),
    (b']', b'}', 0x5B),
    (b';', b':', 0x4C),
    (b'\'', b'"', 0x52),
    (b'`', b'~', 0x0E),
    (b'\\', b'|', 0x5D),
    (b',', b'<', 0x41),
    (b'.', b'>', 0x49),
    (b'/', b'?', 0x4A),
    (b' ', b' ', 0x29),
];

/// How to type a key of [`Key::code`](crate::key::Key::code).
pub(crate) fn stroke(key: u8) -> Option<Stroke> {
    let plain = |code| Stroke { code, extended: false, held: Held::empty() };
    match key {
        b'\n' | b'\r' => return Some(plain(0x5A)),
        b'\t' => return Some(plain(0x0D)),
        0x08 | 0x7F => return Some(plain(0x66)),
        0x1B => return Some(plain(0x76)),
        0x80.. => return named(usize::from(key - 0x80)),
        _ => {}
    }
    // Control characters are letters with Ctrl.
    let (wanted, control) = if (1..=26).contains(&key) { (key | 0x60, true) } else { (key, false) };
    let (lower, _, code) =
        *KEYS.iter().find(|(lower, upper, _)| wanted == *lower || wanted == *upper)?;
    let held = match (control, wanted == lower) {
        (true, _) => Held::CONTROL,
        (false, true) => Held::empty(),
        (false, false) => Held::SHIFT,
    };
    Some(Stroke { held, ..plain(code) })
}

fn named(at: usize) -> Option<Stroke> {
    let extended = EXTENDED.get(at);
    let code = *extended.or_else(|| FUNCTIONS.get(at.wrapping_sub(EXTENDED.len())))?;
    Some(Stroke { code, extended: extended.is_some(), held: Held::empty() })
}

/// Set 1 by set 2: the 8042's translation of codes below 80h.
const SET_1: [u8; 128] = [
    0xFF, 0x43, 0x41, 0x3F, 0x3D, 0x3B, 0x3C, 0x58, 0x64, 0x44, 0x42, 0x40, 0x3E, 0x0F, 0x29, 0x59,
    0x65, 0x38, 0x2A, 0x70, 0x1D, 0x10, 0x02, 0x5A, 0x66, 0x71, 0x2C, 0x1F, 0x1E, 0x11, 0x03, 0x5B,
    0x67, 0x2E, 0x2D, 0x20, 0x12, 0x05, 0x04, 0x5C, 0x68, 0x39, 0x2F, 0x21, 0x14, 0x13, 0x06, 0x5D,
    0x69, 0x31, 0x30, 0x23, 0x22, 0x15, 0x07, 0x5E, 0x6A, 0x72, 0x32, 0x24, 0x16, 0x08, 0x09, 0x5F,
    0x6B, 0x33, 0x25, 0x17, 0x18, 0x0B, 0x0A, 0x60, 0x6C, 0x34, 0x35, 0x26, 0x27, 0x19, 0x0C, 0x61,
    0x6D, 0x73, 0x28, 0x74, 0x1A, 0x0D, 0x62, 0x6E, 0x3A, 0x36, 0x1C, 0x1B, 0x75, 0x2B, 0x63, 0x76,
    0x55, 0x56, 0x77, 0x78, 0x79, 0x7A, 0x0E, 0x7B, 0x7C, 0x4F, 0x7D, 0x4B, 0x47, 0x7E, 0x7F, 0x6F,
    0x52, 0x53, 0x50, 0x4C, 0x4D, 0x48, 0x01, 0x45, 0x57, 0x4E, 0x51, 0x4A, 0x37, 0x49, 0x46, 0x54,
];

/// A code of set 2 in set 1. Codes from 80h are what a keyboard answers, except for two keys.
pub(crate) fn to_set_1(code: u8) -> u8 {
    match code {
        0x83 => 0x41,
        0x84 => 0x54,
        code => SET_1.get(usize::from(code)).copied().unwrap_or(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_a_key() {
        for key in b' '..=b'~' {
            assert!(stroke(key).is_some(), "{}", char::from(key));
        }
        assert_eq!([stroke(0), stroke(0x96), stroke(0xFF)], [None; 3]);
    }

    #[test]
    fn shift_and_control_are_held_down() {
        let held = |key| stroke(key).map(|stroke| stroke.held);
        assert_eq!(
            [held(b'a'), held(b'A'), held(0x03)],
            [Some(Held::empty()), Some(Held::SHIFT), Some(Held::CONTROL)]
        );
    }

    #[test]
    fn keys_without_a_character_follow_ascii() {
        let at = |key| stroke(key).map(|stroke| (stroke.extended, stroke.code));
        assert_eq!([at(0x80), at(0x89)], [Some((true, 0x75)), Some((true, 0x71))]);
        assert_eq!([at(0x8A), at(0x95)], [Some((false, 0x05)), Some((false, 0x07))]);
    }

    #[test]
    fn translation_gives_the_codes_of_the_pc() {
        let codes = [0x1C, 0x76, 0x5A, 0x12, 0x66, 0xFA].map(to_set_1);
        assert_eq!(codes, [0x1E, 0x01, 0x1C, 0x2A, 0x0E, 0xFA]);
    }
}
