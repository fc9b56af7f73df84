//! ROL ROR RCL RCR SHL SHR SAR, SHLD and SHRD.
//!
//! The leaves take an operand, a masked count that is not zero, and the choice of what happens to
//! undefined flags; they return result and flags. For a count of one the choices agree on OF.

use crate::arch::registers::Reg;
use crate::arch::rflags::{AF, ARITH, CF, OF};
use crate::flags::Flags;
use crate::isa::operand::Operand::{Cl, Eb, Ev, Gv, Ib, One};
use crate::isa::row::{Exec, Row, one, sized, two};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, UndefinedFlags};
use crate::width::Width;

use FlagRule::{Cleared, FirstStep, FirstStepInMemory, LastStep, Set};
use UndefinedFlags::{Amd, Early, Intel};

/// A shift or rotate of one operand.
trait Shift {
    /// ROL and ROR, whose immediate form leaves OF alone on Intel.
    const SPARES_OF: bool = false;
    /// `count` is masked and not 0.
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags);
}

/// SHLD or SHRD: bits of `b` are shifted into `a`.
trait DoubleShift {
    /// `count` is masked and not 0.
    fn apply<W: Width>(rules: UndefinedFlags, a: W, b: W, count: u32) -> (W, Flags);
}

/// Bit `number` of `value`; 0 above its width.
#[inline(always)]
fn bit<W: Width>(value: W, number: u32) -> bool {
    number < 64 && value.to_u64() >> number & 1 != 0
}

/// The sign bit.
#[inline(always)]
fn top<W: Width>(value: W) -> bool {
    bit(value, W::BITS - 1)
}

/// The bit below the sign bit.
#[inline(always)]
fn next<W: Width>(value: W) -> bool {
    bit(value, W::BITS - 2)
}

#[inline(always)]
fn shifted<W: Width>(r: W, cf: bool, of: bool, af: bool) -> (W, Flags) {
    (r, r.logic_flags().with_cf_of(cf, of).with_af(af))
}

struct Rol;
impl Shift for Rol {
    const SPARES_OF: bool = true;
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags) {
        let r = rotate_left(a, count % W::BITS);
        let cf = bit(r, 0);
        let of = if rules == Intel { top(a) != next(a) } else { cf != top(r) };
        (r, flags.with_cf_of(cf, of))
    }
}

struct Ror;
impl Shift for Ror {
    const SPARES_OF: bool = true;
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags) {
        let r = rotate_left(a, count.wrapping_neg() % W::BITS);
        let of = if rules == Intel { top(a) != bit(a, 0) } else { top(r) != next(r) };
        (r, flags.with_cf_of(top(r), of))
    }
}

/// Rotates left by less than the width.
#[inline(always)]
fn rotate_left<W: Width>(a: W, count: u32) -> W {
    let value = a.to_u64();
    if W::BITS == 64 {
        return W::from_u64(value.rotate_left(count));
    }
    W::from_u64(value << count | value >> (W::BITS - count))
}

struct Rcl;
impl Shift for Rcl {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags) {
        let count = count % (W::BITS + 1);
        if count == 0 && rules == Intel {
            return (a, flags);
        }
        let (r, cf) = rotate_through(flags.cf(), a, count);
        let of = if rules == Intel { top(a) != next(a) } else { cf != top(r) };
        (r, flags.with_cf_of(cf, of))
    }
}

struct Rcr;
impl Shift for Rcr {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags) {
        let count = count % (W::BITS + 1);
        if count == 0 && rules == Intel {
            return (a, flags);
        }
        let (r, cf) = rotate_through(flags.cf(), a, W::BITS + 1 - count);
        let of = if rules == Intel { flags.cf() != top(a) } else { top(r) != next(r) };
        (r, flags.with_cf_of(cf, of))
    }
}

/// Rotates CF and `a`, CF on top, left by 0 to `W::BITS + 1`.
#[inline(always)]
fn rotate_through<W: Width>(cf: bool, a: W, count: u32) -> (W, bool) {
    let bits = W::BITS + 1;
    let value = u128::from(cf) << W::BITS | u128::from(a.to_u64());
    let mask = (1 << bits) - 1;
    let r = (value << count | value >> (bits - count)) & mask;
    (W::from_u64(r as u64), r >> W::BITS != 0)
}

struct Shl;
impl Shift for Shl {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, _: Flags, a: W, count: u32) -> (W, Flags) {
        let r = W::from_u64(a.to_u64().checked_shl(count).unwrap_or(0));
        let cf = bit(a, W::BITS.wrapping_sub(count));
        match rules {
            Intel => shifted(r, cf, top(a) != next(a), false),
            Amd => shifted(r, cf, cf != top(r), true),
            // The carry out of bit 3 of the last doubling.
            Early => shifted(r, cf, cf != top(r), bit(r, 4)),
        }
    }
}

struct Shr;
impl Shift for Shr {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, _: Flags, a: W, count: u32) -> (W, Flags) {
        let r = W::from_u64(a.to_u64().checked_shr(count).unwrap_or(0));
        let cf = bit(a, count - 1);
        match rules {
            Intel => shifted(r, cf, top(a), false),
            Amd | Early => shifted(r, cf, top(r) != next(r), true),
        }
    }
}

struct Sar;
impl Shift for Sar {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, _: Flags, a: W, count: u32) -> (W, Flags) {
        let wide = a.to_i64();
        let r = W::from_u64((wide >> count.min(63)) as u64);
        let cf = wide >> (count - 1).min(63) & 1 != 0;
        shifted(r, cf, false, rules != Intel)
    }
}

/// D0..D3 /6 of the 8086: all ones, as `OR -1`.
struct Setmo;
impl Shift for Setmo {
    fn apply<W: Width>(_: UndefinedFlags, _: Flags, _: W, _: u32) -> (W, Flags) {
        let r = W::from_u64(u64::MAX);
        (r, r.logic_flags())
    }
}

struct Shld;
impl DoubleShift for Shld {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, a: W, b: W, count: u32) -> (W, Flags) {
        let (from, into, left) = past_width(rules, a, b, count);
        let pair = u128::from(from.to_u64()) << W::BITS | u128::from(into.to_u64());
        let r = W::from_u64((pair << left >> W::BITS) as u64);
        let cf = bit(from, W::BITS - left);
        match rules {
            Intel => shifted(r, cf, top(a) != next(a), false),
            // Family 19h: past the operand CF is 0, and OF does not look at the result.
            Amd => {
                let cf = cf && count <= W::BITS;
                shifted(r, cf, cf != (top(r) && count < W::BITS), true)
            }
            Early => shifted(r, cf, cf != top(r), true),
        }
    }
}

struct Shrd;
impl DoubleShift for Shrd {
    #[inline(always)]
    fn apply<W: Width>(rules: UndefinedFlags, a: W, b: W, count: u32) -> (W, Flags) {
        let (from, into, left) = past_width(rules, a, b, count);
        let pair = u128::from(into.to_u64()) << W::BITS | u128::from(from.to_u64());
        let r = W::from_u64((pair >> left) as u64);
        let cf = bit(from, left - 1);
        match rules {
            Intel => shifted(r, cf, bit(b, 0) != top(a), false),
            Amd => shifted(r, cf && count <= W::BITS, top(r) != next(r), true),
            Early => shifted(r, cf, top(r) != next(r), true),
        }
    }
}

/// What is shifted, what it is filled from, and how far. Past the width of a 16-bit operand `b`
/// is shifted on; Intel fills it from `a` since the P6, the others from `b` itself.
#[inline(always)]
fn past_width<W: Width>(rules: UndefinedFlags, a: W, b: W, count: u32) -> (W, W, u32) {
    if count <= W::BITS {
        (a, b, count)
    } else {
        (b, if rules == Intel { a } else { b }, count - W::BITS)
    }
}

/// The bits of a count that a 286 or later looks at.
#[inline(always)]
const fn count_mask<W: Width>() -> u64 {
    if W::BITS == 64 { 63 } else { 31 }
}

/// The count in CL. An 8086 takes all of it.
#[inline(always)]
fn cl<W: Width>(m: &Machine<'_, '_>) -> u32 {
    let early = m.profile.generation == Generation::I8086;
    let mask = if early { 0xFF } else { count_mask::<W>() };
    (m.cpu.gpr[Reg::Rcx] & mask) as u32
}

/// The count in the instruction.
#[inline(always)]
fn immediate<W: Width>(op: &Op) -> u32 {
    (op.imm & count_mask::<W>()) as u32
}

/// A shift by a count that may be 0, which changes nothing.
#[inline(always)]
fn shift<O: Shift, W: Width>(rules: UndefinedFlags, flags: Flags, a: W, count: u32) -> (W, Flags) {
    if count == 0 { (a, flags) } else { O::apply(rules, flags, a, count) }
}

/// Register by immediate or by 1.
fn r_i<O: Shift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (rules, count) = (m.profile.undefined_flags, immediate::<W>(op));
    let (r, flags) = shift::<O, W>(rules, m.flags, W::read(&m.cpu.gpr, op.rm), count);
    r.write(&mut m.cpu.gpr, op.rm);
    let spares_of = O::SPARES_OF && rules == Intel && count != 1;
    m.flags = if spares_of { flags.with_cf_of(flags.cf(), m.flags.of()) } else { flags };
    Ok(())
}

/// Memory by immediate or by 1.
fn m_i<O: Shift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (rules, count) = (m.profile.undefined_flags, immediate::<W>(op));
    m.modify(op, |flags, a| shift::<O, W>(rules, flags, a, count))
}

/// Register by CL.
fn r_c<O: Shift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let a = W::read(&m.cpu.gpr, op.rm);
    let (r, flags) = shift::<O, W>(m.profile.undefined_flags, m.flags, a, cl::<W>(m));
    r.write(&mut m.cpu.gpr, op.rm);
    m.flags = flags;
    Ok(())
}

/// Memory by CL.
fn m_c<O: Shift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (rules, count) = (m.profile.undefined_flags, cl::<W>(m));
    m.modify(op, |flags, a| shift::<O, W>(rules, flags, a, count))
}

/// A double shift by a count that may be 0, which changes nothing.
fn double<O: DoubleShift, W: Width>(
    rules: UndefinedFlags,
    flags: Flags,
    (a, b): (W, W),
    count: u32,
) -> (W, Flags) {
    if count == 0 { (a, flags) } else { O::apply(rules, a, b, count) }
}

fn double_r<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op, count: u32) -> Step {
    let (a, b) = (W::read(&m.cpu.gpr, op.rm), W::read(&m.cpu.gpr, op.reg));
    let (r, flags) = double::<O, W>(m.profile.undefined_flags, m.flags, (a, b), count);
    r.write(&mut m.cpu.gpr, op.rm);
    m.flags = flags;
    Ok(())
}

fn double_m<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op, count: u32) -> Step {
    let (rules, b) = (m.profile.undefined_flags, W::read(&m.cpu.gpr, op.reg));
    m.modify(op, |flags, a| double::<O, W>(rules, flags, (a, b), count))
}

fn r_r_i<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    double_r::<O, W>(m, op, immediate::<W>(op))
}

fn m_r_i<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    double_m::<O, W>(m, op, immediate::<W>(op))
}

fn r_r_c<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    double_r::<O, W>(m, op, cl::<W>(m))
}

fn m_r_c<O: DoubleShift, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    double_m::<O, W>(m, op, cl::<W>(m))
}

/// The six encodings of group 2 with one `/digit`.
const fn group<O: Shift + 'static>(name: &'static str, digit: u8) -> [Row; 6] {
    let by_immediate = Exec::Forms(const { &[r_i::<O, u8> as Handler, m_i::<O, u8> as Handler] });
    let by_immediate_v = Exec::FormSizes(const { &[sized!(r_i, O), sized!(m_i, O)] });
    let by_cl = Exec::Forms(const { &[r_c::<O, u8> as Handler, m_c::<O, u8> as Handler] });
    let by_cl_v = Exec::FormSizes(const { &[sized!(r_c, O), sized!(m_c, O)] });
    [
        one(name, 0xC0, &[Eb, Ib]).digit(digit).since(Generation::I80186).exec(by_immediate),
        one(name, 0xC1, &[Ev, Ib]).digit(digit).since(Generation::I80186).exec(by_immediate_v),
        one(name, 0xD0, &[Eb, One]).digit(digit).exec(by_immediate),
        one(name, 0xD1, &[Ev, One]).digit(digit).exec(by_immediate_v),
        one(name, 0xD2, &[Eb, Cl]).digit(digit).exec(by_cl),
        one(name, 0xD3, &[Ev, Cl]).digit(digit).exec(by_cl_v),
    ]
}

const fn double_group<O: DoubleShift + 'static>(name: &'static str, opcode: u8) -> [Row; 2] {
    let by_immediate = Exec::FormSizes(const { &[sized!(r_r_i, O), sized!(m_r_i, O)] });
    let by_cl = Exec::FormSizes(const { &[sized!(r_r_c, O), sized!(m_r_c, O)] });
    [
        two(name, opcode, &[Ev, Gv, Ib]).exec(by_immediate),
        two(name, opcode + 1, &[Ev, Gv, Cl]).exec(by_cl),
    ]
}

/// Is OF defined? It is for a count of 1 alone.
const fn is_by_one(row: &Row) -> bool {
    matches!(row.operands[1], One)
}

/// ROL and ROR.
const fn rotates(row: Row) -> Row {
    let row = rotates_through(row);
    match row.operands[1] {
        Ib => row.on(Intel, OF, FirstStepInMemory),
        _ => row,
    }
}

/// RCL and RCR.
const fn rotates_through(row: Row) -> Row {
    let row = row.changes(CF | OF);
    if is_by_one(&row) { row } else { row.undefined(OF, LastStep).on(Intel, OF, FirstStep) }
}

const fn shifts(row: Row) -> Row {
    let row = row.changes(ARITH).undefined(AF, Set).on(Intel, AF, Cleared);
    if is_by_one(&row) { row } else { row.undefined(OF, LastStep).on(Intel, OF, FirstStep) }
}

const fn shifts_left(row: Row) -> Row {
    shifts(row).on(Early, AF, LastStep)
}

/// SAR: whatever step decides, it changes no sign.
const fn shifts_signed(row: Row) -> Row {
    let row = shifts(row);
    if is_by_one(&row) { row } else { row.undefined(OF, Cleared) }
}

/// SETMO.
const fn sets(row: Row) -> Row {
    let row = row.changes(ARITH).undefined(AF, Cleared);
    if is_by_one(&row) { row } else { row.undefined(OF, Cleared) }
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &TABLE;

const TABLE: [Row; 56] = {
    let groups = [
        group::<Rol>("ROL", 0),
        group::<Ror>("ROR", 1),
        group::<Rcl>("RCL", 2),
        group::<Rcr>("RCR", 3),
        group::<Shl>("SHL", 4),
        group::<Shr>("SHR", 5),
        group::<Sar>("SAR", 7),
        // /6 is /4 again.
        group::<Shl>("SHL", 6),
    ];
    let setmo = group::<Setmo>("SETMO", 6);
    let double = [double_group::<Shld>("SHLD", 0xA4), double_group::<Shrd>("SHRD", 0xAC)];
    let mut rows = [groups[0][0]; 56];
    let mut i = 0;
    while i < 56 {
        rows[i] = match i {
            0..12 => rotates(groups[i / 6][i % 6]),
            12..24 => rotates_through(groups[i / 6][i % 6]),
            24..30 => shifts_left(groups[4][i % 6]),
            30..36 => shifts(groups[5][i % 6]),
            36..42 => shifts_signed(groups[6][i % 6]),
            42..48 => shifts_left(groups[7][i % 6]).since(Generation::I80186),
            48..52 => sets(setmo[i - 46]).until(Generation::I8086),
            _ => shifts(double[(i - 52) / 2][i % 2]),
        };
        i += 1;
    }
    rows
};
