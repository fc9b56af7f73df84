//! Near transfers: JMP, Jcc, CALL, RET, LOOP, JCXZ.
//!
//! RIP already points past the instruction, and a relative displacement counts from there. The
//! target is checked against the limit of the code segment before anything changes.

use crate::arch::registers::{Reg, SegReg};
use crate::bus::Access;
use crate::isa::operand::Operand::{Ev, Iw, Jb, Jz};
use crate::isa::row::{Exec, Row, Size64, one, sized, two};
use crate::machine::{Leave, Machine, Road, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::width::Width;

/// The target of a relative branch, truncated to the operand size.
#[inline(always)]
fn target(m: &Machine<'_, '_>, op: &Op) -> u64 {
    m.cpu.rip.wrapping_add(op.imm) & (u64::MAX >> (op.address_shift & 63))
}

fn jcc<const CODE: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if m.flags.condition(CODE) { m.jump(target(m, op)) } else { Ok(()) }
}

fn jmp(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.jump(target(m, op))
}

fn jmp_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let target = W::read(&m.cpu.gpr, op.rm);
    m.jump(target.to_u64())
}

fn jmp_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let target = m.load::<W>(op)?;
    m.jump(target.to_u64())
}

fn call<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    call_to::<W>(m, target(m, op))
}

fn call_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let target = W::read(&m.cpu.gpr, op.rm);
    call_to::<W>(m, target.to_u64())
}

fn call_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if m.road == Road::Careful {
        // The stack is prepared before a device is read for the target.
        let sp = m.stack_offset(-(W::BYTES as i64));
        m.prepare(op.seg, m.offset(op), W::BYTES, Access::Read)?;
        m.prepare(SegReg::Ss as u8, sp, W::BYTES, Access::Write)?;
    }
    let target = m.load::<W>(op)?.to_u64();
    if m.road == Road::Block && target > m.ip_limit {
        // Likely a fault; which one comes first is for the careful road to say.
        return Err(Leave::Again);
    }
    call_to::<W>(m, target)
}

#[inline(always)]
fn call_to<W: Width>(m: &mut Machine<'_, '_>, target: u64) -> Step {
    let next = m.cpu.rip;
    m.jump(target)?;
    let result = m.push(W::from_u64(next));
    if result.is_err() {
        m.cpu.rip = next;
    }
    result
}

fn ret<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let target = m.peek::<W>(0)?;
    m.jump(target.to_u64())?;
    m.set_stack_offset(m.stack_offset(W::BYTES as i64 + op.imm as i64));
    Ok(())
}

/// Which of ZF's values a LOOP asks for besides a count that is not zero.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loop {
    Always,
    IfZero,
    IfNotZero,
}

/// LOOP counts in CX, ECX or RCX by the address size, which decode leaves in `scale`.
fn count(m: &Machine<'_, '_>, op: &Op) -> (u64, u64) {
    let mask = u64::MAX >> (64 - (8 << (op.scale & 3)));
    (m.cpu.gpr[Reg::Rcx] & mask, mask)
}

fn repeat(m: &mut Machine<'_, '_>, op: &Op, kind: Loop) -> Step {
    let (count, mask) = count(m, op);
    let left = count.wrapping_sub(1) & mask;
    let again = left != 0
        && match kind {
            Loop::Always => true,
            Loop::IfZero => m.flags.zf(),
            Loop::IfNotZero => !m.flags.zf(),
        };
    if again {
        m.jump(target(m, op))?;
    }
    match op.scale & 3 {
        1 => (left as u16).write(&mut m.cpu.gpr, Reg::Rcx as u8),
        2 => (left as u32).write(&mut m.cpu.gpr, Reg::Rcx as u8),
        _ => m.cpu.gpr[Reg::Rcx] = left,
    }
    Ok(())
}

fn loop_(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    repeat(m, op, Loop::Always)
}
fn loope(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    repeat(m, op, Loop::IfZero)
}
fn loopne(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    repeat(m, op, Loop::IfNotZero)
}

fn jcxz(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if count(m, op).0 == 0 { m.jump(target(m, op)) } else { Ok(()) }
}

const JCC: [Handler; 16] = [
    jcc::<0>, jcc::<1>, jcc::<2>, jcc::<3>, jcc::<4>, jcc::<5>, jcc::<6>, jcc::<7>, jcc::<8>,
    jcc::<9>, jcc::<10>, jcc::<11>, jcc::<12>, jcc::<13>, jcc::<14>, jcc::<15>,
];

/// Near branches end their block.
const fn near(row: Row) -> Row {
    row.size64(Size64::Near).ends_block()
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    near(one("Jcc", 0x70, &[Jb]).span(16)).exec(Exec::Conditions(&JCC)),
    // 8086: 60 to 6F are 70 to 7F again.
    near(one("Jcc", 0x60, &[Jb]).span(16)).until(Generation::I8086).exec(Exec::Conditions(&JCC)),
    near(two("Jcc", 0x80, &[Jz]).span(16)).exec(Exec::Conditions(&JCC)),
    near(one("JMP", 0xEB, &[Jb])).handler(jmp),
    near(one("JMP", 0xE9, &[Jz])).handler(jmp),
    near(one("JMP", 0xFF, &[Ev]).digit(4)).exec(Exec::FormSizes(&[sized!(jmp_r), sized!(jmp_m)])),
    near(one("CALL", 0xE8, &[Jz])).exec(Exec::Sizes(&sized!(call))),
    near(one("CALL", 0xFF, &[Ev]).digit(2))
        .exec(Exec::FormSizes(&[sized!(call_r), sized!(call_m)])),
    near(one("RET", 0xC3, &[])).exec(Exec::Sizes(&sized!(ret))),
    near(one("RET", 0xC2, &[Iw])).exec(Exec::Sizes(&sized!(ret))),
    // 8086: C0 and C1 are C2 and C3 again.
    near(one("RET", 0xC1, &[])).until(Generation::I8086).exec(Exec::Sizes(&sized!(ret))),
    near(one("RET", 0xC0, &[Iw])).until(Generation::I8086).exec(Exec::Sizes(&sized!(ret))),
    near(one("LOOPNE", 0xE0, &[Jb])).handler(loopne),
    near(one("LOOPE", 0xE1, &[Jb])).handler(loope),
    near(one("LOOP", 0xE2, &[Jb])).handler(loop_),
    near(one("JCXZ", 0xE3, &[Jb])).handler(jcxz),
];
