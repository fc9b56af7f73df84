//! What is done when a text appears: `--type`, one after the other, then `--until`.

use std::collections::VecDeque;

use realmode_pc::Pc;

use super::arguments::Typing;
use super::console::Output;
use super::display::Display;
use super::inbox::Inbox;
use super::outcome::Outcome;
use super::serial_screen::SerialScreen;
use super::snapshot::Run;

/// What is still to be done.
pub(super) struct Script {
    typing: VecDeque<Typing>,
    until: Option<String>,
    /// How often the text awaited was on the screen already.
    known: usize,
}

impl Script {
    /// A script that waits for its first text on `output`.
    pub(super) fn begin(typing: &[Typing], until: Option<&str>, output: &mut Output) -> Script {
        let typing = typing.iter().cloned().collect();
        let script = Script { typing, until: until.map(str::to_owned), known: 0 };
        output.await_text(script.awaited().unwrap_or_default());
        script
    }

    /// Goes on where another run was: what that had still to do comes first.
    pub(super) fn resume(&mut self, run: &Run, output: &mut Output) {
        for typing in run.typing.iter().rev() {
            self.typing.push_front(typing.clone());
        }
        output.await_text(self.awaited().unwrap_or_default());
        if output.resume(run.awaited.clone()) {
            self.known = usize::try_from(run.known).unwrap_or(usize::MAX);
        }
    }

    /// Notes in `run` what is still to be done.
    pub(super) fn save(&self, output: &Output, run: &mut Run) {
        run.typing = self.typing.iter().cloned().collect();
        run.awaited = output.awaited().clone();
        run.known = self.known as u64;
    }

    /// The text that comes next.
    pub(super) fn awaited(&self) -> Option<&str> {
        self.typing.front().map(|typing| typing.trigger.as_str()).or(self.until.as_deref())
    }

    /// Does what is due. What is typed goes to `inbox`; the end of the run is returned.
    pub(super) fn look(
        &mut self,
        pc: &mut Pc<'_, Output>,
        com1: &SerialScreen,
        inbox: &mut Inbox<'_>,
    ) -> Option<Outcome> {
        let text = self.awaited()?;
        let outcome = match pc.console().seen() {
            Some(channel) => Outcome::SeenOn(channel),
            None => {
                let shown = shown(pc, com1, text);
                if shown <= self.known {
                    // Where it has scrolled away, the next one is new.
                    self.known = shown;
                    return None;
                }
                Outcome::SeenOnScreen
            }
        };
        let Some(Typing { text, is_serial, .. }) = self.typing.pop_front() else {
            return Some(outcome);
        };
        if is_serial {
            inbox.send(text.as_bytes());
        } else {
            inbox.type_text(&text);
        }
        let next = self.awaited().unwrap_or_default().to_owned();
        self.known = if next.is_empty() { 0 } else { shown(pc, com1, &next) };
        pc.console_mut().await_text(&next);
        None
    }
}

/// How often a text is on the screen, and on a terminal on COM1.
pub(super) fn shown(pc: &Pc<'_, Output>, com1: &SerialScreen, text: &str) -> usize {
    let com1 = com1.is_used().then(|| com1.display());
    let displays = Display::of_vga(pc).into_iter().chain(com1);
    displays.map(|display| display.count(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::console::Keep;
    use crate::boot::sinks::User;
    use std::sync::atomic::{AtomicU8, Ordering};

    fn typing(text: &str, trigger: &str) -> Typing {
        Typing { text: text.to_owned(), is_serial: false, trigger: trigger.to_owned() }
    }

    #[test]
    fn a_text_on_the_screen_counts_when_it_appears_once_more() {
        let ram: Vec<AtomicU8> = (0..1 << 20).map(|_| AtomicU8::new(0)).collect();
        let write = |row: usize, text: &str| {
            let at = 0xB_8000 + 160 * row;
            for (cell, byte) in ram[at..].iter().step_by(2).zip(text.bytes()) {
                cell.store(byte, Ordering::Relaxed);
            }
        };
        let mut output = Output::new(Keep::Nothing);
        let steps = [typing("a", "x>"), typing("b", "x>")];
        let mut script = Script::begin(&steps, Some("x>"), &mut output);
        let mut pc = Pc::new(&ram, output).expect("1 MiB of whole pages");
        let mut inbox = Inbox::new(None, None);
        let com1 = SerialScreen::new(User::AtOnce);
        let mut look = || {
            let outcome = script.look(&mut pc, &com1, &mut inbox);
            (script.typing.len(), outcome)
        };
        assert_eq!(look(), (2, None));
        write(0, "x>");
        assert_eq!([look(), look()], [(1, None); 2]);
        write(3, "x>");
        assert_eq!([look(), look()], [(0, None); 2]);
        write(0, "  ");
        assert_eq!(look(), (0, None));
        write(4, "x>");
        assert_eq!(look(), (0, Some(Outcome::SeenOnScreen)));
    }
    #[test]
    fn words_that_are_placed_on_a_serial_console_are_found() {
        let mut output = Output::new(Keep::Nothing);
        let mut script = Script::begin(&[], Some("Pass: 1"), &mut output);
        let ram: Vec<AtomicU8> = (0..4096).map(|_| AtomicU8::new(0)).collect();
        let mut pc = Pc::new(&ram, output).expect("one page");
        let mut inbox = Inbox::new(None, None);
        let mut com1 = SerialScreen::new(User::AtOnce);
        com1.take(b"\x1b[5;7H1\x1b[5;1H");
        assert_eq!(script.look(&mut pc, &com1, &mut inbox), None);
        com1.take(b"Pass:");
        assert_eq!(script.look(&mut pc, &com1, &mut inbox), Some(Outcome::SeenOnScreen));
    }
}
