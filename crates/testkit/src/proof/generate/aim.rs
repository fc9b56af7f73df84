//! Registers and displacements such that operands lie where something can happen.

use realmode::encodings::Operand as O;
use realmode::{Reg, SegReg};

use super::Plan;
use crate::proof::form::{Operand, Setting};
use crate::proof::layout::{CODE, DATA, EXTRA, FS_DATA, GS_DATA, STACK};

/// The widest operand that begins at an address and is wholly seen.
const NEAR: u64 = 64;

impl Plan<'_> {
    /// Makes every address of the instruction a likely one.
    pub(super) fn aim(&mut self) {
        self.aim_stack();
        if self.form.family == "string" {
            self.aim_strings();
        }
        self.aim_translation();
        if self.draft.is_memory {
            self.aim_operand();
        }
        self.aim_bit_offset();
        self.tame_division();
    }

    /// An offset in a segment: anywhere, or where the segment begins or ends.
    fn offset(&mut self, segment: SegReg) -> u64 {
        match self.form.setting {
            Setting::Segments if !self.is_long() => return self.edge(segment),
            Setting::Pages => return self.edge_of_page(),
            Setting::Usual | Setting::Segments => {}
        }
        let kind = self.segments[segment as usize];
        let (low, high) = kind.offsets();
        let random = &mut self.random;
        match random.below(32) {
            0 => high.saturating_sub(random.below(16)),
            1 => low + random.below(8),
            2 => (high + 1 + random.below(8)) & 0xF_FFFF,
            3 => low.wrapping_sub(random.below(8)) & 0xFFFF,
            // Page boundaries.
            4 => (random.below((high >> 12).max(1)).max(1) << 12).wrapping_sub(random.below(8)),
            5..20 => (low + NEAR + random.below(high - low - 2 * NEAR)) & !7,
            _ => low + NEAR + random.below(high - low - 2 * NEAR),
        }
    }

    /// The same in 64-bit code: an offset from the segment's base, which is a linear address but
    /// for FS and GS.
    fn long_offset(&mut self, segment: SegReg) -> u64 {
        if let Some(edge) = self.edge_of_canonical() {
            return edge;
        }
        let near = self.offset(SegReg::Ds) & 0xFFFF;
        // Not the ends: what lies past them is not the case's.
        let near = near.clamp(0x200, 0xFE00);
        match segment {
            SegReg::Fs | SegReg::Gs => near,
            _ => {
                let region = self.random.pick(&[DATA, DATA, EXTRA, FS_DATA, GS_DATA]);
                u64::from(self.layout.base + region) + near
            }
        }
    }

    pub(super) fn target(&mut self, segment: SegReg) -> u64 {
        if self.is_long() { self.long_offset(segment) } else { self.offset(segment) }
    }

    /// Puts an address into the low bytes of a register that count.
    fn set_address(&mut self, register: u8, value: u64, bytes: u32) {
        let mask = u64::MAX >> (64 - 8 * bytes);
        let old = self.gpr[usize::from(register)];
        // In 64-bit code a 32-bit address is extended: what the register has above is not seen.
        self.gpr[usize::from(register)] = old & !mask | value & mask;
    }

    fn aim_stack(&mut self) {
        let (rsp, rbp) = (Reg::Rsp as u8, Reg::Rbp as u8);
        if self.is_long() {
            let stack = u64::from(self.layout.base + STACK);
            let offset = 0x400 + self.random.below(0xF800);
            let aligned = if self.random.one_in(4) { offset } else { offset & !7 };
            let edge = self.edge_of_long_stack();
            self.set_address(rsp, edge.unwrap_or(stack + aligned), 8);
            if self.form.family == "stack" {
                let offset = 0x400 + self.random.below(0xF800);
                let edge = self.edge_of_long_stack();
                self.set_address(rbp, edge.unwrap_or(stack + offset), 8);
            }
            return;
        }
        let bytes = if self.segments[SegReg::Ss as usize].is_big() { 4 } else { 2 };
        let offset = self.offset(SegReg::Ss);
        let even = if self.random.one_in(4) { offset } else { offset & !1 };
        self.set_address(rsp, even, bytes);
        if self.form.family == "stack" {
            let offset = self.offset(SegReg::Ss);
            self.set_address(rbp, offset, bytes);
        }
    }

    fn aim_strings(&mut self) {
        let bytes = self.draft.address;
        let source = self.target(self.draft.segment.unwrap_or(SegReg::Ds));
        let destination = self.target(SegReg::Es);
        self.set_address(Reg::Rsi as u8, source, bytes);
        self.set_address(Reg::Rdi as u8, destination, bytes);
        if self.random.one_in(8) && !self.is_long() {
            // The same memory for both, so that copies overlap.
            self.segments[SegReg::Es as usize] = self.segments[SegReg::Ds as usize];
            let near = source.wrapping_add(self.random.below(9)).wrapping_sub(4);
            self.set_address(Reg::Rdi as u8, near, bytes);
        }
        if self.draft.has_repeat {
            let count = match self.random.below(8) {
                0 => self.random.below(300),
                1 => 0,
                _ => self.random.below(20),
            };
            self.set_address(Reg::Rcx as u8, count, if bytes == 2 { 2 } else { 8 });
            if bytes == 4 && self.is_long() {
                self.set_address(Reg::Rcx as u8, count, 4);
            }
        }
    }

    /// XLAT's table, and what CLFLUSH-like instructions without ModRM address by rAX, rBX and rDI.
    fn aim_translation(&mut self) {
        if self.form.name == "XLATB" {
            let table = self.target(self.draft.segment.unwrap_or(SegReg::Ds));
            let index = self.gpr[Reg::Rax as usize] & 0xFF;
            self.set_address(Reg::Rbx as u8, table.wrapping_sub(index), self.draft.address);
        }
    }

    /// The segment that the memory operand is in.
    fn operand_segment(&self) -> SegReg {
        let is_stack = matches!(self.draft.base, Some(5))
            || self.draft.base == Some(4) && self.draft.address != 2;
        let default = if is_stack && !self.is_long() { SegReg::Ss } else { SegReg::Ds };
        self.draft.segment.unwrap_or(default)
    }

    /// Where the memory operand is.
    pub(super) fn operand_target(&self) -> Option<u32> {
        if !self.draft.is_memory {
            return None;
        }
        let draft = &self.draft;
        let register = |number: u8| self.gpr[usize::from(number)];
        let base = draft.base.map_or(0, register);
        let index = draft.index.map_or(0, |(index, shift)| register(index) << shift);
        let displacement = self.displacement();
        let mask = u64::MAX >> (64 - 8 * draft.address);
        let rip = if draft.is_rip_relative { self.next_rip() } else { 0 };
        let offset = base.wrapping_add(index).wrapping_add(displacement).wrapping_add(rip) & mask;
        self.arena_offset(self.operand_segment(), offset)
    }

    /// The offset in the arena of an offset in a segment, if there is one.
    pub(super) fn arena_offset(&self, segment: SegReg, offset: u64) -> Option<u32> {
        let is_based = !self.is_long() || matches!(segment, SegReg::Fs | SegReg::Gs);
        let linear = if is_based {
            let kind = self.segments[segment as usize];
            let linear = offset.checked_add(u64::from(kind.shape().0))?;
            if kind.is_down() && kind.is_big() { linear & 0xFFFF_FFFF } else { linear }
        } else {
            offset.checked_sub(u64::from(self.layout.base))?
        };
        u32::try_from(linear).ok().filter(|at| *at < crate::proof::layout::ARENA_SIZE)
    }

    fn displacement(&self) -> u64 {
        let Some(displacement) = self.draft.displacement else { return 0 };
        let mut bytes = [0; 8];
        let end = (displacement.at + displacement.len).min(16);
        let from = &self.draft.code.bytes[displacement.at.min(end)..end];
        bytes[..from.len()].copy_from_slice(from);
        let value = u64::from_le_bytes(bytes);
        let shift = 64 - 8 * displacement.len as u32;
        ((value << shift) as i64 >> shift) as u64
    }

    fn next_rip(&self) -> u64 {
        self.code_base() + u64::from(self.entry) + u64::from(self.draft.code.len)
    }

    /// Base, index and displacement such that they add up to a target.
    fn aim_operand(&mut self) {
        let target = self.target(self.operand_segment());
        let address = self.draft.address;
        let target = if self.wraps(target) { target & 0xFC0F } else { target };
        let displacement = match self.draft.displacement.map(|d| d.len) {
            _ if self.draft.is_rip_relative => {
                let distance = target.wrapping_sub(self.next_rip());
                return self.draft.set_displacement(distance);
            }
            None => 0,
            Some(_) if self.draft.base.is_none() && self.draft.index.is_none() => {
                return self.draft.set_displacement(target);
            }
            Some(1) => self.random.next() as i8 as u64,
            Some(_) if self.random.one_in(2) => self.random.next() as i8 as u64,
            Some(2) => self.random.next() as i16 as u64,
            Some(_) => self.random.next() as i32 as u64,
        };
        self.draft.set_displacement(displacement);
        let rest = target.wrapping_sub(displacement);
        match (self.draft.base, self.draft.index) {
            (Some(base), Some((index, shift))) if base != index => {
                // The stack pointer has its place already; any other index is small or anything.
                if base == Reg::Rsp as u8 || index != Reg::Rsp as u8 {
                    let any = self.random.next();
                    let index_value = if self.random.one_in(2) { any & 0xFF } else { any };
                    self.set_address(index, index_value, address);
                }
                let index = self.gpr[usize::from(index)] << shift;
                self.set_address(base, rest.wrapping_sub(index), address);
            }
            (Some(base), Some((_, shift))) => {
                self.set_address(base, rest / ((1 << shift) + 1), address);
            }
            (Some(base), None) => self.set_address(base, rest, address),
            (None, Some((index, shift))) => {
                let mask = u64::MAX >> (64 - 8 * address);
                self.set_address(index, (rest & mask) >> shift, address);
                let low = rest & ((1 << shift) - 1);
                self.draft.set_displacement(displacement.wrapping_add(low));
            }
            (None, None) => {}
        }
    }

    /// A region of 512 bytes or more with an address of 16 bits, at the end of them: Zen goes on at
    /// the beginning, and so stores where no one looks.
    fn wraps(&self, target: u64) -> bool {
        let is_region = matches!(self.form.family, "fxsave" | "xsave");
        is_region && self.draft.address == 2 && target & 0xFFFF > 0xFC00
    }

    /// BT and its like with a register reach memory far from their operand.
    fn aim_bit_offset(&mut self) {
        let encoding = &self.form.encoding;
        let is_bit = matches!(self.form.name, "BT" | "BTS" | "BTR" | "BTC")
            && encoding.operands().any(|o| o == O::Gv);
        if !is_bit || self.form.operand != Operand::Memory {
            return;
        }
        let reach = if self.is_long() || self.random.one_in(2) { 0x800 } else { 0x1_0000 };
        if self.is_long() || !self.random.one_in(8) {
            let bit = self.random.below(2 * reach).wrapping_sub(reach);
            let register = usize::from(self.draft.reg);
            let is_address = self.draft.base == Some(self.draft.reg)
                || self.draft.index.is_some_and(|(index, _)| index == self.draft.reg);
            if !is_address {
                self.gpr[register] = bit;
            }
        }
    }

    /// Most quotients fit.
    fn tame_division(&mut self) {
        if !matches!(self.form.name, "DIV" | "IDIV") || self.random.one_in(6) {
            return;
        }
        let bits = if self.form.encoding.opcode() == 0xF6 { 8 } else { 8 * self.draft.operand };
        let (rax, rdx) = (Reg::Rax as usize, Reg::Rdx as usize);
        let sign = (self.gpr[rax] >> (bits - 1) & 1).wrapping_neg();
        let high = if self.random.one_in(2) { self.random.below(4) } else { sign };
        if bits == 8 {
            self.gpr[rax] = self.gpr[rax] & !0xFF00 | (high & 0xFF) << 8;
        } else if self.draft.rm != rdx as u8 || self.draft.is_memory {
            self.gpr[rdx] = high;
        }
    }

    /// An offset in the code segment for a branch to go to.
    pub(super) fn code_target(&mut self) -> u64 {
        if let Some(edge) = self.edge_of_code() {
            return edge;
        }
        let offset = match self.random.below(16) {
            0 if !self.is_long() => 0xFFF0 + self.random.below(0x20),
            1 => u64::from(self.entry).wrapping_add(self.random.below(64)).wrapping_sub(32),
            _ => self.random.below(0x1_0000),
        };
        if self.is_long() { u64::from(self.layout.base + CODE) + (offset & 0xFFFF) } else { offset }
    }
}
