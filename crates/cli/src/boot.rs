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
mod saving;
mod script;
mod serial_screen;
mod session;
mod sinks;
mod snapshot;
mod snapshot_file;
mod summary;
mod terminal;
mod trace;
mod turns;
mod viewer;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use crate::stdout;
use arguments::{At, ScreenTo, SerialTo};
use console::{Keep, Output};
use disk::DiskInUse;
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
use saving::Saving;
use script::Script;
use serial_screen::SerialScreen;
use session::{Finished, Session};
use sinks::{Sinks, User};
use snapshot::Loaded;
use snapshot_file::Target;
use terminal::Terminal;
use trace::Trace;
use viewer::Viewer;

/// What to do about an instruction that is not executed.
const LEAVE_OUT: &str =
    "what the processor does not offer, many guests do not use: --cpu intel,-avx,-ssse3";

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let user = if is_live(args) { User::Later } else { User::AtOnce };
    let keep = if args.json || user == User::Later { Keep::All } else { Keep::Nothing };
    let loaded = args.load.as_deref().map(Loaded::open).transpose()?;
    let outside = Outside::open(args, loaded.as_ref())?;
    let replay_end = outside.replay.as_ref().map(Replay::end);
    let mut parts = Parts::read(args, &outside, loaded)?;
    let disk_errors = parts.disk_errors();
    let mut output = Output::new(keep);
    let mut script = Script::begin(&args.typing, args.until.as_deref(), &mut output);
    if let Some(At::Text(text)) = &args.at {
        output.save_at(text);
    }
    let mut machine = parts.assemble(args, output)?;
    check_counts(args, &machine)?;

    let (files, saving) = Outputs::open(args, machine.disk.as_ref().map(DiskInUse::path))?;
    let has_bios = machine.firmware.is_some();
    let sinks = Sinks::new(args, has_bios, files.serial.as_ref(), files.debug.as_ref(), user)?;
    let profile = machine.emulator.profile().clone();
    let trace = files.trace.as_ref().map(|file| Trace::begin(file, &profile)).transpose()?;
    let recorder = files.record.as_ref().map(|file| record(args, file, &outside)).transpose()?;
    let interrupts =
        Interrupts::watch().map_err(|error| format!("cannot watch for signals: {error}"))?;
    let is_stdio = args.serial == Some(SerialTo::Stdio);
    let clock = outside.clock.clone();
    let viewer = (user == User::Later).then(Viewer::open).transpose()?;
    let mut inbox = Inbox::new(source(outside.replay, viewer.as_ref(), is_stdio), recorder);
    let mut com1 = SerialScreen::new(user);
    if args.load.is_some() {
        script.resume(&machine.run, machine.pc.console_mut());
        inbox.resume(&machine.run.waiting);
        com1.resume(&machine.run.com1);
    }
    let finished = Session {
        machine: &mut machine,
        clock,
        limit: args.limit,
        saving,
        script,
        inbox,
        interrupts,
        com1,
        progress: Progress::new(viewer.is_none() && !is_stdio && sinks.leaves_stderr()),
        viewer,
        sinks,
        trace,
        disk_errors,
        notes: Vec::new(),
    }
    .run()?;
    if let (Some(path), Some(end)) = (&args.replay, replay_end) {
        replay::tell_if_longer(path, end, finished.turns);
    }

    conclude(args, user, &files, &machine, &finished)
}

/// Tells and shows how it ended.
fn conclude(
    args: &Args,
    user: User,
    files: &Outputs,
    machine: &Machine<'_>,
    finished: &Finished,
) -> Result<ExitCode, String> {
    let exit_code = finished.outcome.exit_code(args.until.is_some(), args.save.is_some());
    let last = Last::of(machine, &finished.com1);
    if let Some(png) = &files.png {
        draw(last.as_ref(), png)?;
    }
    if args.json {
        let place = report::place(finished, machine);
        let screen = last.as_ref().map(|last| &last.display);
        let json = report::json(finished, &place, exit_code, machine, screen);
        stdout::print(&format!("{json}\n"))?;
    } else {
        if user == User::Later {
            epilogue::withheld(args, machine, &finished.com1, last.as_ref())?;
        }
        last.map_or(Ok(()), |last| last.print(args, user, finished))?;
        explain(args, finished, machine);
    }
    Ok(ExitCode::from(exit_code))
}

/// Is where a run is to be saved, or to end, still ahead of it?
fn check_counts(args: &Args, machine: &Machine<'_>) -> Result<(), String> {
    let from = machine.run.executed.instructions;
    let at = match args.at {
        Some(At::Instruction(count)) => Some(count),
        _ => None,
    };
    for (option, count) in [("--at", at), ("--limit", args.limit)] {
        if count.is_some_and(|count| count < from) {
            return Err(format!("{option}: the snapshot is past that, at instruction {from}"));
        }
    }
    Ok(())
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
    /// `disk` is the image in use, named by the options or by a snapshot.
    fn open(args: &Args, disk: Option<&Path>) -> Result<(Outputs, Option<Saving>), String> {
        let inputs = [
            args.load.as_deref(),
            args.image.as_ref().map(|image| image.path.as_path()),
            args.bios.as_deref(),
            args.vga.as_deref(),
            args.floppy.as_deref(),
            args.kernel.as_deref(),
            args.replay.as_deref(),
        ];
        let mut taken: Vec<&Path> = inputs.into_iter().flatten().collect();
        if let Some(disk) = disk {
            if args.writable {
                files::require_another(disk, &taken)?;
            }
            taken.push(disk);
        }
        let serial = match &args.serial {
            Some(SerialTo::File(path)) => Some(path.as_path()),
            _ => None,
        };
        let png = match &args.screen {
            Some(ScreenTo::Png(path)) => Some(path.as_path()),
            _ => None,
        };
        let paths =
            [args.trace.as_deref(), serial, args.debug.as_deref(), args.record.as_deref(), png];
        let mut files = Vec::new();
        for path in paths {
            files.push(path.map(|path| OutputFile::open(path, &taken)).transpose()?);
            taken.extend(path);
        }
        let saving = match (&args.save, &args.at) {
            (Some(to), Some(at)) => Some(Saving { at: at.clone(), to: Target::new(to, &taken)? }),
            _ => None,
        };
        let mut files = files.into_iter();
        let mut next = || files.next().flatten();
        let outputs =
            Outputs { trace: next(), serial: next(), debug: next(), record: next(), png: next() };
        Ok((outputs, saving))
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
    match (&args.save, outcome) {
        (Some(path), Outcome::Saved(count)) => {
            text.push_str(&format!(
                "realmode: saved to {} at instruction {count}\n",
                path.display()
            ));
        }
        (Some(path), _) => text.push_str(&format!(
            "realmode: nothing was saved to {}: the run was over before --at\n",
            path.display()
        )),
        (None, _) => {}
    }
    if outcome.is_nowhere() {
        let place = report::place(finished, machine);
        text.push_str(&format!("realmode: {}\n", report::reason(&message, &place)));
        if matches!(outcome, Outcome::Unimplemented(_)) {
            text.push_str(&format!("  {LEAVE_OUT}\n"));
        }
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
