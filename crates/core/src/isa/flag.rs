//! Single flags: CLC STC CMC, CLD STD, CLI STI.

use crate::arch::rflags::{CF, DF, IF, VIF, VIP};
use crate::fault::Fault;
use crate::isa::row::{Row, one};
use crate::machine::{Leave, Machine, Step};
use crate::op::Op;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    one("CMC", 0xF5, &[]).changes(CF).handler(cmc),
    one("CLC", 0xF8, &[]).changes(CF).handler(clc),
    one("STC", 0xF9, &[]).changes(CF).handler(stc),
    one("CLI", 0xFA, &[]).handler(cli).changes_validity(),
    one("STI", 0xFB, &[]).handler(sti).changes_validity(),
    one("CLD", 0xFC, &[]).handler(cld),
    one("STD", 0xFD, &[]).handler(std),
];

fn cmc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.flags = m.flags.with_cf(!m.flags.cf());
    Ok(())
}

fn clc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.flags = m.flags.with_cf(false);
    Ok(())
}

fn stc(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.flags = m.flags.with_cf(true);
    Ok(())
}

fn cld(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.cpu.rflags &= !DF;
    Ok(())
}

fn std(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.cpu.rflags |= DF;
    Ok(())
}

fn cli(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let flag = interrupt_flag(m)?;
    m.cpu.rflags &= !flag;
    Ok(())
}

fn sti(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    let flag = interrupt_flag(m)?;
    // SDM vol. 2B, "STI": with VIP set, enabling virtual interrupts is #GP.
    if flag == VIF && m.cpu.rflags & VIP != 0 {
        return Err(Fault::GP.into());
    }
    if m.cpu.rflags & flag != 0 {
        return Ok(());
    }
    // A virtual interrupt flag casts no shadow; neither does an IF that was set before.
    m.casts.sti = flag == IF;
    m.cpu.rflags |= flag;
    m.attention = true;
    Ok(())
}

/// The flag that CLI and STI act on: IF, or VIF where the mode gives the guest a virtual one
/// (SDM vol. 2A, "CLI", "Decision Table for CLI Results").
fn interrupt_flag(m: &Machine<'_, '_>) -> Result<u64, Leave> {
    let cpu = &*m.cpu;
    let cpl = cpu.cpl();
    if cpu.is_real_mode() || cpl <= cpu.iopl() {
        return Ok(IF);
    }
    if m.has_vme() || m.has_pvi() { Ok(VIF) } else { Err(Fault::GP.into()) }
}
