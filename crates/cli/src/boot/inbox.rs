//! What comes to the guest from outside: keys, and bytes for COM1. All of it goes in between two
//! turns of a run, so that the same input before the same turn gives the same run.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use realmode_pc::{Console, Pc};

/// No more is asked for while so much waits.
const MOST_WAITING: usize = 4096;

/// One piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Keys of the keyboard, as the text they type.
    Keys(String),
    /// Bytes for COM1.
    Serial(Vec<u8>),
    /// There will be no more.
    End,
}

/// Where input comes from. It is asked before each turn, and while the guest waits for the next
/// one, until it has said `End`.
pub(super) trait Source {
    /// What has come since it was last asked, and goes in before turn `turn`, counted from 0.
    fn take(&mut self, turn: u64) -> Vec<Input>;

    /// Sleeps until something has come, or `most` is over.
    fn wait(&mut self, most: Duration);
}

/// Input on its way into the machine, whose own queues are short.
pub(super) struct Inbox {
    keys: String,
    serial: VecDeque<u8>,
    source: Option<Box<dyn Source>>,
}

impl Inbox {
    pub(super) fn new(source: Option<Box<dyn Source>>) -> Inbox {
        Inbox { keys: String::new(), serial: VecDeque::new(), source }
    }

    /// Can more input come, as long as the guest takes none?
    pub(super) fn is_open(&self) -> bool {
        self.source.is_some() && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.keys.len() + self.serial.len() < MOST_WAITING
    }

    pub(super) fn put(&mut self, input: Input) {
        match input {
            Input::Keys(text) => self.keys.push_str(&text),
            Input::Serial(bytes) => self.serial.extend(bytes),
            Input::End => self.source = None,
        }
    }

    /// Asks for more input, and gives the machine what it has room for. False if that is nothing.
    pub(super) fn feed<C: Console>(&mut self, pc: &mut Pc<'_, C>, turn: u64) -> bool {
        let has_room = self.has_room();
        if let Some(source) = self.source.as_mut().filter(|_| has_room) {
            for input in source.take(turn) {
                self.put(input);
            }
        }
        let keys = if self.keys.is_empty() { 0 } else { pc.type_text(&self.keys) };
        self.keys.drain(..keys);
        let bytes = self.serial.make_contiguous();
        let sent = if bytes.is_empty() { 0 } else { pc.send_serial(bytes) };
        self.serial.drain(..sent);
        keys + sent > 0
    }

    /// Sleeps until input has come, or `most` is over.
    pub(super) fn wait(&mut self, most: Duration) {
        let has_room = self.has_room();
        match self.source.as_mut().filter(|_| has_room) {
            Some(source) => source.wait(most),
            None => std::thread::sleep(most),
        }
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
    fn take(&mut self, _turn: u64) -> Vec<Input> {
        let mut inputs: Vec<Input> = self.early.take().into_iter().collect();
        match self.from.try_recv() {
            Ok(input) => inputs.push(input),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => inputs.push(Input::End),
        }
        inputs
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

    /// Gives its inputs one at a time.
    struct List(Vec<Input>);

    impl Source for List {
        fn take(&mut self, _turn: u64) -> Vec<Input> {
            if self.0.is_empty() { vec![Input::End] } else { vec![self.0.remove(0)] }
        }

        fn wait(&mut self, _most: Duration) {}
    }

    /// Always has more.
    struct Endless;

    impl Source for Endless {
        fn take(&mut self, _turn: u64) -> Vec<Input> {
            vec![Input::Serial(vec![b'x'; 1000])]
        }

        fn wait(&mut self, _most: Duration) {
            panic!("what comes next has no room");
        }
    }

    #[test]
    fn what_a_guest_does_not_take_closes_the_inbox_and_is_not_waited_for() {
        let ram: Vec<AtomicU8> = (0..4096).map(|_| AtomicU8::new(0)).collect();
        let mut pc = Pc::new(&ram, ()).expect("one page");
        let mut inbox = Inbox::new(Some(Box::new(Endless)));
        for _ in 0..8 {
            inbox.feed(&mut pc, 0);
        }
        assert!(!inbox.is_open() && inbox.serial.len() < MOST_WAITING + 1000);
        inbox.wait(Duration::ZERO);
    }

    #[test]
    fn input_enters_as_the_machine_has_room_and_ends() {
        let ram: Vec<AtomicU8> = (0..4096).map(|_| AtomicU8::new(0)).collect();
        let mut pc = Pc::new(&ram, ()).expect("one page");
        let list = vec![Input::Serial(vec![b'x'; 300]), Input::Keys("ab".to_owned())];
        let mut inbox = Inbox::new(Some(Box::new(List(list))));
        assert!(inbox.feed(&mut pc, 0));
        assert!((1..300).contains(&inbox.serial.len()), "the port's queue is short");
        assert!(inbox.feed(&mut pc, 0) && pc.is_typing());
        assert!(inbox.is_open());
        assert!(!inbox.feed(&mut pc, 0), "the guest has taken nothing");
        assert!(!inbox.is_open());
        assert!(!inbox.serial.is_empty(), "what has not been taken waits");
    }
}
