//! x87: every row of D8 to DF and FWAIT. The control instructions that boot code probes the
//! coprocessor with are executed; arithmetic is not.
//!
//! Without a coprocessor (`Features::X87` absent) an escape with a memory operand still addresses
//! and reads it, as an 8086 or 80286 does for the coprocessor's benefit, and nothing else happens.

use crate::arch::control::{CR0_EM, CR0_MP, CR0_NE, CR0_TS};
use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::fault::Fault;
use crate::isa::operand::Operand::{
    self, Ax, Ew, Mbcd, Menv, Mf32, Mf64, Mf80, Mi16, Mi32, Mi64, Msave, Mw, St0, Sti,
};
use crate::isa::row::{Exec, Row, one};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, Vendor};
use crate::state::Fpu;
use crate::stop::UnimplementedReason;
use crate::width::Width;

/// FCW after FNINIT: every exception masked, 64-bit precision, round to nearest.
const FCW_INITIAL: u16 = 0x37F;
/// The bits of FCW that can be written; bit 6 reads as one.
const FCW_WRITABLE: u16 = 0x1F3F;
const FCW_FIXED: u16 = 0x40;
/// FSW: the six exceptions, the error summary, and busy, which follows it.
const FSW_EXCEPTIONS: u16 = 0x3F;
const FSW_STACK_FAULT: u16 = 0x40;
pub(crate) const FSW_SUMMARY: u16 = 0x80;
const FSW_BUSY: u16 = 0x8000;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &table();

const CONTROL: [Row; 13] = [
    one("FWAIT", 0x9B, &[]).handler(fwait),
    memory("FLDCW", 0xD9, 5, Mw).handler(fldcw),
    memory("FNSTCW", 0xD9, 7, Mw).handler(fnstcw),
    memory("FNSTSW", 0xDD, 7, Mw).handler(fnstsw),
    fixed("FNSTSW", 0xDF, 0xE0, &[Ax]).handler(fnstsw_ax),
    fixed("FNOP", 0xD9, 0xD0, &[]).handler(fnop),
    fixed("FNCLEX", 0xDB, 0xE2, &[]).handler(fnclex),
    fixed("FNINIT", 0xDB, 0xE3, &[]).handler(fninit),
    // 8087 and 80287 controls that later parts ignore.
    fixed("FNENI", 0xDB, 0xE0, &[]).handler(ignored),
    fixed("FNDISI", 0xDB, 0xE1, &[]).handler(ignored),
    fixed("FNSETPM", 0xDB, 0xE4, &[]).handler(ignored),
    fixed("FRSTPM", 0xDB, 0xE5, &[]).handler(ignored).until(Generation::I80486),
    // Behind all of them: no coprocessor, or a reserved encoding of it.
    one("ESC", 0xD8, &[Ew])
        .span(8)
        .without_coprocessor()
        .exec(Exec::Forms(&[esc as Handler, esc_m as Handler])),
];

const ARITHMETIC: [&str; 8] = ["FADD", "FMUL", "FCOM", "FCOMP", "FSUB", "FSUBR", "FDIV", "FDIVR"];
const INTEGER: [&str; 8] =
    ["FIADD", "FIMUL", "FICOM", "FICOMP", "FISUB", "FISUBR", "FIDIV", "FIDIVR"];

const MEMORY: [Row; 26] = [
    memory("FLD", 0xD9, 0, Mf32),
    memory("FST", 0xD9, 2, Mf32),
    memory("FSTP", 0xD9, 3, Mf32),
    memory("FLDENV", 0xD9, 4, Menv),
    memory("FNSTENV", 0xD9, 6, Menv),
    memory("FILD", 0xDB, 0, Mi32),
    with(memory("FISTTP", 0xDB, 1, Mi32), Features::SSE3),
    memory("FIST", 0xDB, 2, Mi32),
    memory("FISTP", 0xDB, 3, Mi32),
    memory("FLD", 0xDB, 5, Mf80),
    memory("FSTP", 0xDB, 7, Mf80),
    memory("FLD", 0xDD, 0, Mf64),
    with(memory("FISTTP", 0xDD, 1, Mi64), Features::SSE3),
    memory("FST", 0xDD, 2, Mf64),
    memory("FSTP", 0xDD, 3, Mf64),
    memory("FRSTOR", 0xDD, 4, Msave),
    memory("FNSAVE", 0xDD, 6, Msave),
    memory("FILD", 0xDF, 0, Mi16),
    with(memory("FISTTP", 0xDF, 1, Mi16), Features::SSE3),
    memory("FIST", 0xDF, 2, Mi16),
    memory("FISTP", 0xDF, 3, Mi16),
    memory("FBLD", 0xDF, 4, Mbcd),
    memory("FILD", 0xDF, 5, Mi64),
    memory("FBSTP", 0xDF, 6, Mbcd),
    memory("FISTP", 0xDF, 7, Mi64),
    stack("FXCH", 0xD9, 1, &[St0, Sti]),
];

const STACK: [Row; 38] = [
    stack("FLD", 0xD9, 0, &[St0, Sti]),
    // D9 /3, DC /2 /3, DD /1, DE /2, DF /1 /2 /3: undocumented aliases.
    stack("FSTPNCE", 0xD9, 3, &[Sti, St0]),
    with(stack("FCMOVB", 0xDA, 0, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVE", 0xDA, 1, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVBE", 0xDA, 2, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVU", 0xDA, 3, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVNB", 0xDB, 0, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVNE", 0xDB, 1, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVNBE", 0xDB, 2, &[St0, Sti]), Features::CMOV),
    with(stack("FCMOVNU", 0xDB, 3, &[St0, Sti]), Features::CMOV),
    with(stack("FUCOMI", 0xDB, 5, &[St0, Sti]), Features::CMOV),
    with(stack("FCOMI", 0xDB, 6, &[St0, Sti]), Features::CMOV),
    stack("FADD", 0xDC, 0, &[Sti, St0]),
    stack("FMUL", 0xDC, 1, &[Sti, St0]),
    stack("FCOM", 0xDC, 2, &[St0, Sti]),
    stack("FCOMP", 0xDC, 3, &[St0, Sti]),
    stack("FSUBR", 0xDC, 4, &[Sti, St0]),
    stack("FSUB", 0xDC, 5, &[Sti, St0]),
    stack("FDIVR", 0xDC, 6, &[Sti, St0]),
    stack("FDIV", 0xDC, 7, &[Sti, St0]),
    stack("FFREE", 0xDD, 0, &[Sti]),
    stack("FXCH", 0xDD, 1, &[St0, Sti]),
    stack("FST", 0xDD, 2, &[Sti, St0]),
    stack("FSTP", 0xDD, 3, &[Sti, St0]),
    stack("FUCOM", 0xDD, 4, &[St0, Sti]).since(Generation::I80386),
    stack("FUCOMP", 0xDD, 5, &[St0, Sti]).since(Generation::I80386),
    stack("FADDP", 0xDE, 0, &[Sti, St0]),
    stack("FMULP", 0xDE, 1, &[Sti, St0]),
    stack("FCOMP", 0xDE, 2, &[St0, Sti]),
    stack("FSUBRP", 0xDE, 4, &[Sti, St0]),
    stack("FSUBP", 0xDE, 5, &[Sti, St0]),
    stack("FDIVRP", 0xDE, 6, &[Sti, St0]),
    stack("FDIVP", 0xDE, 7, &[Sti, St0]),
    stack("FFREEP", 0xDF, 0, &[Sti]),
    stack("FXCH", 0xDF, 1, &[St0, Sti]),
    stack("FSTP", 0xDF, 2, &[Sti, St0]),
    stack("FSTP", 0xDF, 3, &[Sti, St0]),
    with(stack("FUCOMIP", 0xDF, 5, &[St0, Sti]), Features::CMOV),
];

const FIXED: [Row; 30] = [
    fixed("FCHS", 0xD9, 0xE0, &[]),
    fixed("FABS", 0xD9, 0xE1, &[]),
    fixed("FTST", 0xD9, 0xE4, &[]),
    fixed("FXAM", 0xD9, 0xE5, &[]),
    fixed("FLD1", 0xD9, 0xE8, &[]),
    fixed("FLDL2T", 0xD9, 0xE9, &[]),
    fixed("FLDL2E", 0xD9, 0xEA, &[]),
    fixed("FLDPI", 0xD9, 0xEB, &[]),
    fixed("FLDLG2", 0xD9, 0xEC, &[]),
    fixed("FLDLN2", 0xD9, 0xED, &[]),
    fixed("FLDZ", 0xD9, 0xEE, &[]),
    fixed("F2XM1", 0xD9, 0xF0, &[]),
    fixed("FYL2X", 0xD9, 0xF1, &[]),
    fixed("FPTAN", 0xD9, 0xF2, &[]),
    fixed("FPATAN", 0xD9, 0xF3, &[]),
    fixed("FXTRACT", 0xD9, 0xF4, &[]),
    fixed("FPREM1", 0xD9, 0xF5, &[]).since(Generation::I80386),
    fixed("FDECSTP", 0xD9, 0xF6, &[]),
    fixed("FINCSTP", 0xD9, 0xF7, &[]),
    fixed("FPREM", 0xD9, 0xF8, &[]),
    fixed("FYL2XP1", 0xD9, 0xF9, &[]),
    fixed("FSQRT", 0xD9, 0xFA, &[]),
    fixed("FSINCOS", 0xD9, 0xFB, &[]).since(Generation::I80386),
    fixed("FRNDINT", 0xD9, 0xFC, &[]),
    fixed("FSCALE", 0xD9, 0xFD, &[]),
    fixed("FSIN", 0xD9, 0xFE, &[]).since(Generation::I80386),
    fixed("FCOS", 0xD9, 0xFF, &[]).since(Generation::I80386),
    fixed("FUCOMPP", 0xDA, 0xE9, &[]).since(Generation::I80386),
    fixed("FCOMPP", 0xDE, 0xD9, &[]),
    with(stack("FCOMIP", 0xDF, 6, &[St0, Sti]), Features::CMOV),
];

/// The escape row comes last, so that it takes what no other one does.
const fn table() -> [Row; 147] {
    let mut rows = [CONTROL[12]; 147];
    let mut i = 0;
    while i < 146 {
        rows[i] = match i {
            0..12 => CONTROL[i],
            12..38 => MEMORY[i - 12],
            38..76 => STACK[i - 38],
            76..106 => FIXED[i - 76],
            _ => arithmetic((i - 106) / 8, (i - 106) % 8),
        };
        i += 1;
    }
    rows
}

/// The eight operations, on each of five kinds of operand.
const fn arithmetic(kind: usize, digit: usize) -> Row {
    let (float, integer) = (ARITHMETIC[digit], INTEGER[digit]);
    let digit = digit as u8;
    match kind {
        0 => memory(float, 0xD8, digit, Mf32),
        1 => memory(float, 0xDC, digit, Mf64),
        2 => memory(integer, 0xDA, digit, Mi32),
        3 => memory(integer, 0xDE, digit, Mi16),
        _ => stack(float, 0xD8, digit, &[St0, Sti]),
    }
}

const fn memory(name: &'static str, opcode: u8, digit: u8, operand: Operand) -> Row {
    coprocessor(one(name, opcode, &[operand]).digit(digit))
}

const fn stack(name: &'static str, opcode: u8, digit: u8, operands: &[Operand]) -> Row {
    coprocessor(one(name, opcode, operands).register().digit(digit))
}

const fn fixed(name: &'static str, opcode: u8, modrm: u8, operands: &[Operand]) -> Row {
    coprocessor(one(name, opcode, operands).modrm(modrm))
}

/// A row of the coprocessor, which is as old as the 8086.
const fn coprocessor(row: Row) -> Row {
    row.needs(Features::X87).since(Generation::I8086).not_executed(not_executed)
}

const fn with(row: Row, feature: Features) -> Row {
    row.needs(Features::X87.union(feature))
}

/// #NM if there is no coprocessor to give the instruction to, or its state is another task's.
fn require_available(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr0 & (CR0_EM | CR0_TS) != 0 { Err(Fault::NM.into()) } else { Ok(()) }
}

/// #MF for an error of an earlier instruction, if CR0.NE asks for an exception.
pub(crate) fn require_no_error(m: &Machine<'_, '_>) -> Step {
    let reported = m.cpu.fpu.status & FSW_SUMMARY != 0 && m.cpu.cr0 & CR0_NE != 0;
    if reported { Err(Fault::MF.into()) } else { Ok(()) }
}

/// With CR0.NE clear the error goes out on the FERR pin, and the instruction goes on, as IGNNE
/// makes it.
pub(crate) fn signal_error(m: &mut Machine<'_, '_>) -> Step {
    if m.cpu.fpu.status & FSW_SUMMARY != 0 {
        m.require_careful()?;
        m.bus.fpu_error(&mut m.control);
    }
    Ok(())
}

/// Every coprocessor instruction but the control ones.
fn not_executed(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_available(m)?;
    require_no_error(m)?;
    Err(Leave::Unimplemented(UnimplementedReason::Instruction))
}

fn fwait(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    const BOTH: u64 = CR0_MP | CR0_TS;
    if m.cpu.cr0 & BOTH == BOTH {
        return Err(Fault::NM.into());
    }
    require_no_error(m)?;
    signal_error(m)
}

fn fldcw(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    require_no_error(m)?;
    let value = m.load::<u16>(op)?;
    signal_error(m)?;
    set_control(&mut m.cpu.fpu, value);
    Ok(())
}

/// Sets FCW, and derives the error summary of FSW: an unmasked exception.
pub(crate) fn set_control(fpu: &mut Fpu, value: u16) {
    fpu.control = value & FCW_WRITABLE | FCW_FIXED;
    let unmasked = fpu.status & !fpu.control & FSW_EXCEPTIONS != 0;
    let summary = if unmasked { FSW_SUMMARY | FSW_BUSY } else { 0 };
    fpu.status = fpu.status & !(FSW_SUMMARY | FSW_BUSY) | summary;
}

fn fnstcw(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    m.store(op, m.cpu.fpu.control)
}

fn fnstsw(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    m.store(op, m.cpu.fpu.status)
}

fn fnstsw_ax(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_available(m)?;
    m.cpu.fpu.status.write(&mut m.cpu.gpr, Reg::Rax as u8);
    Ok(())
}

/// FNOP. On Intel's parts it is an instruction like others for FIP (seen on Raptor Cove), on AMD's
/// only one that leaves an exception is (APM vol. 2, "FXSAVE and FXRSTOR Instructions").
fn fnop(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    require_no_error(m)?;
    signal_error(m)?;
    if m.profile.vendor == Vendor::Intel {
        m.cpu.fpu.instruction_pointer = m.cpu.rip.wrapping_sub(op.until_end());
    }
    Ok(())
}

fn fnclex(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_available(m)?;
    m.cpu.fpu.status &= !(FSW_EXCEPTIONS | FSW_STACK_FAULT | FSW_SUMMARY | FSW_BUSY);
    Ok(())
}

fn fninit(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_available(m)?;
    let fpu = &mut m.cpu.fpu;
    (fpu.control, fpu.status, fpu.tags) = (FCW_INITIAL, 0, 0);
    (fpu.opcode, fpu.instruction_pointer, fpu.data_pointer) = (0, 0, 0);
    Ok(())
}

fn ignored(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    require_available(m)
}

/// An escape that no coprocessor takes; with one, a reserved encoding.
fn esc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.profile.has(Features::X87) {
        return Err(Fault::UD.into());
    }
    require_available(m)
}

/// The same with a memory operand: its first word is read, and so its address checked.
fn esc_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    esc(m, op)?;
    m.load::<u16>(op)?;
    Ok(())
}
