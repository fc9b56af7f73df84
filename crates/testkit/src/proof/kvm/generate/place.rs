//! Memory operands, and where they lead.

use realmode::{Reg, SegReg};

use super::Maker;

/// A memory operand: what follows the opcode, and its place.
pub(super) struct Operand {
    /// ModRM without its middle field, and the displacement.
    modrm: u8,
    displacement: Vec<u8>,
    /// Where it lies.
    pub(super) at: u64,
}

impl Maker {
    /// Makes an operand, with what it needs of prefixes and registers. To be called before the
    /// opcode is appended.
    pub(super) fn operand(&mut self) -> Operand {
        let offset = self.offset();
        self.operand_at(offset)
    }

    fn offset(&mut self) -> u32 {
        let offset = match self.random.below(8) {
            0 => 0xFFF0 + self.random.below(16),
            1 => 0x7FF8 + self.random.below(16),
            2 => 0xFF0 + self.random.below(16),
            _ => self.random.below(0xFFF0),
        };
        offset as u32
    }

    /// The same, of a far pointer, which does not reach beyond offset FFFF: KVM takes it as one
    /// operand where a processor takes it as two.
    pub(super) fn pointer(&mut self) -> Operand {
        let offset = self.offset().min(0xFFF8);
        self.operand_at(offset)
    }

    pub(super) fn operand_at(&mut self, offset: u32) -> Operand {
        let mut segment = SegReg::Ds;
        if self.one_in(3) {
            let (byte, other) = self.pick(&[
                (0x26, SegReg::Es),
                (0x36, SegReg::Ss),
                (0x64, SegReg::Fs),
                (0x65, SegReg::Gs),
            ]);
            self.code(&[byte]);
            segment = other;
        }
        let at = self.case.cpu.segment(segment).base;
        if self.one_in(5) {
            return self.wide_operand(at, offset);
        }
        let offset = offset & 0xFFFF;
        let at = at + u64::from(offset);
        let gpr = &mut self.case.cpu.gpr;
        let (modrm, register) = self.random.pick(&[
            (0x06, None),
            (0x07, Some(Reg::Rbx)),
            (0x04, Some(Reg::Rsi)),
            (0x05, Some(Reg::Rdi)),
        ]);
        let Some(register) = register else {
            let displacement = offset.to_le_bytes()[..2].to_vec();
            return Operand { modrm, displacement, at };
        };
        gpr[register] = gpr[register] & 0xFFFF_0000 | u64::from(offset);
        Operand { modrm, displacement: Vec::new(), at }
    }

    /// The same with a 32-bit address, which may lie above 64 KiB.
    fn wide_operand(&mut self, base: u64, offset: u32) -> Operand {
        self.code(&[0x67]);
        let offset = if self.one_in(8) { offset + 0x1_0000 } else { offset };
        let at = base + u64::from(offset);
        if self.one_in(2) {
            return Operand { modrm: 0x05, displacement: offset.to_le_bytes().to_vec(), at };
        }
        self.case.cpu.gpr[Reg::Rbx] = offset.into();
        Operand { modrm: 0x03, displacement: Vec::new(), at }
    }

    /// Appends what follows the opcode, with the middle field of ModRM.
    pub(super) fn modrm(&mut self, operand: &Operand, reg: u8) {
        self.code(&[operand.modrm | reg << 3]);
        self.code(&operand.displacement);
    }
}
