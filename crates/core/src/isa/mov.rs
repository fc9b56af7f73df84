//! MOV, MOVZX, MOVSX, LEA, XLAT, LAHF, SAHF, SALC, CBW, CWD, BSWAP, MOVBE, MOVNTI, MOVDIRI,
//! MOVDIR64B.

use crate::arch::cpuid::Features;
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{ARITH, OF};
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand::{
    Al, Eb, Ev, Ew, Ez, Ga, Gb, Gv, Gy, Ib, Iv, Iz, M, Mdqq, Mv, My, Ob, Ov, Rax, Zb, Zv,
};
use crate::isa::row::{Exec, Map, Modes, Prefix, Row, one, row, sized, two};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, Vendor};
use crate::width::Width;

/// rm, reg: registers.
fn r_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, op.reg);
    value.write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

/// memory, reg.
fn m_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, op.reg);
    m.store(op, value)
}

/// reg, memory.
fn r_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.load::<W>(op)?;
    value.write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

/// rm, immediate: register.
fn r_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    W::from_u64(op.imm).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

/// Register in the opcode, immediate.
fn z_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    W::from_u64(op.imm).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

/// memory, immediate.
fn m_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.store(op, W::from_u64(op.imm))
}

/// Accumulator, memory at the offset in the instruction.
fn a_o<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.load_at::<W>(op.seg, op.imm)?;
    value.write(&mut m.cpu.gpr, Reg::Rax as u8);
    Ok(())
}

/// Memory at the offset in the instruction, accumulator.
fn o_a<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, Reg::Rax as u8);
    m.store_at(op.seg, op.imm, value)
}

/// MOVZX (`SIGNED` false) and MOVSX: a source of width `S` to a register of width `W`.
fn extend<const SIGNED: bool, S: Width, W: Width>(value: S) -> W {
    W::from_u64(if SIGNED { value.to_i64() as u64 } else { value.to_u64() })
}

fn extend_r<const SIGNED: bool, S: Width, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = S::read(&m.cpu.gpr, op.reg);
    extend::<SIGNED, S, W>(value).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

fn extend_m<const SIGNED: bool, S: Width, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.load::<S>(op)?;
    extend::<SIGNED, S, W>(value).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

/// MOVSXD of 16 bits from memory: AMD's processors read 32 all the same.
fn movsxd_16_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = match m.profile.vendor {
        Vendor::Amd => m.load::<u32>(op)? as u16,
        Vendor::Intel => m.load::<u16>(op)?,
    };
    value.write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

const fn extending<const SIGNED: bool, S: Width>() -> [[Handler; 3]; 2] {
    [
        [
            extend_r::<SIGNED, S, u16> as Handler,
            extend_r::<SIGNED, S, u32> as Handler,
            extend_r::<SIGNED, S, u64> as Handler,
        ],
        [
            extend_m::<SIGNED, S, u16> as Handler,
            extend_m::<SIGNED, S, u32> as Handler,
            extend_m::<SIGNED, S, u64> as Handler,
        ],
    ]
}

fn lea<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    W::from_u64(m.offset(op)).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn xlat(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let index = m.cpu.gpr[Reg::Rax] & 0xFF;
    let offset = m.cpu.gpr[Reg::Rbx].wrapping_add(index) & (u64::MAX >> op.address_shift);
    let value = m.load_at::<u8>(op.seg, offset)?;
    value.write(&mut m.cpu.gpr, Reg::Rax as u8);
    Ok(())
}

/// AH as an 8-bit register number.
const AH: u8 = 16;

fn lahf(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let flags = m.flags.to_rflags() as u8 | 2;
    flags.write(&mut m.cpu.gpr, AH);
    Ok(())
}

fn sahf(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let value = u64::from(u8::read(&m.cpu.gpr, AH));
    m.flags = m.flags.with(ARITH & !OF, value);
    Ok(())
}

/// SALC: AL becomes all ones if CF is set, else zero. Undocumented, and everywhere but in 64-bit
/// code.
fn salc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let value = if m.flags.cf() { 0xFFu8 } else { 0 };
    value.write(&mut m.cpu.gpr, Reg::Rax as u8);
    Ok(())
}

/// CBW, CWDE, CDQE: the accumulator's lower half to the whole.
fn cbw<H: Width, W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let half = H::read(&m.cpu.gpr, Reg::Rax as u8);
    W::from_u64(half.to_i64() as u64).write(&mut m.cpu.gpr, Reg::Rax as u8);
    Ok(())
}

/// CWD, CDQ, CQO: the accumulator's sign to rDX.
fn cwd<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let value = W::read(&m.cpu.gpr, Reg::Rax as u8).to_i64();
    W::from_u64((value >> 63) as u64).write(&mut m.cpu.gpr, Reg::Rdx as u8);
    Ok(())
}

fn bswap<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    // The 16-bit form is undefined; processors clear the register's low half.
    let value = if W::BYTES == 2 { 0 } else { swap(W::read(&m.cpu.gpr, op.reg)).to_u64() };
    W::from_u64(value).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn swap<W: Width>(value: W) -> W {
    W::from_u64(value.to_u64().swap_bytes() >> (64 - W::BITS))
}

fn movbe_load<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = m.load::<W>(op)?;
    swap(value).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

fn movbe_store<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let value = swap(W::read(&m.cpu.gpr, op.reg));
    m.store(op, value)
}

/// MOVNTI, MOVDIRI: plain stores here, since nothing above sees caching. Never of 16 bits, not
/// even in 16-bit code.
const DIRECT: Exec = Exec::Sizes(&[m_r::<u32> as Handler, m_r::<u32>, m_r::<u64>]);

/// MOVDIR64B: 64 bytes to ES:reg, which must be aligned to 64.
fn movdir64b(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let from = m.offset(op);
    let to = m.cpu.gpr.slot(op.reg) & (u64::MAX >> op.address_shift);
    let source = m.prepare(op.seg, from, 64, Access::Read)?;
    let es = SegReg::Es as u8;
    let base = if m.cpu.is_64_bit_code() { 0 } else { m.cpu.segment(SegReg::Es).base };
    if base.wrapping_add(to) % 64 != 0 {
        return Err(Leave::Fault(Fault::GP));
    }
    let target = m.prepare(es, to, 64, Access::Write)?;
    let mut bytes = [0; 64];
    m.read_operand(&source, &mut bytes)?;
    m.write_operand(&target, &bytes)
}

/// With a 16-bit operand size the source has 16 bits too (SDM vol. 2B, "MOVSX/MOVSXD").
const MOVSXD: [[Handler; 3]; 2] = [
    [extend_r::<true, u16, u16>, extend_r::<true, u32, u32>, extend_r::<true, u32, u64>],
    [movsxd_16_m, extend_m::<true, u32, u32>, extend_m::<true, u32, u64>],
];

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("MOV", 0x88, &[Eb, Gb]).exec(Exec::Forms(&[r_r::<u8> as Handler, m_r::<u8> as Handler])),
    one("MOV", 0x89, &[Ev, Gv]).exec(Exec::FormSizes(&[sized!(r_r), sized!(m_r)])),
    one("MOV", 0x8A, &[Gb, Eb]).exec(Exec::Forms(&[r_r::<u8> as Handler, r_m::<u8> as Handler])),
    one("MOV", 0x8B, &[Gv, Ev]).exec(Exec::FormSizes(&[sized!(r_r), sized!(r_m)])),
    one("MOV", 0xA0, &[Al, Ob]).handler(a_o::<u8>),
    one("MOV", 0xA1, &[Rax, Ov]).exec(Exec::FormSizes(&[sized!(a_o), sized!(a_o)])),
    one("MOV", 0xA2, &[Ob, Al]).handler(o_a::<u8>),
    one("MOV", 0xA3, &[Ov, Rax]).exec(Exec::FormSizes(&[sized!(o_a), sized!(o_a)])),
    one("MOV", 0xB0, &[Zb, Ib]).span(8).handler(z_i::<u8>),
    one("MOV", 0xB8, &[Zv, Iv]).span(8).exec(Exec::Sizes(&sized!(z_i))),
    one("MOV", 0xC6, &[Eb, Ib])
        .digit(0)
        .exec(Exec::Forms(&[r_i::<u8> as Handler, m_i::<u8> as Handler])),
    one("MOV", 0xC7, &[Ev, Iz]).digit(0).exec(Exec::FormSizes(&[sized!(r_i), sized!(m_i)])),
    two("MOVZX", 0xB6, &[Gv, Eb]).exec(Exec::FormSizes(const { &extending::<false, u8>() })),
    two("MOVZX", 0xB7, &[Gv, Ew]).exec(Exec::FormSizes(const { &extending::<false, u16>() })),
    two("MOVSX", 0xBE, &[Gv, Eb]).exec(Exec::FormSizes(const { &extending::<true, u8>() })),
    two("MOVSX", 0xBF, &[Gv, Ew]).exec(Exec::FormSizes(const { &extending::<true, u16>() })),
    one("MOVSXD", 0x63, &[Gv, Ez]).modes(Modes::Only64).exec(Exec::FormSizes(&MOVSXD)),
    one("LEA", 0x8D, &[Gv, M]).exec(Exec::Sizes(&sized!(lea))),
    one("XLATB", 0xD7, &[]).handler(xlat),
    one("LAHF", 0x9F, &[]).modes(Modes::Not64).handler(lahf),
    one("LAHF", 0x9F, &[]).modes(Modes::Only64).needs(Features::LAHF64).handler(lahf),
    one("SAHF", 0x9E, &[]).modes(Modes::Not64).changes(ARITH & !OF).handler(sahf),
    one("SAHF", 0x9E, &[])
        .modes(Modes::Only64)
        .needs(Features::LAHF64)
        .changes(ARITH & !OF)
        .handler(sahf),
    one("SALC", 0xD6, &[]).modes(Modes::Not64).handler(salc),
    one("CBW", 0x98, &[]).exec(Exec::Sizes(&[
        cbw::<u8, u16> as Handler,
        cbw::<u16, u32> as Handler,
        cbw::<u32, u64> as Handler,
    ])),
    one("CWD", 0x99, &[]).exec(Exec::Sizes(&sized!(cwd))),
    two("BSWAP", 0xC8, &[Zv]).span(8).since(Generation::I80486).exec(Exec::Sizes(&sized!(bswap))),
    row(Map::M0F38, "MOVBE", 0xF0, &[Gv, Mv])
        .prefix(Prefix::NotRepeat)
        .needs(Features::MOVBE)
        .exec(Exec::Sizes(&sized!(movbe_load))),
    row(Map::M0F38, "MOVBE", 0xF1, &[Mv, Gv])
        .prefix(Prefix::NotRepeat)
        .needs(Features::MOVBE)
        .exec(Exec::Sizes(&sized!(movbe_store))),
    two("MOVNTI", 0xC3, &[My, Gy]).prefix(Prefix::None).needs(Features::SSE2).exec(DIRECT),
    row(Map::M0F38, "MOVDIRI", 0xF9, &[My, Gy])
        .prefix(Prefix::None)
        .needs(Features::MOVDIRI)
        .exec(DIRECT),
    row(Map::M0F38, "MOVDIR64B", 0xF8, &[Ga, Mdqq])
        .prefix(Prefix::P66)
        .needs(Features::MOVDIR64B)
        .handler(movdir64b),
];
