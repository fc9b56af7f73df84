//! A kernel's command line, whichever way the kernel is started.

use crate::error::Error;

/// The longest, in bytes; a zero follows.
pub(crate) const MOST_COMMAND_LINE: usize = 2047;

/// Is it no longer than kernels read?
pub(crate) fn check(command_line: &str) -> Result<(), Error> {
    let len = command_line.len();
    if len > MOST_COMMAND_LINE {
        let (len, most) = (len as u64, MOST_COMMAND_LINE as u64);
        return Err(Error::CommandLineTooLong { len, most });
    }
    Ok(())
}
