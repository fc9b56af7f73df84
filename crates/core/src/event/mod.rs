//! Events: what is taken at an instruction boundary, and its delivery in software.

pub(crate) mod bitmap;
pub(crate) mod boundary;
pub(crate) mod breakpoint;
pub(crate) mod long;
pub(crate) mod protected;
pub(crate) mod real;
pub(crate) mod task;
pub(crate) mod virtual_8086;

use crate::arch::control::DR7_GD;
use crate::arch::msr::DEBUGCTL_BTF;
use crate::arch::vector;
use crate::event::protected::{Origin, Resume};
use crate::fault::{Event, Fault};
use crate::machine::{Machine, Step};

/// What a fault during the delivery of another event becomes (SDM vol. 3A, "Conditions for
/// Generating a Double Fault").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escalation {
    /// The second one is delivered instead.
    Serial,
    /// #DF.
    DoubleFault,
    /// Triple fault: shutdown.
    Shutdown,
}

/// How a fault with vector `second` during delivery of `first` escalates.
pub(crate) fn escalate(first: Event, second: u8) -> Escalation {
    #[derive(PartialEq)]
    enum Class {
        Benign,
        Contributory,
        PageFault,
    }
    let class = |v: u8| match v {
        vector::DE | vector::TS | vector::NP | vector::SS | vector::GP | vector::CP => {
            Class::Contributory
        }
        vector::PF | vector::VE => Class::PageFault,
        _ => Class::Benign,
    };
    let Event::Exception(first) = first else {
        return Escalation::Serial;
    };
    match (class(first.vector), class(second)) {
        (_, Class::Benign) => Escalation::Serial,
        _ if first.vector == vector::DF => Escalation::Shutdown,
        (Class::Benign, _) => Escalation::Serial,
        (Class::Contributory, Class::PageFault) => Escalation::Serial,
        _ => Escalation::DoubleFault,
    }
}

impl Event {
    pub(crate) fn vector(self) -> u8 {
        match self {
            Event::Interrupt(vector) => vector,
            Event::Nmi => vector::NMI,
            Event::Exception(fault) => fault.vector,
        }
    }
}

impl Machine<'_, '_> {
    /// Delivers an event through the tables of the current mode. RIP is what the frame saves.
    pub(crate) fn deliver(&mut self, event: Event) -> Step {
        if self.cpu.is_real_mode() {
            self.deliver_real(event.vector(), self.cpu.rip)?;
        } else {
            let error_code = match event {
                Event::Exception(fault) if vector::has_error_code(fault.vector) => {
                    Some(fault.error_code)
                }
                _ => None,
            };
            let resume = match event {
                Event::Exception(Fault {
                    vector: vector::DB | vector::BP | vector::OF, ..
                }) => Resume::Keep,
                Event::Exception(_) => Resume::Set,
                _ => Resume::Keep,
            };
            self.deliver_protected(event.vector(), error_code, Origin::External, resume)?;
        }
        match event {
            Event::Nmi => self.cpu.nmi_blocked = true,
            Event::Exception(fault) if fault.vector == vector::DB => self.enter_debug_handler(),
            _ => {}
        }
        Ok(())
    }

    /// The handler of a #DB may use the debug registers and is not traced itself (SDM vol. 3B,
    /// "General-Detect Exception Condition", "Single-Stepping on Branches").
    pub(crate) fn enter_debug_handler(&mut self) {
        self.cpu.dr7 &= !DR7_GD;
        self.cpu.msr.debugctl &= !DEBUGCTL_BTF;
    }

    /// INT n, INT3, INTO, INT1: as an event whose frame saves the next instruction. A fault in it
    /// is a fault of the instruction.
    pub(crate) fn deliver_software(&mut self, vector: u8, origin: Origin) -> Step {
        if self.cpu.is_real_mode() {
            self.deliver_real(vector, self.cpu.rip)?;
        } else {
            self.deliver_protected(vector, None, origin, Resume::Clear)?;
        }
        self.no_trap = true;
        Ok(())
    }
}
