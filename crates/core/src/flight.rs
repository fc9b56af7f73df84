//! The restart record: what an instruction in flight has read and written, so that it can stop
//! for a device, even be saved, and go on without repeating an access.
//!
//! An instruction that waits is executed again from its start when the answer is there. Nothing
//! of the `Cpu` had changed; what it had read comes from the record, what it had written is
//! skipped. So every access happens exactly once, in order.

use crate::bus::{Linear, Phys};
use crate::error::Error;
use crate::fault::Event;
use crate::mem::host::PAGE_SIZE;
use crate::stop::{Direction, Request};

/// The version of the record; another version is refused.
pub const IN_FLIGHT_VERSION: u32 = 2;

/// The most bytes one instruction can read in all while it touches a device: FXRSTOR's 512, and
/// ENTER's or a gate's worth besides.
pub(crate) const READ_CAPACITY: usize = 640;

/// More bytes than any instruction writes.
const WRITE_LIMIT: u32 = 1 << 16;

/// Pages an instruction can touch while in flight.
pub(crate) const SPANS: usize = 8;

/// What is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Work {
    /// The instruction with these bytes.
    Instruction {
        /// Its bytes.
        bytes: [u8; 15],
        /// How many of them it has.
        len: u8,
    },
    /// The delivery of an event.
    Event(Event),
}

/// A page that the instruction translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span {
    /// The linear page.
    pub linear: Linear,
    /// The physical page it led to.
    pub phys: Phys,
    /// It may be written.
    pub writable: bool,
    /// Its rights were those of user mode.
    pub user: bool,
}

/// An instruction or event that waits for a device. With a [`Cpu`](crate::Cpu) it is a complete
/// snapshot of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InFlight {
    /// [`IN_FLIGHT_VERSION`] of the library that made it.
    pub version: u32,
    /// RIP of the instruction.
    pub rip: u64,
    /// CS base it runs with.
    pub cs_base: u64,
    /// Decode key: the mode it runs in.
    pub key: u32,
    /// What is executed.
    pub work: Work,
    /// What the VMM was asked for.
    pub request: Request,
    /// The request is for a port, not for memory.
    pub is_port: bool,
    /// The VMM has answered.
    pub answered: bool,
    /// Pages translated so far, `span_count` of them.
    pub spans: [Span; SPANS],
    /// How many.
    pub span_count: u8,
    /// Bytes read so far, `read_count` of them.
    #[cfg_attr(feature = "serde", serde(with = "bytes_640"))]
    pub reads: [u8; READ_CAPACITY],
    /// How many.
    pub read_count: u16,
    /// Bytes written so far.
    pub written: u32,
    /// Deliveries that failed before the one in flight, each for the next one's exception.
    pub deliveries: u8,
}

impl InFlight {
    /// Checks a record that came from outside.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.version != IN_FLIGHT_VERSION {
            return Err(Error::InFlightVersion {
                found: self.version,
                expected: IN_FLIGHT_VERSION,
            });
        }
        let damaged = |what| Err(Error::InFlightDamaged { what });
        if usize::from(self.span_count) > SPANS {
            return damaged("span_count");
        }
        let pages = self.spans.iter().take(usize::from(self.span_count));
        if pages.clone().any(|span| (span.linear.0 | span.phys.0) % PAGE_SIZE as u64 != 0) {
            return damaged("spans");
        }
        if usize::from(self.read_count) > READ_CAPACITY {
            return damaged("read_count");
        }
        if self.written > WRITE_LIMIT {
            return damaged("written");
        }
        let most = if self.is_port { 4 } else { 8 };
        if !matches!(self.request.size, 1 | 2 | 4 | 8) || self.request.size > most {
            return damaged("request.size");
        }
        match self.work {
            Work::Instruction { len, .. } if !(1..=15).contains(&len) => damaged("work.len"),
            _ => Ok(()),
        }
    }
}

/// The record while it is being made, and the cursors of a repetition.
pub(crate) struct Flight {
    pub(crate) record: InFlight,
    /// A request waits for the VMM.
    pub(crate) is_held: bool,
    pub(crate) read_cursor: usize,
    pub(crate) write_cursor: u32,
    /// More was read than the record holds: the instruction cannot wait for a device.
    pub(crate) overflowed: bool,
}

impl Flight {
    pub(crate) fn new() -> Flight {
        Flight {
            record: InFlight {
                version: IN_FLIGHT_VERSION,
                rip: 0,
                cs_base: 0,
                key: 0,
                work: Work::Event(Event::Nmi),
                request: Request { address: 0, size: 1, direction: Direction::Read, data: 0 },
                is_port: false,
                answered: false,
                spans: [Span::default(); SPANS],
                span_count: 0,
                reads: [0; READ_CAPACITY],
                read_count: 0,
                written: 0,
                deliveries: 0,
            },
            is_held: false,
            read_cursor: 0,
            write_cursor: 0,
            overflowed: false,
        }
    }

    /// Takes a record that was saved.
    pub(crate) fn hold(&mut self, record: InFlight) {
        self.record = record;
        self.is_held = true;
        self.overflowed = false;
    }

    /// Begins the record of a new instruction.
    pub(crate) fn begin(&mut self) {
        self.record.span_count = 0;
        self.record.read_count = 0;
        self.record.written = 0;
        self.overflowed = false;
        self.rewind();
    }

    /// Has the instruction neither read nor written anything yet?
    pub(crate) fn is_fresh(&self) -> bool {
        self.record.read_count == 0 && self.record.written == 0
    }

    /// Goes back to the start of the record, to execute the instruction again.
    pub(crate) fn rewind(&mut self) {
        self.read_cursor = 0;
        self.write_cursor = 0;
    }

    /// The translation of a page, if the instruction has made it before.
    pub(crate) fn replay_span(&self, wanted: &Span) -> Option<Phys> {
        let recorded = self.record.spans.get(..usize::from(self.record.span_count))?;
        let same = |span: &&Span| {
            span.linear == wanted.linear
                && span.user == wanted.user
                && (span.writable || !wanted.writable)
        };
        recorded.iter().find(same).map(|span| span.phys)
    }

    /// Records a translation.
    pub(crate) fn note_span(&mut self, span: Span) {
        if let Some(place) = self.record.spans.get_mut(usize::from(self.record.span_count)) {
            *place = span;
            self.record.span_count += 1;
        }
    }

    /// Takes up to `bytes.len()` recorded bytes; returns how many.
    pub(crate) fn replay_read(&mut self, bytes: &mut [u8]) -> usize {
        let recorded = self.record.reads.get(..usize::from(self.record.read_count));
        let left = recorded.and_then(|bytes| bytes.get(self.read_cursor..)).unwrap_or_default();
        let n = left.len().min(bytes.len());
        bytes[..n].copy_from_slice(&left[..n]);
        self.read_cursor += n;
        n
    }

    /// Records bytes that were read.
    pub(crate) fn note_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            // Everything came from the record; what is left of it belongs to later reads.
            return;
        }
        let from = usize::from(self.record.read_count);
        match self.record.reads.get_mut(from..from + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.record.read_count += bytes.len() as u16;
                self.read_cursor = usize::from(self.record.read_count);
            }
            None => self.overflowed = true,
        }
    }

    /// How many of the next `len` bytes to write have been written before.
    pub(crate) fn replay_write(&mut self, len: usize) -> usize {
        let done = self.record.written.saturating_sub(self.write_cursor) as usize;
        let n = done.min(len);
        self.write_cursor += n as u32;
        n
    }

    /// Records that `len` bytes were written.
    pub(crate) fn note_write(&mut self, len: usize) {
        self.record.written += len as u32;
        self.write_cursor = self.record.written;
    }

    /// Takes the VMM's answer to the request.
    pub(crate) fn answer(&mut self, value: u64) {
        let size = usize::from(self.record.request.size);
        self.record.answered = true;
        match self.record.request.direction {
            Direction::Read => self.note_read(&value.to_le_bytes()[..size.min(8)]),
            Direction::Write => self.note_write(size),
        }
    }
}

/// Serialises the read buffer, whose length serde's arrays do not reach.
#[cfg(feature = "serde")]
mod bytes_640 {
    use super::READ_CAPACITY;
    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(
        bytes: &[u8; READ_CAPACITY],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; READ_CAPACITY], D::Error> {
        struct Bytes;
        impl<'de> de::Visitor<'de> for Bytes {
            type Value = [u8; READ_CAPACITY];
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{READ_CAPACITY} bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut bytes = [0; READ_CAPACITY];
                for (i, place) in bytes.iter_mut().enumerate() {
                    *place =
                        seq.next_element()?.ok_or_else(|| de::Error::invalid_length(i, &self))?;
                }
                Ok(bytes)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
