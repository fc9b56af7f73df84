//! Code page 437, the characters of a PC's text screen.

/// Codes 00h to 1Fh, which are signs on the screen and not controls.
const LOW: [char; 32] = [
    ' ', '☺', '☻', '♥', '♦', '♣', '♠', '•', '◘', '○', '◙', '♂', '♀', '♪', '♫', '☼', //
    '►', '◄', '↕', '‼', '¶', '§', '▬', '↨', '↑', '↓', '→', '←', '∟', '↔', '▲', '▼',
];

/// Codes 7Fh to FFh.
const HIGH: [char; 129] = [
    '⌂', //
    'Ç', 'ü', 'é', 'â', 'ä', 'à', 'å', 'ç', 'ê', 'ë', 'è', 'ï', 'î', 'ì', 'Ä', 'Å', //
    'É', 'æ', 'Æ', 'ô', 'ö', 'ò', 'û', 'ù', 'ÿ', 'Ö', 'Ü', '¢', '£', '¥', '₧', 'ƒ', //
    'á', 'í', 'ó', 'ú', 'ñ', 'Ñ', 'ª', 'º', '¿', '⌐', '¬', '½', '¼', '¡', '«', '»', //
    '░', '▒', '▓', '│', '┤', '╡', '╢', '╖', '╕', '╣', '║', '╗', '╝', '╜', '╛', '┐', //
    '└', '┴', '┬', '├', '─', '┼', '╞', '╟', '╚', '╔', '╩', '╦', '╠', '═', '╬', '╧', //
    '╨', '╤', '╥', '╙', '╘', '╒', '╓', '╫', '╪', '┘', '┌', '█', '▄', '▌', '▐', '▀', //
    'α', 'ß', 'Γ', 'π', 'Σ', 'σ', 'µ', 'τ', 'Φ', 'Θ', 'Ω', 'δ', '∞', 'φ', 'ε', '∩', //
    '≡', '±', '≥', '≤', '⌠', '⌡', '÷', '≈', '°', '∙', '·', '√', 'ⁿ', '²', '■', '\u{A0}',
];

/// The character that `code` shows as.
pub(super) fn to_char(code: u8) -> char {
    match code {
        0x00..=0x1F => LOW[usize::from(code)],
        0x20..=0x7E => char::from(code),
        0x7F..=0xFF => HIGH[usize::from(code - 0x7F)],
    }
}

/// The code that shows as `character`, if there is one.
pub(super) fn from_char(character: char) -> Option<u8> {
    (0x20..=0xFF).chain(0x01..=0x1F).find(|code| to_char(*code) == character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_has_its_code() {
        for code in 1..=255 {
            assert_eq!(from_char(to_char(code)), Some(code));
        }
        assert_eq!(from_char('語'), None);
    }

    #[test]
    fn box_drawing_and_blocks_are_where_dos_has_them() {
        let shown: String =
            [0xC9, 0xCD, 0xBB, 0xDB, 0xB1, 0xFA, 0x41, 0x00].map(to_char).into_iter().collect();
        assert_eq!(shown, "╔═╗█▒·A ");
    }

    #[test]
    fn every_code_but_00h_is_a_character_of_its_own() {
        let mut all: Vec<char> = (0..=255).map(to_char).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 255, "00h and 20h are both spaces");
    }
}
