//! What is done when a text appears: `--type`, one after the other, then `--until`.

use std::collections::VecDeque;

use realmode_pc::Pc;

use super::arguments::Typing;
use super::console::Output;
use super::inbox::{Inbox, Input};
use super::outcome::Outcome;
use super::picture;

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

    /// The text that comes next.
    pub(super) fn awaited(&self) -> Option<&str> {
        self.typing.front().map(|typing| typing.trigger.as_str()).or(self.until.as_deref())
    }

    /// Does what is due. What is typed goes to `inbox`; the end of the run is returned.
    pub(super) fn look(&mut self, pc: &mut Pc<'_, Output>, inbox: &mut Inbox) -> Option<Outcome> {
        let text = self.awaited()?;
        let outcome = match pc.console().seen() {
            Some(channel) => Outcome::SeenOn(channel),
            None => {
                let shown = shown(pc, text);
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
        let input = if is_serial { Input::Serial(text.into_bytes()) } else { Input::Keys(text) };
        inbox.put(input);
        let next = self.awaited().unwrap_or_default().to_owned();
        self.known = if next.is_empty() { 0 } else { shown(pc, &next) };
        pc.console_mut().await_text(&next);
        None
    }
}

/// How often a text is on the screen.
fn shown(pc: &Pc<'_, Output>, text: &str) -> usize {
    let Some(screen) = pc.screen() else { return 0 };
    picture::rows(&screen).iter().map(|row| row.matches(text).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::console::Keep;
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
        let mut inbox = Inbox::new(None);
        let mut look = || {
            let outcome = script.look(&mut pc, &mut inbox);
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
}
