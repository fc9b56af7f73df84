//! The boundary between instructions: which event is taken, in the manual's order of priority
//! (SDM vol. 3A, "Priority Among Concurrent Events").

use crate::arch::control::{CR0_CD, CR0_NW, DR6_BS, DR7_ENABLE, DR7_GD};
use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::SegReg;
use crate::arch::rflags::{IF, RF, TF};
use crate::arch::vector;
use crate::fault::{Event, Fault};
use crate::machine::Machine;
use crate::state::{Activity, Cpu, Msrs, Pending, Shadow};

/// What the boundary decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// Deliver this, then look again.
    Deliver(Event),
    /// The same for a trap of the last instruction, which the VMM may want to see.
    Trap(Fault),
    /// A system-management interrupt waits.
    Smi,
    /// Execute the next instruction alone, because something may follow it.
    Step,
    /// Nothing waits.
    Run,
    /// Halted, shut down or waiting.
    Asleep,
}

impl Machine<'_, '_> {
    /// Decides what happens before the next instruction.
    pub(crate) fn boundary(&mut self) -> Boundary {
        if self.cpu.pending.init {
            self.init();
        }
        if let Some(page) = self.cpu.pending.sipi.take()
            && self.cpu.activity == Activity::WaitForSipi
        {
            self.start_up(page);
        }
        match self.cpu.activity {
            Activity::Shutdown | Activity::WaitForSipi => return Boundary::Asleep,
            Activity::Running | Activity::Halted => {}
        }
        if let Some(event) = self.cpu.pending.event.take() {
            return self.wake(event);
        }
        if self.cpu.pending.smi && !self.cpu.smm {
            return Boundary::Smi;
        }
        let shadow = self.cpu.shadow;
        if self.cpu.pending.debug != 0 && !shadow.mov_ss {
            let met = core::mem::take(&mut self.cpu.pending.debug);
            self.note_debug(met.into());
            self.wake(Event::Exception(Fault::new(vector::DB)));
            return Boundary::Trap(Fault::new(vector::DB));
        }
        if self.cpu.pending.nmi && !self.cpu.nmi_blocked && !shadow.mov_ss {
            self.cpu.pending.nmi = false;
            return self.wake(Event::Nmi);
        }
        let enabled = self.cpu.rflags & IF != 0;
        if self.cpu.pending.interrupt && enabled && !shadow.is_any() {
            let vector = self.bus.interrupt_acknowledge(&mut self.control);
            return self.wake(Event::Interrupt(vector));
        }
        if self.cpu.activity == Activity::Halted {
            return Boundary::Asleep;
        }
        let traced = self.cpu.rflags & (TF | RF) != 0;
        let watched = self.cpu.dr7 & (DR7_ENABLE | DR7_GD) != 0;
        let told = self.has_virtual_interrupt();
        if traced || watched || told || shadow.is_any() || self.cpu.pending.debug != 0 {
            Boundary::Step
        } else {
            Boundary::Run
        }
    }

    fn wake(&mut self, event: Event) -> Boundary {
        self.cpu.activity = Activity::Running;
        self.cpu.shadow = Shadow::NONE;
        Boundary::Deliver(event)
    }

    /// What follows a completed instruction: shadow, single-step trap, breakpoints, RF.
    pub(crate) fn retire_one(&mut self, trapped: bool) {
        let old = self.cpu.shadow;
        // A second MOV SS in a row does not extend the shadow of the first.
        let casts = Shadow { sti: self.casts.sti, mov_ss: self.casts.mov_ss && !old.mov_ss };
        self.cpu.shadow = casts;
        self.casts = Shadow::NONE;
        if trapped && !casts.mov_ss {
            self.cpu.pending.debug |= DR6_BS as u32;
        }
        self.cpu.pending.debug |= core::mem::take(&mut self.watched);
        if !self.keep_rf {
            self.cpu.rflags &= !RF;
        }
        self.keep_rf = false;
    }

    /// INIT (SDM vol. 3A, "Processor State After Reset", the INIT column): as reset, but the FPU,
    /// most MSRs and CR0's CD and NW stay.
    fn init(&mut self) {
        let old = self.cpu.clone();
        let fresh = Cpu::reset_as(self.profile);
        let cache = CR0_CD | CR0_NW;
        *self.cpu = Cpu {
            cr0: fresh.cr0 & !cache | old.cr0 & cache,
            fpu: old.fpu,
            xcr0: old.xcr0,
            msr: Msrs { efer: 0, ..old.msr },
            a20: old.a20,
            pending: Pending { init: false, ..old.pending },
            ..fresh
        };
        if !self.bus.is_bootstrap_processor() {
            self.cpu.activity = Activity::WaitForSipi;
        }
        self.after_reset();
    }

    /// A start-up IPI: real mode at page `page` (SDM vol. 3A, "MP Initialization Protocol").
    fn start_up(&mut self, page: u8) {
        let cs =
            Segment { attributes: Attributes::REAL_CODE, ..Segment::real(u16::from(page) << 8) };
        *self.cpu.segment_mut(SegReg::Cs) = cs;
        self.cpu.rip = 0;
        self.cpu.activity = Activity::Running;
        self.after_reset();
    }

    fn after_reset(&mut self) {
        self.set_rflags(self.cpu.rflags);
        self.flush_translations();
        self.refresh_mode();
    }
}
