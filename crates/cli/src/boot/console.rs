//! The guest's output on its way to the user, watched for the text that is awaited.

use std::ops::ControlFlow;

use realmode_pc::{Channel, Console};

use super::watch::Watch;

/// What is kept of each channel for `--json`; more is dropped, and said to be.
const MOST_KEPT: usize = 16 << 20;

/// Collects output between two turns of a run.
pub(super) struct Output {
    serial: Stream,
    debug: Stream,
    keep: Keep,
    /// Output that is not yet shown, by the channel.
    fresh: Vec<(Channel, u8)>,
    /// What comes next in the script.
    awaited: Watch,
    /// Where a snapshot is to be saved.
    save_at: Watch,
}

/// One channel.
#[derive(Default)]
struct Stream {
    kept: Vec<u8>,
    dropped: u64,
}

/// Whether all output is kept until the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// For `--json`.
    All,
    /// It is shown as it comes.
    Nothing,
}

impl Output {
    pub(super) fn new(keep: Keep) -> Output {
        Output {
            serial: Stream::default(),
            debug: Stream::default(),
            keep,
            fresh: Vec::new(),
            awaited: Watch::default(),
            save_at: Watch::default(),
        }
    }

    /// Breaks the run where this text next ends on a channel. What has come does not count.
    pub(super) fn await_text(&mut self, text: &str) {
        self.awaited = Watch::new(text);
    }

    /// Goes on to wait where another run was, if it waited for the same text.
    pub(super) fn resume(&mut self, awaited: Watch) -> bool {
        let is_same = self.awaited.is_for(&awaited);
        if is_same {
            self.awaited = awaited;
        }
        is_same
    }

    /// What is awaited, and how much of it has come.
    pub(super) fn awaited(&self) -> &Watch {
        &self.awaited
    }

    /// The channel that the text awaited appeared on.
    pub(super) fn seen(&self) -> Option<Channel> {
        self.awaited.seen()
    }

    /// Breaks the run, once, where this text ends.
    pub(super) fn save_at(&mut self, text: &str) {
        self.save_at = Watch::new(text);
    }

    /// Has that text come?
    pub(super) fn is_to_be_saved(&self) -> bool {
        self.save_at.seen().is_some()
    }

    /// What came since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<(Channel, u8)> {
        std::mem::take(&mut self.fresh)
    }

    /// All that was kept of a channel, and how many bytes more there were.
    pub(super) fn kept(&self, channel: Channel) -> (&[u8], u64) {
        let stream = match channel {
            Channel::Serial => &self.serial,
            Channel::Debug => &self.debug,
        };
        (&stream.kept, stream.dropped)
    }
}

impl Console for Output {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        self.fresh.push((channel, byte));
        let stream = match channel {
            Channel::Serial => &mut self.serial,
            Channel::Debug => &mut self.debug,
        };
        if self.keep == Keep::All {
            stream.keep(byte);
        }
        let is_awaited = self.awaited.completes(channel, byte);
        let is_saved = self.save_at.completes(channel, byte);
        if is_awaited || is_saved { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Stream {
    fn keep(&mut self, byte: u8) {
        if self.kept.len() < MOST_KEPT {
            self.kept.push(byte);
        } else {
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(output: &mut Output, channel: Channel, text: &str) -> usize {
        text.bytes().take_while(|byte| output.byte(channel, *byte).is_continue()).count()
    }

    #[test]
    fn the_run_breaks_at_the_last_byte_of_the_text_awaited() {
        let mut output = Output::new(Keep::Nothing);
        output.await_text("aab");
        assert_eq!(send(&mut output, Channel::Serial, "xaaabyy"), 4);
        assert_eq!(output.seen(), Some(Channel::Serial));
        let fresh = output.take_fresh();
        assert!(fresh.iter().all(|(channel, _)| *channel == Channel::Serial));
        assert_eq!(fresh.iter().map(|(_, byte)| *byte).collect::<Vec<_>>(), b"xaaab");
        assert_eq!(output.take_fresh(), []);
    }

    #[test]
    fn a_text_split_over_two_channels_is_not_the_text() {
        let mut output = Output::new(Keep::All);
        output.await_text("ab");
        assert_eq!(send(&mut output, Channel::Serial, "a"), 1);
        assert_eq!(send(&mut output, Channel::Debug, "b"), 1);
        assert_eq!(output.seen(), None);
        assert_eq!(send(&mut output, Channel::Serial, "b"), 0);
        assert_eq!(output.kept(Channel::Serial), (b"ab".as_slice(), 0));
        assert_eq!(output.kept(Channel::Debug), (b"b".as_slice(), 0));
    }

    #[test]
    fn what_came_before_a_text_was_awaited_is_no_part_of_it() {
        let mut output = Output::new(Keep::Nothing);
        output.await_text("a");
        assert_eq!(send(&mut output, Channel::Debug, "a"), 0);
        output.await_text("ab");
        assert_eq!(send(&mut output, Channel::Debug, "bab"), 2);
        assert_eq!(output.seen(), Some(Channel::Debug));
    }

    #[test]
    fn half_a_text_is_completed_in_another_run_that_waits_for_the_same() {
        let mut output = Output::new(Keep::Nothing);
        output.await_text("abc");
        assert_eq!(send(&mut output, Channel::Debug, "ab"), 2);
        let half = output.awaited().clone();
        for (text, taken) in [("abc", 0), ("c", 0), ("xc", 1)] {
            let mut other = Output::new(Keep::Nothing);
            other.await_text(text);
            assert_eq!(other.resume(half.clone()), text == "abc");
            assert_eq!(send(&mut other, Channel::Debug, "c"), taken, "{text}");
        }
    }
}
