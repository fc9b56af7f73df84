//! IN, OUT, INS, OUTS.

use crate::arch::registers::{Reg, SegReg};
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand::{Al, Dx, Ib, Rax, Xb, Xv, Yb, Yv};
use crate::isa::repeat::{Condition, Equal, StringOp, StringOperand, once, repeat};
use crate::isa::row::{Exec, Row, one};
use crate::machine::{Machine, Road, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::width::Width;

/// The most bytes that go to or come from a port in one call of the bus. Fits the restart record.
const BLOCK: usize = 512;
/// The destination segment of INS.
const ES: u8 = SegReg::Es as u8;
/// AL, AX, EAX.
const ACCUMULATOR: u8 = Reg::Rax as u8;

impl Machine<'_, '_> {
    /// May the program use all ports, whatever the bitmap says?
    fn has_port_privilege(&self) -> bool {
        let cpu = &*self.cpu;
        cpu.is_real_mode() || !cpu.is_virtual_8086() && cpu.cpl() <= cpu.iopl()
    }

    /// May the program use a port? (SDM vol. 1, "I/O Protection")
    fn check_port(&mut self, port: u16, size: usize) -> Step {
        if self.has_port_privilege() {
            return Ok(());
        }
        if self.is_port_denied(port, size)? { Err(Fault::GP.into()) } else { Ok(()) }
    }

    fn dx(&self) -> u16 {
        self.cpu.gpr[Reg::Rdx] as u16
    }
}

/// IN from the port in the immediate.
fn in_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    input::<W>(m, op.imm as u16)
}

/// IN from the port in DX.
fn in_d<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    input::<W>(m, m.dx())
}

fn input<W: Width>(m: &mut Machine<'_, '_>, port: u16) -> Step {
    m.check_port(port, W::BYTES)?;
    let value = m.read_port(port, W::BYTES as u8)?;
    W::from_u64(value).write(&mut m.cpu.gpr, ACCUMULATOR);
    Ok(())
}

/// OUT to the port in the immediate.
fn out_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    output::<W>(m, op.imm as u16)
}

/// OUT to the port in DX.
fn out_d<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    output::<W>(m, m.dx())
}

fn output<W: Width>(m: &mut Machine<'_, '_>, port: u16) -> Step {
    m.check_port(port, W::BYTES)?;
    m.write_port(port, W::BYTES as u8, W::read(&m.cpu.gpr, ACCUMULATOR).to_u64())
}

struct Ins;
struct Outs;

impl StringOp for Ins {
    const OPERANDS: &'static [StringOperand] = &[StringOperand::written(2)];

    /// The destination is prepared first: data read for a store that faults would be lost.
    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let port = m.dx();
        m.check_port(port, W::BYTES)?;
        m.require_careful()?;
        let stride = m.stride(op, W::BYTES);
        let to = m.string_register(Reg::Rdi, stride);
        let to = m.prepare(ES, to, W::BYTES, Access::Write)?;
        let value = m.read_port(port, W::BYTES as u8)?;
        m.write_value(&to, W::from_u64(value))?;
        m.advance(Reg::Rdi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let n = input_block::<W>(m, op, most).unwrap_or(0);
        m.advance(Reg::Rdi, m.stride(op, W::BYTES), n);
        n
    }
}

impl StringOp for Outs {
    const OPERANDS: &'static [StringOperand] = &[StringOperand::source(1)];

    fn element<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let port = m.dx();
        m.check_port(port, W::BYTES)?;
        m.require_careful()?;
        let stride = m.stride(op, W::BYTES);
        let from = m.string_register(Reg::Rsi, stride);
        let from = m.prepare(op.seg, from, W::BYTES, Access::Read)?;
        let value = m.read_value(&from)?;
        m.write_port(port, W::BYTES as u8, value)?;
        m.advance(Reg::Rsi, stride, 1);
        Ok(())
    }

    fn bulk<W: Width, E: Condition>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> u64 {
        let n = output_block::<W>(m, op, most).unwrap_or(0);
        m.advance(Reg::Rsi, m.stride(op, W::BYTES), n);
        n
    }
}

/// Reads a block from the port into plain memory; returns how many elements. `None` or 0: one
/// element at a time, which can wait for the device.
fn input_block<W: Width>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> Option<u64> {
    let (port, len) = block::<W>(m, op, most, Reg::Rdi)?;
    let offset = m.string_register(Reg::Rdi, m.stride(op, W::BYTES));
    let to = m.prepare(ES, offset, len, Access::Write).ok()?;
    to.is_one_host_page()?;
    let mut bytes = [0; BLOCK];
    let bytes = bytes.get_mut(..len)?;
    let got = m.bus.port_in_string(port, W::BYTES as u8, bytes, &mut m.control).min(len);
    let n = got / W::BYTES;
    if n != 0 {
        m.write_operand(&to, bytes.get(..n * W::BYTES)?).ok()?;
    }
    Some(n as u64)
}

/// Writes a block of plain memory to the port.
fn output_block<W: Width>(m: &mut Machine<'_, '_>, op: &Op, most: u64) -> Option<u64> {
    let (port, len) = block::<W>(m, op, most, Reg::Rsi)?;
    let offset = m.string_register(Reg::Rsi, m.stride(op, W::BYTES));
    let from = m.prepare(op.seg, offset, len, Access::Read).ok()?;
    from.is_one_host_page()?;
    let mut bytes = [0; BLOCK];
    let bytes = bytes.get_mut(..len)?;
    m.read_operand(&from, bytes).ok()?;
    let taken = m.bus.port_out_string(port, W::BYTES as u8, bytes, &mut m.control).min(len);
    let n = taken / W::BYTES;
    if n == 0 {
        // The element that follows is recorded from the start.
        m.flight.begin();
    }
    Some(n as u64)
}

/// The port and the length of the block that starts at the string operand in `reg`, if a block
/// is possible: upwards, on the careful road, at the beginning of the restart record, and of a
/// port that no bitmap guards.
fn block<W: Width>(m: &mut Machine<'_, '_>, op: &Op, most: u64, reg: Reg) -> Option<(u16, usize)> {
    let stride = m.stride(op, W::BYTES);
    if m.road == Road::Block || most < 2 || stride.is_down() || !m.flight.is_fresh() {
        return None;
    }
    if !m.has_port_privilege() {
        return None;
    }
    let port = m.dx();
    let offset = m.string_register(reg, stride);
    let (seg, access) = if reg == Reg::Rdi { (ES, Access::Write) } else { (op.seg, Access::Read) };
    let room = m.room::<W>(seg, offset, stride, access)?;
    let n = most.min(room).min((BLOCK / W::BYTES) as u64);
    (n >= 2).then_some((port, n as usize * W::BYTES))
}

/// INS and OUTS. There is no 64-bit form: REX.W means nothing.
const fn strings<S: StringOp + 'static>() -> Exec {
    Exec::Repeats(
        const {
            &[
                [once::<S, u8> as Handler, once::<S, u16>, once::<S, u32>, once::<S, u32>],
                repeats::<S>(),
                repeats::<S>(),
            ]
        },
    )
}

const fn repeats<S: StringOp + 'static>() -> [Handler; 4] {
    [repeat_port::<S, u8>, repeat_port::<S, u16>, repeat_port::<S, u32>, repeat_port::<S, u32>]
}

/// Silicon asks for the permission whatever the count is, where the SDM has no iteration to ask
/// for.
fn repeat_port<S: StringOp, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.check_port(m.dx(), W::BYTES)?;
    repeat::<S, W, Equal>(m, op)
}

const IN_I: Exec = Exec::Sizes(&[in_i::<u16> as Handler, in_i::<u32>, in_i::<u32>]);
const IN_D: Exec = Exec::Sizes(&[in_d::<u16> as Handler, in_d::<u32>, in_d::<u32>]);
const OUT_I: Exec = Exec::Sizes(&[out_i::<u16> as Handler, out_i::<u32>, out_i::<u32>]);
const OUT_D: Exec = Exec::Sizes(&[out_d::<u16> as Handler, out_d::<u32>, out_d::<u32>]);

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("IN", 0xE4, &[Al, Ib]).handler(in_i::<u8>).ends_block(),
    one("IN", 0xE5, &[Rax, Ib]).exec(IN_I).ends_block(),
    one("OUT", 0xE6, &[Ib, Al]).handler(out_i::<u8>).ends_block(),
    one("OUT", 0xE7, &[Ib, Rax]).exec(OUT_I).ends_block(),
    one("IN", 0xEC, &[Al, Dx]).handler(in_d::<u8>).ends_block(),
    one("IN", 0xED, &[Rax, Dx]).exec(IN_D).ends_block(),
    one("OUT", 0xEE, &[Dx, Al]).handler(out_d::<u8>).ends_block(),
    one("OUT", 0xEF, &[Dx, Rax]).exec(OUT_D).ends_block(),
    one("INS", 0x6C, &[Yb, Dx]).exec(strings::<Ins>()).since(Generation::I80186).ends_block(),
    one("INS", 0x6D, &[Yv, Dx]).exec(strings::<Ins>()).since(Generation::I80186).ends_block(),
    one("OUTS", 0x6E, &[Dx, Xb]).exec(strings::<Outs>()).since(Generation::I80186).ends_block(),
    one("OUTS", 0x6F, &[Dx, Xv]).exec(strings::<Outs>()).since(Generation::I80186).ends_block(),
];
