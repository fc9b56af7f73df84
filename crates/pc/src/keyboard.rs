//! The keyboard: answers commands, and types what the caller wants typed, at a human pace.

use crate::key::{Held, Key};
use crate::keymap::{HOLDS, Stroke, stroke, to_set_1};
use crate::queue::Queue;

/// From one key to the next, so that a guest that looks now and then loses none.
const PACE: u64 = 30_000_000;
/// How much text waits at most.
pub(crate) const MOST_TEXT: usize = 256;

const ACKNOWLEDGE: u8 = 0xFA;
const RESEND: u8 = 0xFE;
const PASSED: u8 = 0xAA;
const RELEASED: u8 = 0xF0;

/// Its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Keyboard {
    /// What it is sending.
    output: Queue<24>,
    text: Queue<MOST_TEXT>,
    /// When the next key may be pressed.
    next_key: u64,
    /// The command whose argument comes next.
    command: Option<u8>,
    is_scanning: bool,
    /// The scan code set: 1 or 2; 3 is answered as 2.
    set: u8,
    last: u8,
}

impl Keyboard {
    pub(crate) const RESET: Keyboard = Keyboard {
        output: Queue::EMPTY,
        text: Queue::EMPTY,
        next_key: 0,
        command: None,
        is_scanning: true,
        set: 2,
        last: 0,
    };

    /// Adds to what is to be typed. Returns how many bytes of it there was room for; characters
    /// that have no key are left out.
    pub(crate) fn type_text(&mut self, text: &str) -> usize {
        for (at, character) in text.char_indices() {
            if Key::from(character).code().is_some_and(|key| !self.text.push(key)) {
                return at;
            }
        }
        text.len()
    }

    /// Adds a key to what is to be typed, with others held down. False if there was no room; a
    /// key that is not there is left out.
    pub(crate) fn press(&mut self, key: Key, held: Held) -> bool {
        let Some(key) = key.code() else { return true };
        if held.is_empty() {
            return self.text.push(key);
        }
        self.text.len() + 2 <= MOST_TEXT && self.text.push(held.code()) && self.text.push(key)
    }

    /// Is there text that has not been typed yet?
    pub(crate) fn is_typing(&self) -> bool {
        !self.text.is_empty() || !self.output.is_empty()
    }

    /// Can it have come to this by `now`?
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        self.output.is_sound()
            && self.text.is_sound()
            && self.next_key <= now.saturating_add(PACE)
            && matches!(self.set, 1 | 2)
    }

    /// When it next has a byte to send, if it is let.
    pub(crate) fn next_event(&self) -> Option<u64> {
        if !self.output.is_empty() {
            return Some(0);
        }
        (self.is_scanning && !self.text.is_empty()).then_some(self.next_key)
    }

    /// The next byte it sends, if there is one by `now`.
    pub(crate) fn take(&mut self, now: u64) -> Option<u8> {
        if self.output.is_empty() && self.is_scanning && now >= self.next_key {
            self.press_next(now);
        }
        self.last = self.output.pop()?;
        Some(self.last)
    }

    fn press_next(&mut self, now: u64) {
        let Some(Stroke { code, extended, held }) = self.next_stroke() else { return };
        self.next_key = now.saturating_add(PACE);
        let prefix = extended.then_some(0xE0);
        let holds = HOLDS.iter().filter(|(key, _)| held.contains(*key));
        for (_, code) in holds.clone() {
            self.send_key(None, *code, false);
        }
        self.send_key(prefix, code, false);
        self.send_key(prefix, code, true);
        for (_, code) in holds.rev() {
            self.send_key(None, *code, true);
        }
    }

    fn next_stroke(&mut self) -> Option<Stroke> {
        let first = self.text.pop()?;
        match Held::from_code(first) {
            None => stroke(first),
            Some(held) => {
                let stroke = stroke(self.text.pop()?)?;
                Some(Stroke { held: stroke.held | held, ..stroke })
            }
        }
    }

    fn send_key(&mut self, prefix: Option<u8>, code: u8, released: bool) {
        if let Some(prefix) = prefix {
            self.output.push(prefix);
        }
        if self.set == 1 {
            self.output.push(to_set_1(code) | if released { 0x80 } else { 0 });
            return;
        }
        if released {
            self.output.push(RELEASED);
        }
        self.output.push(code);
    }

    /// A byte from the controller.
    pub(crate) fn write(&mut self, value: u8) {
        if let Some(command) = self.command.take() {
            return self.argument(command, value);
        }
        match value {
            0xED | 0xF0 | 0xF3 => self.command = Some(value),
            0xEE => return self.answer(&[0xEE]),
            0xF2 => return self.answer(&[ACKNOWLEDGE, 0xAB, 0x83]),
            0xF4 => self.is_scanning = true,
            0xF5 => self.restart(false),
            0xF6 => self.restart(true),
            0xFE => {
                let last = self.last;
                return self.answer(&[last]);
            }
            0xFF => {
                self.restart(true);
                return self.answer(&[ACKNOWLEDGE, PASSED]);
            }
            _ => return self.answer(&[RESEND]),
        }
        self.answer(&[ACKNOWLEDGE]);
    }

    fn argument(&mut self, command: u8, value: u8) {
        if command == 0xF0 {
            match value {
                // Which set is it?
                0 => return self.answer(&[ACKNOWLEDGE, self.set]),
                set => self.set = if set == 1 { 1 } else { 2 },
            }
        }
        self.answer(&[ACKNOWLEDGE]);
    }

    /// As after power-on, with what is to be typed.
    pub(crate) fn restart(&mut self, is_scanning: bool) {
        self.output.clear();
        (self.set, self.is_scanning, self.command) = (2, is_scanning, None);
    }

    fn answer(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.output.push(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn sent(keyboard: &mut Keyboard, now: u64) -> Vec<u8> {
        core::iter::from_fn(|| keyboard.take(now)).collect()
    }

    #[test]
    fn commands_are_acknowledged_with_their_arguments() {
        let mut keyboard = Keyboard::RESET;
        for (bytes, expected) in [
            (&[0xFF][..], &[0xFA, 0xAA][..]),
            (&[0xEE], &[0xEE]),
            (&[0xF2], &[0xFA, 0xAB, 0x83]),
            (&[0xED, 0x07], &[0xFA, 0xFA]),
            (&[0xF0, 0x00], &[0xFA, 0xFA, 0x02]),
            (&[0xFE], &[0x02]),
            (&[0xF3, 0x20], &[0xFA, 0xFA]),
            (&[0x05], &[0xFE]),
        ] {
            bytes.iter().for_each(|byte| keyboard.write(*byte));
            assert_eq!(sent(&mut keyboard, 0), expected, "{bytes:02X?}");
        }
    }

    #[test]
    fn text_is_typed_key_by_key_in_set_2() {
        let mut keyboard = Keyboard::RESET;
        assert_eq!(keyboard.type_text("aé↑Z"), 7);
        assert_eq!(sent(&mut keyboard, 5), [0x1C, 0xF0, 0x1C]);
        assert_eq!(keyboard.next_event(), Some(5 + PACE));
        assert_eq!(sent(&mut keyboard, 4 + PACE), []);
        assert_eq!(sent(&mut keyboard, 5 + PACE), [0xE0, 0x75, 0xE0, 0xF0, 0x75]);
        let shifted = sent(&mut keyboard, 5 + 2 * PACE);
        assert_eq!(shifted, [0x12, 0x1A, 0xF0, 0x1A, 0xF0, 0x12]);
        assert!(!keyboard.is_typing() && keyboard.next_event().is_none());
    }

    #[test]
    fn keys_are_pressed_while_others_are_held() {
        let mut keyboard = Keyboard::RESET;
        assert!(keyboard.press(Key::Function(7), Held::CONTROL | Held::ALT));
        assert!(keyboard.press(Key::Character('A'), Held::ALT));
        assert!(keyboard.press(Key::Character('é'), Held::ALT));
        assert_eq!(sent(&mut keyboard, 0), [0x14, 0x11, 0x83, 0xF0, 0x83, 0xF0, 0x11, 0xF0, 0x14]);
        let shifted = sent(&mut keyboard, PACE);
        assert_eq!(shifted, [0x12, 0x11, 0x1C, 0xF0, 0x1C, 0xF0, 0x11, 0xF0, 0x12]);
        assert!(!keyboard.is_typing());
    }

    #[test]
    fn the_most_that_a_key_sends_is_sent_whole() {
        let mut keyboard = Keyboard::RESET;
        assert!(keyboard.press(Key::Delete, Held::all()));
        assert_eq!(sent(&mut keyboard, 0).len(), 3 + 2 + 3 + 6);
    }

    #[test]
    fn a_key_and_what_is_held_with_it_are_refused_together() {
        let mut keyboard = Keyboard::RESET;
        keyboard.type_text(&"x".repeat(MOST_TEXT - 1));
        assert!(!keyboard.press(Key::Up, Held::SHIFT));
        assert!(keyboard.press(Key::Up, Held::empty()));
        assert!(!keyboard.press(Key::Up, Held::empty()));
    }

    #[test]
    fn set_1_has_one_byte_a_key() {
        let mut keyboard = Keyboard::RESET;
        keyboard.write(0xF0);
        keyboard.write(0x01);
        assert_eq!(sent(&mut keyboard, 0), [0xFA, 0xFA]);
        keyboard.type_text("a");
        assert_eq!(sent(&mut keyboard, 0), [0x1E, 0x9E]);
    }

    #[test]
    fn text_waits_while_scanning_is_off_and_is_refused_when_there_is_no_room() {
        let mut keyboard = Keyboard::RESET;
        keyboard.write(0xF5);
        assert_eq!(sent(&mut keyboard, 0), [0xFA]);
        let text = "x".repeat(MOST_TEXT + 1);
        assert_eq!(keyboard.type_text(&text), MOST_TEXT);
        assert_eq!((sent(&mut keyboard, PACE), keyboard.next_event()), (Vec::new(), None));
        keyboard.write(0xF4);
        assert_eq!(sent(&mut keyboard, PACE), [0xFA, 0x22, 0xF0, 0x22]);
    }
}
