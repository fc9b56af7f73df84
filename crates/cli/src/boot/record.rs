//! `--record`: writes what enters the run, as it enters.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;

use super::files::OutputFile;
use super::input::{Input, When};
use super::journal::{Line, Summary, head};
use super::real_clock::RealClock;

/// Writes a record. The first error ends it.
pub(super) struct Recorder<'a> {
    out: BufWriter<&'a File>,
    output: &'a OutputFile,
    clock: Option<Rc<RealClock>>,
    result: io::Result<()>,
}

impl<'a> Recorder<'a> {
    /// Begins a record in place of what the file held.
    pub(super) fn begin(
        output: &'a OutputFile,
        summary: &Summary,
        date: i64,
        clock: Option<Rc<RealClock>>,
    ) -> Result<Recorder<'a>, String> {
        let out = BufWriter::new(output.replace()?);
        let mut recorder = Recorder { out, output, clock, result: Ok(()) };
        recorder.write(&head(summary, date));
        Ok(recorder)
    }

    /// Writes the readings of the clock since the last call.
    pub(super) fn readings(&mut self) {
        let readings = self.clock.as_ref().map(|clock| clock.take_readings()).unwrap_or_default();
        if !readings.is_empty() {
            self.line(&Line::Clock(readings));
        }
    }

    /// Writes what is given to the guest.
    pub(super) fn input(&mut self, when: When, input: &Input) {
        self.line(&Line::Input(when, input.clone()));
    }

    /// The run is over. Writes out what is buffered, and tells if anything went wrong.
    pub(super) fn end(mut self, when: When) -> Result<(), String> {
        self.readings();
        self.line(&Line::End(when));
        self.result
            .and_then(|()| self.out.flush())
            .map_err(|error| format!("cannot write {}: {error}", self.output.path().display()))
    }

    fn line(&mut self, line: &Line) {
        self.write(&format!("{line}\n"));
    }

    fn write(&mut self, text: &str) {
        if self.result.is_ok() {
            self.result = self.out.write_all(text.as_bytes());
        }
    }
}
