//! The bases of FS and GS in 64-bit code: SWAPGS, RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE.

use crate::arch::control::CR4_FSGSBASE;
use crate::arch::cpuid::Features;
use crate::arch::registers::SegReg;
use crate::fault::Fault;
use crate::isa::operand::Operand::Ey;
use crate::isa::row::{Exec, Modes, Prefix, Row, two};
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::width::Width;

const FS: u8 = SegReg::Fs as u8;
const GS: u8 = SegReg::Gs as u8;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    two("SWAPGS", 0x01, &[])
        .modrm(0xF8)
        .modes(Modes::Only64)
        .since(Generation::Modern)
        .handler(swapgs)
        .changes_validity(),
    base("RDFSBASE", 0).exec(Exec::Sizes(&reads::<FS>())),
    base("RDGSBASE", 1).exec(Exec::Sizes(&reads::<GS>())),
    base("WRFSBASE", 2).exec(Exec::Sizes(&writes::<FS>())),
    base("WRGSBASE", 3).exec(Exec::Sizes(&writes::<GS>())),
];

const fn base(name: &'static str, digit: u8) -> Row {
    two(name, 0xAE, &[Ey])
        .register()
        .digit(digit)
        .prefix(Prefix::F3)
        .modes(Modes::Only64)
        .needs(Features::FSGSBASE)
}

const fn reads<const REG: u8>() -> [Handler; 3] {
    [read::<REG, u16> as Handler, read::<REG, u32> as Handler, read::<REG, u64> as Handler]
}

const fn writes<const REG: u8>() -> [Handler; 3] {
    [write::<REG, u16> as Handler, write::<REG, u32> as Handler, write::<REG, u64> as Handler]
}

fn register<const REG: u8>() -> SegReg {
    if REG == FS { SegReg::Fs } else { SegReg::Gs }
}

fn set_base(m: &mut Machine<'_, '_>, reg: SegReg, base: u64) {
    let mut segment = *m.cpu.segment(reg);
    segment.base = base;
    m.commit_segment(reg, segment);
}

fn swapgs(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    let new = m.cpu.msr.kernel_gs_base;
    m.cpu.msr.kernel_gs_base = m.cpu.segment(SegReg::Gs).base;
    set_base(m, SegReg::Gs, new);
    Ok(())
}

fn require_enabled(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr4 & CR4_FSGSBASE == 0 { Err(Fault::UD.into()) } else { Ok(()) }
}

fn read<const REG: u8, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_enabled(m)?;
    let base = m.cpu.segment(register::<REG>()).base;
    W::from_u64(base).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

/// A base that is not canonical is #GP.
fn write<const REG: u8, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_enabled(m)?;
    let base = W::read(&m.cpu.gpr, op.rm).to_u64();
    if !m.is_canonical(base) {
        return Err(Fault::GP.into());
    }
    set_base(m, register::<REG>(), base);
    Ok(())
}
