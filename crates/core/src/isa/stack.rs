//! PUSH, POP, PUSHA, POPA, PUSHF, POPF, ENTER, LEAVE.

use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{ARITH, IF, IOPL, RF, VIF, VIP, VM};
use crate::bus::Access;
use crate::isa::operand::Operand::{self, Cs, Ds, Es, Ev, Fs, Gs, Ib, Ibs, Iw, Iz, Ss, Zv};
use crate::isa::row::{Exec, Modes, Row, Size64, one, sized, two};
use crate::isa::virtual_8086;
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, Vendor};
use crate::width::Width;

const SS: u8 = SegReg::Ss as u8;

fn push_z<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, op.reg);
    m.push(value)
}

/// PUSH SP on an 8086 pushes SP after the decrement; a 286 and later before.
fn push_z_8086(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if op.reg == Reg::Rsp as u8 {
        let value = m.stack_offset(-2) as u16;
        return m.push(value);
    }
    push_z::<u16>(m, op)
}

fn pop_z<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.peek::<W>(0)?;
    m.set_stack_offset(m.stack_offset(W::BYTES as i64));
    // POP SP: the popped value wins over the increment.
    value.write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn push_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.push(W::from_u64(op.imm))
}

fn push_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let sp = m.stack_offset(-(W::BYTES as i64));
    m.transfer::<W>((op.seg, m.offset(op)), (SS, sp))?;
    m.set_stack_offset(sp);
    Ok(())
}

/// POP to memory: an address that uses rSP sees it after the increment.
fn pop_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let rsp = m.cpu.gpr[Reg::Rsp];
    let from = m.stack_offset(0);
    m.set_stack_offset(m.stack_offset(W::BYTES as i64));
    let to = m.offset(op);
    let result = m.transfer::<W>((SS, from), (op.seg, to));
    // A 286 whose store faults keeps the increment; every other processor takes it back.
    let kept = m.profile.generation == Generation::I80286 && matches!(result, Err(Leave::Fault(_)));
    if result.is_err() && !kept {
        m.cpu.gpr[Reg::Rsp] = rsp;
    }
    result
}

fn push_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, op.rm);
    m.push(value)
}

/// FF /6 in its register form on an 8086.
fn push_r_8086(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    push_z_8086(m, &Op { reg: op.rm, ..*op })
}

fn pop_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    pop_z::<W>(m, &Op { reg: op.rm, ..*op })
}

/// PUSH of a segment register.
fn push_s<const SEG: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let selector = m.cpu.seg[SEG as usize].selector;
    let sp = m.stack_offset(-i64::from(op.width));
    match m.selector_bytes(usize::from(op.width)) {
        2 => m.store_at(SS, sp, selector)?,
        4 => m.store_at(SS, sp, u32::from(selector))?,
        _ => m.store_at(SS, sp, u64::from(selector))?,
    }
    m.set_stack_offset(sp);
    Ok(())
}

/// POP of a segment register.
fn pop_s<const SEG: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = SegReg::ALL[SEG as usize];
    let selector = match op.width {
        2 => m.peek_selector::<u16>(0)?,
        4 => m.peek_selector::<u32>(0)?,
        _ => m.peek_selector::<u64>(0)?,
    };
    let segment = m.segment_for_load(reg, selector)?;
    m.set_stack_offset(m.stack_offset(i64::from(op.width)));
    m.commit_segment(reg, segment);
    if reg == SegReg::Ss {
        m.cast_mov_ss();
    }
    Ok(())
}

/// PUSHA: eight words, all prepared before the first is written.
fn pusha<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let at = |m: &Machine<'_, '_>, i: u8| m.stack_offset(-(W::BYTES as i64) * (i64::from(i) + 1));
    for i in 0..8 {
        let offset = at(m, i);
        m.prepare(SS, offset, W::BYTES, Access::Write)?;
    }
    for i in 0..8 {
        let value = W::read(&m.cpu.gpr, i);
        let offset = at(m, i);
        m.store_at(SS, offset, value)?;
    }
    m.set_stack_offset(at(m, 7));
    Ok(())
}

/// POPA: all eight are read before a register changes; SP's is skipped.
fn popa<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let at = |m: &Machine<'_, '_>, i: usize| m.stack_offset((W::BYTES * i) as i64);
    for i in 0..8 {
        let offset = at(m, i);
        m.prepare(SS, offset, W::BYTES, Access::Read)?;
    }
    let mut values = [0; 8];
    for (i, value) in values.iter_mut().enumerate() {
        let offset = at(m, i);
        *value = m.load_at::<W>(SS, offset)?.to_u64();
    }
    let end = at(m, 8);
    for (i, value) in values.iter().enumerate() {
        let number = 7 - i as u8;
        if number != Reg::Rsp as u8 {
            W::from_u64(*value).write(&mut m.cpu.gpr, number);
        }
    }
    m.set_stack_offset(end);
    Ok(())
}

fn pushf<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.cpu.is_virtual_8086() {
        let image = virtual_8086::pushed_flags::<W>(m)?;
        return m.push(W::from_u64(image));
    }
    // SDM vol. 2B, "PUSHF": RF and VM read as zero.
    let image = m.rflags() & !(RF | VM);
    m.push(W::from_u64(image))
}

fn popf<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let new = if m.cpu.is_virtual_8086() {
        virtual_8086::require_flags::<W>(m)?;
        let image = m.peek::<W>(0)?.to_u64();
        virtual_8086::popped_flags::<W>(m, image)? & !RF
    } else {
        let image = m.peek::<W>(0)?.to_u64();
        popped_flags::<W>(m, image)
    };
    m.set_stack_offset(m.stack_offset(W::BYTES as i64));
    m.set_rflags(new);
    Ok(())
}

/// RFLAGS after POPF (SDM vol. 2B, "POPF": the table of changes by mode and privilege).
fn popped_flags<W: Width>(m: &Machine<'_, '_>, image: u64) -> u64 {
    let old = m.rflags();
    let (cpl, iopl) = (m.cpu.cpl(), (old >> 12 & 3) as u8);
    let mut keep = VM | VIF | VIP;
    if W::BYTES == 2 {
        keep |= !0xFFFF;
    }
    if cpl > 0 {
        keep |= IOPL;
    }
    if cpl > iopl {
        keep |= IF;
    }
    let new = old & keep | image & !keep;
    m.profile.canonical_flags(new & !RF)
}

/// What ENTER makes of rBP: rSP less one slot. On a stack of 16 bits only AMD's parts keep a borrow
/// out of the upper half of ESP (seen on Zen 4 and on Raptor Cove).
fn frame_pointer(m: &Machine<'_, '_>, width: i64) -> u64 {
    let rsp = m.cpu.gpr[Reg::Rsp];
    match m.profile.vendor {
        Vendor::Intel => rsp.wrapping_sub(width as u64),
        Vendor::Amd => rsp & !m.stack_mask | m.stack_offset(-width),
    }
}

/// ENTER (SDM vol. 2A, "ENTER"): up to 31 levels. Everything is prepared before the first push.
fn enter<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let size = (op.imm & 0xFFFF) as i64;
    let level = (op.imm >> 16 & 31) as i64;
    let width = W::BYTES as i64;
    if level > 1 {
        // It reads where it may have stored: it must not be begun twice.
        m.require_careful()?;
    }
    let bp = m.cpu.gpr[Reg::Rbp];
    let mask = m.stack_mask;
    let outer = move |i: i64| bp.wrapping_sub((width * i) as u64) & mask;
    for i in 0..=level {
        let slot = m.stack_offset(-width * (i + 1));
        m.prepare(SS, slot, W::BYTES, Access::Write)?;
        if i > 0 && i < level {
            m.prepare(SS, outer(i), W::BYTES, Access::Read)?;
        }
    }
    let frame = m.stack_offset(-width);
    let pointer = frame_pointer(m, width);
    let end = m.stack_offset(-width * (level + 1) - size);
    m.prepare(SS, end, W::BYTES, Access::Write)?;
    m.store_at(SS, frame, W::from_u64(bp))?;
    for i in 1..=level {
        let value = if i < level { m.load_at::<W>(SS, outer(i))? } else { W::from_u64(pointer) };
        let slot = m.stack_offset(-width * (i + 1));
        m.store_at(SS, slot, value)?;
    }
    W::from_u64(pointer).write(&mut m.cpu.gpr, Reg::Rbp as u8);
    m.set_stack_offset(end);
    Ok(())
}

fn leave<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let frame = m.cpu.gpr[Reg::Rbp] & m.stack_mask;
    let value = m.load_at::<W>(SS, frame)?;
    m.set_stack_offset(frame.wrapping_add(W::BYTES as u64));
    value.write(&mut m.cpu.gpr, Reg::Rbp as u8);
    Ok(())
}

const fn push_segment<const SEG: u8>(row: Row) -> Row {
    row.size64(Size64::Default64).handler(push_s::<SEG>)
}

const fn pop_segment<const SEG: u8>(row: Row) -> Row {
    row.size64(Size64::Default64).changes_validity().handler(pop_s::<SEG>)
}

const fn legacy(name: &'static str, opcode: u8, operand: Operand) -> Row {
    one(name, opcode, &[operand]).modes(Modes::Not64)
}

/// PUSH and POP of whole registers size themselves to 64 bits in 64-bit code.
const fn wide(row: Row) -> Row {
    row.size64(Size64::Default64)
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("PUSH", 0x50, &[Zv]).span(8).until(Generation::I80186).handler(push_z_8086),
    wide(one("PUSH", 0x50, &[Zv]).span(8))
        .since(Generation::I80286)
        .exec(Exec::Sizes(&sized!(push_z))),
    wide(one("POP", 0x58, &[Zv]).span(8)).exec(Exec::Sizes(&sized!(pop_z))),
    wide(one("PUSH", 0x68, &[Iz])).since(Generation::I80186).exec(Exec::Sizes(&sized!(push_i))),
    wide(one("PUSH", 0x6A, &[Ibs])).since(Generation::I80186).exec(Exec::Sizes(&sized!(push_i))),
    one("PUSH", 0xFF, &[Ev])
        .digit(6)
        .until(Generation::I80186)
        .exec(Exec::Forms(&[push_r_8086 as Handler, push_m::<u16> as Handler])),
    wide(one("PUSH", 0xFF, &[Ev]).digit(6))
        .since(Generation::I80286)
        .exec(Exec::FormSizes(&[sized!(push_r), sized!(push_m)])),
    // 8086: /7 is /6 again.
    one("PUSH", 0xFF, &[Ev])
        .digit(7)
        .until(Generation::I80186)
        .exec(Exec::Forms(&[push_r_8086 as Handler, push_m::<u16> as Handler])),
    wide(one("POP", 0x8F, &[Ev]).digit(0)).exec(Exec::FormSizes(&[sized!(pop_r), sized!(pop_m)])),
    // 8086: ModRM.reg is ignored.
    one("POP", 0x8F, &[Ev])
        .until(Generation::I80186)
        .exec(Exec::FormSizes(&[sized!(pop_r), sized!(pop_m)])),
    push_segment::<0>(legacy("PUSH", 0x06, Es)),
    push_segment::<1>(legacy("PUSH", 0x0E, Cs)),
    push_segment::<2>(legacy("PUSH", 0x16, Ss)),
    push_segment::<3>(legacy("PUSH", 0x1E, Ds)),
    push_segment::<4>(two("PUSH", 0xA0, &[Fs])),
    push_segment::<5>(two("PUSH", 0xA8, &[Gs])),
    pop_segment::<0>(legacy("POP", 0x07, Es)),
    pop_segment::<1>(legacy("POP", 0x0F, Cs)).until(Generation::I80186),
    pop_segment::<2>(legacy("POP", 0x17, Ss)),
    pop_segment::<3>(legacy("POP", 0x1F, Ds)),
    pop_segment::<4>(two("POP", 0xA1, &[Fs])),
    pop_segment::<5>(two("POP", 0xA9, &[Gs])),
    one("PUSHA", 0x60, &[])
        .modes(Modes::Not64)
        .since(Generation::I80186)
        .exec(Exec::Sizes(&sized!(pusha))),
    one("POPA", 0x61, &[])
        .modes(Modes::Not64)
        .since(Generation::I80186)
        .exec(Exec::Sizes(&sized!(popa))),
    wide(one("PUSHF", 0x9C, &[])).exec(Exec::Sizes(&sized!(pushf))),
    wide(one("POPF", 0x9D, &[])).changes(ARITH).changes_validity().exec(Exec::Sizes(&sized!(popf))),
    wide(one("ENTER", 0xC8, &[Iw, Ib])).since(Generation::I80186).exec(Exec::Sizes(&sized!(enter))),
    wide(one("LEAVE", 0xC9, &[])).since(Generation::I80186).exec(Exec::Sizes(&sized!(leave))),
];
