//! One instruction alone: fetch, decode, execute, and what becomes of it.

use crate::arch::msr::DEBUGCTL_BTF;
use crate::arch::registers::RIP_SLOT;
use crate::arch::rflags::TF;
use crate::arch::vector;
use crate::decode::{Incomplete, decode};
use crate::fault::Fault;
use crate::flight::Work;
use crate::machine::{Leave, Road, Window};
use crate::mem::fetch::End;
use crate::profile::{Generation, Profile};
use crate::state::{Activity, Shadow};
use crate::stop::{Stop, Unimplemented, UnimplementedReason};

use super::code_mode::{code_size, context};
use super::dispatch::{Current, Runner};

impl Runner<'_, '_> {
    /// Fetches, decodes and executes one instruction.
    pub(super) fn step(&mut self) -> Option<Stop> {
        // IP and EIP have no more bits than these, except in 64-bit code.
        if self.m.profile.generation < Generation::I80286 {
            self.m.cpu.rip &= 0xFFFF;
        } else if !self.m.cpu.is_64_bit_code() {
            self.m.cpu.rip &= 0xFFFF_FFFF;
        }
        let breakpoints = self.m.code_breakpoints();
        if breakpoints != 0 {
            self.m.note_debug(breakpoints.into());
            return self.raise(Fault::new(vector::DB));
        }
        if self.m.has_virtual_interrupt() {
            return self.raise(Fault::GP);
        }
        let current = match self.fetch_and_decode() {
            Ok(current) => current,
            Err(leave) => {
                return self.settle(&Current::NONE, self.m.cpu.rip, false, leave);
            }
        };
        if let Some(observer) = self.m.observer.take() {
            self.m.settle_flags();
            let bytes = current.bytes.get(..usize::from(current.op.len)).unwrap_or_default();
            observer.decoded(self.m.cpu, bytes);
            self.m.observer = Some(observer);
            return self.execute_careful(&current, false);
        }
        if self.m.has_breakpoints() {
            // Every access is seen there.
            return self.execute_careful(&current, false);
        }
        self.execute(&current)
    }

    fn fetch_and_decode(&mut self) -> Result<Current, Leave> {
        let mut window = self.m.fetch()?;
        let context = context(self.m.cpu, self.m.profile);
        loop {
            match decode(window.bytes.get(..window.len).unwrap_or_default(), context) {
                Ok((op, details)) => {
                    let mut bytes = [0; 15];
                    let len = usize::from(op.len).min(window.len).min(15);
                    if details.repeat != 0 {
                        self.m.guard(&window, len);
                    }
                    bytes[..len].copy_from_slice(&window.bytes[..len]);
                    return Ok(Current { op, bytes });
                }
                Err(Incomplete::Short) if window.end == End::Page => {
                    self.m.fetch_more(&mut window)?;
                }
                Err(Incomplete::Short) if window.end == End::Limit => {
                    return Err(Fault::GP.into());
                }
                Err(_) => return Err(too_long(self.m.profile)),
            }
        }
    }

    /// Executes an instruction over plain memory, or carefully if it needs that.
    fn execute(&mut self, current: &Current) -> Option<Stop> {
        let start = self.m.cpu.rip;
        let trap = self.begin(current);
        match self.call(current) {
            Err(Leave::Again) => {
                self.m.cpu.rip = start;
                self.execute_careful(current, false)
            }
            result => self.end(current, start, trap, result),
        }
    }

    /// Executes an instruction with every access recorded and devices allowed. `resumed`: the
    /// record already holds its first accesses.
    pub(super) fn execute_careful(&mut self, current: &Current, resumed: bool) -> Option<Stop> {
        self.counters.careful += 1;
        let start = self.m.cpu.rip;
        self.enter_careful(resumed);
        let trap = self.begin(current);
        let result = self.call(current);
        self.leave_careful();
        self.end(current, start, trap, result)
    }

    pub(super) fn enter_careful(&mut self, resumed: bool) {
        self.m.road = Road::Careful;
        self.m.windows = [Window::default(); 8];
        if resumed {
            self.m.flight.rewind();
        } else {
            self.m.flight.begin();
        }
    }

    pub(super) fn leave_careful(&mut self) {
        self.m.road = Road::Block;
        self.m.windows = [Window::default(); 8];
        self.m.attention = true;
    }

    /// Moves RIP past the instruction, and tells whether TF traps it.
    fn begin(&mut self, current: &Current) -> bool {
        let op = &current.op;
        let m = &mut self.m;
        m.cpu.rip = m.cpu.rip.wrapping_add(op.until_end());
        if m.profile.generation < Generation::I80286 {
            m.cpu.rip &= 0xFFFF;
        }
        *m.cpu.gpr.slot_mut(RIP_SLOT) = m.cpu.rip;
        m.casts = Shadow::NONE;
        m.keep_rf = false;
        m.no_trap = false;
        m.watched = 0;
        let trap = m.cpu.rflags & TF != 0;
        let steps = trap && m.cpu.msr.debugctl & DEBUGCTL_BTF == 0;
        m.stepping = steps || m.has_breakpoints();
        trap
    }

    #[inline]
    fn call(&mut self, current: &Current) -> Result<(), Leave> {
        let handler = current.op.handler.unwrap_or(crate::decode::undefined);
        handler(&mut self.m, &current.op)
    }

    /// An instruction alone came to its end, one way or the other.
    fn end(
        &mut self,
        current: &Current,
        start: u64,
        trap: bool,
        result: Result<(), Leave>,
    ) -> Option<Stop> {
        match result {
            Ok(()) => {
                let rip = &mut self.m.cpu.rip;
                *rip = rip.wrapping_sub(u64::from(current.op.tail));
                self.complete(self.is_trapped(trap, current, start));
                None
            }
            Err(Leave::Branch) => {
                self.complete(self.is_trapped(trap, current, start));
                None
            }
            Err(leave) => self.settle(current, start, trap && self.m.stepping, leave),
        }
    }

    /// With IA32_DEBUGCTL.BTF only a taken branch is trapped (SDM vol. 3B, "Single-Stepping on
    /// Branches"). One to the next instruction passes for none.
    fn is_trapped(&self, trap: bool, current: &Current, start: u64) -> bool {
        let next = start.wrapping_add(u64::from(current.op.len));
        trap && (self.m.stepping || self.m.cpu.rip != next)
    }

    /// One more instruction is done.
    fn complete(&mut self, trap: bool) {
        self.fuel = self.fuel.saturating_sub(1);
        self.m.control.retired += 1;
        let trap = trap && !self.m.no_trap;
        self.m.retire_one(trap);
        self.m.attention = true;
        self.counters.instructions = self.m.control.retired;
        if let Some(observer) = self.m.observer.take() {
            self.m.settle_flags();
            observer.retired(self.m.cpu);
            self.m.observer = Some(observer);
        }
    }

    /// An instruction at `start` left for another reason than a branch.
    pub(super) fn settle(
        &mut self,
        current: &Current,
        start: u64,
        trap: bool,
        leave: Leave,
    ) -> Option<Stop> {
        let after = start.wrapping_add(u64::from(current.op.len));
        self.m.attention = true;
        if let Leave::Late(fault) = leave {
            return self.raise(fault);
        }
        self.m.cpu.rip = start;
        match leave {
            Leave::Branch | Leave::Again | Leave::Late(_) => None,
            Leave::Fault(fault) => {
                // 8086: a division error saves the address of the next instruction.
                if fault == Fault::DE && self.m.profile.generation < Generation::I80286 {
                    self.m.cpu.rip = after & 0xFFFF;
                }
                self.raise(fault)
            }
            Leave::Repeat => {
                self.fuel = self.fuel.saturating_sub(1);
                self.m.keep_rf = true;
                self.m.retire_one(trap);
                None
            }
            Leave::Iterate => None,
            Leave::Halt => {
                self.m.cpu.rip = after;
                self.m.cpu.activity = Activity::Halted;
                self.complete(trap);
                None
            }
            Leave::Hypercall => {
                self.m.cpu.rip = after;
                self.complete(trap);
                Some(Stop::Hypercall)
            }
            Leave::Pending => {
                let (bytes, len) = (current.bytes, current.op.len);
                Some(self.hold(Work::Instruction { bytes, len }))
            }
            Leave::Intercept(what) => Some(Stop::Intercept(what)),
            Leave::Unimplemented(reason) => Some(self.unimplemented(current, reason)),
        }
    }

    pub(super) fn unimplemented(&mut self, current: &Current, reason: UnimplementedReason) -> Stop {
        let fetch = reason == UnimplementedReason::FetchFromMmio;
        Stop::Unimplemented(Unimplemented {
            reason,
            rip: self.m.cpu.rip,
            bytes: current.bytes,
            len: current.op.len,
            bits: code_size(self.m.cpu, self.m.profile).bits(),
            address: if fetch { self.m.fetch_address } else { 0 },
        })
    }
}

/// An instruction longer than the processor takes: #GP. An 8086 goes on forever, which an
/// emulator cannot.
fn too_long(profile: &Profile) -> Leave {
    match profile.generation {
        Generation::I8086 | Generation::I80186 => {
            Leave::Unimplemented(UnimplementedReason::Instruction)
        }
        _ => Fault::GP.into(),
    }
}
