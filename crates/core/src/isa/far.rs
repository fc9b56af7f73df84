//! Far transfers: JMP, CALL, RET, IRET, INT n, INT3, INT1, INTO, BOUND, with real-mode
//! segmentation. Each ends its block, so that RIP is the next instruction when a handler runs.
//!
//! The stack is prepared first, then the target is checked, then everything moves at once.

use crate::arch::descriptor::Segment;
use crate::arch::registers::SegReg;
use crate::arch::rflags::{ARITH, VIF, VIP, VM};
use crate::arch::vector;
use crate::bus::Access;
use crate::event::protected::Origin;
use crate::fault::Fault;
use crate::isa::operand::Operand::{Ap, Gv, Ib, Iw, Ma, Mp};
use crate::isa::row::{Exec, Modes, Row, Size64, one, sized};
use crate::isa::{far_protected, virtual_8086};
use crate::machine::{Leave, Machine, Step};
use crate::mem::access::Operand;
use crate::mem::segment::real_segment;
use crate::op::Op;
use crate::profile::{Generation, Vendor};
use crate::stop::Intercepted;
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("BOUND", 0x62, &[Gv, Ma])
        .modes(Modes::Not64)
        .since(Generation::I80186)
        .exec(Exec::Sizes(&sized!(bound))),
    far(one("CALL", 0x9A, &[Ap])).modes(Modes::Not64).exec(Exec::Sizes(&sized!(call_i))),
    far(one("JMP", 0xEA, &[Ap])).modes(Modes::Not64).exec(Exec::Sizes(&sized!(jmp_i))),
    far(one("CALL", 0xFF, &[Mp]).digit(3)).size64(Size64::Far).exec(Exec::Sizes(&sized!(call_m))),
    far(one("JMP", 0xFF, &[Mp]).digit(5)).size64(Size64::Far).exec(Exec::Sizes(&sized!(jmp_m))),
    far(one("RETF", 0xCA, &[Iw])).exec(Exec::Sizes(&sized!(ret))),
    far(one("RETF", 0xCB, &[])).exec(Exec::Sizes(&sized!(ret))),
    // 8086: C8 and C9 are CA and CB again.
    far(one("RETF", 0xC8, &[Iw])).until(Generation::I8086).exec(Exec::Sizes(&sized!(ret))),
    far(one("RETF", 0xC9, &[])).until(Generation::I8086).exec(Exec::Sizes(&sized!(ret))),
    far(one("INT3", 0xCC, &[])).handler(int3),
    far(one("INT", 0xCD, &[Ib])).handler(int),
    far(one("INTO", 0xCE, &[])).modes(Modes::Not64).handler(into),
    far(one("INT1", 0xF1, &[])).since(Generation::I80386).handler(int1),
    far(one("IRET", 0xCF, &[])).changes(ARITH).serialises().exec(Exec::Sizes(&sized!(iret))),
];

const fn far(row: Row) -> Row {
    row.changes_validity()
}

/// What CS will be after a transfer to `selector:offset`, with its limit checked.
fn target(m: &Machine<'_, '_>, selector: u16, offset: u64) -> Result<Segment, Leave> {
    let cs = real_segment(m.cpu.segment(SegReg::Cs), selector);
    if offset > u64::from(cs.limit) { Err(Fault::GP.into()) } else { Ok(cs) }
}

fn go(m: &mut Machine<'_, '_>, cs: Segment, offset: u64) {
    m.commit_segment(SegReg::Cs, cs);
    m.cpu.rip = offset;
}

/// The far pointer in the instruction: offset, then selector.
fn immediate<W: Width>(op: &Op) -> (u64, u16) {
    // A 64-bit offset does not exist: the form is not in 64-bit code.
    let bits = W::BITS.min(32);
    (op.imm & ((1 << bits) - 1), (op.imm >> bits) as u16)
}

/// Where the operand behind one of width `A` is: its address wraps with the address size.
fn second_offset<A: Width>(m: &Machine<'_, '_>, op: &Op) -> u64 {
    m.offset(op).wrapping_add(A::BYTES as u64) & (u64::MAX >> op.address_shift)
}

/// Prepares two neighbouring operands of widths `A` and `B`. Each is checked alone.
fn prepare_two<'m, A: Width, B: Width>(
    m: &mut Machine<'_, 'm>,
    op: &Op,
) -> Result<[Operand<'m>; 2], Leave> {
    let (first, second) = (m.offset(op), second_offset::<A>(m, op));
    Ok([
        m.prepare(op.seg, first, A::BYTES, Access::Read)?,
        m.prepare(op.seg, second, B::BYTES, Access::Read)?,
    ])
}

/// Loads a far pointer from memory: LES and its kin.
pub(crate) fn load_pointer<W: Width>(
    m: &mut Machine<'_, '_>,
    op: &Op,
) -> Result<(u64, u16), Leave> {
    let pointer = prepare_two::<W, u16>(m, op)?;
    read_pointer(m, pointer)
}

/// Reads a far pointer.
fn read_pointer<'m>(
    m: &mut Machine<'_, 'm>,
    [offset, selector]: [Operand<'m>; 2],
) -> Result<(u64, u16), Leave> {
    let offset = m.read_value(&offset)?;
    Ok((offset, m.read_value(&selector)? as u16))
}

fn jmp_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (offset, selector) = immediate::<W>(op);
    jump(m, selector, offset)
}

fn jmp_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (offset, selector) = load_pointer::<W>(m, op)?;
    jump(m, selector, offset)
}

fn jump(m: &mut Machine<'_, '_>, selector: u16, offset: u64) -> Step {
    if !m.is_real() {
        return far_protected::jmp(m, selector, offset);
    }
    let cs = target(m, selector, offset)?;
    go(m, cs, offset);
    Ok(())
}

fn call_i<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let (offset, selector) = immediate::<W>(op);
    if !m.is_real() {
        return far_protected::call::<W>(m, selector, offset);
    }
    let frame = prepare_frame::<W>(m)?;
    call::<W>(m, frame, selector, offset)
}

fn call_m<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let pointer = prepare_two::<W, u16>(m, op)?;
    if !m.is_real() {
        let (offset, selector) = read_pointer(m, pointer)?;
        return far_protected::call::<W>(m, selector, offset);
    }
    let frame = prepare_frame::<W>(m)?;
    let (offset, selector) = read_pointer(m, pointer)?;
    call::<W>(m, frame, selector, offset)
}

/// The places of CS and RIP below the stack pointer.
fn prepare_frame<'m, W: Width>(m: &mut Machine<'_, 'm>) -> Result<[Operand<'m>; 2], Leave> {
    let ss = SegReg::Ss as u8;
    let width = W::BYTES as i64;
    let (cs_at, ip_at) = (m.stack_offset(-width), m.stack_offset(-2 * width));
    Ok([
        m.prepare(ss, cs_at, W::BYTES, Access::Write)?,
        m.prepare(ss, ip_at, W::BYTES, Access::Write)?,
    ])
}

/// Pushes CS, zero-extended, and RIP; then goes.
fn call<'m, W: Width>(
    m: &mut Machine<'_, 'm>,
    [cs_place, ip_place]: [Operand<'m>; 2],
    selector: u16,
    offset: u64,
) -> Step {
    let cs = target(m, selector, offset)?;
    let old = u64::from(m.cpu.segment(SegReg::Cs).selector);
    m.write_value(&cs_place, W::from_u64(old))?;
    m.write_value(&ip_place, W::from_u64(m.cpu.rip))?;
    m.set_stack_offset(m.stack_offset(-2 * W::BYTES as i64));
    go(m, cs, offset);
    Ok(())
}

/// Where CS is among the values that a far return pops.
const CS_SLOT: usize = 1;

/// The values on top of the stack, lowest first; CS is the second. All are prepared before the
/// first is read.
fn top<W: Width, const N: usize>(m: &mut Machine<'_, '_>) -> Result<[u64; N], Leave> {
    let ss = SegReg::Ss as u8;
    for i in 0..N {
        let offset = m.stack_offset((i * W::BYTES) as i64);
        let size = if i == CS_SLOT { m.selector_bytes(W::BYTES) } else { W::BYTES };
        m.prepare(ss, offset, size, Access::Read)?;
    }
    let mut values = [0; N];
    for (i, value) in values.iter_mut().enumerate() {
        let above = (i * W::BYTES) as i64;
        *value = match i {
            CS_SLOT => u64::from(m.peek_selector::<W>(above)?),
            _ => m.peek::<W>(above)?.to_u64(),
        };
    }
    Ok(values)
}

fn ret<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    if !m.is_real() {
        return far_protected::ret::<W>(m, op.imm);
    }
    let [offset, selector] = top::<W, 2>(m)?;
    let cs = target(m, selector as u16, offset)?;
    m.set_stack_offset(m.stack_offset(2 * W::BYTES as i64 + op.imm as i64));
    go(m, cs, offset);
    Ok(())
}

/// IRET. NMIs are let in again by an IRET that succeeds, not by one that faults.
fn iret<W: Width>(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.intercept(Intercepted::Iret)?;
    if !m.is_real() {
        return far_protected::iret::<W>(m);
    }
    let is_virtual = m.cpu.is_virtual_8086();
    if is_virtual {
        virtual_8086::require_flags::<W>(m)?;
    }
    let [offset, selector, image] = top::<W, 3>(m)?;
    let flags = if is_virtual {
        virtual_8086::popped_flags::<W>(m, image)?
    } else {
        // SDM vol. 2A, "IRET": the 32-bit form can set RF, and keeps VM, VIF and VIP.
        let kept = if W::BYTES == 2 { !0xFFFF } else { VM | VIF | VIP };
        m.profile.canonical_flags(m.rflags() & kept | image & !kept)
    };
    let cs = target(m, selector as u16, offset)?;
    m.set_stack_offset(m.stack_offset(3 * W::BYTES as i64));
    go(m, cs, offset);
    m.set_rflags(flags);
    m.keep_rf = W::BYTES != 2;
    m.cpu.nmi_blocked = false;
    m.epoch_stale = true;
    Ok(())
}

fn software_interrupt(m: &mut Machine<'_, '_>, vector: u8) -> Step {
    m.intercept(Intercepted::SoftwareInterrupt)?;
    m.deliver_software(vector, Origin::Software)
}

fn int(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let vector = op.imm as u8;
    if m.cpu.is_virtual_8086() {
        m.intercept(Intercepted::SoftwareInterrupt)?;
        return virtual_8086::interrupt(m, vector);
    }
    software_interrupt(m, vector)
}

fn int3(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    software_interrupt(m, vector::BP)
}

fn into(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    if m.flags.of() { software_interrupt(m, vector::OF) } else { Ok(()) }
}

/// INT1 is #DB with DR6 as it was. Like every #DB it opens the debug registers to its handler. Its
/// gate's DPL is not checked, and a fault in its delivery has EXT (SDM vol. 2A, "INT n").
fn int1(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.intercept(Intercepted::SoftwareInterrupt)?;
    m.deliver_software(vector::DB, Origin::External)?;
    m.enter_debug_handler();
    Ok(())
}

/// BOUND: the register against two signed bounds in memory, both inclusive.
fn bound<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let index = W::read(&m.cpu.gpr, op.reg).to_i64();
    let [lower, upper] = match m.profile.vendor {
        Vendor::Amd => {
            let [lower, upper] = prepare_two::<W, W>(m, op)?;
            [W::from_u64(m.read_value(&lower)?), W::from_u64(m.read_value(&upper)?)]
        }
        Vendor::Intel => {
            // An index below the lower bound is not held against the upper one (seen on Raptor
            // Cove).
            let lower = m.load::<W>(op)?;
            if index < lower.to_i64() {
                return Err(Fault::BR.into());
            }
            [lower, m.load_at::<W>(op.seg, second_offset::<W>(m, op))?]
        }
    };
    if index < lower.to_i64() || index > upper.to_i64() {
        return Err(Fault::BR.into());
    }
    Ok(())
}
