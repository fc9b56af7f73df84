//! Delivery out of virtual-8086 mode, and within it (SDM vol. 3B, "Interrupt and Exception Handling
//! in Virtual-8086 Mode").

use crate::arch::control::{CR4_PVI, CR4_VME};
use crate::arch::cpuid::Features;
use crate::arch::descriptor::Segment;
use crate::arch::registers::SegReg;
use crate::arch::rflags::{VIF, VIP};
use crate::bus::Access;
use crate::machine::{Machine, Step};

/// The data segments, in the order in which a frame of virtual-8086 mode has them, from the top.
pub(crate) const PUSHED: [SegReg; 4] = [SegReg::Gs, SegReg::Fs, SegReg::Ds, SegReg::Es];

impl Machine<'_, '_> {
    /// Is the processor in virtual-8086 mode with its extensions? A host may have set bits of CR4
    /// that the processor does not have.
    pub(crate) fn has_vme(&self) -> bool {
        let on = self.cpu.cr4 & CR4_VME != 0 && self.profile.has(Features::VME);
        on && self.cpu.is_virtual_8086()
    }

    /// Does a program at level 3 of protected mode have a virtual interrupt flag?
    pub(crate) fn has_pvi(&self) -> bool {
        let on = self.cpu.cr4 & CR4_PVI != 0 && self.profile.has(Features::VME);
        on && !self.cpu.is_real_segmentation() && self.cpu.cpl() == 3
    }

    /// Does a virtual interrupt wait that the program has just let in? The monitor is told before
    /// the next instruction (SDM vol. 3B, "Protected-Mode Virtual Interrupts"; APM vol. 2,
    /// "Virtual Interrupts": #GP at the instruction boundary).
    pub(crate) fn has_virtual_interrupt(&self) -> bool {
        let waits = self.cpu.rflags & (VIF | VIP) == VIF | VIP;
        waits && (self.has_vme() || self.has_pvi())
    }

    /// An interrupt as an 8086 takes it: the vector from linear address 0 on, and three words on
    /// the program's stack, `image` for its flags. The flags themselves stay.
    pub(crate) fn deliver_through_vectors(&mut self, vector: u8, image: u64) -> Step {
        let mut bytes = [0; 4];
        self.read_linear(u64::from(vector) * 4, &mut bytes)?;
        let [low, high, cs_low, cs_high] = bytes;
        let frame = [image as u16, self.cpu.segment(SegReg::Cs).selector, self.cpu.rip as u16];
        let places = [-2, -4, -6].map(|delta| self.stack_offset(delta));
        let ss = SegReg::Ss as u8;
        let operands = [
            self.prepare(ss, places[0], 2, Access::Write)?,
            self.prepare(ss, places[1], 2, Access::Write)?,
            self.prepare(ss, places[2], 2, Access::Write)?,
        ];
        for (operand, word) in operands.iter().zip(frame) {
            self.write_value(operand, word)?;
        }
        self.set_stack_offset(places[2]);
        let cs = Segment::virtual_8086(u16::from_le_bytes([cs_low, cs_high]));
        self.commit_segment(SegReg::Cs, cs);
        self.cpu.rip = u64::from(u16::from_le_bytes([low, high]));
        self.epoch_stale = true;
        Ok(())
    }

    /// The data segments of a handler that interrupts virtual-8086 mode hold nothing.
    pub(crate) fn drop_virtual_segments(&mut self) {
        for reg in PUSHED {
            self.commit_segment(reg, Segment::null(0));
        }
    }
}
