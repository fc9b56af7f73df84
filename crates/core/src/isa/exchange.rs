//! XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B.

use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::arch::rflags::ZF;
use crate::bus::Access;
use crate::fault::Fault;
use crate::flags::Flags;
use crate::isa::operand::Operand::{Eb, Ev, Gb, Gv, Mdq, Mq, Rax, Zv};
use crate::isa::row::{Exec, Modes, Row, Vector, by_width, one, sized, two};
use crate::machine::{Machine, Step};
use crate::mem::access::Operand;
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::width::Width;

fn accumulator<W: Width>(m: &Machine<'_, '_>) -> W {
    W::read(&m.cpu.gpr, Reg::Rax as u8)
}

// ---- XCHG ----

fn xchg_registers<W: Width>(m: &mut Machine<'_, '_>, first: u8, second: u8) -> Step {
    let (a, b) = (W::read(&m.cpu.gpr, first), W::read(&m.cpu.gpr, second));
    b.write(&mut m.cpu.gpr, first);
    a.write(&mut m.cpu.gpr, second);
    Ok(())
}

fn xchg_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    xchg_registers::<W>(m, op.rm, op.reg)
}

/// 90+r. 90 itself is NOP: in 64-bit code it does not zero the upper half of RAX. With REX.B it
/// exchanges R8.
fn xchg_z<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if op.reg == Reg::Rax as u8 {
        return Ok(());
    }
    xchg_registers::<W>(m, op.reg, Reg::Rax as u8)
}

/// With memory: locked, prefix or not.
fn xchg_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    let offset = m.offset(op);
    let operand = m.prepare(op.seg, offset, W::BYTES, Access::Write)?;
    let old = m.update_locked(&operand, &mut |_| b.to_u64())?;
    W::from_u64(old).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn locked_xchg(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    by_width!(xchg_m)(m, op)
}

// ---- XADD ----

fn sum<W: Width>(a: W, b: W) -> (W, Flags) {
    let r = W::from_u64(a.to_u64().wrapping_add(b.to_u64()));
    (r, Flags::add(a, b, r))
}

/// The destination is written last: XADD of a register with itself doubles it.
fn xadd_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (a, b) = (W::read(&m.cpu.gpr, op.rm), W::read(&m.cpu.gpr, op.reg));
    let (r, flags) = sum(a, b);
    a.write(&mut m.cpu.gpr, op.reg);
    r.write(&mut m.cpu.gpr, op.rm);
    m.flags = flags;
    Ok(())
}

fn xadd_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    let mut old = b;
    m.modify(op, |_, a| {
        old = a;
        sum(a, b)
    })?;
    old.write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn locked_xadd(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let b = W::read(&m.cpu.gpr, op.reg);
        let offset = m.offset(op);
        let operand = m.prepare(op.seg, offset, W::BYTES, Access::Write)?;
        let old = m.update_locked(&operand, &mut |a| sum(W::from_u64(a), b).0.to_u64())?;
        let old = W::from_u64(old);
        old.write(&mut m.cpu.gpr, op.reg);
        m.flags = sum(old, b).1;
        Ok(())
    }
    by_width!(go)(m, op)
}

// ---- CMPXCHG ----

/// The accumulator takes the destination where they differ; where not, not even its upper half
/// changes.
fn finish_compare<W: Width>(m: &mut Machine<'_, '_>, accumulator: W, destination: W) {
    if accumulator != destination {
        destination.write(&mut m.cpu.gpr, Reg::Rax as u8);
    }
    m.flags = Flags::compare(accumulator, destination);
}

fn cmpxchg_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (a, destination) = (accumulator::<W>(m), W::read(&m.cpu.gpr, op.rm));
    if a == destination {
        W::read(&m.cpu.gpr, op.reg).write(&mut m.cpu.gpr, op.rm);
    }
    finish_compare(m, a, destination);
    Ok(())
}

/// Memory is written in either case.
fn cmpxchg_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (a, source) = (accumulator::<W>(m), W::read(&m.cpu.gpr, op.reg));
    let mut destination = a;
    m.modify(op, |_, old| {
        destination = old;
        (if old == a { source } else { old }, Flags::compare(a, old))
    })?;
    finish_compare(m, a, destination);
    Ok(())
}

fn locked_cmpxchg(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let (a, source) = (accumulator::<W>(m), W::read(&m.cpu.gpr, op.reg));
        let offset = m.offset(op);
        let operand = m.prepare(op.seg, offset, W::BYTES, Access::Write)?;
        let old = m.update_locked(&operand, &mut |old| {
            if old == a.to_u64() { source.to_u64() } else { old }
        })?;
        finish_compare(m, a, W::from_u64(old));
        Ok(())
    }
    by_width!(go)(m, op)
}

// ---- CMPXCHG8B, CMPXCHG16B ----

/// Two registers of 32 bits as one number.
fn pair_32(m: &Machine<'_, '_>, high: Reg, low: Reg) -> u64 {
    let half = |reg: Reg| u64::from(m.cpu.gpr[reg] as u32);
    half(high) << 32 | half(low)
}

/// Two registers of 64 bits as one number.
fn pair_64(m: &Machine<'_, '_>, high: Reg, low: Reg) -> u128 {
    u128::from(m.cpu.gpr[high]) << 64 | u128::from(m.cpu.gpr[low])
}

fn finish_8(m: &mut Machine<'_, '_>, expected: u64, old: u64) {
    if old != expected {
        (old as u32).write(&mut m.cpu.gpr, Reg::Rax as u8);
        ((old >> 32) as u32).write(&mut m.cpu.gpr, Reg::Rdx as u8);
    }
    m.flags = m.flags.with(ZF, if old == expected { ZF } else { 0 });
}

fn cmpxchg8b(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (expected, new) = (pair_32(m, Reg::Rdx, Reg::Rax), pair_32(m, Reg::Rcx, Reg::Rbx));
    let offset = m.offset(op);
    let operand = m.prepare(op.seg, offset, 8, Access::Write)?;
    let old = m.read_value(&operand)?;
    m.write_value(&operand, if old == expected { new } else { old })?;
    finish_8(m, expected, old);
    Ok(())
}

fn locked_cmpxchg8b(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (expected, new) = (pair_32(m, Reg::Rdx, Reg::Rax), pair_32(m, Reg::Rcx, Reg::Rbx));
    let offset = m.offset(op);
    let operand = m.prepare(op.seg, offset, 8, Access::Write)?;
    let old = m.update_locked(&operand, &mut |old| if old == expected { new } else { old })?;
    finish_8(m, expected, old);
    Ok(())
}

fn cmpxchg16b(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    exchange_16(m, op, |_, _, _, _| None)
}

fn locked_cmpxchg16b(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    exchange_16(m, op, Machine::compare_exchange_16)
}

/// How sixteen bytes are compared and exchanged in one host operation, where that can be done.
type Atomic<'r, 'm> = fn(&mut Machine<'r, 'm>, &Operand<'m>, u128, u128) -> Option<u128>;

fn exchange_16<'r, 'm>(m: &mut Machine<'r, 'm>, op: &Op, atomic: Atomic<'r, 'm>) -> Step {
    let (expected, new) = (pair_64(m, Reg::Rdx, Reg::Rax), pair_64(m, Reg::Rcx, Reg::Rbx));
    let offset = m.offset(op);
    // SDM vol. 2A, "CMPXCHG8B/CMPXCHG16B": #GP(0) if not aligned on 16 bytes. Zen looks at this
    // first, also where a stack address that is not canonical would be #SS.
    if !m.flat_base(op.seg).wrapping_add(offset).is_multiple_of(16) {
        return Err(Fault::GP.into());
    }
    let operand = m.prepare(op.seg, offset, 16, Access::Write)?;
    let old = match atomic(m, &operand, expected, new) {
        Some(old) => old,
        None => {
            let mut bytes = [0; 16];
            m.read_operand(&operand, &mut bytes)?;
            let old = u128::from_le_bytes(bytes);
            let value = if old == expected { new } else { old };
            m.write_operand(&operand, &value.to_le_bytes())?;
            old
        }
    };
    if old != expected {
        m.cpu.gpr[Reg::Rax] = old as u64;
        m.cpu.gpr[Reg::Rdx] = (old >> 64) as u64;
    }
    m.flags = m.flags.with(ZF, if old == expected { ZF } else { 0 });
    Ok(())
}

const fn since_486(row: Row) -> Row {
    row.since(Generation::I80486).arithmetic()
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("XCHG", 0x86, &[Eb, Gb])
        .lockable(locked_xchg)
        .exec(Exec::Forms(&[xchg_r::<u8> as Handler, xchg_m::<u8> as Handler])),
    one("XCHG", 0x87, &[Ev, Gv])
        .lockable(locked_xchg)
        .exec(Exec::FormSizes(&[sized!(xchg_r), sized!(xchg_m)])),
    one("XCHG", 0x90, &[Zv, Rax]).span(8).exec(Exec::Sizes(&sized!(xchg_z))),
    since_486(two("XADD", 0xC0, &[Eb, Gb]))
        .lockable(locked_xadd)
        .exec(Exec::Forms(&[xadd_r::<u8> as Handler, xadd_m::<u8> as Handler])),
    since_486(two("XADD", 0xC1, &[Ev, Gv]))
        .lockable(locked_xadd)
        .exec(Exec::FormSizes(&[sized!(xadd_r), sized!(xadd_m)])),
    since_486(two("CMPXCHG", 0xB0, &[Eb, Gb]))
        .lockable(locked_cmpxchg)
        .exec(Exec::Forms(&[cmpxchg_r::<u8> as Handler, cmpxchg_m::<u8> as Handler])),
    since_486(two("CMPXCHG", 0xB1, &[Ev, Gv]))
        .lockable(locked_cmpxchg)
        .exec(Exec::FormSizes(&[sized!(cmpxchg_r), sized!(cmpxchg_m)])),
    // 66 means nothing here: the operand size is 64 bits, or 128 with REX.W.
    two("CMPXCHG8B", 0xC7, &[Mq])
        .digit(1)
        .vector(Vector { w: 1, ..Vector::ANY })
        .needs(Features::CX8)
        .changes(ZF)
        .lockable(locked_cmpxchg8b)
        .handler(cmpxchg8b),
    two("CMPXCHG16B", 0xC7, &[Mdq])
        .digit(1)
        .vector(Vector { w: 2, ..Vector::ANY })
        .modes(Modes::Only64)
        .needs(Features::CX16)
        .changes(ZF)
        .lockable(locked_cmpxchg16b)
        .handler(cmpxchg16b),
];
