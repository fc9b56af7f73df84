//! A decoded instruction: handler, operands, address form, immediate, in 32 bytes.

use crate::machine::{Machine, Step};

/// What executes an instruction.
pub(crate) type Handler = fn(&mut Machine<'_, '_>, &Op) -> Step;

/// A decoded instruction. Decode writes it once; nothing changes it afterwards but the block
/// builder, which fills `tail` and `left`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    /// `None` only in an empty cache line, so that all zero is empty.
    pub(crate) handler: Option<Handler>,
    /// The immediate, extended as the instruction extends it; a relative displacement counts
    /// from the end of the block. With VEX and without an immediate, vvvv and L.
    pub(crate) imm: u64,
    /// Displacement of the memory operand.
    pub(crate) disp: i32,
    /// The register operand: ModRM.reg or the register in the opcode; also a condition code, a
    /// segment register, a control register. 8-bit numbers have bit 4 set for AH..BH.
    pub(crate) reg: u8,
    /// ModRM.rm of the register form, base register of the memory form.
    pub(crate) rm: u8,
    /// Index register.
    pub(crate) index: u8,
    /// Shift of the index.
    pub(crate) scale: u8,
    /// Segment of the memory operand.
    pub(crate) seg: u8,
    /// 64 minus the address size in bits; for relative branches 64 minus the operand size.
    pub(crate) address_shift: u8,
    /// Operand size in bytes.
    pub(crate) width: u8,
    /// Length in bytes.
    pub(crate) len: u8,
    /// Bytes from the end of this instruction to the end of its block.
    pub(crate) tail: u8,
    /// Instructions from this one, itself included, to the end of its block.
    pub(crate) left: u8,
    /// Its row.
    pub(crate) row: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

/// Where the immediate of an instruction with VEX that has none keeps VEX.L.
pub(crate) const VEX_L: u64 = 1 << 8;

impl Op {
    /// Bytes from the beginning of this instruction to the end of its block.
    pub(crate) fn until_end(&self) -> u64 {
        u64::from(self.len) + u64::from(self.tail)
    }

    /// VEX.vvvv of an instruction without an immediate.
    pub(crate) fn vvvv(&self) -> u8 {
        self.imm as u8 & 15
    }

    /// VEX.L of an instruction without an immediate.
    pub(crate) fn is_256(&self) -> bool {
        self.imm & VEX_L != 0
    }

    /// No instruction.
    pub(crate) const EMPTY: Op = Op {
        handler: None,
        imm: 0,
        disp: 0,
        reg: 0,
        rm: 0,
        index: 0,
        scale: 0,
        seg: 0,
        address_shift: 0,
        width: 0,
        len: 0,
        tail: 0,
        left: 0,
        row: 0,
    };
}
