//! The user's terminal while the live screen has it, and as it was before once that is over.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};

/// Does a live screen have the terminal?
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// Raw mode and the alternate screen, until it is dropped. A panic gives the terminal back
/// before it is reported.
pub(super) struct Terminal(());

impl Terminal {
    /// Can the user see and type?
    pub(super) fn is_there() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Terminal> {
        PANIC_HOOK.call_once(|| {
            let report = panic::take_hook();
            panic::set_hook(Box::new(move |what| {
                give_back();
                report(what);
            }));
        });
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        // From here on the terminal is given back whatever happens.
        let terminal = Terminal(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> io::Result<(usize, usize)> {
        size().map(|(columns, rows)| (usize::from(columns), usize::from(rows)))
    }

    /// What the user does within `timeout`.
    pub(super) fn next_event(&self, timeout: Duration) -> io::Result<Option<Event>> {
        let event = match event::poll(timeout) {
            Ok(true) => event::read()?,
            Ok(false) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        };
        if matches!(event, Event::Resize(..)) {
            // If a key came together with a new size, crossterm 0.29 forgets to look for it until
            // another one comes. New settings have the system report it again.
            disable_raw_mode()?;
            enable_raw_mode()?;
        }
        Ok(Some(event))
    }

    /// Writes to it at once.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Puts the terminal back. Nothing can be done about a terminal that has gone.
fn give_back() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout().lock();
    let _ = queue!(stdout, LeaveAlternateScreen, Show);
    let _ = stdout.flush();
    let _ = disable_raw_mode();
}
