//! The live screen of a run: which display it shows, when it is drawn, and what the line below
//! says.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEvent, KeyEventKind};

use super::display::{Display, Style};
use super::input::{Input, Source, When};
use super::keys::{self, Escapes, Meaning};
use super::live::Live;
use super::terminal::Terminal;

/// Over how long speed is measured.
const MEASURED: Duration = Duration::from_millis(500);
/// So many keys wait for the guest at most; more are lost, as they are on a PC.
const MOST_TYPED: usize = 1024;

/// What the user looks at, and types to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The VGA's text screen, and the keyboard.
    Screen,
    /// A terminal on COM1.
    Com1,
}

/// Which of the two is shown: the user's choice, or the first that had anything.
#[derive(Debug)]
struct Choice {
    shown: Shown,
    is_settled: bool,
}

impl Choice {
    const UNSETTLED: Choice = Choice { shown: Shown::Screen, is_settled: false };

    /// The other one, from now on.
    fn switch(&mut self) {
        let other = match self.shown {
            Shown::Screen => Shown::Com1,
            Shown::Com1 => Shown::Screen,
        };
        *self = Choice { shown: other, is_settled: true };
    }

    /// Unless it is settled: the screen once there is anything on it, and before that COM1 once
    /// anything came.
    fn look(&mut self, screen: Option<&Display>, is_com1_used: bool) {
        if self.is_settled {
            return;
        }
        if screen.is_some_and(|screen| !screen.is_blank()) {
            *self = Choice { shown: Shown::Screen, is_settled: true };
        } else if is_com1_used {
            self.shown = Shown::Com1;
        }
    }
}

/// What the user has typed for the guest, on its way.
pub(super) struct Typed(Rc<RefCell<VecDeque<Input>>>);

impl Source for Typed {
    fn take(&mut self, _now: When, room: usize) -> Result<Vec<Input>, String> {
        let mut waiting = self.0.borrow_mut();
        let taken = waiting.len().min(room);
        Ok(waiting.drain(..taken).collect())
    }

    /// [`Viewer::attend`] waits for keys.
    fn wait(&mut self, _most: Duration) {}
}

/// What there is to be seen.
pub(super) struct View<'a> {
    pub(super) screen: Option<&'a Display>,
    pub(super) com1: &'a Display,
    pub(super) is_com1_used: bool,
    pub(super) instructions: u64,
    pub(super) guest_seconds: f64,
}

/// The user's terminal, and what is drawn on it.
pub(super) struct Viewer {
    terminal: Terminal,
    live: Live,
    escapes: Escapes,
    choice: Choice,
    typed: Rc<RefCell<VecDeque<Input>>>,
    is_leaving: bool,
    speed: Speed,
}

impl Viewer {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Viewer, String> {
        let terminal = Terminal::take()
            .map_err(|error| format!("cannot show the screen on the terminal: {error}"))?;
        Ok(Viewer {
            terminal,
            live: Live::new(Style::of_environment()),
            escapes: Escapes::default(),
            choice: Choice::UNSETTLED,
            typed: Rc::default(),
            is_leaving: false,
            speed: Speed::new(Instant::now()),
        })
    }

    /// What the user types for the guest. If nobody asks for it, it is lost.
    pub(super) fn typed(&self) -> Typed {
        Typed(Rc::clone(&self.typed))
    }

    /// Has the user had enough?
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Heeds what the user has done, and waits for it until `most` is over.
    pub(super) fn attend(&mut self, most: Duration) -> Result<(), String> {
        let mut most = most;
        loop {
            let event = self.terminal.next_event(most);
            let event = event.map_err(|error| format!("cannot read the terminal: {error}"))?;
            match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => self.heed(key),
                Some(_) => {}
                None => return Ok(()),
            }
            most = Duration::ZERO;
        }
    }

    fn heed(&mut self, key: KeyEvent) {
        match self.escapes.meaning(key) {
            Meaning::Leave => self.is_leaving = true,
            Meaning::Switch => self.choice.switch(),
            Meaning::Guest(key) => {
                let input = match self.choice.shown {
                    Shown::Screen => {
                        keys::to_keyboard(&key).map(|(key, held)| Input::Press(key, held))
                    }
                    Shown::Com1 => Some(Input::Serial(keys::to_serial(&key))),
                };
                let mut typed = self.typed.borrow_mut();
                if typed.len() < MOST_TYPED {
                    typed.extend(input);
                }
            }
            Meaning::Nothing => {}
        }
    }

    /// Is it time for the next picture?
    pub(super) fn is_due(&mut self) -> bool {
        self.live.is_due(Instant::now())
    }

    /// Draws the next picture.
    pub(super) fn draw(&mut self, view: &View<'_>) -> Result<(), String> {
        self.choice.look(view.screen, view.is_com1_used);
        let shown = self.choice.shown;
        let display = match (shown, view.screen) {
            (Shown::Screen, Some(screen)) => screen,
            _ => view.com1,
        };
        let mips = self.speed.mips(view.instructions, Instant::now());
        let status = status(view, mips, shown);
        self.terminal
            .size()
            .and_then(|size| self.terminal.write(self.live.draw(size, display, &status).as_bytes()))
            .map_err(|error| format!("cannot draw on the terminal: {error}"))
    }
}

/// The line below the screen.
fn status(view: &View<'_>, mips: f64, shown: Shown) -> String {
    let millions = view.instructions as f64 / 1e6;
    let seconds = view.guest_seconds;
    let other = match shown {
        Shown::Screen => "COM1",
        Shown::Com1 => "the screen",
    };
    format!(
        "{millions:.1}M instructions {mips:.0} MIPS {seconds:.1} s | \
         ^C ends, ^] KEY sends it, ^] s shows {other}"
    )
}

/// How fast the guest runs.
struct Speed {
    since: Instant,
    from: u64,
    mips: f64,
}

impl Speed {
    fn new(now: Instant) -> Speed {
        Speed { since: now, from: 0, mips: 0.0 }
    }

    fn mips(&mut self, instructions: u64, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= MEASURED {
            let executed = instructions.saturating_sub(self.from);
            self.mips = executed as f64 / 1e6 / elapsed.as_secs_f64();
            (self.since, self.from) = (now, instructions);
        }
        self.mips
    }
}

#[cfg(test)]
mod tests {
    use super::super::display::Tile;
    use super::*;

    fn display(character: char) -> Display {
        Display::new(|_, _| Tile { character, ..Tile::CLEAR }, None)
    }

    #[test]
    fn com1_is_shown_until_there_is_something_on_the_screen() {
        let mut choice = Choice::UNSETTLED;
        let (blank, full) = (display(' '), display('x'));
        choice.look(Some(&blank), false);
        assert_eq!(choice.shown, Shown::Screen);
        choice.look(Some(&blank), true);
        assert_eq!(choice.shown, Shown::Com1);
        choice.look(Some(&full), true);
        assert_eq!(choice.shown, Shown::Screen);
        choice.look(Some(&blank), true);
        assert_eq!(choice.shown, Shown::Screen, "a cleared screen is still the screen");
    }

    #[test]
    fn what_the_user_chose_stays() {
        let mut choice = Choice::UNSETTLED;
        choice.look(None, true);
        choice.switch();
        choice.look(None, true);
        assert_eq!(choice.shown, Shown::Screen);
        choice.switch();
        choice.look(Some(&display('x')), true);
        assert_eq!(choice.shown, Shown::Com1);
    }

    #[test]
    fn the_line_below_fits_and_says_how_to_leave() {
        let com1 = display(' ');
        let view = View {
            screen: None,
            com1: &com1,
            is_com1_used: false,
            instructions: 1_234_567,
            guest_seconds: 0.25,
        };
        let status = status(&view, 98.7, Shown::Screen);
        assert!(status.starts_with("1.2M instructions 99 MIPS 0.2 s | ^C ends"), "{status}");
        assert!(status.len() <= 80, "{status}");
    }

    #[test]
    fn speed_is_that_of_the_last_while() {
        let start = Instant::now();
        let mut speed = Speed::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(speed.mips(1_000_000, at(100)), 0.0);
        assert_eq!(speed.mips(10_000_000, at(1000)), 10.0);
        assert_eq!(speed.mips(99_000_000, at(1100)), 10.0);
        assert_eq!(speed.mips(110_000_000, at(2000)), 100.0);
    }
}
