//! Where a run is saved: a turn is interrupted there, or the snapshot comes between two turns.

use realmode::Stop;

use super::arguments::At;
use super::outcome::Outcome;
use super::script;
use super::session::Session;
use super::snapshot::{self, Run};
use super::snapshot_file::Target;

/// Where a snapshot is to be saved, and to which file.
pub(super) struct Saving {
    pub(super) at: At,
    pub(super) to: Target,
}

/// How a turn ended.
pub(super) enum Turn {
    Over(Stop),
    /// It has come to where it is to be saved.
    Interrupted,
}

impl Session<'_, '_> {
    /// Instructions to where the run is to be saved.
    fn left_to_save(&self) -> Option<u64> {
        match self.saving.as_ref()?.at {
            At::Instruction(count) => Some(count.saturating_sub(self.instructions())),
            At::Text(_) => None,
        }
    }

    /// Is the run to be saved between these turns?
    pub(super) fn is_saved_here(&self) -> bool {
        let pc = &self.machine.pc;
        match self.saving.as_ref().map(|saving| &saving.at) {
            None => false,
            Some(At::Instruction(_)) => self.left_to_save() == Some(0),
            Some(At::Text(text)) => {
                pc.console().is_to_be_saved() || script::shown(pc, &self.com1, text) > 0
            }
        }
    }

    /// Runs for a turn, or as much of it as precedes the snapshot.
    pub(super) fn turn(&mut self, budget: u64) -> Result<Turn, String> {
        let whole = self.machine.run.turns.budget();
        let start = self.machine.pc.spent();
        loop {
            let used = self.machine.pc.spent() - start;
            let step = budget.saturating_sub(used).min(self.left_to_save().unwrap_or(u64::MAX));
            let stop = self.step(step)?;
            let used = self.machine.pc.spent() - start;
            let pc = &self.machine.pc;
            let is_here = match stop {
                Stop::Budget | Stop::Halt => self.left_to_save() == Some(0),
                Stop::Requested => pc.console().is_to_be_saved() && pc.ending().is_none(),
                _ => false,
            };
            // A turn that is over anyway is saved after it, when all else is done.
            let is_over = stop == Stop::Halt || used >= budget || pc.console().seen().is_some();
            if is_here && !is_over {
                self.machine.run.turns.interrupt(whole.saturating_sub(used));
                return Ok(Turn::Interrupted);
            }
            if is_here && stop == Stop::Halt {
                self.machine.run.turns.next();
                return Ok(Turn::Interrupted);
            }
            if stop != Stop::Budget || is_over {
                return Ok(Turn::Over(stop));
            }
        }
    }

    /// Saves it.
    pub(super) fn save(&mut self) -> Result<Outcome, String> {
        let Some(Saving { to, .. }) = &self.saving else { return Err("nowhere to save".into()) };
        let mut run = Run {
            instructions: self.instructions(),
            faults: self.spent() - self.instructions(),
            turns: self.machine.run.turns,
            waiting: self.inbox.waiting(),
            com1: self.com1.sent().to_vec(),
            ..Run::default()
        };
        self.script.save(self.machine.pc.console(), &mut run);
        snapshot::save(to, self.machine, run)?;
        Ok(Outcome::Saved(self.instructions()))
    }
}
