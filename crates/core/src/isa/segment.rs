//! Loads and stores of segment registers: MOV Sreg, LDS, LES, LSS, LFS, LGS.

use crate::arch::registers::SegReg;
use crate::fault::Fault;
use crate::isa::far;
use crate::isa::operand::Operand::{Evw, Ew, Gv, Mp, Sw};
use crate::isa::row::{Exec, Modes, Row, Size64, one, sized, two};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::width::Width;

/// The segment register that ModRM.reg encodes on this processor, if it encodes one.
fn segment_register(m: &Machine<'_, '_>, number: u8) -> Result<SegReg, Leave> {
    let count = match m.profile.generation {
        // 8086: two bits, the third is ignored.
        Generation::I8086 | Generation::I80186 => return seg(number & 3),
        Generation::I80286 => 4,
        _ => 6,
    };
    if number < count { seg(number) } else { Err(Fault::UD.into()) }
}

fn seg(number: u8) -> Result<SegReg, Leave> {
    SegReg::from_number(number).ok_or(Leave::Fault(Fault::UD))
}

/// The segment register of a load: as above, but CS is #UD (an 8086 loads it).
fn loadable(m: &Machine<'_, '_>, number: u8) -> Result<SegReg, Leave> {
    let reg = segment_register(m, number)?;
    if reg == SegReg::Cs && m.profile.generation >= Generation::I80286 {
        return Err(Fault::UD.into());
    }
    Ok(reg)
}

/// register, Sreg: zero-extended to the operand size.
fn r_s<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = segment_register(m, op.reg)?;
    W::from_u64(u64::from(m.cpu.segment(reg).selector)).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

/// memory, Sreg: always 16 bits.
fn m_s(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = segment_register(m, op.reg)?;
    m.store(op, m.cpu.segment(reg).selector)
}

/// Sreg, register.
fn s_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = loadable(m, op.reg)?;
    let selector = u16::read(&m.cpu.gpr, op.rm);
    load(m, reg, selector)
}

/// Sreg, memory. The register is checked before the operand is touched.
fn s_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = loadable(m, op.reg)?;
    let selector = m.load::<u16>(op)?;
    load(m, reg, selector)
}

fn load(m: &mut Machine<'_, '_>, reg: SegReg, selector: u16) -> Step {
    m.load_segment(reg, selector)?;
    if reg == SegReg::Ss {
        // SDM vol. 3A, "Masking Exceptions and Interrupts When Switching Stacks".
        m.cast_mov_ss();
    }
    Ok(())
}

/// LES and its kin.
fn far_pointer<const SEG: u8, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let reg = seg(SEG)?;
    let (offset, selector) = far::load_pointer::<W>(m, op)?;
    m.load_segment(reg, selector)?;
    W::from_u64(offset).write(&mut m.cpu.gpr, op.reg);
    Ok(())
}

const fn loads<const SEG: u8>() -> [Handler; 3] {
    [
        far_pointer::<SEG, u16> as Handler,
        far_pointer::<SEG, u32> as Handler,
        far_pointer::<SEG, u64> as Handler,
    ]
}

/// The loads that 64-bit code has.
const fn pointer(name: &'static str, opcode: u8) -> Row {
    two(name, opcode, &[Gv, Mp]).size64(Size64::Far).changes_validity()
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("MOV", 0x8C, &[Evw, Sw])
        .exec(Exec::FormSizes(&[sized!(r_s), [m_s as Handler, m_s as Handler, m_s as Handler]])),
    one("MOV", 0x8E, &[Sw, Ew])
        .changes_validity()
        .exec(Exec::Forms(&[s_r as Handler, s_m as Handler])),
    one("LES", 0xC4, &[Gv, Mp])
        .modes(Modes::Not64)
        .changes_validity()
        .exec(Exec::Sizes(const { &loads::<0>() })),
    one("LDS", 0xC5, &[Gv, Mp])
        .modes(Modes::Not64)
        .changes_validity()
        .exec(Exec::Sizes(const { &loads::<3>() })),
    pointer("LSS", 0xB2).exec(Exec::Sizes(const { &loads::<2>() })),
    pointer("LFS", 0xB4).exec(Exec::Sizes(const { &loads::<4>() })),
    pointer("LGS", 0xB5).exec(Exec::Sizes(const { &loads::<5>() })),
];
