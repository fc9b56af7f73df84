//! SETcc and CMOVcc.

use crate::arch::cpuid::Features;
use crate::isa::operand::Operand::{Eb, Ev, Gv};
use crate::isa::row::{Exec, Row, two};
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::width::Width;

/// Something that is done under condition `CC`.
trait Conditional {
    fn go<const CC: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step;
}

/// The handlers for the sixteen conditions.
const fn table<T: Conditional + 'static>() -> Exec {
    Exec::Conditions(
        const {
            &[
                T::go::<0> as Handler,
                T::go::<1>,
                T::go::<2>,
                T::go::<3>,
                T::go::<4>,
                T::go::<5>,
                T::go::<6>,
                T::go::<7>,
                T::go::<8>,
                T::go::<9>,
                T::go::<10>,
                T::go::<11>,
                T::go::<12>,
                T::go::<13>,
                T::go::<14>,
                T::go::<15>,
            ]
        },
    )
}

/// SETcc register.
struct SetRegister;
impl Conditional for SetRegister {
    fn go<const CC: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        u8::from(m.flags.condition(CC)).write(&mut m.cpu.gpr, op.rm);
        Ok(())
    }
}

/// SETcc memory.
struct SetMemory;
impl Conditional for SetMemory {
    fn go<const CC: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let value = u8::from(m.flags.condition(CC));
        m.store(op, value)
    }
}

/// CMOVcc register, register.
struct MoveRegister;
impl Conditional for MoveRegister {
    fn go<const CC: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let holds = m.flags.condition(CC);
        match op.width {
            2 => r_r::<u16>(m, op, holds),
            4 => r_r::<u32>(m, op, holds),
            _ => r_r::<u64>(m, op, holds),
        }
    }
}

/// CMOVcc register, memory.
struct MoveMemory;
impl Conditional for MoveMemory {
    fn go<const CC: u8>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let holds = m.flags.condition(CC);
        match op.width {
            2 => r_m::<u16>(m, op, holds),
            4 => r_m::<u32>(m, op, holds),
            _ => r_m::<u64>(m, op, holds),
        }
    }
}

#[inline(always)]
fn r_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op, holds: bool) -> Step {
    move_if(m, op.rm, holds, W::read(&m.cpu.gpr, op.reg))
}

/// The load comes first, whatever the condition.
#[inline(always)]
fn r_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op, holds: bool) -> Step {
    let value = m.load::<W>(op)?;
    move_if(m, op.reg, holds, value)
}

/// The register is written either way: a 32-bit move that does not take place zeroes the upper
/// half too.
#[inline(always)]
fn move_if<W: Width>(m: &mut Machine<'_, '_>, number: u8, holds: bool, value: W) -> Step {
    let old = W::read(&m.cpu.gpr, number);
    (if holds { value } else { old }).write(&mut m.cpu.gpr, number);
    Ok(())
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    two("SETcc", 0x90, &[Eb]).span(16).register().exec(table::<SetRegister>()),
    two("SETcc", 0x90, &[Eb]).span(16).memory().exec(table::<SetMemory>()),
    two("CMOVcc", 0x40, &[Gv, Ev])
        .span(16)
        .register()
        .needs(Features::CMOV)
        .exec(table::<MoveRegister>()),
    two("CMOVcc", 0x40, &[Gv, Ev])
        .span(16)
        .memory()
        .needs(Features::CMOV)
        .exec(table::<MoveMemory>()),
];
