//! Where the guest's output goes: stdout, stderr, files.

use std::io::{self, ErrorKind, Write};

use realmode_pc::Channel;

use super::arguments::SerialTo;
use super::files::OutputFile;
use super::options::Args;
use crate::stdout;

/// Where one channel goes.
#[derive(Clone, Copy)]
enum Sink<'a> {
    Nowhere,
    Stdout,
    Stderr,
    File(&'a OutputFile),
}

/// Where both go.
pub(super) struct Sinks<'a> {
    serial: Sink<'a>,
    debug: Sink<'a>,
    /// Both go to one place, in the order they come.
    is_together: bool,
    /// Did what went to stdout end with a line?
    pub(super) at_line_start: bool,
    /// The same of stderr.
    pub(super) stderr_at_line_start: bool,
}

/// When the user gets what no file takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// As it comes.
    AtOnce,
    /// After the live screen.
    Later,
}

/// Whether anybody takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// All is well.
    All,
    /// The reader has gone.
    Closed,
}

impl<'a> Sinks<'a> {
    /// As the options say; the files are those they name.
    pub(super) fn new(
        args: &Args,
        has_bios: bool,
        serial: Option<&'a OutputFile>,
        debug: Option<&'a OutputFile>,
        user: User,
    ) -> Result<Sinks<'a>, String> {
        for file in [serial, debug].into_iter().flatten() {
            file.replace()?;
        }
        let is_apart = has_bios || args.serial == Some(SerialTo::Stdio);
        let is_together = !is_apart && serial.is_none() && debug.is_none();
        let or_file = |file: Option<&'a OutputFile>, otherwise| match file {
            Some(file) => Sink::File(file),
            // JSON is all there is to be on the terminal.
            None if args.json || user == User::Later => Sink::Nowhere,
            None => otherwise,
        };
        Ok(Sinks {
            serial: or_file(serial, Sink::Stdout),
            debug: or_file(debug, if is_apart { Sink::Stderr } else { Sink::Stdout }),
            is_together,
            at_line_start: true,
            stderr_at_line_start: true,
        })
    }

    /// Does nothing of it go to stderr?
    pub(super) fn leaves_stderr(&self) -> bool {
        !matches!(self.debug, Sink::Stderr)
    }

    /// Says something on stderr, on a line of its own.
    pub(super) fn say(&mut self, message: &str) {
        let before = if self.stderr_at_line_start { "" } else { "\n" };
        stdout::explain(&format!("{before}realmode: {message}\n"));
        self.stderr_at_line_start = true;
    }

    /// Writes what the guest printed.
    pub(super) fn write(&mut self, printed: &[(Channel, u8)]) -> Result<Taken, String> {
        for channel in [Channel::Serial, Channel::Debug] {
            let is_its = |of: Channel| self.is_together || of == channel;
            let bytes: Vec<u8> =
                printed.iter().filter(|(of, _)| is_its(*of)).map(|(_, byte)| *byte).collect();
            let sink = match channel {
                Channel::Serial => self.serial,
                Channel::Debug if self.is_together => return Ok(Taken::All),
                Channel::Debug => self.debug,
            };
            let Some(last) = bytes.last() else { continue };
            match sink {
                Sink::Stdout => self.at_line_start = *last == b'\n',
                Sink::Stderr => self.stderr_at_line_start = *last == b'\n',
                Sink::Nowhere | Sink::File(_) => {}
            }
            if sink.write(&bytes)? == Taken::Closed {
                return Ok(Taken::Closed);
            }
        }
        Ok(Taken::All)
    }
}

impl Sink<'_> {
    fn write(self, bytes: &[u8]) -> Result<Taken, String> {
        let (result, name) = match self {
            Sink::Nowhere => return Ok(Taken::All),
            Sink::Stdout => (write_all(io::stdout().lock(), bytes), "stdout".to_owned()),
            Sink::Stderr => (write_all(io::stderr().lock(), bytes), "stderr".to_owned()),
            Sink::File(file) => (write_all(file.file(), bytes), file.path().display().to_string()),
        };
        match result {
            Ok(()) => Ok(Taken::All),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Taken::Closed),
            Err(error) => Err(format!("cannot write the guest's output to {name}: {error}")),
        }
    }
}

fn write_all(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
