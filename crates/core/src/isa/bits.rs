//! BT BTS BTR BTC, BSF, BSR, TZCNT, LZCNT, POPCNT, CRC32, ADCX, ADOX.

use crate::arch::cpuid::Features;
use crate::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use crate::bus::Access;
use crate::flags::Flags;
use crate::isa::alu;
use crate::isa::operand::Operand::{Eb, Ev, Ey, Gv, Gy, Ib};
use crate::isa::row::{Exec, Map, Prefix, Row, by_width, row, sized, two};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::UndefinedFlags;
use crate::width::Width;

// ---- one bit ----

/// What becomes of the bit that CF is taken from.
trait Bit {
    /// BT writes nothing back.
    const WRITES: bool = true;
    fn apply(value: u64, bit: u64) -> u64;
}

struct Bt;
impl Bit for Bt {
    const WRITES: bool = false;
    fn apply(value: u64, _: u64) -> u64 {
        value
    }
}

struct Bts;
impl Bit for Bts {
    fn apply(value: u64, bit: u64) -> u64 {
        value | bit
    }
}

struct Btr;
impl Bit for Btr {
    fn apply(value: u64, bit: u64) -> u64 {
        value & !bit
    }
}

struct Btc;
impl Bit for Btc {
    fn apply(value: u64, bit: u64) -> u64 {
        value ^ bit
    }
}

/// Result and flags of an operation on bit `index`, modulo the width.
#[inline(always)]
fn on_bit<O: Bit, W: Width>(flags: Flags, a: W, index: u64) -> (W, Flags) {
    let bit = 1 << (index & u64::from(W::BITS - 1));
    let value = a.to_u64();
    (W::from_u64(O::apply(value, bit)), flags.with_cf(value & bit != 0))
}

fn on_register<O: Bit, W: Width>(m: &mut Machine<'_, '_>, number: u8, index: u64) -> Step {
    let (r, flags) = on_bit::<O, W>(m.flags, W::read(&m.cpu.gpr, number), index);
    if O::WRITES {
        r.write(&mut m.cpu.gpr, number);
    }
    m.flags = flags;
    Ok(())
}

/// Register, bit number in a register.
fn r_r<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let index = W::read(&m.cpu.gpr, op.reg).to_u64();
    on_register::<O, W>(m, op.rm, index)
}

/// Register, bit number in the instruction.
fn r_i<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    on_register::<O, W>(m, op.rm, op.imm)
}

/// Memory, bit number in the instruction: within the operand.
fn m_i<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if O::WRITES {
        return m.modify(op, |flags, a: W| on_bit::<O, W>(flags, a, op.imm));
    }
    let a = m.load::<W>(op)?;
    m.flags = on_bit::<O, W>(m.flags, a, op.imm).1;
    Ok(())
}

/// Memory, bit number in a register: signed, and reaching beyond the operand.
fn m_r<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (offset, index) = reach::<W>(m, op);
    if !O::WRITES {
        let a = m.load_at::<W>(op.seg, offset)?;
        m.flags = on_bit::<O, W>(m.flags, a, index).1;
        return Ok(());
    }
    let operand = m.prepare(op.seg, offset, W::BYTES, Access::Write)?;
    let a = W::from_u64(m.read_value(&operand)?);
    let (r, flags) = on_bit::<O, W>(m.flags, a, index);
    m.write_value(&operand, r)?;
    m.flags = flags;
    Ok(())
}

/// The offset of the operand that holds the bit which a register numbers, and the number (SDM
/// vol. 2A, "BT": effective address plus the operand size times the number's quotient).
fn reach<W: Width>(m: &Machine<'_, '_>, op: &Op) -> (u64, u64) {
    let index = W::read(&m.cpu.gpr, op.reg).to_i64();
    let step = (index >> W::BITS.ilog2()) * W::BYTES as i64;
    let offset = m.offset(op).wrapping_add(step as u64) & (u64::MAX >> (op.address_shift & 63));
    (offset, index as u64)
}

/// LOCK memory, bit number in the instruction.
fn locked_m_i<O: Bit>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        alu::locked::<W>(m, op, |flags, a| on_bit::<O, W>(flags, a, op.imm))
    }
    by_width!(go, O)(m, op)
}

/// LOCK memory, bit number in a register.
fn locked_m_r<O: Bit>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<O: Bit, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let (offset, index) = reach::<W>(m, op);
        alu::locked_at::<W>(m, op.seg, offset, |flags, a| on_bit::<O, W>(flags, a, index))
    }
    by_width!(go, O)(m, op)
}

/// The two encodings of one operation: 0F `opcode`, and 0F BA `/digit`.
const fn bit_rows<O: Bit + 'static>(name: &'static str, opcode: u8, digit: u8) -> [Row; 2] {
    let by_register = two(name, opcode, &[Ev, Gv])
        .changes(CF)
        .undefined(OF | SF | AF | PF, FlagRule::Kept)
        .exec(Exec::FormSizes(const { &[sized!(r_r, O), sized!(m_r, O)] }));
    let by_immediate = two(name, 0xBA, &[Ev, Ib])
        .digit(digit)
        .changes(CF)
        .undefined(OF | SF | AF | PF, FlagRule::Kept)
        .exec(Exec::FormSizes(const { &[sized!(r_i, O), sized!(m_i, O)] }));
    if O::WRITES {
        [by_register.lockable(locked_m_r::<O>), by_immediate.lockable(locked_m_i::<O>)]
    } else {
        [by_register, by_immediate]
    }
}

// ---- counting ----

/// A function of one operand into a register.
trait Count {
    /// The result, or `None` if the register keeps its value.
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W) -> (Option<W>, Flags);
}

/// BSF and BSR, on both makers' recent parts.
fn scanned<W: Width>(a: W, index: u32) -> (Option<W>, Flags) {
    if a.to_u64() == 0 {
        return (None, Flags::from_rflags(ZF | PF));
    }
    let parity = if index.count_ones() & 1 == 0 { PF } else { 0 };
    (Some(W::from_u64(index.into())), Flags::from_rflags(parity))
}

/// TZCNT and LZCNT.
fn counted<W: Width>(rules: UndefinedFlags, flags: Flags, count: u32) -> (Option<W>, Flags) {
    let cf = if count == W::BITS { CF } else { 0 };
    let zf = if count == 0 { ZF } else { 0 };
    let mask = if rules == UndefinedFlags::Amd { ARITH & !OF } else { ARITH };
    (Some(W::from_u64(count.into())), flags.with(mask, cf | zf))
}

/// Zero bits below the lowest set one; the width if there is none.
fn trailing_zeros<W: Width>(a: W) -> u32 {
    a.to_u64().trailing_zeros().min(W::BITS)
}

/// Zero bits above the highest set one; the width if there is none.
fn leading_zeros<W: Width>(a: W) -> u32 {
    a.to_u64().leading_zeros() - (64 - W::BITS)
}

struct Bsf;
impl Count for Bsf {
    fn apply<W: Width>(_: UndefinedFlags, _: Flags, a: W) -> (Option<W>, Flags) {
        scanned(a, trailing_zeros(a))
    }
}

struct Bsr;
impl Count for Bsr {
    fn apply<W: Width>(_: UndefinedFlags, _: Flags, a: W) -> (Option<W>, Flags) {
        scanned(a, (W::BITS - 1).wrapping_sub(leading_zeros(a)))
    }
}

struct Tzcnt;
impl Count for Tzcnt {
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W) -> (Option<W>, Flags) {
        counted(rules, flags, trailing_zeros(a))
    }
}

struct Lzcnt;
impl Count for Lzcnt {
    fn apply<W: Width>(rules: UndefinedFlags, flags: Flags, a: W) -> (Option<W>, Flags) {
        counted(rules, flags, leading_zeros(a))
    }
}

struct Popcnt;
impl Count for Popcnt {
    fn apply<W: Width>(_: UndefinedFlags, _: Flags, a: W) -> (Option<W>, Flags) {
        let zf = if a.to_u64() == 0 { ZF } else { 0 };
        (Some(W::from_u64(a.to_u64().count_ones().into())), Flags::from_rflags(zf))
    }
}

fn count_into<O: Count, W: Width>(m: &mut Machine<'_, '_>, number: u8, a: W) -> Step {
    let (r, flags) = O::apply(m.profile.undefined_flags, m.flags, a);
    if let Some(r) = r {
        r.write(&mut m.cpu.gpr, number);
    }
    m.flags = flags;
    Ok(())
}

fn count_r<O: Count, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let a = W::read(&m.cpu.gpr, op.reg);
    count_into::<O, W>(m, op.rm, a)
}

fn count_m<O: Count, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let a = m.load::<W>(op)?;
    count_into::<O, W>(m, op.reg, a)
}

const fn count_row<O: Count + 'static>(name: &'static str, opcode: u8) -> Row {
    two(name, opcode, &[Gv, Ev])
        .changes(ARITH)
        .exec(Exec::FormSizes(const { &[sized!(count_r, O), sized!(count_m, O)] }))
}

const fn scans(row: Row) -> Row {
    row.undefined(OF | SF | AF | CF, FlagRule::Cleared).undefined(PF, FlagRule::ByResult)
}

// ---- CRC32, ADCX, ADOX ----

/// CRC-32C, bits reflected, as the instruction accumulates it.
fn crc32c(mut crc: u32, value: u64, bytes: usize) -> u32 {
    for i in 0..bytes {
        crc ^= (value >> (8 * i)) as u32 & 0xFF;
        for _ in 0..8 {
            let feedback = if crc & 1 != 0 { 0x82F6_3B78 } else { 0 };
            crc = crc >> 1 ^ feedback;
        }
    }
    crc
}

/// The destination has 32 bits, or 64 of which the upper half becomes zero: the same.
fn crc_into<W: Width>(m: &mut Machine<'_, '_>, number: u8, b: W) -> Step {
    let crc = crc32c(u32::read(&m.cpu.gpr, number), b.to_u64(), W::BYTES);
    crc.write(&mut m.cpu.gpr, number);
    Ok(())
}

fn crc_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    crc_into(m, op.rm, b)
}

fn crc_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = m.load::<W>(op)?;
    crc_into(m, op.reg, b)
}

/// ADCX and ADOX: an addition whose carry goes in and out through one flag.
trait Chain {
    fn carry(flags: Flags) -> bool;
    fn with_carry(flags: Flags, carry: bool) -> Flags;
}

struct Adcx;
impl Chain for Adcx {
    fn carry(flags: Flags) -> bool {
        flags.cf()
    }
    fn with_carry(flags: Flags, carry: bool) -> Flags {
        flags.with_cf(carry)
    }
}

struct Adox;
impl Chain for Adox {
    fn carry(flags: Flags) -> bool {
        flags.of()
    }
    fn with_carry(flags: Flags, carry: bool) -> Flags {
        flags.with_cf_of(flags.cf(), carry)
    }
}

fn chain_into<O: Chain, W: Width>(m: &mut Machine<'_, '_>, number: u8, b: W) -> Step {
    let a = W::read(&m.cpu.gpr, number).to_u64();
    let sum = u128::from(a) + u128::from(b.to_u64()) + u128::from(O::carry(m.flags));
    W::from_u64(sum as u64).write(&mut m.cpu.gpr, number);
    m.flags = O::with_carry(m.flags, sum >> W::BITS != 0);
    Ok(())
}

fn chain_r<O: Chain, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    chain_into::<O, W>(m, op.rm, b)
}

fn chain_m<O: Chain, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = m.load::<W>(op)?;
    chain_into::<O, W>(m, op.reg, b)
}

/// 32 bits, or 64 with REX.W: 66 does not make the operands smaller.
const fn chain_row<O: Chain + 'static>(name: &'static str, prefix: Prefix, flag: u64) -> Row {
    row(Map::M0F38, name, 0xF6, &[Gy, Ey]).prefix(prefix).needs(Features::ADX).changes(flag).exec(
        Exec::FormSizes(
            const {
                &[
                    [chain_r::<O, u32> as Handler, chain_r::<O, u32>, chain_r::<O, u64>],
                    [chain_m::<O, u32> as Handler, chain_m::<O, u32>, chain_m::<O, u64>],
                ]
            },
        ),
    )
}

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &{
    let bt = bit_rows::<Bt>("BT", 0xA3, 4);
    let bts = bit_rows::<Bts>("BTS", 0xAB, 5);
    let btr = bit_rows::<Btr>("BTR", 0xB3, 6);
    let btc = bit_rows::<Btc>("BTC", 0xBB, 7);
    const CRC_BYTE: Exec = Exec::Forms(&[crc_r::<u8> as Handler, crc_m::<u8> as Handler]);
    const CRC: Exec = Exec::FormSizes(&[sized!(crc_r), sized!(crc_m)]);
    const CRC_NEEDS: Features = Features::SSE4_2;
    const COUNTS: u64 = OF | SF | AF | PF;
    [
        bt[0],
        bt[1],
        bts[0],
        bts[1],
        btr[0],
        btr[1],
        btc[0],
        btc[1],
        // Without their feature the F3 forms are BSF and BSR, and F3 means nothing.
        count_row::<Tzcnt>("TZCNT", 0xBC)
            .prefix(Prefix::F3)
            .needs(Features::BMI1)
            .undefined(COUNTS, FlagRule::Cleared)
            .on(UndefinedFlags::Amd, OF, FlagRule::Kept),
        count_row::<Lzcnt>("LZCNT", 0xBD)
            .prefix(Prefix::F3)
            .needs(Features::LZCNT)
            .undefined(COUNTS, FlagRule::Cleared)
            .on(UndefinedFlags::Amd, OF, FlagRule::Kept),
        scans(count_row::<Bsf>("BSF", 0xBC)),
        scans(count_row::<Bsr>("BSR", 0xBD)),
        count_row::<Popcnt>("POPCNT", 0xB8).prefix(Prefix::F3).needs(Features::POPCNT),
        row(Map::M0F38, "CRC32", 0xF0, &[Gy, Eb])
            .prefix(Prefix::F2)
            .needs(CRC_NEEDS)
            .exec(CRC_BYTE),
        row(Map::M0F38, "CRC32", 0xF1, &[Gy, Ev]).prefix(Prefix::F2).needs(CRC_NEEDS).exec(CRC),
        chain_row::<Adcx>("ADCX", Prefix::P66, CF),
        chain_row::<Adox>("ADOX", Prefix::F3, OF),
    ]
};
