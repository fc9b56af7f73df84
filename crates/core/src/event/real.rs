//! Delivery in real mode: the interrupt vector table and a frame of three words.

use crate::arch::registers::SegReg;
use crate::arch::rflags::{AC, IF, RF, TF};
use crate::arch::vector;
use crate::bus::Access;
use crate::fault::Fault;
use crate::machine::{Machine, Step};
use crate::mem::segment::real_segment;
use crate::profile::Generation;

impl Machine<'_, '_> {
    /// Delivers vector `number` in real mode (SDM vol. 3A, "Interrupt and Exception Handling in
    /// Real-Address Mode"): the table's limit is checked first, then the three words are pushed,
    /// each at SP modulo the stack size.
    pub(crate) fn deliver_real(&mut self, number: u8, saved_rip: u64) -> Step {
        let entry = u64::from(number) * 4;
        let checked = self.profile.generation >= Generation::I80286;
        if checked && entry + 3 > u64::from(self.cpu.idtr.limit) {
            return Err(Fault::with_code(vector::GP, u16::from(number) * 8 + 2).into());
        }
        let linear = self.cpu.idtr.base.wrapping_add(entry) & self.linear_mask;
        let mut bytes = [0; 4];
        self.read_linear(linear, &mut bytes)?;
        let target_ip = u16::from_le_bytes([bytes[0], bytes[1]]);
        let target_cs = u16::from_le_bytes([bytes[2], bytes[3]]);
        let frame = [self.rflags() as u16, self.cpu.segment(SegReg::Cs).selector, saved_rip as u16];
        let ss = SegReg::Ss as u8;
        let [flags_at, cs_at, ip_at] = [-2, -4, -6].map(|delta| self.stack_offset(delta));
        let operands = [
            self.prepare(ss, flags_at, 2, Access::Write)?,
            self.prepare(ss, cs_at, 2, Access::Write)?,
            self.prepare(ss, ip_at, 2, Access::Write)?,
        ];
        for (operand, word) in operands.iter().zip(frame) {
            self.write_value(operand, word)?;
        }
        self.set_stack_offset(ip_at);
        let flags = self.rflags() & !(IF | TF | RF | AC);
        self.set_rflags(flags);
        let cs = real_segment(self.cpu.segment(SegReg::Cs), target_cs);
        self.commit_segment(SegReg::Cs, cs);
        self.cpu.rip = u64::from(target_ip);
        self.epoch_stale = true;
        Ok(())
    }
}
