//! DAA, DAS, AAA, AAS, AAM, AAD. None of them exists in 64-bit code.

use crate::arch::registers::Reg;
use crate::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use crate::fault::Fault;
use crate::flags::Flags;
use crate::isa::operand::Operand::{self, Ib};
use crate::isa::row::{Modes, Row, one};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::Op;
use crate::profile::{Generation, UndefinedFlags};
use crate::width::Width;

use FlagRule::{ByByteSum, ByResult, ByWordSum, Cleared, Kept, LikeCarry};
use UndefinedFlags::{Amd, Early, Intel};

/// Addition or subtraction of a correction, by width.
type Correct<W> = fn(W, W) -> (W, Flags);

fn add<W: Width>(a: W, b: W) -> (W, Flags) {
    let r = W::from_u64(a.to_u64().wrapping_add(b.to_u64()));
    (r, Flags::add(a, b, r))
}

fn sub<W: Width>(a: W, b: W) -> (W, Flags) {
    let r = W::from_u64(a.to_u64().wrapping_sub(b.to_u64()));
    (r, Flags::sub(a, b, r))
}

/// Does the low digit need a correction?
fn is_low_off(al: u8, flags: Flags) -> bool {
    al & 15 > 9 || flags.af()
}

/// DAA and DAS: AL corrected to two packed digits.
fn adjust_packed(m: &mut Machine<'_, '_>, correct: Correct<u8>) -> Step {
    let al = u8::read(&m.cpu.gpr, Reg::Rax as u8);
    let old = m.flags;
    let low = is_low_off(al, old);
    // 8086: with AF set the high digit is found off above 9Fh.
    let highest = if m.profile.generation == Generation::I8086 && old.af() { 0x9F } else { 0x99 };
    let high = al > highest || old.cf();
    let digit = if low { 6 } else { 0 };
    let (r, flags) = correct(al, digit | if high { 0x60 } else { 0 });
    let cf = high || correct(al, digit).1.cf();
    let of = if m.profile.undefined_flags == Intel { old.of() } else { flags.of() };
    r.write(&mut m.cpu.gpr, Reg::Rax as u8);
    m.flags = r.logic_flags().with_cf_of(cf, of).with_af(low);
    Ok(())
}

fn daa(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    adjust_packed(m, add::<u8>)
}

fn das(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    adjust_packed(m, sub::<u8>)
}

/// AAA and AAS: AL corrected to one digit, the carry or borrow into AH.
fn adjust_unpacked(m: &mut Machine<'_, '_>, byte: Correct<u8>, word: Correct<u16>) -> Step {
    let ax = u16::read(&m.cpu.gpr, Reg::Rax as u8);
    let (al, ah) = (ax as u8, (ax >> 8) as u8);
    let old = m.flags;
    let off = is_low_off(al, old);
    let (low, low_flags) = if off { byte(al, 6) } else { (al, al.logic_flags()) };
    let (both, both_flags) = if off { word(ax, 0x106) } else { (ax, ax.logic_flags()) };
    let r = if off && m.profile.generation < Generation::I80286 {
        // 8086: AL and AH are corrected apart.
        u16::from(byte(ah, 1).0) << 8 | u16::from(low & 15)
    } else {
        both & 0xFF0F
    };
    let flags = match m.profile.undefined_flags {
        Early => low_flags,
        Amd => both_flags,
        Intel => {
            let zero = if r == 0 { ZF } else { 0 };
            (r as u8).logic_flags().with(ZF, zero).with_cf_of(off, old.of())
        }
    };
    r.write(&mut m.cpu.gpr, Reg::Rax as u8);
    m.flags = flags.with_cf_of(off, flags.of()).with_af(off);
    Ok(())
}

fn aaa(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    adjust_unpacked(m, add::<u8>, add::<u16>)
}

fn aas(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    adjust_unpacked(m, sub::<u8>, sub::<u16>)
}

/// AAM: AL split into two digits of a base.
fn aam(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (al, base) = (u8::read(&m.cpu.gpr, Reg::Rax as u8), op.imm as u8);
    let Some(high) = al.checked_div(base) else {
        // 80286: the frame of the #DE holds the flags of AL.
        if m.profile.generation == Generation::I80286 {
            m.flags = al.logic_flags();
        }
        return Err(Fault::DE.into());
    };
    let low = al % base;
    (u16::from(high) << 8 | u16::from(low)).write(&mut m.cpu.gpr, Reg::Rax as u8);
    m.flags = low.logic_flags();
    Ok(())
}

/// AAD: two digits of a base put together.
fn aad(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let ax = u16::read(&m.cpu.gpr, Reg::Rax as u8);
    let high = ((ax >> 8) as u8).wrapping_mul(op.imm as u8);
    let (r, flags) = add(ax as u8, high);
    u16::from(r).write(&mut m.cpu.gpr, Reg::Rax as u8);
    let of = if m.profile.undefined_flags == Early { flags.cf() } else { flags.of() };
    m.flags = flags.with_cf_of(flags.cf(), of);
    Ok(())
}

const fn row(name: &'static str, opcode: u8, operands: &[Operand]) -> Row {
    one(name, opcode, operands).modes(Modes::Not64).changes(ARITH)
}

const fn packed(row: Row) -> Row {
    row.undefined(OF, ByByteSum).on(Intel, OF, Kept)
}

const fn unpacked(row: Row) -> Row {
    row.undefined(OF | SF | ZF | PF, ByByteSum)
        .on(Amd, OF | SF | ZF | PF, ByWordSum)
        .on(Intel, OF, Kept)
        .on(Intel, SF, Cleared)
        .on(Intel, ZF | PF, ByResult)
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    packed(row("DAA", 0x27, &[])).handler(daa),
    packed(row("DAS", 0x2F, &[])).handler(das),
    unpacked(row("AAA", 0x37, &[])).handler(aaa),
    unpacked(row("AAS", 0x3F, &[])).handler(aas),
    row("AAM", 0xD4, &[Ib]).undefined(OF | AF | CF, Cleared).handler(aam),
    row("AAD", 0xD5, &[Ib])
        .undefined(OF | AF | CF, ByByteSum)
        .on(Early, OF, LikeCarry)
        .handler(aad),
];
