//! `realmode boot`.

mod arguments;
mod console;
mod cp437;
mod disk;
mod display;
mod epilogue;
mod files;
mod font;
mod frames;
mod inbox;
mod input;
mod interrupt;
mod journal;
mod kernel;
mod keys;
mod live;
mod machine;
mod options;
mod outcome;
mod outside;
mod palette;
mod picture;
mod place;
mod progress;
mod real_clock;
mod record;
mod replay;
mod report;
mod script;
mod serial_screen;
mod session;
mod sinks;
mod summary;
mod terminal;
mod trace;
mod viewer;

use std::path::Path;
use std::process::ExitCode;

use crate::stdout;
use arguments::{ScreenTo, SerialTo};
use console::{Keep, Output};
use epilogue::Last;
use files::OutputFile;
use inbox::{Inbox, Stdin};
use input::{Nobody, Source};
use interrupt::Interrupts;
use machine::{Machine, Parts};
pub(crate) use options::Args;
use outcome::Outcome;
use outside::Outside;
use progress::Progress;
use record::Recorder;
use replay::Replay;
use script::Script;
use serial_screen::SerialScreen;
use session::{Finished, Session};
use sinks::{Sinks, User};
use terminal::Terminal;
use trace::Trace;
use viewer::Viewer;

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let user = if is_live(args) { User::Later } else { User::AtOnce };
    let keep = if args.json || user == User::Later { Keep::All } else { Keep::Nothing };
    let outside = Outside::open(args)?;
    let replay_end = outside.replay.as_ref().map(Replay::end);
    let mut parts = Parts::read(args, &outside)?;
    let disk_errors = parts.disk_errors();
    let mut output = Output::new(keep);
    let script = Script::begin(&args.typing, args.until.as_deref(), &mut output);
    let mut machine = parts.assemble(args, output)?;

    let files = Outputs::open(args)?;
    let sinks = Sinks::new(args, files.serial.as_ref(), files.debug.as_ref(), user)?;
    let trace = files.trace.as_ref().map(|file| Trace::begin(file, &args.cpu)).transpose()?;
    let recorder = files.record.as_ref().map(|file| record(args, file, &outside)).transpose()?;
    let interrupts =
        Interrupts::watch().map_err(|error| format!("cannot watch for signals: {error}"))?;
    let is_stdio = args.serial == Some(SerialTo::Stdio);
    let clock = outside.clock.clone();
    let viewer = (user == User::Later).then(Viewer::open).transpose()?;
    let finished = Session {
        machine: &mut machine,
        clock,
        limit: args.limit,
        script,
        inbox: Inbox::new(source(outside.replay, viewer.as_ref(), is_stdio), recorder),
        interrupts,
        com1: SerialScreen::new(user),
        progress: Progress::new(viewer.is_none() && !is_stdio && sinks.leaves_stderr()),
        viewer,
        sinks,
        trace,
        disk_errors,
        turns: 0,
        notes: Vec::new(),
    }
    .run()?;
    if let (Some(path), Some(end)) = (&args.replay, replay_end) {
        replay::tell_if_longer(path, end, finished.turns);
    }

    let exit_code = finished.outcome.exit_code(args.until.is_some());
    let last = Last::of(&machine, &finished.com1);
    if let Some(png) = &files.png {
        draw(last.as_ref(), png)?;
    }
    if args.json {
        let place = report::place(&finished, &machine);
        let screen = last.as_ref().map(|last| &last.display);
        let json = report::json(&finished, &place, exit_code, &machine, screen);
        stdout::print(&format!("{json}\n"))?;
    } else {
        if user == User::Later {
            epilogue::withheld(args, &machine, &finished.com1, last.as_ref())?;
        }
        last.map_or(Ok(()), |last| last.print(args, user, &finished))?;
        explain(args, &finished, &machine);
    }
    Ok(ExitCode::from(exit_code))
}

/// Is the screen shown as the guest runs?
fn is_live(args: &Args) -> bool {
    let is_taken = args.json || args.serial == Some(SerialTo::Stdio);
    !is_taken && args.screen != Some(ScreenTo::None) && Terminal::is_there()
}

/// Where input comes from.
fn source(
    replay: Option<Replay>,
    viewer: Option<&Viewer>,
    is_stdio: bool,
) -> Option<Box<dyn Source>> {
    match (replay, viewer) {
        (Some(replay), _) => Some(Box::new(replay)),
        (None, Some(viewer)) => Some(Box::new(viewer.typed())),
        (None, None) if is_stdio => Some(Box::new(Stdin::open())),
        // A record says that there is nobody.
        (None, None) => Some(Box::new(Nobody)),
    }
}

fn record<'a>(
    args: &Args,
    file: &'a OutputFile,
    outside: &Outside,
) -> Result<Recorder<'a>, String> {
    Recorder::begin(file, &summary::of(args)?, outside.date, outside.clock.clone())
}

/// The files that will be written, none of them an input or another.
struct Outputs {
    trace: Option<OutputFile>,
    serial: Option<OutputFile>,
    debug: Option<OutputFile>,
    record: Option<OutputFile>,
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
            args.replay.as_deref(),
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
            record: open(args.record.as_deref())?,
            png: match &args.screen {
                Some(ScreenTo::Png(path)) => open(Some(path))?,
                _ => None,
            },
        })
    }
}

fn draw(last: Option<&Last>, png: &OutputFile) -> Result<(), String> {
    let last = last.ok_or("RAM ends before the screen")?;
    picture::write_png(&last.display, png.replace()?)
        .map_err(|error| format!("cannot write {}: {error}", png.path().display()))
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
