//! Signals that end a run in good order: what is written is written out, the terminal is as it
//! was, and the process returns as if the signal had killed it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Remembers the last of the signals that came.
pub(super) struct Interrupts {
    last: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Waits for signals from now on. A second Ctrl-C ends the process at once, in case the run
    /// is held up where it does not look.
    pub(super) fn watch() -> io::Result<Interrupts> {
        let last = Arc::new(AtomicUsize::new(0));
        let is_second = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, status(SIGINT), Arc::clone(&is_second))?;
        flag::register(SIGINT, is_second)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_usize(signal, Arc::clone(&last), signal as usize)?;
        }
        Ok(Interrupts { last })
    }

    /// The process's exit code if a signal came.
    pub(super) fn exit_code(&self) -> Option<u8> {
        let signal = self.last.load(Ordering::SeqCst) as i32;
        (signal != 0).then(|| status(signal) as u8)
    }
}

/// What a shell reports of a process that a signal killed.
fn status(signal: i32) -> i32 {
    128 + signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_remembered_as_an_exit_code() {
        let interrupts = Interrupts::watch().expect("signals can be watched");
        assert_eq!(interrupts.exit_code(), None);
        signal_hook::low_level::raise(SIGHUP).expect("a process may signal itself");
        assert_eq!(interrupts.exit_code(), Some(129));
        signal_hook::low_level::raise(SIGTERM).expect("a process may signal itself");
        assert_eq!(interrupts.exit_code(), Some(143));
    }
}
