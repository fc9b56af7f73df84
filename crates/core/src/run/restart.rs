//! Holding an instruction or event that waits for a device, and going on with it.

use crate::arch::registers::SegReg;
use crate::decode::decode;
use crate::flight::Work;
use crate::stop::Stop;

use super::code_mode::{context, decode_key, wrap_ip};
use super::dispatch::{Current, Runner};

impl Runner<'_, '_> {
    /// Keeps what is in flight for the next run.
    pub(super) fn hold(&mut self, work: Work) -> Stop {
        wrap_ip(self.m.cpu, self.m.profile);
        let record = &mut self.m.flight.record;
        record.rip = self.m.cpu.rip;
        record.cs_base = self.m.cpu.segment(SegReg::Cs).base;
        record.key = decode_key(self.m.cpu, self.m.profile);
        record.work = work;
        self.m.flight.is_held = true;
        self.held_stop()
    }

    fn held_stop(&self) -> Stop {
        let record = &self.m.flight.record;
        if record.is_port { Stop::Port(record.request) } else { Stop::Mmio(record.request) }
    }

    /// Goes on with what is in flight, if its reply is there.
    pub(super) fn resume(&mut self) -> Option<Stop> {
        if !self.m.flight.record.answered {
            return Some(self.held_stop());
        }
        let work = self.m.flight.record.work;
        // The delivery of an event costs nothing, as without the wait.
        if self.fuel == 0 && matches!(work, Work::Instruction { .. }) {
            return Some(Stop::Budget);
        }
        self.m.flight.is_held = false;
        match work {
            Work::Event(event) => self.deliver(event, true),
            Work::Instruction { bytes, len } => {
                let context = context(self.m.cpu, self.m.profile);
                let len = usize::from(len).min(15);
                match decode(&bytes[..len], context) {
                    Ok((op, _)) => self.execute_careful(&Current { op, bytes }, true),
                    Err(_) => None,
                }
            }
        }
    }
}
