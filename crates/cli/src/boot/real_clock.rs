//! Time for `--clock real`, on tape where the run is recorded or replayed.

use std::cell::RefCell;
use std::time::Instant;

/// A source of nanoseconds since the machine was switched on.
pub(super) struct RealClock {
    /// What it showed when it was started.
    from: u64,
    started: Instant,
    tape: RefCell<Tape>,
}

enum Tape {
    None,
    /// The last reading, and those since they were last taken, each as its distance from the
    /// one before it.
    Recording {
        last: u64,
        fresh: Vec<u64>,
    },
    /// What is left of the readings, the next one last.
    Playing {
        last: u64,
        left: Vec<u64>,
        over: Option<Instant>,
    },
}

impl RealClock {
    /// The host's clock.
    pub(super) fn live() -> RealClock {
        RealClock::new(Tape::None)
    }

    /// The host's clock, on a machine that was switched on `from` nanoseconds ago.
    pub(super) fn live_from(from: u64) -> RealClock {
        RealClock { from, ..RealClock::live() }
    }

    /// The host's clock, whose readings can be taken.
    pub(super) fn recording() -> RealClock {
        RealClock::new(Tape::Recording { last: 0, fresh: Vec::new() })
    }

    /// Readings of another run. After the last one, time goes on as the host's does.
    pub(super) fn playing(mut readings: Vec<u64>) -> RealClock {
        readings.reverse();
        RealClock::new(Tape::Playing { last: 0, left: readings, over: None })
    }

    fn new(tape: Tape) -> RealClock {
        RealClock { from: 0, started: Instant::now(), tape: RefCell::new(tape) }
    }

    /// The time now.
    pub(super) fn read(&self) -> u64 {
        match &mut *self.tape.borrow_mut() {
            Tape::None => self.from.saturating_add(nanoseconds(self.started)),
            Tape::Recording { last, fresh } => {
                let now = nanoseconds(self.started);
                fresh.push(now - *last);
                *last = now;
                now
            }
            Tape::Playing { last, left, over } => match left.pop() {
                Some(distance) => {
                    *last = last.saturating_add(distance);
                    *last
                }
                None => last.saturating_add(nanoseconds(*over.get_or_insert_with(Instant::now))),
            },
        }
    }

    /// The readings since the last call, if they are recorded.
    pub(super) fn take_readings(&self) -> Vec<u64> {
        match &mut *self.tape.borrow_mut() {
            Tape::Recording { fresh, .. } => std::mem::take(fresh),
            _ => Vec::new(),
        }
    }

    /// Does time pass by itself? Not while a record says what time it is.
    pub(super) fn is_host_time(&self) -> bool {
        !matches!(&*self.tape.borrow(), Tape::Playing { left, .. } if !left.is_empty())
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_from_a_time() {
        let clock = RealClock::live_from(5_000_000_000);
        assert!(clock.read() >= 5_000_000_000);
        assert_eq!(RealClock::live_from(u64::MAX).read(), u64::MAX);
    }

    #[test]
    fn a_recorded_clock_replays_to_the_nanosecond_and_then_goes_on() {
        let recording = RealClock::recording();
        let first = [(); 3].map(|()| recording.read());
        let mut readings = recording.take_readings();
        let second = [(); 2].map(|()| recording.read());
        readings.extend(recording.take_readings());
        assert_eq!((readings.len(), recording.take_readings()), (5, Vec::new()));

        let playing = RealClock::playing(readings);
        assert!(!playing.is_host_time());
        assert_eq!([(); 3].map(|()| playing.read()), first);
        assert_eq!([(); 2].map(|()| playing.read()), second);
        assert!(playing.is_host_time());
        let (after, later) = (playing.read(), playing.read());
        assert!(second[1] <= after && after <= later);
    }
}
