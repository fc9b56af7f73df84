//! The MC146818 clock with its CMOS memory, after Motorola's data sheet.
//!
//! Simplified: an alarm that is only polled is seen in its own second, and the day of the week
//! follows from the date.

use crate::calendar::Date;

/// The index port; the data port follows.
pub(crate) const CMOS: u16 = 0x70;

const SECOND: u64 = 1_000_000_000;
/// The dates it is counted with: some 17 million years.
const MOST_EPOCH: i64 = 1 << 49;
/// The update cycle and the warning before it: UIP is set.
const UPDATE: u64 = 2_228_000;

const STATUS_A: u8 = 0x0A;
const STATUS_B: u8 = 0x0B;
const STATUS_C: u8 = 0x0C;
const STATUS_D: u8 = 0x0D;
const CENTURY: u8 = 0x32;
/// Where the alarm of a register of the time is.
const ALARMS: [usize; 3] = [1, 3, 5];
/// Alarm values from here up match anything.
const ANY: u8 = 0xC0;

const A_UPDATE: u8 = 1 << 7;
const B_SET: u8 = 1 << 7;
const B_BINARY: u8 = 1 << 2;
const B_24_HOURS: u8 = 1 << 1;
const PERIODIC: u8 = 1 << 6;
const ALARM: u8 = 1 << 5;
const UPDATED: u8 = 1 << 4;
const INTERRUPT: u8 = 1 << 7;
const PM: u8 = 1 << 7;

/// Clock and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rtc {
    index: u8,
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    memory: [u8; 128],
    /// Seconds since 1970 at time 0.
    epoch: i64,
    /// The time, while SET holds it.
    set: Option<Date>,
    flags: u8,
    /// Up to when events have been seen.
    seen: u64,
}

impl Rtc {
    pub(crate) const fn new(epoch: i64) -> Rtc {
        let mut memory = [0; 128];
        memory[STATUS_A as usize] = 0x26;
        memory[STATUS_B as usize] = B_24_HOURS;
        Rtc { index: 0, memory, epoch, set: None, flags: 0, seen: 0 }
    }

    /// The clock stands at `epoch` seconds since 1970 at time 0.
    pub(crate) fn set_epoch(&mut self, epoch: i64) {
        self.epoch = epoch.clamp(-MOST_EPOCH, MOST_EPOCH);
    }

    /// A byte of its memory, as a BIOS finds it.
    pub(crate) fn set_byte(&mut self, index: u8, value: u8) {
        self.memory[usize::from(index & 0x7F)] = value;
    }

    pub(crate) fn read(&mut self, register: u16, now: u64) -> u8 {
        self.settle(now);
        match (register, self.index) {
            (0, _) => 0xFF,
            (_, 0 | 2 | 4 | 6..=9 | CENTURY) => self.read_time(now),
            (_, STATUS_A) => self.memory[usize::from(STATUS_A)] | self.updating(now),
            (_, STATUS_C) => {
                let flags = self.flags | if self.interrupts() { INTERRUPT } else { 0 };
                self.flags = 0;
                flags
            }
            (_, STATUS_D) => 0x80,
            (_, index) => self.memory[usize::from(index)],
        }
    }

    pub(crate) fn write(&mut self, register: u16, value: u8, now: u64) {
        self.settle(now);
        match (register, self.index) {
            (0, _) => self.index = value & 0x7F,
            (_, 0 | 2 | 4 | 6..=9 | CENTURY) => self.write_time(value, now),
            (_, STATUS_A) => self.memory[usize::from(STATUS_A)] = value & 0x7F,
            (_, STATUS_B) => self.write_status_b(value, now),
            (_, STATUS_C | STATUS_D) => {}
            (_, index) => self.memory[usize::from(index)] = value,
        }
    }

    /// The level of IRQ 8.
    pub(crate) fn interrupts(&self) -> bool {
        self.flags & self.status_b() & (PERIODIC | ALARM | UPDATED) != 0
    }

    /// When it next has something new to tell. What has not been read yet is nothing new.
    pub(crate) fn next_event(&self) -> Option<u64> {
        let wanted = self.status_b() & !self.flags;
        let tick = self.period().filter(|_| wanted & PERIODIC != 0).map(|period| {
            // Counts of 32768 Hz, in whole periods from time 0.
            let next = (counts(self.seen) / period + 1) * period;
            let at = (u128::from(next) * u128::from(SECOND)).div_ceil(32_768);
            u64::try_from(at).unwrap_or(u64::MAX)
        });
        let is_set = self.status_b() & B_SET != 0;
        let second = (wanted & (UPDATED | ALARM) != 0 && !is_set)
            .then(|| (self.seen / SECOND + 1).saturating_mul(SECOND));
        match (tick, second) {
            (Some(tick), Some(second)) => Some(tick.min(second)),
            (tick, second) => tick.or(second),
        }
    }

    /// Notes what has happened up to `now`.
    pub(crate) fn settle(&mut self, now: u64) {
        let before = self.seen;
        let now = now.max(before);
        self.seen = now;
        let has_ticked =
            self.period().is_some_and(|period| counts(before) / period != counts(now) / period);
        if has_ticked {
            self.flags |= PERIODIC;
        }
        if self.status_b() & B_SET == 0 && before / SECOND < now / SECOND {
            self.flags |= UPDATED;
            if self.is_alarm(now) {
                self.flags |= ALARM;
            }
        }
    }

    /// Can it have come to this by `now`?
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        usize::from(self.index) < self.memory.len()
            && (-MOST_EPOCH..=MOST_EPOCH).contains(&self.epoch)
            && self.set.is_none_or(Date::is_near)
            && self.seen <= now
    }

    fn status_b(&self) -> u8 {
        self.memory[usize::from(STATUS_B)]
    }

    fn updating(&self, now: u64) -> u8 {
        let is_near = now % SECOND >= SECOND - UPDATE;
        if is_near && self.status_b() & B_SET == 0 { A_UPDATE } else { 0 }
    }

    /// The period of the rate that status A selects, in counts of 32768 Hz.
    fn period(&self) -> Option<u64> {
        match self.memory[usize::from(STATUS_A)] & 0xF {
            0 => None,
            // 256 and 128 Hz once more.
            rate @ (1 | 2) => Some(1 << (rate + 6)),
            rate => Some(1 << (rate - 1)),
        }
    }

    fn date(&self, now: u64) -> Date {
        self.set.unwrap_or_else(|| Date::of(self.epoch.saturating_add((now / SECOND) as i64)))
    }

    fn is_alarm(&self, now: u64) -> bool {
        let date = self.date(now);
        let time = [self.encode(date.second), self.encode(date.minute), self.encode_hour(date)];
        ALARMS.iter().zip(time).all(|(alarm, value)| {
            let alarm = self.memory[*alarm];
            alarm == value || alarm >= ANY
        })
    }

    fn read_time(&self, now: u64) -> u8 {
        let date = self.date(now);
        match self.index {
            0 => self.encode(date.second),
            2 => self.encode(date.minute),
            4 => self.encode_hour(date),
            6 => self.encode(date.weekday()),
            7 => self.encode(date.day),
            8 => self.encode(date.month),
            9 => self.encode(date.year.rem_euclid(100)),
            _ => self.encode(date.year.div_euclid(100)),
        }
    }

    fn write_time(&mut self, value: u8, now: u64) {
        let mut date = self.date(now);
        let number = self.decode(value);
        match self.index {
            0 => date.second = number,
            2 => date.minute = number,
            4 if self.status_b() & B_24_HOURS != 0 => date.hour = number,
            4 => date.hour = self.decode(value & !PM) % 12 + if value & PM != 0 { 12 } else { 0 },
            7 => date.day = number,
            8 => date.month = number,
            9 => date.year += number - date.year.rem_euclid(100),
            CENTURY => date.year += 100 * (number - date.year.div_euclid(100)),
            _ => {}
        }
        if self.set.is_some() {
            self.set = Some(date);
        } else {
            self.start_at(date, now);
        }
    }

    fn start_at(&mut self, date: Date, now: u64) {
        self.set_epoch(date.seconds().saturating_sub((now / SECOND) as i64));
    }

    fn write_status_b(&mut self, value: u8, now: u64) {
        let date = self.date(now);
        // Setting the time ends update interrupts.
        let value = if value & B_SET != 0 { value & !UPDATED } else { value };
        self.memory[usize::from(STATUS_B)] = value;
        if value & B_SET != 0 {
            self.set = Some(date);
        } else if self.set.take().is_some() {
            self.start_at(date, now);
        }
    }

    fn encode(&self, number: i64) -> u8 {
        let number = number as u8;
        let (tens, ones) = (number / 10 % 10, number % 10);
        if self.status_b() & B_BINARY != 0 { number } else { tens << 4 | ones }
    }

    fn encode_hour(&self, date: Date) -> u8 {
        if self.status_b() & B_24_HOURS != 0 {
            return self.encode(date.hour);
        }
        self.encode((date.hour + 11) % 12 + 1) | if date.hour >= 12 { PM } else { 0 }
    }

    fn decode(&self, value: u8) -> i64 {
        let is_binary = self.status_b() & B_BINARY != 0;
        i64::from(if is_binary { value } else { (value >> 4) * 10 + (value & 0xF) })
    }
}

/// Counts of the 32768 Hz crystal.
fn counts(now: u64) -> u64 {
    (u128::from(now) * 32_768 / u128::from(SECOND)) as u64
}

#[cfg(test)]
#[path = "rtc_tests.rs"]
mod tests;
