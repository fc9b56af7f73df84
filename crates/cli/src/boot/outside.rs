//! What a run takes from outside before it begins: the date, the clock, and a record if one is
//! replayed.

use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::options::{Args, ClockKind};
use super::real_clock::RealClock;
use super::replay::Replay;
use super::snapshot::Loaded;
use super::summary;

/// 2026-01-01: any date does, as long as it is always the same.
const DATE: i64 = 1_767_225_600;

/// All of it.
pub(super) struct Outside {
    /// Seconds since 1970 when the machine is switched on.
    pub(super) date: i64,
    /// With `--clock real`.
    pub(super) clock: Option<Rc<RealClock>>,
    pub(super) replay: Option<Replay>,
}

impl Outside {
    /// As the options say. A record has to be of the same machine. A snapshot has a clock and a
    /// date of its own.
    pub(super) fn open(args: &Args, loaded: Option<&Loaded>) -> Result<Outside, String> {
        if let Some(loaded) = loaded {
            let clock = match loaded.clock() {
                ClockKind::Virtual => None,
                ClockKind::Real => Some(Rc::new(RealClock::live_from(loaded.now()))),
            };
            return Ok(Outside { date: DATE, clock, replay: None });
        }
        let mut replay = args.replay.as_deref().map(Replay::read).transpose()?;
        if let Some(replay) = &replay {
            replay.check(&summary::of(args)?, args.date)?;
        }
        let date = replay.as_ref().map(Replay::date).or(args.date);
        let clock = match (args.clock, &mut replay) {
            (ClockKind::Virtual, _) => None,
            (ClockKind::Real, Some(replay)) => Some(RealClock::playing(replay.take_readings())),
            (ClockKind::Real, None) if args.record.is_some() => Some(RealClock::recording()),
            (ClockKind::Real, None) => Some(RealClock::live()),
        };
        let date = date.unwrap_or_else(|| default_date(args.clock));
        Ok(Outside { date, clock: clock.map(Rc::new), replay })
    }
}

fn default_date(clock: ClockKind) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    match (clock, now) {
        (ClockKind::Real, Ok(now)) => now.as_secs().try_into().unwrap_or(DATE),
        _ => DATE,
    }
}
