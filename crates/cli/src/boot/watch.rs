//! Watches output for a text.

use realmode_pc::Channel;
use serde::{Deserialize, Serialize};

/// A text, and how much of it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    /// Empty if nothing is awaited.
    text: Vec<u8>,
    /// The last bytes of COM1 and of the debug ports, as many as the text has.
    tails: [Vec<u8>; 2],
    #[serde(skip)]
    seen: Option<Channel>,
}

impl Watch {
    /// Waits for `text` on either channel. What has come does not count.
    pub(super) fn new(text: &str) -> Watch {
        Watch { text: text.as_bytes().to_vec(), ..Watch::default() }
    }

    /// Are both about the same text?
    pub(super) fn is_for(&self, other: &Watch) -> bool {
        self.text == other.text
    }

    /// The channel that the text appeared on.
    pub(super) fn seen(&self) -> Option<Channel> {
        self.seen
    }

    /// Is `byte` the last of the text, and the text the first of its kind?
    pub(super) fn completes(&mut self, channel: Channel, byte: u8) -> bool {
        if self.text.is_empty() || self.seen.is_some() {
            return false;
        }
        let tail = match channel {
            Channel::Serial => &mut self.tails[0],
            Channel::Debug => &mut self.tails[1],
        };
        if tail.len() >= self.text.len() {
            tail.remove(0);
        }
        tail.push(byte);
        if *tail == self.text {
            self.seen = Some(channel);
        }
        self.seen.is_some()
    }
}
