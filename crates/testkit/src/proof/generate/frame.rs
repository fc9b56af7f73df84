//! What lies in memory for instructions that take it seriously: operands, stack frames, far
//! pointers, flags; and the registers and displacements of branches.

use realmode::arch::rflags::{AC, IF, NT, RF, TF, VM};
use realmode::encodings::Operand as O;
use realmode::{Reg, SegReg};

use super::Plan;
use super::values::value;
use crate::proof::form::{Operand, Setting};
use crate::proof::layout::{CODE, Kind};

/// Flags that no frame may set: they outlive the instruction, in the oracle.
const KEPT_CLEAR: u64 = TF | AC | NT | RF | VM;

impl Plan<'_> {
    /// Fills memory and registers with what the instruction looks for.
    pub(super) fn frames(&mut self) {
        self.aim_branch();
        if let Some(at) = self.operand_target() {
            let bytes = self.operand_bytes();
            self.poke(at, &bytes);
        }
        let is_compare = matches!(self.form.name, "CMPXCHG" | "CMPXCHG8B" | "CMPXCHG16B");
        if is_compare && self.random.one_in(2) {
            self.expect_operand();
        }
        match self.form.family {
            "stack" | "branch" | "far" | "control" | "segment" => self.stack_frame(),
            _ => {}
        }
    }

    fn is_branch(&self) -> bool {
        matches!(self.form.family, "branch" | "far" | "condition")
    }

    /// Sixteen bytes for a memory operand.
    fn operand_bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&value(&mut self.random).to_le_bytes());
        bytes[8..].copy_from_slice(&value(&mut self.random).to_le_bytes());
        let size = self.draft.operand as usize;
        if self.form.encoding.operands().any(|o| o == O::Mp) {
            let (pointer, selector) = if self.is_branch() {
                self.far_target()
            } else {
                (value(&mut self.random), self.data_selector())
            };
            bytes[..8].copy_from_slice(&pointer.to_le_bytes());
            bytes[size..size + 2].copy_from_slice(&selector.to_le_bytes());
        } else if self.is_branch() {
            bytes[..8].copy_from_slice(&self.code_target().to_le_bytes());
        } else if self.reads_selector() {
            bytes[..2].copy_from_slice(&self.data_selector().to_le_bytes());
        }
        bytes
    }

    /// Does its operand of 16 bits select a segment?
    fn reads_selector(&self) -> bool {
        let encoding = &self.form.encoding;
        encoding.operands().next() == Some(O::Sw)
            || matches!(self.form.name, "LAR" | "LSL" | "VERR" | "VERW" | "ARPL")
    }

    fn pops_selector(&self) -> bool {
        let is_segment = |o| matches!(o, O::Es | O::Cs | O::Ss | O::Ds | O::Fs | O::Gs);
        self.form.encoding.operands().any(is_segment)
    }

    /// A selector for a data segment register: mostly a good one.
    fn data_selector(&mut self) -> u16 {
        const KINDS: [Kind; 14] = [
            Kind::Data,
            Kind::Extra,
            Kind::Short,
            Kind::Down,
            Kind::ReadOnly,
            Kind::Wide,
            Kind::Fs,
            Kind::Gs,
            Kind::Code16,
            Kind::ExecuteOnly,
            Kind::Missing,
            Kind::Null,
            Kind::Stack16,
            Kind::Stack32,
        ];
        if self.form.setting == Setting::Segments {
            let kind = self.random.pick(&Kind::ALL);
            return self.odd_selector(kind);
        }
        let kind = self.random.pick(&KINDS);
        self.selector(kind)
    }

    /// Where a far branch goes.
    fn far_target(&mut self) -> (u64, u16) {
        if self.form.setting == Setting::Segments {
            return self.odd_far_target();
        }
        (self.code_target(), self.code_selector())
    }

    fn code_selector(&mut self) -> u16 {
        const KINDS: [Kind; 6] =
            [Kind::Code32, Kind::ExecuteOnly, Kind::Data, Kind::Missing, Kind::Null, Kind::Code16];
        let own = self.segments[SegReg::Cs as usize];
        if self.form.setting == Setting::Segments {
            let kind = if self.random.one_in(3) { own } else { self.random.pick(&Kind::ALL) };
            return self.odd_selector(kind);
        }
        let kind = if self.random.one_in(2) { own } else { self.random.pick(&KINDS) };
        self.selector(kind)
    }

    /// Where a far branch goes: as often as not to a segment that begins at 0, of 64 or 32 bits.
    fn odd_far_target(&mut self) -> (u64, u16) {
        const FLAT: [u16; 2] = [0x33, 0x23];
        if self.random.one_in(if self.is_long() { 2 } else { 8 }) {
            let place = u64::from(self.layout.base + CODE) + self.random.below(0x1_0000);
            let target = if self.is_long() { self.code_target() } else { place };
            let selector = self.random.pick(&FLAT);
            // Zen's CALL from compatibility mode into 64-bit code pushes at ESP without a base.
            let strays = self.form.name == "CALL" && !self.is_long();
            return (target, if strays { FLAT[1] } else { selector });
        }
        let offset = match self.random.below(4) {
            0 => 0x800 + 4 - self.random.below(8),
            1 => 0x1_0000 + 4 - self.random.below(8),
            2 => self.random.below(0x800),
            _ => self.random.below(0x1_0000),
        };
        (offset, self.code_selector())
    }

    /// The selector of the stack that IRET pops in 64-bit code.
    fn stack_selector(&mut self) -> u16 {
        if self.random.one_in(2) {
            return 0x2B;
        }
        let kind = self.random.pick(&Kind::ALL);
        self.odd_selector(kind)
    }

    /// The selector of a kind, often with another level, or of the global table.
    fn odd_selector(&mut self, kind: Kind) -> u16 {
        const OTHERS: [u16; 11] = [0, 1, 2, 3, 0x08, 0x10, 0x18, 0x1B, 0x2B, 0xFFFC, 0xFFFF];
        let selector = self.layout.selector(kind);
        match self.random.below(8) {
            0 => selector & !3 | self.random.below(4) as u16,
            1 => self.random.pick(&OTHERS),
            _ => selector,
        }
    }

    /// The selector of a kind, seldom with another level, or of something that is not there.
    fn selector(&mut self, kind: Kind) -> u16 {
        /// Null, the host's kernel code and data, and what is past the end of the local table.
        const OTHERS: [u16; 6] = [0, 3, 0x10, 0x18, 0x1B, 0xFFFF];
        let selector = self.layout.selector(kind);
        match self.random.below(16) {
            0 => selector & !3 | self.random.below(4) as u16,
            1 => self.random.pick(&OTHERS),
            _ => selector,
        }
    }

    /// Registers and displacements of a near branch, and selectors in registers.
    fn aim_branch(&mut self) {
        if self.form.operand == Operand::Register {
            let rm = usize::from(self.draft.rm);
            if self.is_branch() && self.form.encoding.operands().any(|o| o == O::Ev) {
                self.gpr[rm] = self.code_target();
            } else if self.reads_selector() {
                let high = self.gpr[rm] & !0xFFFF;
                self.gpr[rm] = high | u64::from(self.data_selector());
            }
        }
        if self.form.name == "INT" {
            // Of a host's gates, those for level 3 lead into its kernel.
            let vector =
                self.random.pick(&[0, 1, 2, 5, 6, 8, 13, 14, 0x20, 0x21, 0x7F, 0x81, 0xFF]);
            self.draft.set_immediate(vector, 1);
        }
        let operand = self.draft.operand as usize;
        if self.form.encoding.operands().any(|o| o == O::Jz) {
            let len = operand.min(4);
            let target = self.code_target();
            let next = self.code_base() + u64::from(self.entry) + u64::from(self.draft.code.len);
            self.draft.set_immediate(target.wrapping_sub(next), len);
        }
        if self.form.encoding.operands().any(|o| o == O::Ap) {
            let (target, selector) = if self.form.setting == Setting::Segments {
                self.odd_far_target()
            } else {
                let selector = self.code_selector();
                (self.code_target(), selector)
            };
            let (target, selector) =
                (target & (u64::MAX >> (64 - 8 * operand)), u64::from(selector));
            self.draft.set_immediate(target | selector << (8 * operand), operand + 2);
        }
        if matches!(self.form.name, "LOOP" | "LOOPE" | "LOOPNE" | "JCXZ") && self.random.one_in(2) {
            self.gpr[Reg::Rcx as usize] = self.random.below(3);
        }
    }

    /// The accumulator has what the memory operand holds.
    fn expect_operand(&mut self) {
        let Some(poke) = self.pokes.iter().find(|poke| poke.len > 0) else { return };
        let (low, high) = poke.bytes.split_at(8);
        let low = u64::from_le_bytes(low[..8].try_into().unwrap_or_default());
        let high = u64::from_le_bytes(high[..8].try_into().unwrap_or_default());
        match (self.form.name, self.form.size) {
            ("CMPXCHG", _) => self.gpr[Reg::Rax as usize] = low,
            (_, crate::proof::form::Size::Wide) => {
                self.gpr[Reg::Rax as usize] = low;
                self.gpr[Reg::Rdx as usize] = high;
            }
            _ => {
                self.gpr[Reg::Rax as usize] = low & 0xFFFF_FFFF;
                self.gpr[Reg::Rdx as usize] = low >> 32;
            }
        }
    }

    /// The stack as returns and pops want it: an address, a selector, flags, and a stack.
    fn stack_frame(&mut self) {
        let rsp = self.gpr[Reg::Rsp as usize];
        let Some(at) = self.arena_offset(SegReg::Ss, self.stack_offset()) else { return };
        let name = self.form.name;
        let size = self.draft.operand as usize;
        let flags = (value(&mut self.random) & !KEPT_CLEAR) | IF;
        let words = match name {
            "POPF" => [flags, 0, 0, 0],
            "POP" if self.pops_selector() => [u64::from(self.data_selector()), 0, 0, 0],
            "IRET" => {
                let (target, selector) = self.far_target();
                [target, u64::from(selector), flags, rsp]
            }
            _ if self.is_branch() => {
                let (target, selector) = self.far_target();
                [target, u64::from(selector), value(&mut self.random), rsp]
            }
            _ => [(); 4].map(|()| value(&mut self.random)),
        };
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_mut(size).zip(words) {
            place.copy_from_slice(&word.to_le_bytes()[..size]);
        }
        self.poke(at, &bytes);
        if name == "IRET" && self.form.setting == Setting::Segments && self.is_long() {
            let selector = self.stack_selector();
            self.poke(at + 4 * size as u32, &selector.to_le_bytes());
        }
    }
}
