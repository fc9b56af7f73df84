//! Keys as the caller names them, and as they wait in the keyboard's queue: a byte each, after
//! another that says what is held down with it, if anything is.

use crate::keymap::stroke;

/// A key of a US keyboard, by what it types or what is printed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Key {
    /// What types this character, with Shift or Ctrl where that takes them. Enter, Tab,
    /// Backspace and Escape are their ASCII characters.
    Character(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Insert.
    Insert,
    /// Delete.
    Delete,
    /// F1 to F12, by number.
    Function(u8),
}

bitflags::bitflags! {
    /// Keys that are held down while another is pressed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub struct Held: u8 {
        /// The left Shift.
        const SHIFT = 1 << 0;
        /// The left Ctrl.
        const CONTROL = 1 << 1;
        /// The left Alt.
        const ALT = 1 << 2;
    }
}

/// Bytes from here on say what is held down with the next; below are keys.
const HELD: u8 = 0xF0;

/// Is there a key for this character, so that [`Pc::type_text`](crate::Pc::type_text) can type it?
///
/// ```
/// use realmode_pc::has_key;
/// assert!(has_key('A') && has_key('\n') && has_key('↑') && !has_key('é'));
/// ```
pub fn has_key(character: char) -> bool {
    Key::from(character).code().is_some()
}

impl Key {
    /// The key as a byte: ASCII, then the others. `None` if the keyboard does not have it.
    pub(crate) fn code(self) -> Option<u8> {
        let code = match self {
            Key::Character(character) => Some(character)
                .filter(char::is_ascii)
                .and_then(|character| u8::try_from(u32::from(character)).ok())?,
            Key::Up => 0x80,
            Key::Down => 0x81,
            Key::Left => 0x82,
            Key::Right => 0x83,
            Key::Home => 0x84,
            Key::End => 0x85,
            Key::PageUp => 0x86,
            Key::PageDown => 0x87,
            Key::Insert => 0x88,
            Key::Delete => 0x89,
            Key::Function(number @ 1..=12) => 0x89 + number,
            Key::Function(_) => return None,
        };
        stroke(code).map(|_| code)
    }
}

impl From<char> for Key {
    /// Arrows have characters too.
    fn from(character: char) -> Key {
        match character {
            '↑' => Key::Up,
            '↓' => Key::Down,
            '←' => Key::Left,
            '→' => Key::Right,
            other => Key::Character(other),
        }
    }
}

impl Held {
    /// As the byte before a key.
    pub(crate) fn code(self) -> u8 {
        HELD | self.bits()
    }

    /// What a byte of [`Held::code`] says.
    pub(crate) fn from_code(code: u8) -> Option<Held> {
        Held::from_bits(code ^ HELD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_what_is_held() {
        let named = [Key::Up, Key::Delete, Key::Function(1), Key::Function(12)];
        let characters = (0..=0x7F_u8).map(|code| Key::Character(char::from(code)));
        for code in characters.chain(named).filter_map(Key::code) {
            assert_eq!(Held::from_code(code), None, "{code:#04x}");
        }
        assert!(named.iter().all(|key| key.code().is_some()));
        assert_eq!(Held::from_code(Held::all().code()), Some(Held::all()));
    }

    #[test]
    fn what_a_us_keyboard_does_not_have_is_no_key() {
        for key in [Key::Character('é'), Key::Character('\0'), Key::Function(0), Key::Function(13)]
        {
            assert_eq!(key.code(), None, "{key:?}");
        }
    }
}
