//! `--replay`: gives a run what a record says, where it says it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files;
use super::input::{Input, Source, When};
use super::journal::{Line, Summary, machine, parse};

/// The largest record that is read.
const MOST_RECORD: u64 = 1 << 30;

/// What is left of a record.
#[derive(Debug)]
pub(super) struct Replay {
    path: PathBuf,
    machine: Vec<String>,
    date: i64,
    readings: Vec<u64>,
    inputs: VecDeque<(When, Input)>,
    /// Where it ends.
    end: When,
}

impl Replay {
    /// Reads a record whole.
    pub(super) fn read(path: &Path) -> Result<Replay, String> {
        let bytes = files::read(path, MOST_RECORD, "a record of 1 GiB")?;
        let text = String::from_utf8(bytes)
            .map_err(|_| format!("{} is not a record: it is not text", path.display()))?;
        Replay::of_text(&text, path)
            .map_err(|error| format!("{} cannot be replayed: {error}", path.display()))
    }

    fn of_text(text: &str, path: &Path) -> Result<Replay, String> {
        let mut replay = Replay {
            path: path.to_owned(),
            machine: Vec::new(),
            date: 0,
            readings: Vec::new(),
            inputs: VecDeque::new(),
            end: When { turn: 0, instructions: 0 },
        };
        let mut date = None;
        for line in parse(text)? {
            match line {
                Line::Machine(what) => replay.machine.push(what),
                Line::Date(seconds) => date = Some(seconds),
                Line::Clock(readings) => replay.readings.extend(readings),
                Line::Input(when, input) => {
                    replay.end = when;
                    replay.inputs.push_back((when, input));
                }
                Line::End(when) => replay.end = when,
            }
        }
        replay.date = date.ok_or("it has no date")?;
        Ok(replay)
    }

    /// Is the machine to be the one that the record is of, and its date not another?
    pub(super) fn check(&self, summary: &Summary, date: Option<i64>) -> Result<(), String> {
        if date.is_some_and(|date| date != self.date) {
            let what = "it has another date than --date; leave that away";
            return Err(format!("{} cannot be replayed here: {what}", self.shown()));
        }
        let ours: Vec<String> = summary
            .iter()
            .map(|(name, what)| machine(name, what).to_string())
            .map(|line| line.trim_start_matches("machine ").to_owned())
            .collect();
        let differs = |other: &[String], line: &String| !other.contains(line);
        let theirs = self.machine.iter().find(|line| differs(&ours, line));
        let here = ours.iter().find(|line| differs(&self.machine, line));
        let what = match (theirs, here) {
            (None, None) => return Ok(()),
            (Some(theirs), None) => format!("it was made with `{theirs}`, and this run is not"),
            (None, Some(here)) => format!("it was not made with `{here}`, as this run is"),
            (Some(theirs), Some(here)) => {
                format!("it was made with `{theirs}`, and this run has `{here}`")
            }
        };
        Err(format!("{} cannot be replayed here: {what}; give both the same", self.shown()))
    }

    /// The date of the machine's clock when it was switched on.
    pub(super) fn date(&self) -> i64 {
        self.date
    }

    /// The readings of the clock.
    pub(super) fn take_readings(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.readings)
    }

    /// Where the record ends.
    pub(super) fn end(&self) -> When {
        self.end
    }

    fn due(&mut self, now: When) -> Result<Vec<Input>, String> {
        let mut due = Vec::new();
        while let Some((when, input)) = self.inputs.pop_front_if(|(when, _)| when.turn <= now.turn)
        {
            if when != now {
                return Err(format!(
                    "{} cannot be replayed further: after turn {} it was at instruction {}, and \
                     this run is at {}; was it made by another version of realmode?",
                    self.shown(),
                    when.turn,
                    when.instructions,
                    now.instructions
                ));
            }
            due.push(input);
        }
        Ok(due)
    }

    fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

impl Source for Replay {
    fn take(&mut self, now: When, _room: usize) -> Result<Vec<Input>, String> {
        let mut inputs = self.due(now)?;
        if self.inputs.is_empty() && now.turn >= self.end.turn {
            inputs.push(Input::End);
        }
        Ok(inputs)
    }

    /// What comes next is known, and comes at once.
    fn wait(&mut self, _most: Duration) {}
}

/// Says so if a run went on after the record in `path` that it replayed.
pub(super) fn tell_if_longer(path: &Path, end: When, turns: u64) {
    if turns > end.turn {
        let (path, instructions) = (path.display(), end.instructions);
        eprintln!(
            "realmode: {path} ends at instruction {instructions}; from there on the guest had no \
             input"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(lines: &str) -> Replay {
        let text = format!("realmode record 1\nmachine memory 16 MiB\ndate 5\n{lines}");
        Replay::of_text(&text, Path::new("a.rec")).expect("well formed")
    }

    fn at(turn: u64, instructions: u64) -> When {
        When { turn, instructions }
    }

    fn summary(what: &[(&'static str, &str)]) -> Summary {
        what.iter().map(|(name, what)| (*name, (*what).to_owned())).collect()
    }

    #[test]
    fn inputs_come_at_their_turns_in_order() {
        let mut replay = replay("serial 2 30 01\nserial 2 30 02\nserial 4 50 03\nend 6 70\n");
        let bytes = |byte| Input::Serial(vec![byte]);
        let mut take = |turn, instructions| replay.take(at(turn, instructions), 1);
        assert_eq!(take(1, 10), Ok(vec![]));
        assert_eq!(take(2, 30), Ok(vec![bytes(1), bytes(2)]));
        assert_eq!(take(2, 30), Ok(vec![]));
        assert_eq!(take(4, 50), Ok(vec![bytes(3)]));
        assert_eq!(take(5, 60), Ok(vec![]));
        assert_eq!(take(6, 70), Ok(vec![Input::End]));
        assert_eq!(replay.end(), at(6, 70));
    }

    #[test]
    fn a_record_that_was_closed_closes_the_replay() {
        let mut replay = replay("close 0 0\nend 6 70\n");
        assert_eq!(replay.take(at(0, 0), 1), Ok(vec![Input::End]));
    }

    #[test]
    fn a_run_that_goes_another_way_is_noticed_at_the_next_input() {
        let mut replay = replay("serial 2 30 01\n");
        let error = replay.take(at(2, 31), 1).expect_err("another instruction");
        assert!(error.contains("instruction 30") && error.contains("is at 31"), "{error}");
    }

    #[test]
    fn a_record_of_another_machine_is_refused_and_the_difference_named() {
        let replay = replay("clock 5 6\nclock 7\n");
        assert_eq!(replay.check(&summary(&[("memory", "16 MiB")]), Some(5)), Ok(()));
        let dated = replay.check(&summary(&[("memory", "16 MiB")]), Some(6));
        assert!(dated.is_err_and(|error| error.contains("--date")));
        let differs = |what| replay.check(&summary(what), None).expect_err("another machine");
        let other = differs(&[("memory", "32 MiB")]);
        assert!(other.contains("`memory 16 MiB`") && other.contains("`memory 32 MiB`"), "{other}");
        let more = differs(&[("memory", "16 MiB"), ("disk", "none")]);
        assert!(more.contains("not made with `disk none`"), "{more}");
        assert!(differs(&[]).contains("made with `memory 16 MiB`"));
    }

    #[test]
    fn readings_and_date_are_those_of_the_record() {
        let mut replay = replay("clock 5 6\nclock 7\n");
        assert_eq!((replay.date(), replay.take_readings()), (5, vec![5, 6, 7]));
        let none = Replay::of_text("realmode record 1\n", Path::new("a.rec"));
        assert!(none.is_err_and(|error| error.contains("no date")));
    }
}
