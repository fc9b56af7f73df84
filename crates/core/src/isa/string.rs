//! MOVS, CMPS, STOS, LODS, SCAS with REP.

use crate::arch::registers::{Reg, SegReg};
use crate::bus::Access;
use crate::flags::Flags;
use crate::isa::operand::Operand::{Al, Rax, Xb, Xv, Yb, Yv};
use crate::isa::repeat::{Condition, Different, Equal, StringOp, StringOperand, once, repeat};
use crate::isa::row::{Exec, Row, one};
use crate::machine::{Leave, Machine, Road, Step};
use crate::mem::access::Logical;
use crate::mem::stretch::{Stretch, Stride};
use crate::op::{Handler, Op};
use crate::width::Width;

/// The destination segment, which no prefix overrides.
const ES: u8 = SegReg::Es as u8;
/// AL, AX, EAX, RAX.
const ACCUMULATOR: u8 = Reg::Rax as u8;

struct Movs;
struct Cmps;
struct Stos;
struct Lods;
struct Scas;

impl StringOp for Movs {
    const WRITES_POINTERS: bool = true;
    const OPERANDS: &'static [StringOperand] =
        &[StringOperand::source(1), StringOperand::written(2)];

    #[inline(always)]
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let stride = m.stride(op, W::BYTES);
        let from = m.string_register(Reg::Rsi, stride);
        let to = m.string_register(Reg::Rdi, stride);
        m.transfer::<W>((op.seg, from), (ES, to))?;
        m.advance(Reg::Rsi, stride, 1);
        m.advance(Reg::Rdi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let stride = m.stride(op, W::BYTES);
        let Some(from) = source::<W>(m, op, stride) else { return 0 };
        let Some(to) = destination::<W>(m, stride, Access::Write) else { return 0 };
        let n = most.min(from.elements).min(to.elements);
        if stride.is_down() {
            copy_down::<W>(&to, &from, n);
        } else {
            let len = n as usize * W::BYTES;
            to.page.copy_up(to.within, &from.page, from.within, len, W::BYTES);
        }
        m.advance(Reg::Rsi, stride, n);
        m.advance(Reg::Rdi, stride, n);
        n
    }
}

impl StringOp for Cmps {
    const COMPARES: bool = true;
    // The operand at rDI is read first: 80286 and Zen 4, by which of two faults is raised.
    const OPERANDS: &'static [StringOperand] = &[StringOperand::read(0), StringOperand::source(1)];

    #[inline(always)]
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let stride = m.stride(op, W::BYTES);
        let second = (ES, m.string_register(Reg::Rdi, stride));
        let first = (op.seg, m.string_register(Reg::Rsi, stride));
        let (a, b) = if m.road == Road::Block {
            let b = m.load_at::<W>(second.0, second.1)?;
            (m.load_at::<W>(first.0, first.1)?, b)
        } else {
            load_both_carefully::<W>(m, first, second)?
        };
        m.flags = Flags::compare(a, b);
        m.advance(Reg::Rsi, stride, 1);
        m.advance(Reg::Rdi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let stride = m.stride(op, W::BYTES);
        let Some(second) = destination::<W>(m, stride, Access::Read) else { return 0 };
        let Some(first) = source::<W>(m, op, stride) else { return 0 };
        let limit = most.min(first.elements).min(second.elements);
        let (mut at, mut other, mut n) = (first.within, second.within, 0);
        let (a, b) = loop {
            let (a, b) = (first.page.load::<W>(at), second.page.load::<W>(other));
            n += 1;
            if (a == b) != E::ZF || n == limit {
                break (a, b);
            }
            at = at.wrapping_add_signed(stride.step as isize);
            other = other.wrapping_add_signed(stride.step as isize);
        };
        m.flags = Flags::compare(a, b);
        m.advance(Reg::Rsi, stride, n);
        m.advance(Reg::Rdi, stride, n);
        n
    }
}

impl StringOp for Stos {
    const WRITES_POINTERS: bool = true;
    const OPERANDS: &'static [StringOperand] = &[StringOperand::written(2)];

    #[inline(always)]
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let stride = m.stride(op, W::BYTES);
        let to = m.string_register(Reg::Rdi, stride);
        m.store_at(ES, to, W::read(&m.cpu.gpr, ACCUMULATOR))?;
        m.advance(Reg::Rdi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let stride = m.stride(op, W::BYTES);
        let Some(to) = destination::<W>(m, stride, Access::Write) else { return 0 };
        let n = most.min(to.elements);
        let len = n as usize * W::BYTES;
        let lowest = if stride.is_down() { to.within + W::BYTES - len } else { to.within };
        to.page.fill(lowest, len, W::BYTES, W::read(&m.cpu.gpr, ACCUMULATOR).to_u64());
        m.advance(Reg::Rdi, stride, n);
        n
    }
}

impl StringOp for Lods {
    const OPERANDS: &'static [StringOperand] = &[StringOperand::source(1)];

    #[inline(always)]
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let stride = m.stride(op, W::BYTES);
        let from = m.string_register(Reg::Rsi, stride);
        let value = m.load_at::<W>(op.seg, from)?;
        value.write(&mut m.cpu.gpr, ACCUMULATOR);
        m.advance(Reg::Rsi, stride, 1);
        Ok(())
    }

    /// Of plain memory only the last element is ever seen.
    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let stride = m.stride(op, W::BYTES);
        let Some(from) = source::<W>(m, op, stride) else { return 0 };
        let n = most.min(from.elements);
        let last = stride.step as isize * (n as isize - 1);
        let value = from.page.load::<W>(from.within.wrapping_add_signed(last));
        value.write(&mut m.cpu.gpr, ACCUMULATOR);
        m.advance(Reg::Rsi, stride, n);
        n
    }
}

impl StringOp for Scas {
    const COMPARES: bool = true;
    const OPERANDS: &'static [StringOperand] = &[StringOperand::read(1)];

    #[inline(always)]
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let stride = m.stride(op, W::BYTES);
        let value = m.load_at::<W>(ES, m.string_register(Reg::Rdi, stride))?;
        m.flags = Flags::compare(W::read(&m.cpu.gpr, ACCUMULATOR), value);
        m.advance(Reg::Rdi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let stride = m.stride(op, W::BYTES);
        let Some(text) = destination::<W>(m, stride, Access::Read) else { return 0 };
        let limit = most.min(text.elements);
        let wanted = W::read(&m.cpu.gpr, ACCUMULATOR);
        let (mut at, mut n) = (text.within, 0);
        let value = loop {
            let value = text.page.load::<W>(at);
            n += 1;
            if (value == wanted) != E::ZF || n == limit {
                break value;
            }
            at = at.wrapping_add_signed(stride.step as isize);
        };
        m.flags = Flags::compare(wanted, value);
        m.advance(Reg::Rdi, stride, n);
        n
    }
}

fn source<'m, W: Width>(m: &mut Machine<'_, 'm>, op: &Op, stride: Stride) -> Option<Stretch<'m>> {
    let offset = m.string_register(Reg::Rsi, stride);
    m.stretch::<W>(op.seg, offset, stride, Access::Read)
}

fn destination<'m, W: Width>(
    m: &mut Machine<'_, 'm>,
    stride: Stride,
    access: Access,
) -> Option<Stretch<'m>> {
    let offset = m.string_register(Reg::Rdi, stride);
    m.stretch::<W>(ES, offset, stride, access)
}

/// REP MOVS downwards, element by element.
fn copy_down<W: Width>(to: &Stretch<'_>, from: &Stretch<'_>, n: u64) {
    for i in 0..n as usize {
        let value = from.page.load::<W>(from.within - i * W::BYTES);
        to.page.store(to.within - i * W::BYTES, value);
    }
}

#[cold]
#[inline(never)]
fn load_both_carefully<W: Width>(
    m: &mut Machine<'_, '_>,
    first: Logical,
    second: Logical,
) -> Result<(W, W), Leave> {
    let second = m.prepare(second.0, second.1, W::BYTES, Access::Read)?;
    let first = m.prepare(first.0, first.1, W::BYTES, Access::Read)?;
    let b = m.read_value(&second)?;
    let a = m.read_value(&first)?;
    Ok((W::from_u64(a), W::from_u64(b)))
}

/// MOVS, STOS, LODS: F2 repeats as F3 does.
const fn moving<S: StringOp + 'static>() -> Exec {
    Exec::Repeats(
        const {
            &[
                [once::<S, u8> as Handler, once::<S, u16>, once::<S, u32>, once::<S, u64>],
                repeats::<S, Equal>(),
                repeats::<S, Equal>(),
            ]
        },
    )
}

/// CMPS and SCAS.
const fn comparing<S: StringOp + 'static>() -> Exec {
    Exec::Repeats(
        const {
            &[
                [once::<S, u8> as Handler, once::<S, u16>, once::<S, u32>, once::<S, u64>],
                repeats::<S, Equal>(),
                repeats::<S, Different>(),
            ]
        },
    )
}

const fn repeats<S: StringOp + 'static, E: Condition + 'static>() -> [Handler; 4] {
    [repeat::<S, u8, E>, repeat::<S, u16, E>, repeat::<S, u32, E>, repeat::<S, u64, E>]
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("MOVS", 0xA4, &[Yb, Xb]).exec(moving::<Movs>()),
    one("MOVS", 0xA5, &[Yv, Xv]).exec(moving::<Movs>()),
    one("CMPS", 0xA6, &[Xb, Yb]).exec(comparing::<Cmps>()).arithmetic(),
    one("CMPS", 0xA7, &[Xv, Yv]).exec(comparing::<Cmps>()).arithmetic(),
    one("STOS", 0xAA, &[Yb, Al]).exec(moving::<Stos>()),
    one("STOS", 0xAB, &[Yv, Rax]).exec(moving::<Stos>()),
    one("LODS", 0xAC, &[Al, Xb]).exec(moving::<Lods>()),
    one("LODS", 0xAD, &[Rax, Xv]).exec(moving::<Lods>()),
    one("SCAS", 0xAE, &[Al, Yb]).exec(comparing::<Scas>()).arithmetic(),
    one("SCAS", 0xAF, &[Rax, Yv]).exec(comparing::<Scas>()).arithmetic(),
];
