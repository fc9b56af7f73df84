//! ADD OR ADC SBB AND SUB XOR CMP, TEST, INC, DEC, NEG, NOT.

use crate::arch::rflags::{AF, ARITH, CF};
use crate::bus::Access;
use crate::flags::Flags;
use crate::isa::operand::Operand::{Al, Eb, Ev, Gb, Gv, Ib, Ibs, Iz, Rax, Zv};
use crate::isa::row::{Exec, Modes, Row, by_width, one, sized};
use crate::isa::undefined::FlagRule;
use crate::machine::{Machine, Step};
use crate::op::{Handler, Op};
use crate::width::Width;

/// An operation on two operands: result and flags side by side.
pub(crate) trait Arith {
    /// CMP and TEST write nothing back.
    const WRITES: bool = true;
    fn apply<W: Width>(flags: Flags, a: W, b: W) -> (W, Flags);
}

/// An operation on one operand.
pub(crate) trait Unary {
    fn apply<W: Width>(flags: Flags, a: W) -> (W, Flags);
}

macro_rules! operation {
    ($kind:ident $name:ident($flags:ident $(, $arg:ident)+) writes $writes:expr => $body:expr) => {
        pub(crate) struct $name;
        impl $kind for $name {
            const WRITES: bool = $writes;
            #[inline(always)]
            fn apply<W: Width>($flags: Flags $(, $arg: W)+) -> (W, Flags) {
                $body
            }
        }
    };
}

fn wrap<W: Width>(value: u64) -> W {
    W::from_u64(value)
}

operation!(Arith Add(_flags, a, b) writes true => {
    let r = wrap(a.to_u64().wrapping_add(b.to_u64()));
    (r, Flags::add(a, b, r))
});
operation!(Arith Or(_flags, a, b) writes true => {
    let r: W = wrap(a.to_u64() | b.to_u64());
    (r, r.logic_flags())
});
operation!(Arith Adc(flags, a, b) writes true => {
    let r = wrap(a.to_u64().wrapping_add(b.to_u64()).wrapping_add(u64::from(flags.cf())));
    (r, Flags::add(a, b, r))
});
operation!(Arith Sbb(flags, a, b) writes true => {
    let r = wrap(a.to_u64().wrapping_sub(b.to_u64()).wrapping_sub(u64::from(flags.cf())));
    (r, Flags::sub(a, b, r))
});
operation!(Arith And(_flags, a, b) writes true => {
    let r: W = wrap(a.to_u64() & b.to_u64());
    (r, r.logic_flags())
});
operation!(Arith Sub(_flags, a, b) writes true => {
    let r = wrap(a.to_u64().wrapping_sub(b.to_u64()));
    (r, Flags::sub(a, b, r))
});
operation!(Arith Xor(_flags, a, b) writes true => {
    let r: W = wrap(a.to_u64() ^ b.to_u64());
    (r, r.logic_flags())
});
operation!(Arith Cmp(_flags, a, b) writes false => {
    let r = wrap(a.to_u64().wrapping_sub(b.to_u64()));
    (r, Flags::sub(a, b, r))
});
operation!(Arith Test(_flags, a, b) writes false => {
    let r: W = wrap(a.to_u64() & b.to_u64());
    (r, r.logic_flags())
});

macro_rules! unary {
    ($name:ident($flags:ident, $a:ident) => $body:expr) => {
        pub(crate) struct $name;
        impl Unary for $name {
            #[inline(always)]
            fn apply<W: Width>($flags: Flags, $a: W) -> (W, Flags) {
                $body
            }
        }
    };
}

unary!(Inc(flags, a) => {
    let one = W::from_u64(1);
    let r = wrap(a.to_u64().wrapping_add(1));
    (r, Flags::add(a, one, r).keep_cf(flags))
});
unary!(Dec(flags, a) => {
    let one = W::from_u64(1);
    let r = wrap(a.to_u64().wrapping_sub(1));
    (r, Flags::sub(a, one, r).keep_cf(flags))
});
unary!(Neg(_flags, a) => {
    let zero = W::from_u64(0);
    let r = wrap(a.to_u64().wrapping_neg());
    (r, Flags::sub(zero, a, r))
});
unary!(Not(flags, a) => (wrap(!a.to_u64()), flags));

/// rm, reg: registers.
pub(crate) fn r_r<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    r_value::<O, W>(m, op.rm, b)
}

/// rm, immediate: register.
pub(crate) fn r_i<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    r_value::<O, W>(m, op.rm, W::from_u64(op.imm))
}

/// Accumulator, immediate.
pub(crate) fn a_i<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    r_value::<O, W>(m, 0, W::from_u64(op.imm))
}

#[inline(always)]
fn r_value<O: Arith, W: Width>(m: &mut Machine<'_, '_>, number: u8, b: W) -> Step {
    let a = W::read(&m.cpu.gpr, number);
    let (r, flags) = O::apply(m.flags, a, b);
    if O::WRITES {
        r.write(&mut m.cpu.gpr, number);
    }
    m.flags = flags;
    Ok(())
}

/// memory, reg.
pub(crate) fn m_r<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = W::read(&m.cpu.gpr, op.reg);
    m_value::<O, W>(m, op, b)
}

/// memory, immediate.
pub(crate) fn m_i<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m_value::<O, W>(m, op, W::from_u64(op.imm))
}

#[inline(always)]
fn m_value<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op, b: W) -> Step {
    if O::WRITES {
        return m.modify(op, |flags, a| O::apply(flags, a, b));
    }
    let a = m.load::<W>(op)?;
    m.flags = O::apply(m.flags, a, b).1;
    Ok(())
}

/// reg, memory.
pub(crate) fn r_m<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let b = m.load::<W>(op)?;
    r_value::<O, W>(m, op.reg, b)
}

/// LOCK memory, reg.
fn locked_m_r<O: Arith>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let b = W::read(&m.cpu.gpr, op.reg);
        locked::<W>(m, op, |flags, a| O::apply(flags, a, b))
    }
    by_width!(go, O)(m, op)
}

/// LOCK memory, immediate.
fn locked_m_i<O: Arith>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<O: Arith, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        let b = W::from_u64(op.imm);
        locked::<W>(m, op, |flags, a| O::apply(flags, a, b))
    }
    by_width!(go, O)(m, op)
}

/// LOCK memory.
fn locked_m<O: Unary>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    fn go<O: Unary, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
        locked::<W>(m, op, |flags, a| O::apply::<W>(flags, a))
    }
    by_width!(go, O)(m, op)
}

/// An atomic update of the memory operand; the flags follow from the value that was replaced.
pub(crate) fn locked<W: Width>(
    m: &mut Machine<'_, '_>,
    op: &Op,
    apply: impl Fn(Flags, W) -> (W, Flags),
) -> Step {
    let offset = m.offset(op);
    locked_at(m, op.seg, offset, apply)
}

/// The same in a segment.
pub(crate) fn locked_at<W: Width>(
    m: &mut Machine<'_, '_>,
    seg: u8,
    offset: u64,
    apply: impl Fn(Flags, W) -> (W, Flags),
) -> Step {
    let operand = m.prepare(seg, offset, W::BYTES, Access::Write)?;
    let flags = m.flags;
    let old = m.update_locked(&operand, &mut |a| apply(flags, W::from_u64(a)).0.to_u64())?;
    m.flags = apply(flags, W::from_u64(old)).1;
    Ok(())
}

/// Register operand.
fn r<O: Unary, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    unary_register::<O, W>(m, op.rm)
}

/// Register in the opcode.
fn z<O: Unary, W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    unary_register::<O, W>(m, op.reg)
}

#[inline(always)]
fn unary_register<O: Unary, W: Width>(m: &mut Machine<'_, '_>, number: u8) -> Step {
    let (r, flags) = O::apply(m.flags, W::read(&m.cpu.gpr, number));
    r.write(&mut m.cpu.gpr, number);
    m.flags = flags;
    Ok(())
}

/// Memory operand.
fn m<O: Unary, W: Width>(machine: &mut Machine<'_, '_>, op: &Op) -> Step {
    machine.modify(op, |flags, a: W| O::apply(flags, a))
}

const fn flags_of(row: Row, logic: bool) -> Row {
    if logic { row.arithmetic().undefined(AF, FlagRule::Cleared) } else { row.arithmetic() }
}

/// The six encodings in 00..3F and the four of group 1 that an operation has.
const fn group<O: Arith + 'static>(name: &'static str, digit: u8, logic: bool) -> [Row; 10] {
    let base = digit * 8;
    let mut rows = [
        one(name, base, &[Eb, Gb])
            .exec(Exec::Forms(const { &[r_r::<O, u8> as Handler, m_r::<O, u8> as Handler] })),
        one(name, base + 1, &[Ev, Gv])
            .exec(Exec::FormSizes(const { &[sized!(r_r, O), sized!(m_r, O)] })),
        one(name, base + 2, &[Gb, Eb])
            .exec(Exec::Forms(const { &[r_r::<O, u8> as Handler, r_m::<O, u8> as Handler] })),
        one(name, base + 3, &[Gv, Ev])
            .exec(Exec::FormSizes(const { &[sized!(r_r, O), sized!(r_m, O)] })),
        one(name, base + 4, &[Al, Ib]).handler(a_i::<O, u8>),
        one(name, base + 5, &[Rax, Iz]).exec(Exec::Sizes(const { &sized!(a_i, O) })),
        one(name, 0x80, &[Eb, Ib])
            .digit(digit)
            .exec(Exec::Forms(const { &[r_i::<O, u8> as Handler, m_i::<O, u8> as Handler] })),
        one(name, 0x81, &[Ev, Iz])
            .digit(digit)
            .exec(Exec::FormSizes(const { &[sized!(r_i, O), sized!(m_i, O)] })),
        // 82 is 80 again, outside 64-bit code.
        one(name, 0x82, &[Eb, Ib])
            .digit(digit)
            .modes(Modes::Not64)
            .exec(Exec::Forms(const { &[r_i::<O, u8> as Handler, m_i::<O, u8> as Handler] })),
        one(name, 0x83, &[Ev, Ibs])
            .digit(digit)
            .exec(Exec::FormSizes(const { &[sized!(r_i, O), sized!(m_i, O)] })),
    ];
    let mut i = 0;
    while i < rows.len() {
        rows[i] = flags_of(rows[i], logic);
        if O::WRITES && (i < 2 || i > 5) {
            let immediate = i > 5;
            rows[i] = rows[i].lockable(if immediate { locked_m_i::<O> } else { locked_m_r::<O> });
        }
        i += 1;
    }
    rows
}

const fn unary_rows<O: Unary + 'static>(name: &'static str, opcode: u8, digit: u8) -> [Row; 2] {
    [
        one(name, opcode, &[Eb])
            .digit(digit)
            .lockable(locked_m::<O>)
            .exec(Exec::Forms(const { &[r::<O, u8> as Handler, m::<O, u8> as Handler] })),
        one(name, opcode + 1, &[Ev])
            .digit(digit)
            .lockable(locked_m::<O>)
            .exec(Exec::FormSizes(const { &[sized!(r, O), sized!(m, O)] })),
    ]
}

const TEST: [Row; 8] = {
    const BYTES: Exec = Exec::Forms(&[r_i::<Test, u8> as Handler, m_i::<Test, u8> as Handler]);
    const WORDS: Exec = Exec::FormSizes(&[sized!(r_i, Test), sized!(m_i, Test)]);
    [
        one("TEST", 0x84, &[Eb, Gb])
            .exec(Exec::Forms(&[r_r::<Test, u8> as Handler, m_r::<Test, u8> as Handler])),
        one("TEST", 0x85, &[Ev, Gv]).exec(Exec::FormSizes(&[sized!(r_r, Test), sized!(m_r, Test)])),
        one("TEST", 0xA8, &[Al, Ib]).handler(a_i::<Test, u8>),
        one("TEST", 0xA9, &[Rax, Iz]).exec(Exec::Sizes(&sized!(a_i, Test))),
        one("TEST", 0xF6, &[Eb, Ib]).digit(0).exec(BYTES),
        one("TEST", 0xF7, &[Ev, Iz]).digit(0).exec(WORDS),
        // /1 is /0 again.
        one("TEST", 0xF6, &[Eb, Ib]).digit(1).exec(BYTES),
        one("TEST", 0xF7, &[Ev, Iz]).digit(1).exec(WORDS),
    ]
};

const SHORT: [Row; 2] = [
    one("INC", 0x40, &[Zv]).span(8).modes(Modes::Not64).exec(Exec::Sizes(&sized!(z, Inc))),
    one("DEC", 0x48, &[Zv]).span(8).modes(Modes::Not64).exec(Exec::Sizes(&sized!(z, Dec))),
];

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &TABLE;

const TABLE: [Row; 98] = {
    let groups = [
        group::<Add>("ADD", 0, false),
        group::<Or>("OR", 1, true),
        group::<Adc>("ADC", 2, false),
        group::<Sbb>("SBB", 3, false),
        group::<And>("AND", 4, true),
        group::<Sub>("SUB", 5, false),
        group::<Xor>("XOR", 6, true),
        group::<Cmp>("CMP", 7, false),
    ];
    let unary = [
        unary_rows::<Inc>("INC", 0xFE, 0),
        unary_rows::<Dec>("DEC", 0xFE, 1),
        unary_rows::<Not>("NOT", 0xF6, 2),
        unary_rows::<Neg>("NEG", 0xF6, 3),
    ];
    let mut rows = [SHORT[0]; 98];
    let mut i = 0;
    while i < 98 {
        rows[i] = match i {
            0..80 => groups[i / 10][i % 10],
            80..88 => {
                let row = unary[(i - 80) / 2][i % 2];
                match (i - 80) / 2 {
                    0 | 1 => row.changes(ARITH & !CF),
                    2 => row,
                    _ => row.arithmetic(),
                }
            }
            88..96 => flags_of(TEST[i - 88], true),
            _ => SHORT[i - 96].changes(ARITH & !CF),
        };
        i += 1;
    }
    rows
};
