//! What a command prints: results on stdout, explanations on stderr.

use std::io::{self, Write};

/// Prints a result. A reader that has seen enough (`| head`) is no failure; a full disk is one.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

/// Explains something on stderr. If that cannot be written, there is nobody to tell.
pub(crate) fn explain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
