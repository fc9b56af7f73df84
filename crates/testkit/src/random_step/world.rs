//! The world around a random processor: every physical page of the whole address space is RAM,
//! ROM, a device or nothing, as a hash of its number says. The few host pages lie behind many
//! physical ones, so code that modifies itself through an alias is common.

use core::sync::atomic::Ordering::Relaxed;

use realmode::{Access, Bus, Control, Cpu, Fault, Linear, Phys, Prepared, Reply, Request};

use super::memory::{Arena, PAGES, RAM_PAGES};
use super::paging;
use super::state::Case;
use crate::prng::mix;

/// More calls than a unit of budget can lead to: a slice of REP is 4096 iterations, with a few
/// pages each. A case that makes more hangs.
const CALLS_PER_STEP: u64 = 20_000;

/// What a physical page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Ram(usize),
    Rom(usize),
    Device,
    Nothing,
}

/// What the pages of an address space are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub(crate) salt: u64,
    /// Devices among 64 pages.
    pub(crate) devices: u64,
}

impl Map {
    pub(crate) fn kind(self, page: u64) -> Kind {
        if let Some(table) = paging::table(page) {
            return Kind::Rom(table);
        }
        let hash = mix(page ^ self.salt);
        let choice = hash >> 32;
        match hash % 64 {
            n if n < self.devices => Kind::Device,
            62 => Kind::Nothing,
            // The same storage is RAM elsewhere: a ROM shadow.
            54..62 => Kind::Rom(choice as usize % PAGES),
            _ => Kind::Ram(choice as usize % RAM_PAGES),
        }
    }
}

/// A call that the bus cannot undo, with what it was about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Mmio(Request),
    Port(Request),
    Acknowledge,
    Random,
    ReadMsr(u32),
    WriteMsr(u32, u64),
    Invalidate(Option<Linear>),
    Trace(u64),
    FpuError,
    Fault(Fault),
}

/// A call and the number of instructions that had been completed when it came.
pub(crate) type Entry = (u64, Seen);

/// The bus of a random case. What it answers and what it disturbs depend only on the case and on
/// how many calls it has logged, so every run of a case meets the same world.
pub(crate) struct World<'w> {
    arena: &'w Arena,
    salt: u64,
    map: Map,
    /// Pages whose meaning changed during the run, with the salt of their new one.
    changed: Vec<(u64, u64)>,
    /// A page that is worth changing: the one execution began in.
    code_page: u64,
    pub(crate) log: Vec<Entry>,
    /// Devices answer `Pending`, and the answer lies in `reply`.
    pub(crate) pending: bool,
    pub(crate) reply: u64,
    /// What has to be added to `Control::retired` to count from the start of the case.
    pub(crate) clock: u64,
    /// No `Pending` while the clock says this: the map changed in the middle of an instruction,
    /// and a request would prepare its operands again.
    ready_at: Option<u64>,
    calls_left: u64,
}

impl<'w> World<'w> {
    pub(crate) fn new(arena: &'w Arena) -> World<'w> {
        World {
            arena,
            salt: 0,
            map: Map { salt: 0, devices: 0 },
            changed: Vec::new(),
            code_page: 0,
            log: Vec::new(),
            pending: false,
            reply: 0,
            clock: 0,
            ready_at: None,
            calls_left: 0,
        }
    }

    /// Begins a run of a case.
    pub(crate) fn begin(&mut self, case: &Case, pending: bool) {
        (self.salt, self.map, self.code_page) = (case.salt, case.map, case.code_page);
        (self.pending, self.reply, self.clock, self.ready_at) = (pending, 0, 0, None);
        self.calls_left = (case.budget + 2) * CALLS_PER_STEP;
        self.changed.clear();
        self.log.clear();
        self.arena.dirty.store(0, Relaxed);
    }

    fn count_call(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
        assert!(self.calls_left != 0, "hang: more bus calls than the budget can lead to");
    }

    /// Logs a call; returns random bits that belong to it.
    fn note(&mut self, seen: Seen, control: &Control) -> u64 {
        self.count_call();
        let number = self.log.len() as u64;
        self.log.push((self.clock.wrapping_add(control.retired()), seen));
        mix(self.salt.wrapping_add(number.wrapping_mul(0x9E37_79B9)))
    }

    /// Logs a call that comes without a clock.
    fn note_unclocked(&mut self, seen: Seen) {
        self.count_call();
        self.log.push((0, seen));
    }

    /// A device access, answered or left to the VMM.
    fn access(&mut self, seen: Seen, page: u64, control: &mut Control) -> Reply {
        let bits = self.note(seen, control);
        self.disturb(bits, page, control);
        let clock = self.clock.wrapping_add(control.retired());
        let value = mix(bits);
        if bits >> 32 & 63 == 0 {
            let vectors = [13, 14, 12, 18, 0, 6, 8, 17];
            return Reply::Fault(Fault::new(vectors[(bits >> 40 & 7) as usize]));
        }
        if self.pending && self.ready_at != Some(clock) {
            self.reply = value;
            return Reply::Pending;
        }
        Reply::Ready(value)
    }

    /// Sometimes asks something of the emulator.
    fn disturb(&mut self, bits: u64, page: u64, control: &mut Control) {
        let clock = self.clock.wrapping_add(control.retired());
        match bits & 63 {
            0 | 1 => control.interrupt(true),
            2 => control.interrupt(false),
            3 => control.nmi(),
            4 => control.stop(),
            5 => {
                control.a20(bits >> 8 & 1 != 0);
                self.ready_at = Some(clock);
            }
            6 => control.withdraw(Phys(page << 12), bits >> 8 & 0xFFFF),
            7 | 8 => {
                let page = if bits >> 9 & 1 != 0 { self.code_page } else { page ^ bits >> 10 & 3 };
                self.changed.retain(|&(old, _)| old != page);
                self.changed.push((page, bits));
                control.withdraw(Phys(page << 12), 4096);
                self.ready_at = Some(clock);
            }
            _ => {}
        }
    }

    fn kind(&self, page: u64) -> Kind {
        let changed = self.changed.iter().find(|&&(changed, _)| changed == page);
        let salt = changed.map_or(self.map.salt, |&(_, salt)| salt);
        Map { salt, ..self.map }.kind(page)
    }
}

impl<'a, 'w: 'a> Bus<'a> for World<'w> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        self.count_call();
        match self.kind(page.0 >> 12) {
            Kind::Ram(n) => Prepared::Ram(self.arena.host_page(n)),
            Kind::Rom(n) => Prepared::Rom(self.arena.host_page(n)),
            Kind::Device => Prepared::Mmio,
            Kind::Nothing => Prepared::Unmapped,
        }
    }

    fn mmio_read(&mut self, address: Phys, size: u8, control: &mut Control) -> Reply {
        let seen = Seen::Mmio(read(address.0, size));
        self.access(seen, address.0 >> 12, control)
    }

    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, control: &mut Control) -> Reply {
        let seen = Seen::Mmio(write(address.0, size, data));
        self.access(seen, address.0 >> 12, control)
    }

    fn port_in(&mut self, port: u16, size: u8, control: &mut Control) -> Reply {
        self.access(Seen::Port(read(port.into(), size)), self.code_page, control)
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, control: &mut Control) -> Reply {
        self.access(Seen::Port(write(port.into(), size, data)), self.code_page, control)
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        let bits = self.note(Seen::Acknowledge, control);
        self.disturb(bits, self.code_page, control);
        mix(bits) as u8
    }

    fn is_bootstrap_processor(&self) -> bool {
        self.salt & 1 != 0
    }

    fn read_msr(&mut self, index: u32, control: &mut Control) -> Option<u64> {
        let bits = self.note(Seen::ReadMsr(index), control);
        (bits & 3 != 0).then_some(mix(bits))
    }

    fn write_msr(&mut self, index: u32, value: u64, control: &mut Control) -> bool {
        let bits = self.note(Seen::WriteMsr(index, value), control);
        self.disturb(bits, self.code_page, control);
        bits >> 32 & 3 != 0
    }

    fn tsc(&mut self, control: &mut Control) -> u64 {
        self.clock.wrapping_add(control.retired())
    }

    fn random(&mut self, control: &mut Control) -> Option<u64> {
        let bits = self.note(Seen::Random, control);
        (bits & 3 != 0).then_some(mix(bits))
    }

    fn invalidate(&mut self, linear: Option<Linear>) {
        self.note_unclocked(Seen::Invalidate(linear));
    }

    fn trace_write(&mut self, value: u64) {
        self.note_unclocked(Seen::Trace(value));
    }

    fn fpu_error(&mut self, control: &mut Control) {
        let bits = self.note(Seen::FpuError, control);
        self.disturb(bits, self.code_page, control);
    }

    fn observe_fault(&mut self, _: &Cpu, fault: Fault) {
        self.note_unclocked(Seen::Fault(fault));
    }
}

fn read(address: u64, size: u8) -> Request {
    Request { address, size, direction: realmode::Direction::Read, data: 0 }
}

fn write(address: u64, size: u8, data: u64) -> Request {
    Request { address, size, direction: realmode::Direction::Write, data }
}
