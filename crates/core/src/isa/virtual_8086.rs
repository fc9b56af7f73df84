//! Virtual-8086 mode: what it is entered by, what its IOPL and the virtual-8086 mode extensions
//! (CR4.VME) make of PUSHF, POPF, IRET and INT n (SDM vol. 3B, "8086 Emulation"). Delivery out of
//! it is in `event/virtual_8086.rs`.

use crate::arch::descriptor::Segment;
use crate::arch::registers::{Reg, SegReg};
use crate::arch::rflags::{IF, IOPL, RF, TF, VIF, VIP, VM};
use crate::event::protected::Origin;
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Step};
use crate::width::Width;

/// The last offset of a segment.
const LIMIT: u64 = 0xFFFF;

/// May the program work on the interrupt flag itself?
fn has_iopl(m: &Machine<'_, '_>) -> bool {
    m.cpu.rflags & IOPL == IOPL
}

/// Is the flag that 16-bit instructions below IOPL 3 work on VIF? Without it they are #GP.
fn require_virtual_flag<W: Width>(m: &Machine<'_, '_>) -> Step {
    if W::BYTES == 2 && m.has_vme() { Ok(()) } else { Err(Fault::GP.into()) }
}

/// What PUSHF pushes (SDM vol. 2B, "PUSHF").
pub(crate) fn pushed_flags<W: Width>(m: &Machine<'_, '_>) -> Result<u64, Leave> {
    let flags = m.rflags() & !(RF | VM);
    if has_iopl(m) {
        return Ok(flags);
    }
    require_virtual_flag::<W>(m)?;
    Ok(virtual_image(flags))
}

/// Flags as a program with a virtual interrupt flag sees them: VIF as IF, and IOPL 3.
fn virtual_image(flags: u64) -> u64 {
    let interrupts = if flags & VIF != 0 { IF } else { 0 };
    flags & !IF | interrupts | IOPL
}

/// RFLAGS after POPF or IRET of this image (SDM vol. 2B, "POPF"; vol. 2A, "IRET":
/// RETURN-FROM-VIRTUAL-8086-MODE).
pub(crate) fn popped_flags<W: Width>(m: &Machine<'_, '_>, image: u64) -> Result<u64, Leave> {
    let old = m.rflags();
    let upper = if W::BYTES == 2 { !0xFFFF } else { 0 };
    let keep = VM | VIF | VIP | IOPL | upper;
    let new = old & keep | image & !keep;
    if has_iopl(m) {
        return Ok(m.profile.canonical_flags(new));
    }
    require_virtual_flag::<W>(m)?;
    if image & TF != 0 || image & IF != 0 && old & VIP != 0 {
        return Err(Fault::GP.into());
    }
    let virtual_flag = if image & IF != 0 { VIF } else { 0 };
    let new = new & !(IF | VIF) | old & IF | virtual_flag;
    Ok(m.profile.canonical_flags(new))
}

/// IRET and POPF below IOPL 3 are refused before they look at the stack, unless VIF serves them.
pub(crate) fn require_flags<W: Width>(m: &Machine<'_, '_>) -> Step {
    if has_iopl(m) { Ok(()) } else { require_virtual_flag::<W>(m) }
}

/// IRET of level 0 with VM in the image (SDM vol. 2A, "IRET": RETURN-TO-VIRTUAL-8086-MODE). Nine
/// doublewords are popped; nothing but the limit of CS can be wrong with them.
pub(crate) fn enter(m: &mut Machine<'_, '_>, offset: u64, selector: u16, image: u64) -> Step {
    let mut words = [0; 6];
    for (i, word) in words.iter_mut().enumerate() {
        *word = m.peek::<u32>(12 + 4 * i as i64)?.to_u64();
    }
    let [esp, ss, es, ds, fs, gs] = words;
    if offset > LIMIT {
        return Err(Fault::GP.into());
    }
    m.set_rflags(m.profile.canonical_flags(image));
    let others =
        [(SegReg::Ss, ss), (SegReg::Es, es), (SegReg::Ds, ds), (SegReg::Fs, fs), (SegReg::Gs, gs)];
    for (reg, selector) in others {
        m.commit_segment(reg, Segment::virtual_8086(selector as u16));
    }
    m.commit_segment(SegReg::Cs, Segment::virtual_8086(selector));
    m.cpu.gpr[Reg::Rsp] = esp;
    m.cpu.rip = offset;
    Ok(())
}

/// INT n (SDM vol. 3B, "Software Interrupt Handling Methods While in Virtual-8086 Mode"). Without
/// the extensions IOPL decides between the gate and #GP; with them the redirection bitmap can send
/// it to the program's own vector table.
pub(crate) fn interrupt(m: &mut Machine<'_, '_>, vector: u8) -> Step {
    if m.has_vme() && !m.is_monitored(vector)? {
        return redirect(m, vector);
    }
    if !has_iopl(m) {
        return Err(Fault::GP.into());
    }
    m.deliver_software(vector, Origin::Software)
}

/// Methods 5 and 6: as an 8086 does it, with VIF in IF's place below IOPL 3.
fn redirect(m: &mut Machine<'_, '_>, vector: u8) -> Step {
    let flags = m.rflags();
    let (image, cleared) = if has_iopl(m) { (flags, IF) } else { (virtual_image(flags), VIF) };
    m.deliver_through_vectors(vector, image)?;
    m.set_rflags(flags & !(TF | RF | cleared));
    m.no_trap = true;
    Ok(())
}
