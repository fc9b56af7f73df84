//! One counter of the 8254, after Intel's data sheet. Times are ticks of its clock.
//!
//! Simplified: a count written to a running mode 3 takes effect at the end of the whole cycle,
//! not of its half.

/// How a count of 16 bits passes 8 bits of bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Bytes {
    Low = 1,
    High = 2,
    Both = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Counter {
    mode: u8,
    bytes: Bytes,
    bcd: bool,
    /// What it counts down from, 1 to 10000h.
    count: u64,
    /// What it will count down from next.
    reload: u64,
    /// The tick at which it began to count down from `count`.
    start: Option<u64>,
    /// The tick at which `reload` becomes `count` in modes 2 and 3.
    reload_at: Option<u64>,
    gate: bool,
    /// How far it had come when the gate closed.
    held: Option<u64>,
    /// The first of two bytes written.
    low: Option<u8>,
    latched: Option<u16>,
    latched_status: Option<u8>,
    /// The high byte is read next.
    reads_high: bool,
    /// A count has been written since the control word.
    is_loaded: bool,
}

impl Counter {
    pub(crate) const fn new(gate: bool) -> Counter {
        Counter {
            mode: 3,
            bytes: Bytes::Both,
            bcd: false,
            count: 0x1_0000,
            reload: 0x1_0000,
            start: None,
            reload_at: None,
            gate,
            held: None,
            low: None,
            latched: None,
            latched_status: None,
            reads_high: false,
            is_loaded: false,
        }
    }

    /// A control word for this counter; bits 4 and 5 clear latch the count.
    pub(crate) fn control(&mut self, value: u8, tick: u64) {
        let bytes = match value >> 4 & 3 {
            0 => return self.latch_count(tick),
            1 => Bytes::Low,
            2 => Bytes::High,
            _ => Bytes::Both,
        };
        let mode = match value >> 1 & 7 {
            mode @ 6..=7 => mode - 4,
            mode => mode,
        };
        let bcd = value & 1 != 0;
        let count = if bcd { 10_000 } else { 0x1_0000 };
        *self = Counter { mode, bytes, bcd, count, reload: count, ..Counter::new(self.gate) };
    }

    pub(crate) fn write(&mut self, value: u8, tick: u64) {
        let count = match (self.bytes, self.low) {
            (Bytes::Low, _) => u16::from(value),
            (Bytes::High, _) => u16::from(value) << 8,
            (Bytes::Both, None) => {
                self.low = Some(value);
                if self.mode == 0 {
                    // The first byte stops the count and lowers the output.
                    self.start = None;
                }
                return;
            }
            (Bytes::Both, Some(low)) => u16::from_le_bytes([low, value]),
        };
        self.low = None;
        self.load(count, tick);
    }

    fn load(&mut self, count: u16, tick: u64) {
        self.settle(tick);
        self.reload = match (self.bcd, count) {
            (false, 0) => 0x1_0000,
            (true, 0) => 10_000,
            (false, count) => u64::from(count),
            // Digits above 9 are nobody's business.
            (true, count) => from_bcd(count).clamp(1, 10_000),
        };
        self.is_loaded = true;
        match (self.mode, self.start) {
            // Triggered by the gate.
            (1 | 5, _) => {}
            (2 | 3, Some(start)) if self.held.is_none() => {
                let cycles = tick.saturating_sub(start) / self.count + 1;
                self.reload_at = Some(start + cycles * self.count);
            }
            _ => self.restart(tick),
        }
    }

    /// Begins to count at the next tick, if the gate is open.
    fn restart(&mut self, tick: u64) {
        self.count = self.reload;
        self.start = Some(tick + 1);
        self.reload_at = None;
        self.held = (!self.gate && matches!(self.mode, 0 | 2 | 3 | 4)).then_some(0);
    }

    pub(crate) fn set_gate(&mut self, high: bool, tick: u64) {
        self.settle(tick);
        let was = core::mem::replace(&mut self.gate, high);
        if was == high {
            return;
        }
        match (self.mode, high, self.start) {
            (1 | 5, true, _) | (2 | 3, true, Some(_)) if self.is_loaded => self.restart(tick),
            (1 | 5, ..) | (_, _, None) => {}
            (_, false, Some(_)) => self.held = Some(self.elapsed(tick)),
            (_, true, Some(_)) => {
                let elapsed = self.held.take().unwrap_or(0);
                self.start = Some(tick.saturating_sub(elapsed));
            }
        }
    }

    /// Takes up a new count whose time has come.
    pub(crate) fn settle(&mut self, tick: u64) {
        if let Some(at) = self.reload_at.filter(|at| *at <= tick) {
            (self.count, self.start, self.reload_at) = (self.reload, Some(at), None);
        }
    }

    /// Ticks since the count was loaded.
    fn elapsed(&self, tick: u64) -> u64 {
        self.held.unwrap_or_else(|| tick.saturating_sub(self.start.unwrap_or(tick)))
    }

    /// The output pin.
    pub(crate) fn output(&mut self, tick: u64) -> bool {
        self.settle(tick);
        let (elapsed, count) = (self.elapsed(tick), self.count);
        if self.start.is_none() {
            return self.mode != 0;
        }
        match self.mode {
            0 => elapsed >= count,
            1 => elapsed >= count || self.start.is_some_and(|start| tick < start),
            2 | 3 if self.held.is_some() => true,
            2 => elapsed % count != count - 1,
            3 => elapsed % count < count.div_ceil(2),
            _ => elapsed != count,
        }
    }

    /// The first tick after `tick` at which the output rises by itself.
    pub(crate) fn next_rise(&self, tick: u64) -> Option<u64> {
        let start = self.start?;
        if self.held.is_some() {
            return None;
        }
        let once = |at: u64| (at > tick).then_some(at);
        match self.mode {
            0 | 1 => once(start + self.count),
            2 | 3 => match self.reload_at.filter(|at| *at > tick) {
                Some(at) => Some(at),
                None => {
                    let cycles = tick.saturating_sub(start) / self.count + 1;
                    Some(start + cycles * self.count)
                }
            },
            _ => once(start + self.count + 1),
        }
    }

    fn value(&mut self, tick: u64) -> u16 {
        self.settle(tick);
        let (elapsed, count) = (self.elapsed(tick), self.count);
        let modulus = if self.bcd { 10_000 } else { 0x1_0000 };
        let left = match self.mode {
            2 => count - elapsed % count,
            3 => {
                // Down by two, once for each level of the output.
                let half = count.div_ceil(2);
                let phase = elapsed % count;
                (count & !1) - 2 * if phase < half { phase.min(count / 2) } else { phase - half }
            }
            _ => modulus - (elapsed % modulus + modulus - count) % modulus,
        };
        let left = left % modulus;
        if self.bcd { to_bcd(left) } else { left as u16 }
    }

    pub(crate) fn latch_count(&mut self, tick: u64) {
        if self.latched.is_none() {
            self.latched = Some(self.value(tick));
        }
    }

    pub(crate) fn latch_status(&mut self, tick: u64) {
        if self.latched_status.is_some() {
            return;
        }
        let output = u8::from(self.output(tick)) << 7;
        let is_counting = self.is_loaded
            && self.reload_at.is_none()
            && self.start.is_none_or(|start| start <= tick);
        let null = u8::from(!is_counting) << 6;
        let bytes = (self.bytes as u8) << 4;
        self.latched_status = Some(output | null | bytes | self.mode << 1 | u8::from(self.bcd));
    }

    pub(crate) fn read(&mut self, tick: u64) -> u8 {
        if let Some(status) = self.latched_status.take() {
            return status;
        }
        let [low, high] = self.latched.unwrap_or_else(|| self.value(tick)).to_le_bytes();
        let is_low = match self.bytes {
            Bytes::Low => true,
            Bytes::High => false,
            Bytes::Both => !self.reads_high,
        };
        self.reads_high = self.bytes == Bytes::Both && is_low;
        if !self.reads_high {
            self.latched = None;
        }
        if is_low { low } else { high }
    }

    /// Can it have come to this by `tick`?
    pub(crate) fn is_sound(&self, tick: u64) -> bool {
        let most = if self.bcd { 10_000 } else { 0x1_0000 };
        self.mode <= 5
            && (1..=most).contains(&self.count)
            && (1..=most).contains(&self.reload)
            && self.start.is_none_or(|start| start <= tick + 1)
            && self.held.is_none_or(|held| held <= tick)
            && self.reload_at.is_none_or(|at| at <= tick + 1 + most)
    }
}

fn from_bcd(value: u16) -> u64 {
    (0..4).rev().fold(0, |sum, digit| sum * 10 + u64::from(value >> (4 * digit) & 0xF))
}

fn to_bcd(value: u64) -> u16 {
    let digit = |power: u64| (value / power % 10) as u16;
    digit(1000) << 12 | digit(100) << 8 | digit(10) << 4 | digit(1)
}
