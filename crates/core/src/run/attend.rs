//! What is due between two instructions: requests of callbacks, stale blocks, events.

use crate::arch::rflags::IF;
use crate::arch::vector;
use crate::event::boundary::Boundary;
use crate::event::{Escalation, escalate};
use crate::fault::{Event, Fault};
use crate::flight::Work;
use crate::machine::Leave;
use crate::state::{Activity, Shadow};
use crate::stop::{Stop, UnimplementedReason};

use super::dispatch::{Current, Runner};
use crate::view::new_stamp;

/// What `attend` decided.
pub(super) enum Next {
    Go,
    Step,
    Stop(Stop),
}

/// Exceptions that may follow each other before one is delivered. The processor's own make a
/// triple fault of the fourth at the latest; a device behind the vector table could raise benign
/// ones forever.
const DELIVERIES: u8 = 8;

impl Runner<'_, '_> {
    /// Everything that can be due between two instructions.
    #[inline(never)]
    pub(super) fn attend(&mut self) -> Next {
        loop {
            if self.apply_control() {
                return Next::Stop(Stop::Requested);
            }
            self.retire_code();
            if self.m.casts.is_any() {
                // The last instruction of a block cast a shadow.
                self.m.cpu.shadow = core::mem::take(&mut self.m.casts);
            }
            match self.m.boundary() {
                Boundary::Run if self.m.observer.is_none() => {
                    self.m.attention = false;
                    self.m.stepping = false;
                    return Next::Go;
                }
                Boundary::Run | Boundary::Step => return Next::Step,
                Boundary::Trap(fault) if self.is_intercepted(fault) => {
                    return Next::Stop(Stop::Exception(fault));
                }
                Boundary::Trap(fault) => {
                    if let Some(stop) = self.deliver(Event::Exception(fault), false) {
                        return Next::Stop(stop);
                    }
                }
                Boundary::Deliver(event) => {
                    if let Some(stop) = self.deliver(event, false) {
                        return Next::Stop(stop);
                    }
                }
                Boundary::Smi => {
                    let reason = UnimplementedReason::Delivery;
                    return Next::Stop(self.unimplemented(&Current::NONE, reason));
                }
                Boundary::Asleep => return Next::Stop(self.asleep()),
            }
        }
    }

    fn asleep(&self) -> Stop {
        match self.m.cpu.activity {
            Activity::Shutdown => Stop::Shutdown,
            Activity::WaitForSipi => Stop::WaitForSipi,
            _ if self.m.cpu.rflags & IF != 0 => Stop::Halt,
            _ => Stop::Idle,
        }
    }

    /// Does what callbacks asked for. Returns whether one asked to stop.
    pub(super) fn apply_control(&mut self) -> bool {
        if let Some((start, len)) = self.m.control.withdrawn.take() {
            self.m.withdraw(start, len);
        }
        if let Some(open) = self.m.control.a20.take() {
            self.m.set_a20(open);
        }
        if let Some(priority) = self.m.control.task_priority.take() {
            self.m.cpu.cr8 = priority.into();
        }
        let control = &mut self.m.control;
        if let Some(asserted) = control.interrupt.take() {
            self.m.cpu.pending.interrupt = asserted;
        }
        self.m.epoch_stale |= core::mem::take(&mut control.stored);
        self.m.cpu.pending.nmi |= core::mem::take(&mut control.nmi);
        core::mem::take(&mut control.stop)
    }

    /// Retires the blocks that the last instruction stored into.
    fn retire_code(&mut self) {
        if !self.m.code_map.has_retired() {
            return;
        }
        if core::mem::take(&mut self.m.code_map.retire_all) {
            self.blocks.flush(new_stamp(), self.m.code_map);
            self.views.begin_epoch();
            self.m.view_stale = true;
        }
        while let Some(retire) = self.m.code_map.take_retire() {
            self.counters.blocks_retired +=
                self.blocks.retire(retire.slot, retire.lines, self.m.code_map);
        }
    }

    /// A guest exception: shown to the VMM if it asked for it, else delivered.
    pub(super) fn raise(&mut self, fault: Fault) -> Option<Stop> {
        self.note_address(fault);
        if self.is_intercepted(fault) {
            return Some(Stop::Exception(fault));
        }
        self.fuel = self.fuel.saturating_sub(1);
        self.counters.faults += 1;
        self.m.cpu.shadow = Shadow::NONE;
        self.m.casts = Shadow::NONE;
        self.deliver(Event::Exception(fault), false)
    }

    /// A page fault leaves its address in CR2, also if the VMM takes it.
    fn note_address(&mut self, fault: Fault) {
        if fault.vector == vector::PF {
            self.m.cpu.cr2 = self.m.fault_address;
        }
    }

    /// Did the VMM ask to see this exception?
    fn is_intercepted(&self, fault: Fault) -> bool {
        self.exceptions >> (fault.vector & 31) & 1 != 0
    }

    /// Shows an exception that is about to be delivered.
    fn announce(&mut self, event: Event) {
        let Event::Exception(fault) = event else { return };
        self.m.settle_flags();
        self.m.bus.observe_fault(self.m.cpu, fault);
        if let Some(observer) = self.m.observer.take() {
            observer.fault(self.m.cpu, fault);
            self.m.observer = Some(observer);
        }
    }

    /// Delivers an event, or what its delivery turns into.
    pub(super) fn deliver(&mut self, mut event: Event, mut resumed: bool) -> Option<Stop> {
        if !resumed {
            self.counters.events += 1;
            self.m.flight.record.deliveries = 0;
        }
        while self.m.flight.record.deliveries < DELIVERIES {
            if !resumed {
                self.announce(event);
            }
            self.enter_careful(resumed);
            resumed = false;
            let result = self.m.deliver(event);
            self.leave_careful();
            let fault = match result {
                Ok(()) => return None,
                Err(Leave::Fault(fault) | Leave::Late(fault)) => fault,
                Err(Leave::Pending) => return Some(self.hold(Work::Event(event))),
                Err(Leave::Unimplemented(reason)) => {
                    // An exception is raised again by its instruction; anything else must not
                    // be lost.
                    self.m.cpu.pending.event = Some(event);
                    return Some(self.unimplemented(&Current::NONE, reason));
                }
                Err(_) => return None,
            };
            self.note_address(fault);
            self.m.flight.record.deliveries += 1;
            event = match escalate(event, fault.vector) {
                Escalation::Serial => Event::Exception(fault),
                Escalation::DoubleFault if self.is_intercepted(Fault::new(vector::DF)) => {
                    return Some(Stop::Exception(Fault::new(vector::DF)));
                }
                Escalation::DoubleFault => Event::Exception(Fault::new(vector::DF)),
                Escalation::Shutdown => break,
            };
        }
        self.m.cpu.activity = Activity::Shutdown;
        Some(Stop::Shutdown)
    }
}
