//! What the user presses in the live screen: a key for the guest, or a wish of the user's own.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use realmode_pc::{Held, Key};

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// End the run.
    Leave,
    /// Show the other one, of screen and COM1.
    Switch,
    /// The guest is to have it.
    Guest(KeyEvent),
    /// Nothing yet.
    Nothing,
}

/// Tells the user's own keys from the guest's: Ctrl-C leaves, and Ctrl-] escapes one key.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    is_escaped: bool,
}

impl Escapes {
    /// What the next key means.
    pub(super) fn meaning(&mut self, key: KeyEvent) -> Meaning {
        if std::mem::take(&mut self.is_escaped) {
            let is_switch = key.code == KeyCode::Char('s') && key.modifiers.is_empty();
            return if is_switch { Meaning::Switch } else { Meaning::Guest(key) };
        }
        match control(&key) {
            Some(0x03) => Meaning::Leave,
            Some(0x1D) => {
                self.is_escaped = true;
                Meaning::Nothing
            }
            _ => Meaning::Guest(key),
        }
    }
}

/// The control character that a key types with Ctrl.
fn control(key: &KeyEvent) -> Option<u8> {
    let KeyCode::Char(character) = key.code else { return None };
    if !key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    match character.to_ascii_uppercase() {
        ' ' | '@' => Some(0x00),
        letter @ 'A'..='Z' => Some(letter as u8 - 0x40),
        // A terminal sends 1Ch to 1Fh, and crossterm names them so.
        '\\' | '4' => Some(0x1C),
        ']' | '5' => Some(0x1D),
        '^' | '6' => Some(0x1E),
        '_' | '7' => Some(0x1F),
        _ => None,
    }
}

/// The key of the PC's keyboard. `None` if it has none.
pub(super) fn to_keyboard(event: &KeyEvent) -> Option<(Key, Held)> {
    let mut held = Held::empty();
    held.set(Held::SHIFT, event.modifiers.contains(KeyModifiers::SHIFT));
    held.set(Held::CONTROL, event.modifiers.contains(KeyModifiers::CONTROL));
    held.set(Held::ALT, event.modifiers.contains(KeyModifiers::ALT));
    let key = match event.code {
        KeyCode::Char(character) => {
            // A character says itself whether Shift is held.
            held.remove(Held::SHIFT);
            Key::Character(match control(event) {
                Some(0x1C) => '\\',
                Some(0x1D) => ']',
                Some(0x1F) => '-',
                _ => character,
            })
        }
        KeyCode::Enter => Key::Character('\n'),
        KeyCode::Tab => Key::Character('\t'),
        KeyCode::BackTab => {
            held.insert(Held::SHIFT);
            Key::Character('\t')
        }
        KeyCode::Backspace => Key::Character('\x08'),
        KeyCode::Esc => Key::Character('\x1b'),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Insert => Key::Insert,
        KeyCode::Delete => Key::Delete,
        KeyCode::F(number) => Key::Function(number),
        _ => return None,
    };
    Some((key, held))
}

/// What a terminal on COM1 sends for the key; nothing if it has no such key.
pub(super) fn to_serial(event: &KeyEvent) -> Vec<u8> {
    let text = match event.code {
        KeyCode::Char(character) => match control(event) {
            Some(code) => char::from(code).to_string(),
            None => character.to_string(),
        },
        KeyCode::Enter => "\r".to_owned(),
        KeyCode::Tab => "\t".to_owned(),
        KeyCode::BackTab => "\x1b[Z".to_owned(),
        KeyCode::Backspace => "\x7f".to_owned(),
        KeyCode::Esc => "\x1b".to_owned(),
        KeyCode::Up => "\x1b[A".to_owned(),
        KeyCode::Down => "\x1b[B".to_owned(),
        KeyCode::Right => "\x1b[C".to_owned(),
        KeyCode::Left => "\x1b[D".to_owned(),
        KeyCode::Home => "\x1b[H".to_owned(),
        KeyCode::End => "\x1b[F".to_owned(),
        KeyCode::Insert => "\x1b[2~".to_owned(),
        KeyCode::Delete => "\x1b[3~".to_owned(),
        KeyCode::PageUp => "\x1b[5~".to_owned(),
        KeyCode::PageDown => "\x1b[6~".to_owned(),
        KeyCode::F(number @ 1..=4) => format!("\x1bO{}", char::from(b'O' + number)),
        KeyCode::F(number @ 5..=12) => {
            // Some numbers are left out.
            let code = [15, 17, 18, 19, 20, 21, 23, 24][usize::from(number) - 5];
            format!("\x1b[{code}~")
        }
        _ => return Vec::new(),
    };
    let is_alt = event.modifiers.contains(KeyModifiers::ALT);
    format!("{}{text}", if is_alt { "\x1b" } else { "" }).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    fn with_control(character: char) -> KeyEvent {
        key(KeyCode::Char(character), KeyModifiers::CONTROL)
    }

    #[test]
    fn control_c_leaves_unless_it_is_escaped() {
        let mut escapes = Escapes::default();
        let (leave, escape) = (with_control('c'), with_control('5'));
        assert_eq!(escapes.meaning(leave), Meaning::Leave);
        assert_eq!(escapes.meaning(escape), Meaning::Nothing);
        assert_eq!(escapes.meaning(leave), Meaning::Guest(leave));
        assert_eq!(escapes.meaning(leave), Meaning::Leave);
        assert_eq!(escapes.meaning(escape), Meaning::Nothing);
        assert_eq!(escapes.meaning(escape), Meaning::Guest(escape));
    }

    #[test]
    fn an_escaped_s_switches_and_a_plain_one_is_the_guests() {
        let mut escapes = Escapes::default();
        let s = key(KeyCode::Char('s'), KeyModifiers::NONE);
        assert_eq!(escapes.meaning(s), Meaning::Guest(s));
        escapes.meaning(with_control(']'));
        assert_eq!(escapes.meaning(s), Meaning::Switch);
    }

    #[test]
    fn keys_have_their_places_on_the_keyboard() {
        let none = Held::empty();
        for (event, expected) in [
            (key(KeyCode::Char('A'), KeyModifiers::SHIFT), (Key::Character('A'), none)),
            (with_control('c'), (Key::Character('c'), Held::CONTROL)),
            (with_control('5'), (Key::Character(']'), Held::CONTROL)),
            (key(KeyCode::Enter, KeyModifiers::NONE), (Key::Character('\n'), none)),
            (key(KeyCode::BackTab, KeyModifiers::SHIFT), (Key::Character('\t'), Held::SHIFT)),
            (key(KeyCode::Up, KeyModifiers::ALT), (Key::Up, Held::ALT)),
            (key(KeyCode::F(12), KeyModifiers::NONE), (Key::Function(12), none)),
        ] {
            assert_eq!(to_keyboard(&event), Some(expected), "{event:?}");
        }
        assert_eq!(to_keyboard(&key(KeyCode::CapsLock, KeyModifiers::NONE)), None);
    }

    #[test]
    fn keys_are_what_a_terminal_sends() {
        for (event, expected) in [
            (key(KeyCode::Char('é'), KeyModifiers::NONE), "é"),
            (with_control('c'), "\x03"),
            (with_control('5'), "\x1d"),
            (with_control(' '), "\0"),
            (key(KeyCode::Char('x'), KeyModifiers::ALT), "\x1bx"),
            (key(KeyCode::Enter, KeyModifiers::NONE), "\r"),
            (key(KeyCode::Up, KeyModifiers::NONE), "\x1b[A"),
            (key(KeyCode::F(1), KeyModifiers::NONE), "\x1bOP"),
            (key(KeyCode::F(4), KeyModifiers::NONE), "\x1bOS"),
            (key(KeyCode::F(5), KeyModifiers::NONE), "\x1b[15~"),
            (key(KeyCode::F(12), KeyModifiers::NONE), "\x1b[24~"),
            (key(KeyCode::CapsLock, KeyModifiers::NONE), ""),
        ] {
            assert_eq!(to_serial(&event), expected.as_bytes(), "{event:?}");
        }
    }
}
