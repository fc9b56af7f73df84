//! What string instructions share: the iterations of a REP, and the slices it is executed in.
//!
//! A slice ends where the count that is left is a multiple of a page's worth of iterations, and
//! costs one instruction's budget. One call of a handler executes a whole slice, or one iteration
//! of it on the careful road; budget and interrupt shadow treat both alike. The registers always
//! show exactly the completed iterations, so that an interrupt, a trap or a fault between two of
//! them finds an instruction that can go on (SDM vol. 2B, "REP").

use crate::arch::registers::{Reg, SegReg};
use crate::bus::Access;
use crate::machine::{Leave, Machine, Road, Step};
use crate::mem::host::PAGE_SIZE;
use crate::mem::stretch::Stride;
use crate::op::Op;
use crate::profile::{Generation, Vendor};
use crate::width::Width;

/// A string instruction.
pub(crate) trait StringOp {
    /// CMPS and SCAS: ZF ends the repetition.
    const COMPARES: bool = false;
    /// MOVS and STOS on Intel: REP with a count of 0 writes the pointers all the same.
    const WRITES_POINTERS: bool = false;
    /// Its operands, in the order in which the processor looks at them.
    const OPERANDS: &'static [StringOperand];

    /// Executes one iteration. Everything but rCX moves on.
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step;

    /// Executes up to `most` iterations in one go and returns how many, a comparison's last one
    /// being the first whose ZF is not `E::ZF`. Returns 0, with nothing changed, if that
    /// cannot be done; it never has to be.
    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64;
}

/// REPE or REPNE: what ZF has to be for the repetition to go on.
pub(crate) trait Condition {
    const ZF: bool;
}
/// REPE, and REP.
pub(crate) struct Equal;
/// REPNE.
pub(crate) struct Different;
impl Condition for Equal {
    const ZF: bool = true;
}
impl Condition for Different {
    const ZF: bool = false;
}

/// A memory operand of a string instruction.
pub(crate) struct StringOperand {
    /// RSI or RDI.
    pub(crate) reg: Reg,
    pub(crate) access: Access,
    /// How far an 80286 has counted CX down when this operand faults.
    pub(crate) counted: u64,
}

impl StringOperand {
    /// What is read at DS:rSI or the overriding segment.
    pub(crate) const fn source(counted: u64) -> StringOperand {
        StringOperand { reg: Reg::Rsi, access: Access::Read, counted }
    }
    /// What is read at ES:rDI.
    pub(crate) const fn read(counted: u64) -> StringOperand {
        StringOperand { reg: Reg::Rdi, access: Access::Read, counted }
    }
    /// What is written at ES:rDI.
    pub(crate) const fn written(counted: u64) -> StringOperand {
        StringOperand { reg: Reg::Rdi, access: Access::Write, counted }
    }

    /// Only the source can be overridden.
    fn segment(&self, op: &Op) -> u8 {
        if self.reg == Reg::Rdi { SegReg::Es as u8 } else { op.seg }
    }
}

/// The instruction without REP.
pub(crate) fn once<S: StringOp, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    match S::element::<W>(m, op) {
        Ok(()) => Ok(()),
        Err(leave) => {
            overrun::<S, W>(m, op, leave);
            Err(leave)
        }
    }
}

/// The instruction with REP, REPE or REPNE: one slice of it.
pub(crate) fn repeat<S: StringOp, W: Width, E: Condition>(
    m: &mut Machine<'_, '_>,
    op: &Op,
) -> Step {
    let stride = m.stride(op, W::BYTES);
    let count = m.string_register(Reg::Rcx, stride);
    if count == 0 {
        no_iterations::<S>(m, stride);
        return Ok(());
    }
    let before = m.flags;
    let result = slice::<S, W, E>(m, op, count);
    if S::COMPARES && result.is_err() && keeps_flags(m) {
        m.flags = before;
    }
    result
}

/// Executes the iterations up to the end of the slice.
#[inline(always)]
fn slice<S: StringOp, W: Width, E: Condition>(
    m: &mut Machine<'_, '_>,
    op: &Op,
    count: u64,
) -> Step {
    let stride = m.stride(op, W::BYTES);
    let most = if m.stepping { 1 } else { left_of_slice::<W>(count) };
    let mut done = 0;
    while done < most {
        let iterations = match S::bulk::<W, E>(m, op, most - done) {
            0 => match S::element::<W>(m, op) {
                Ok(()) => 1,
                Err(leave) => {
                    let counted = overrun::<S, W>(m, op, leave);
                    if counted != 0 {
                        let left = (count - done).saturating_sub(counted);
                        m.set_string_register(Reg::Rcx, stride, left);
                    }
                    return Err(leave);
                }
            },
            n => n,
        };
        debug_assert!(iterations <= most - done);
        done += iterations;
        m.set_string_register(Reg::Rcx, stride, count - done);
        if S::COMPARES && m.flags.zf() != E::ZF {
            return Ok(());
        }
        if m.road == Road::Careful || m.control.is_pending() {
            // The restart record holds one iteration, and what the bus asked for while it
            // prepared a page takes effect before the next one.
            break;
        }
    }
    if done == count {
        Ok(())
    } else if done == most {
        Err(Leave::Repeat)
    } else {
        Err(Leave::Iterate)
    }
}

/// Iterations to the end of the slice when `count`, at least 1, are to do. It depends on nothing
/// but the count, so a budget means the same whichever road the iterations take.
#[inline(always)]
fn left_of_slice<W: Width>(count: u64) -> u64 {
    (count - 1) % (PAGE_SIZE / W::BYTES) as u64 + 1
}

/// REP with a count of 0 does nothing, except that in 64-bit code with 32-bit addresses Intel
/// parts have written the count, and MOVS and STOS their pointers: the upper halves are zero.
fn no_iterations<S: StringOp>(m: &mut Machine<'_, '_>, stride: Stride) {
    let quirk =
        stride.mask == 0xFFFF_FFFF && m.profile.vendor == Vendor::Intel && m.cpu.is_64_bit_code();
    if !quirk {
        return;
    }
    m.cpu.gpr[Reg::Rcx] = 0;
    if S::WRITES_POINTERS {
        for operand in S::OPERANDS {
            m.advance(operand.reg, stride, 0);
        }
    }
}

/// SDM vol. 2B, "REP": a fault in a repeated CMPS or SCAS leaves EFLAGS as it was before the
/// instruction. So only the slice that ends the instruction changes it, or an iteration that is
/// trapped. AMD parts show the last completed comparison.
fn keeps_flags(m: &Machine<'_, '_>) -> bool {
    m.profile.vendor == Vendor::Intel && !m.stepping
}

/// An iteration failed. A fault finds an 80286 with registers that have moved on already: each
/// pointer up to that of the faulting operand, and CX by what is returned.
#[cold]
#[inline(never)]
fn overrun<S: StringOp, W: Width>(m: &mut Machine<'_, '_>, op: &Op, leave: Leave) -> u64 {
    if m.profile.generation != Generation::I80286 || !matches!(leave, Leave::Fault(_)) {
        return 0;
    }
    let stride = m.stride(op, W::BYTES);
    let faulting = S::OPERANDS.iter().position(|operand| {
        let offset = m.string_register(operand.reg, stride);
        m.check_segment(operand.segment(op), offset, W::BYTES, operand.access).is_err()
    });
    let Some(faulting) = faulting else {
        return 0;
    };
    for operand in &S::OPERANDS[..=faulting] {
        m.advance(operand.reg, stride, 1);
    }
    S::OPERANDS[faulting].counted
}
