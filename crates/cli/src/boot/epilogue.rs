//! What the user gets once the run is over: the last screen, and what the live screen kept back.

use std::io::{self, IsTerminal, Write};

use realmode_pc::Channel;

use super::arguments::{ScreenTo, SerialTo};
use super::display::{Display, Style};
use super::machine::Machine;
use super::options::Args;
use super::serial_screen::SerialScreen;
use super::session::Finished;
use super::sinks::User;
use crate::stdout;

/// The last screen.
pub(super) struct Last {
    pub(super) display: Display,
    is_com1: bool,
}

impl Last {
    /// The VGA's, or COM1's if there is nothing on the VGA's. `None` if RAM ends before the one
    /// and nothing came on the other.
    pub(super) fn of(machine: &Machine<'_>, com1: &SerialScreen) -> Option<Last> {
        let vga = Display::of_vga(&machine.pc);
        let is_com1 = com1.is_used() && vga.as_ref().is_none_or(Display::is_blank);
        let display = if is_com1 { Some(com1.display()) } else { vga };
        display.map(|display| Last { display, is_com1 })
    }

    /// Is it to be printed? What was on COM1 has been, unless the user gets it later.
    fn is_wanted(&self, args: &Args, user: User) -> bool {
        match &args.screen {
            Some(ScreenTo::None) => false,
            Some(ScreenTo::Text) => true,
            Some(ScreenTo::Png(_)) => user == User::Later && !self.display.is_blank(),
            None => !self.display.is_blank() && (user == User::Later || !self.is_com1),
        }
    }

    /// Prints it on lines of its own, if it is wanted.
    pub(super) fn print(&self, args: &Args, user: User, finished: &Finished) -> Result<(), String> {
        if !self.is_wanted(args, user) {
            return Ok(());
        }
        let before = if finished.at_line_start { "" } else { "\n" };
        stdout::print(&format!("{before}{}\n", self::rows(&self.display).join("\n")))
    }
}

fn rows(display: &Display) -> Vec<String> {
    match io::stdout().is_terminal() {
        true => display.styled_rows(Style::of_environment()),
        false => display.rows(),
    }
}

/// Prints what the live screen kept back: the debug ports' output, and COM1's up to the last
/// screen.
pub(super) fn withheld(
    args: &Args,
    machine: &Machine<'_>,
    com1: &SerialScreen,
    last: Option<&Last>,
) -> Result<(), String> {
    if args.debug.is_none() {
        let (debug, dropped) = machine.pc.console().kept(Channel::Debug);
        let ending = if debug.is_empty() || debug.ends_with(b"\n") { "" } else { "\n" };
        let mut stderr = io::stderr().lock();
        // There is nobody to tell if stderr is closed.
        let _ = stderr.write_all(debug).and_then(|()| stderr.write_all(ending.as_bytes()));
        if dropped != 0 {
            eprintln!("realmode: the debug ports printed {dropped} bytes more");
        }
    }
    if matches!(args.serial, Some(SerialTo::File(_))) {
        return Ok(());
    }
    let (history, dropped) = com1.history();
    if dropped != 0 {
        eprintln!("realmode: COM1 printed {dropped} bytes before what follows");
    }
    let mut lines: Vec<String> = history.lines().map(str::to_owned).collect();
    if com1.is_used() && !last.is_some_and(|last| last.is_com1) {
        let display = com1.display();
        let used = display.rows().iter().rposition(|row| !row.is_empty()).map_or(0, |row| row + 1);
        lines.extend(rows(&display).into_iter().take(used));
    }
    lines.iter().try_for_each(|line| stdout::print(&format!("{line}\n")))
}
