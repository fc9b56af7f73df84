//! `realmode boot`.

mod arguments;
mod console;
mod cp437;
mod disk;
mod files;
mod inbox;
mod machine;
mod options;
mod outcome;
mod picture;
mod place;
mod progress;
mod report;
mod script;
mod session;
mod sinks;
mod trace;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use crate::stdout;
use arguments::{ScreenTo, SerialTo};
use console::{Keep, Output};
use files::OutputFile;
use inbox::{Inbox, Source, Stdin};
use machine::{Machine, Parts};
pub(crate) use options::Args;
use outcome::Outcome;
use progress::Progress;
use script::Script;
use session::{Finished, Session};
use sinks::Sinks;
use trace::Trace;

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let mut parts = Parts::read(args)?;
    let disk_errors = parts.disk_errors();
    let mut output = Output::new(if args.json { Keep::All } else { Keep::Nothing });
    let script = Script::begin(&args.typing, args.until.as_deref(), &mut output);
    let mut machine = parts.assemble(args, output)?;

    let files = Outputs::open(args)?;
    let sinks = Sinks::new(args, files.serial.as_ref(), files.debug.as_ref())?;
    let trace = files.trace.as_ref().map(|file| Trace::begin(file, &args.cpu)).transpose()?;
    let is_stdio = args.serial == Some(SerialTo::Stdio);
    let finished = Session {
        machine: &mut machine,
        clock: args.clock,
        limit: args.limit,
        script,
        inbox: Inbox::new(is_stdio.then(|| Box::new(Stdin::open()) as Box<dyn Source>)),
        progress: Progress::new(!is_stdio && sinks.leaves_stderr()),
        sinks,
        trace,
        disk_errors,
        turns: 0,
    }
    .run()?;

    let exit_code = finished.outcome.exit_code(args.until.is_some());
    if let Some(png) = &files.png {
        draw(&machine, png)?;
    }
    if args.json {
        let place = report::place(&finished, &machine);
        stdout::print(&format!("{}\n", report::json(&finished, &place, exit_code, &machine)))?;
    } else {
        stdout::print(&screen_text(args, &finished, &machine))?;
        explain(args, &finished, &machine);
    }
    Ok(ExitCode::from(exit_code))
}

/// The files that will be written, none of them an input or another.
struct Outputs {
    trace: Option<OutputFile>,
    serial: Option<OutputFile>,
    debug: Option<OutputFile>,
    png: Option<OutputFile>,
}

impl Outputs {
    fn open<'a>(args: &'a Args) -> Result<Outputs, String> {
        let inputs = [
            args.image.as_ref().map(|image| image.path.as_path()),
            args.bios.as_deref(),
            args.vga.as_deref(),
            args.floppy.as_deref(),
            args.kernel.as_deref(),
        ];
        let mut taken: Vec<&'a Path> = inputs.into_iter().flatten().collect();
        if let Some(disk) = &args.disk {
            if args.writable {
                files::require_another(disk, &taken)?;
            }
            taken.push(disk);
        }
        let mut open = |path: Option<&'a Path>| -> Result<Option<OutputFile>, String> {
            let Some(path) = path else { return Ok(None) };
            let file = OutputFile::open(path, &taken)?;
            taken.push(path);
            Ok(Some(file))
        };
        Ok(Outputs {
            trace: open(args.trace.as_deref())?,
            serial: match &args.serial {
                Some(SerialTo::File(path)) => open(Some(path))?,
                _ => None,
            },
            debug: open(args.debug.as_deref())?,
            png: match &args.screen {
                Some(ScreenTo::Png(path)) => open(Some(path))?,
                _ => None,
            },
        })
    }
}

fn draw(machine: &Machine<'_>, png: &OutputFile) -> Result<(), String> {
    let screen = machine.pc.screen().ok_or("RAM ends before the screen")?;
    picture::write_png(&screen, png.replace()?)
        .map_err(|error| format!("cannot write {}: {error}", png.path().display()))
}

/// The screen as it is to be printed, on lines of its own; empty if it is not.
fn screen_text(args: &Args, finished: &Finished, machine: &Machine<'_>) -> String {
    let Some(screen) = machine.pc.screen() else { return String::new() };
    let is_wanted = match &args.screen {
        Some(to) => *to == ScreenTo::Text,
        None => !screen.is_blank(),
    };
    if !is_wanted {
        return String::new();
    }
    let has_colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let rows = if has_colours { picture::coloured_rows(&screen) } else { picture::rows(&screen) };
    let before = if finished.at_line_start { "" } else { "\n" };
    format!("{before}{}\n", rows.join("\n"))
}

/// Says on stderr what the user could not know otherwise.
fn explain(args: &Args, finished: &Finished, machine: &Machine<'_>) {
    let outcome = finished.outcome;
    let message = outcome.message(finished.awaited.as_deref());
    let mut text = if finished.stderr_at_line_start { String::new() } else { "\n".to_owned() };
    if outcome.is_nowhere() {
        let place = report::place(finished, machine);
        text.push_str(&format!("realmode: {}\n", report::reason(&message, &place)));
        if finished.resets > 0 {
            text.push_str(&format!("  after resets and triple faults: {}\n", finished.resets));
        }
    } else if matches!(outcome, Outcome::Exit { .. })
        || outcome == Outcome::PowerOff && finished.awaited.is_some()
    {
        text.push_str(&format!("realmode: {message}\n"));
    }
    if args.stats {
        text.push_str(&report::stats(finished));
    }
    stdout::explain(&text);
}
