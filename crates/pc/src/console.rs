//! Where the guest's output goes: the caller's, since this crate knows no terminal.

use core::ops::ControlFlow;

/// Which device a byte came out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// COM1.
    Serial,
    /// Ports E9h and 402h.
    Debug,
}

/// Takes what the guest prints.
///
/// A closure is one:
///
/// ```
/// use core::ops::ControlFlow;
/// use realmode_pc::{Channel, Console};
/// let mut log = Vec::new();
/// let mut console = |channel: Channel, byte: u8| {
///     log.push((channel, byte));
///     ControlFlow::Continue(())
/// };
/// let _ = console.byte(Channel::Serial, b'!');
/// assert_eq!(log, [(Channel::Serial, b'!')]);
/// ```
pub trait Console {
    /// The guest printed `byte`. `Break` makes `run` return at the next instruction.
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()>;
}

impl<F: FnMut(Channel, u8) -> ControlFlow<()>> Console for F {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        self(channel, byte)
    }
}

/// Nobody listens.
impl Console for () {
    fn byte(&mut self, _channel: Channel, _byte: u8) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
