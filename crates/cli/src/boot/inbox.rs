//! What comes to the guest from outside: keys, and bytes for COM1. All of it goes in between two
//! turns of a run, so that the same input before the same turn gives the same run.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use realmode_pc::{Console, Held, Key, Pc};
use serde::{Deserialize, Serialize};

use super::input::{Input, Source, When};
use super::record::Recorder;

/// No more is asked for while so much waits.
const MOST_WAITING: usize = 4096;

/// Input on its way into the machine, whose own queues are short.
pub(super) struct Inbox<'a> {
    keys: VecDeque<(Key, Held)>,
    serial: VecDeque<u8>,
    source: Option<Box<dyn Source>>,
    recorder: Option<Recorder<'a>>,
}

/// Input that the machine has had no room for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Waiting {
    keys: Vec<(Key, Held)>,
    serial: Vec<u8>,
}

impl<'a> Inbox<'a> {
    /// What `source` gives is written down by `recorder`.
    pub(super) fn new(
        source: Option<Box<dyn Source>>,
        recorder: Option<Recorder<'a>>,
    ) -> Inbox<'a> {
        Inbox { keys: VecDeque::new(), serial: VecDeque::new(), source, recorder }
    }

    /// Lets what has waited in another run come first.
    pub(super) fn resume(&mut self, waiting: &Waiting) {
        self.keys = waiting.keys.iter().copied().chain(self.keys.drain(..)).collect();
        self.serial = waiting.serial.iter().copied().chain(self.serial.drain(..)).collect();
    }

    /// What waits.
    pub(super) fn waiting(&self) -> Waiting {
        let (keys, serial) = (self.keys.iter().copied(), self.serial.iter().copied());
        Waiting { keys: keys.collect(), serial: serial.collect() }
    }

    /// Can more input come, as long as the guest takes none?
    pub(super) fn is_open(&self) -> bool {
        self.source.is_some() && self.room() > 0
    }

    fn room(&self) -> usize {
        MOST_WAITING.saturating_sub(self.keys.len() + self.serial.len())
    }

    /// Has text typed on the keyboard.
    pub(super) fn type_text(&mut self, text: &str) {
        self.keys.extend(text.chars().map(|character| (Key::from(character), Held::empty())));
    }

    /// Has COM1 receive bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.serial.extend(bytes);
    }

    /// Asks for more input, and gives the machine what it has room for. False if that is nothing.
    pub(super) fn feed<C: Console>(
        &mut self,
        now: When,
        pc: &mut Pc<'_, C>,
    ) -> Result<bool, String> {
        self.ask(now)?;
        let keys = self.keys.iter().take_while(|(key, held)| pc.press(*key, *held)).count();
        self.keys.drain(..keys);
        let bytes = self.serial.make_contiguous();
        let sent = if bytes.is_empty() { 0 } else { pc.send_serial(bytes) };
        self.serial.drain(..sent);
        Ok(keys + sent > 0)
    }

    fn ask(&mut self, now: When) -> Result<(), String> {
        if let Some(recorder) = &mut self.recorder {
            recorder.readings();
        }
        let room = self.room();
        let Some(source) = &mut self.source else { return Ok(()) };
        for input in source.take(now, room)? {
            if let Some(recorder) = &mut self.recorder {
                recorder.input(now, &input);
            }
            match input {
                Input::Press(key, held) => self.keys.push_back((key, held)),
                Input::Serial(bytes) => self.serial.extend(bytes),
                Input::End => self.source = None,
            }
        }
        Ok(())
    }

    /// Sleeps until input has come, or `most` is over.
    pub(super) fn wait(&mut self, most: Duration) {
        let room = self.room();
        match self.source.as_mut().filter(|_| room > 0) {
            Some(source) => source.wait(most),
            None => std::thread::sleep(most),
        }
    }

    /// The run is over.
    pub(super) fn end(&mut self, now: When) -> Result<(), String> {
        self.recorder.take().map_or(Ok(()), |recorder| recorder.end(now))
    }
}

/// stdin, for COM1. A thread reads it, since reading waits.
pub(super) struct Stdin {
    from: Receiver<Input>,
    /// What ended a wait.
    early: Option<Input>,
}

impl Stdin {
    /// Begins to read.
    pub(super) fn open() -> Stdin {
        let (to, from) = sync_channel(1);
        // It ends with the process, or when nobody wants more.
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            let mut stdin = std::io::stdin().lock();
            // An error is an end: there is nothing to be had any more.
            while let Ok(len @ 1..) = stdin.read(&mut buffer) {
                if to.send(Input::Serial(buffer[..len].to_vec())).is_err() {
                    return;
                }
            }
        });
        Stdin { from, early: None }
    }
}

impl Source for Stdin {
    fn take(&mut self, _now: When, room: usize) -> Result<Vec<Input>, String> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut inputs: Vec<Input> = self.early.take().into_iter().collect();
        match self.from.try_recv() {
            Ok(input) => inputs.push(input),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => inputs.push(Input::End),
        }
        Ok(inputs)
    }

    fn wait(&mut self, most: Duration) {
        if self.early.is_some() {
            return;
        }
        self.early = match self.from.recv_timeout(most) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Input::End),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU8;

    const NOW: When = When { turn: 0, instructions: 0 };

    /// Gives its inputs one at a time.
    struct List(Vec<Input>);

    impl Source for List {
        fn take(&mut self, _now: When, _room: usize) -> Result<Vec<Input>, String> {
            Ok(if self.0.is_empty() { vec![Input::End] } else { vec![self.0.remove(0)] })
        }

        fn wait(&mut self, _most: Duration) {}
    }

    /// Always has more.
    struct Endless;

    impl Source for Endless {
        fn take(&mut self, _now: When, room: usize) -> Result<Vec<Input>, String> {
            Ok(vec![Input::Serial(vec![b'x'; room.min(1000)])])
        }

        fn wait(&mut self, _most: Duration) {
            panic!("what comes next has no room");
        }
    }

    #[test]
    fn what_a_guest_does_not_take_closes_the_inbox_and_is_not_waited_for() {
        let ram: Vec<AtomicU8> = (0..4096).map(|_| AtomicU8::new(0)).collect();
        let mut pc = Pc::new(&ram, ()).expect("one page");
        let mut inbox = Inbox::new(Some(Box::new(Endless)), None);
        for _ in 0..8 {
            inbox.feed(NOW, &mut pc).expect("a source without errors");
        }
        assert_eq!((inbox.is_open(), inbox.serial.len()), (false, MOST_WAITING));
        inbox.wait(Duration::ZERO);
    }

    #[test]
    fn input_enters_as_the_machine_has_room_and_ends() {
        let ram: Vec<AtomicU8> = (0..4096).map(|_| AtomicU8::new(0)).collect();
        let mut pc = Pc::new(&ram, ()).expect("one page");
        let key = Input::Press(Key::Up, Held::SHIFT);
        let list = vec![Input::Serial(vec![b'x'; 300]), key];
        let mut inbox = Inbox::new(Some(Box::new(List(list))), None);
        assert_eq!(inbox.feed(NOW, &mut pc), Ok(true));
        assert!((1..300).contains(&inbox.serial.len()), "the port's queue is short");
        assert!(inbox.feed(NOW, &mut pc) == Ok(true) && pc.is_typing());
        assert!(inbox.is_open());
        assert_eq!(inbox.feed(NOW, &mut pc), Ok(false), "the guest has taken nothing");
        assert!(!inbox.is_open());
        assert!(!inbox.serial.is_empty(), "what has not been taken waits");
        inbox.type_text("ab");
        assert_eq!((inbox.feed(NOW, &mut pc), inbox.keys.len()), (Ok(true), 0));
    }
}
