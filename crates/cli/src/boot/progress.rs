//! A spinner on stderr: a long run shows that it is alive.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

/// A run longer than this is long.
const LONG: Duration = Duration::from_secs(1);

/// The spinner, while there is one.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    is_wanted: bool,
}

impl Progress {
    /// `is_wanted` is whether stderr is free for it.
    pub(super) fn new(is_wanted: bool) -> Progress {
        let is_wanted = is_wanted && std::io::stderr().is_terminal();
        Progress { bar: None, started: Instant::now(), is_wanted }
    }

    /// Moves it.
    pub(super) fn tick(&mut self, instructions: u64) {
        let elapsed = self.started.elapsed();
        if elapsed < LONG || !self.is_wanted {
            return;
        }
        let bar = self.bar.get_or_insert_with(ProgressBar::new_spinner);
        let millions = instructions / 1_000_000;
        let rate = millions as f64 / elapsed.as_secs_f64();
        bar.set_message(format!("{millions} million instructions, {rate:.0} MIPS"));
        bar.tick();
    }

    /// Takes it away, so that others can write.
    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
