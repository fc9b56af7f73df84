//! Control and debug registers, descriptor-table registers, TLB entries.

use crate::arch::control::*;
use crate::arch::cpuid::Features;
use crate::arch::descriptor::TableRegister;
use crate::arch::registers::SegReg;
use crate::arch::vector;
use crate::bus::{Access, Linear};
use crate::fault::Fault;
use crate::isa::operand::Operand::{Cd, Dd, Ew, Gy, Mb, Mdq, Ms, Mw, Rd, Rv};
use crate::isa::row::{Exec, Map, Prefix, Row, Size64, row, sized, two};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::Generation;
use crate::stop::Intercepted;
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // AMD: LOCK MOV CR0 is MOV CR8 outside 64-bit code.
    whole(two("MOV", 0x20, &[Rd, Cd])).needs(Features::CR8_LEGACY).lockable(r_cr8).handler(r_cr),
    whole(two("MOV", 0x22, &[Cd, Rd]))
        .needs(Features::CR8_LEGACY)
        .lockable(cr8_r)
        .handler(cr_r)
        .changes_validity(),
    whole(two("MOV", 0x20, &[Rd, Cd])).handler(r_cr),
    whole(two("MOV", 0x21, &[Rd, Dd])).handler(r_dr),
    whole(two("MOV", 0x22, &[Cd, Rd])).handler(cr_r).changes_validity(),
    whole(two("MOV", 0x23, &[Dd, Rd])).handler(dr_r).changes_validity(),
    // Test registers.
    two("MOV", 0x24, &[Rd, Dd]).until(Generation::I80486),
    two("MOV", 0x26, &[Dd, Rd]).until(Generation::I80486),
    table("SGDT", 0).handler(sgdt),
    table("SIDT", 1).handler(sidt),
    table("LGDT", 2).handler(lgdt).serialises(),
    table("LIDT", 3).handler(lidt).serialises(),
    // The memory form stores 16 bits, the register form the operand size.
    status(two("SMSW", 0x01, &[Mw]).digit(4)).handler(smsw_m),
    status(two("SMSW", 0x01, &[Rv]).register().digit(4)).exec(Exec::Sizes(&sized!(smsw_r))),
    status(two("LMSW", 0x01, &[Ew]).digit(6))
        .exec(Exec::Forms(&[lmsw_r as Handler, lmsw_m as Handler]))
        .changes_validity(),
    status(two("CLTS", 0x06, &[])).handler(clts).changes_validity(),
    two("INVLPG", 0x01, &[Mb]).digit(7).since(Generation::I80486).handler(invlpg).serialises(),
    row(Map::M0F38, "INVPCID", 0x82, &[Gy, Mdq])
        .prefix(Prefix::P66)
        .size64(Size64::Force64)
        .needs(Features::INVPCID)
        .handler(invpcid)
        .serialises(),
];

/// 32 bits, or 64 in 64-bit code, whatever the prefixes say.
const fn whole(row: Row) -> Row {
    row.size64(Size64::Force64)
}

const fn table(name: &'static str, digit: u8) -> Row {
    whole(two(name, 0x01, &[Ms]).digit(digit)).since(Generation::I80286)
}

const fn status(row: Row) -> Row {
    row.since(Generation::I80286)
}

const GP: Leave = Leave::Fault(Fault::GP);

/// The register operand of a MOV CR or DR.
fn source(m: &Machine<'_, '_>, op: &Op) -> u64 {
    let value = m.cpu.gpr.slot(op.rm);
    if op.width == 8 { value } else { value & 0xFFFF_FFFF }
}

fn write_destination(m: &mut Machine<'_, '_>, op: &Op, value: u64) {
    *m.cpu.gpr.slot_mut(op.rm) = if op.width == 8 { value } else { value & 0xFFFF_FFFF };
}

// ---- control registers ----

/// Which control registers there are; the others are #UD, before the privilege check.
fn require_control_register(m: &Machine<'_, '_>, number: u8) -> Step {
    match number {
        0 | 2 | 3 | 8 => Ok(()),
        // A 386 and the first 486s have no CR4.
        4 if m.profile.generation >= Generation::Modern => Ok(()),
        _ => Err(Fault::UD.into()),
    }
}

fn r_cr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_control_register(m, op.reg)?;
    m.require_cpl(0)?;
    let value = match op.reg {
        0 => m.cpu.cr0,
        2 => m.cpu.cr2,
        3 => m.cpu.cr3,
        4 => m.cpu.cr4,
        _ => m.cpu.cr8,
    };
    write_destination(m, op, value);
    Ok(())
}

fn cr_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_control_register(m, op.reg)?;
    m.require_cpl(0)?;
    let value = source(m, op);
    match op.reg {
        0 => {
            m.intercept(Intercepted::WriteCr0)?;
            write_cr0(m, value)?;
        }
        2 => m.cpu.cr2 = value,
        3 => {
            m.intercept(Intercepted::WriteCr3)?;
            write_cr3(m, value)?;
        }
        4 => {
            m.intercept(Intercepted::WriteCr4)?;
            write_cr4(m, value)?;
        }
        // SDM vol. 3A, "Serializing Instructions": MOV CR, with the exception of CR8.
        _ => return write_cr8(m, value),
    }
    m.epoch_stale = true;
    Ok(())
}

fn require_cr0_number(op: &Op) -> Step {
    if op.reg == 0 { Ok(()) } else { Err(Fault::UD.into()) }
}

fn r_cr8(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_cr0_number(op)?;
    r_cr(m, &Op { reg: 8, ..*op })
}

fn cr8_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_cr0_number(op)?;
    cr_r(m, &Op { reg: 8, ..*op })
}

/// The bits of CR0 that exist.
fn cr0_defined(generation: Generation) -> u64 {
    const STATUS: u64 = CR0_PE | CR0_MP | CR0_EM | CR0_TS;
    match generation {
        Generation::I8086 | Generation::I80186 | Generation::I80286 => STATUS,
        Generation::I80386 => STATUS | CR0_ET | CR0_PG,
        _ => STATUS | CR0_NE | CR0_WP | CR0_AM | CR0_NW | CR0_CD | CR0_PG,
    }
}

/// MOV CR0 (SDM vol. 3A, "Control Registers"). Undefined bits of the low half are ignored, those
/// of the high half are #GP; ET is fixed since the 486.
fn write_cr0(m: &mut Machine<'_, '_>, value: u64) -> Step {
    let old = m.cpu.cr0;
    let generation = m.profile.generation;
    let fixed = if generation >= Generation::I80486 { CR0_ET } else { 0 };
    let new = value & cr0_defined(generation) | fixed;
    let has = |bits: u64| new & bits == bits;
    let illegal = value >> 32 != 0
        || has(CR0_PG) && !has(CR0_PE)
        || has(CR0_NW) && !has(CR0_CD)
        || m.cpu.cr4 & CR4_CET != 0 && !has(CR0_WP);
    if illegal {
        return Err(GP);
    }
    let efer = if (old ^ new) & CR0_PG != 0 { efer_after(m, has(CR0_PG))? } else { m.cpu.msr.efer };
    let reloads = (old ^ new) & (CR0_PG | CR0_CD | CR0_NW) != 0;
    let is_pae = has(CR0_PG) && m.cpu.cr4 & CR4_PAE != 0 && efer & EFER_LMA == 0;
    if reloads && is_pae {
        m.cpu.pdpte = m.read_pdptes(m.cpu.cr3)?;
    }
    m.cpu.msr.efer = efer;
    commit_cr0(m, new);
    Ok(())
}

/// EFER after paging goes on or off: LMA follows LME (SDM vol. 3A, "Initializing IA-32e Mode").
fn efer_after(m: &Machine<'_, '_>, paging: bool) -> Result<u64, Leave> {
    let efer = m.cpu.msr.efer;
    let long_code = m.cpu.segment(SegReg::Cs).attributes.is_long();
    if !paging {
        if m.cpu.is_64_bit_code() || m.cpu.cr4 & CR4_PCIDE != 0 {
            return Err(GP);
        }
        return Ok(efer & !EFER_LMA);
    }
    if efer & EFER_LME == 0 {
        return Ok(efer);
    }
    // SDM vol. 3A, "Initializing IA-32e Mode": nor may TR hold a TSS of 16 bits.
    let has_286_task = matches!(m.cpu.tr.attributes.0 & 0x1F, 1 | 3);
    if m.cpu.cr4 & CR4_PAE == 0 || long_code || has_286_task {
        return Err(GP);
    }
    Ok(efer | EFER_LMA)
}

/// Puts CR0 in place. CS keeps its hidden part when PE changes, so that code runs on in the old
/// segment until it jumps.
fn commit_cr0(m: &mut Machine<'_, '_>, new: u64) {
    let changed = m.cpu.cr0 ^ new;
    m.cpu.cr0 = new;
    if changed & (CR0_PE | CR0_PG | CR0_WP) != 0 {
        m.forget_translations();
        m.refresh_mode();
        m.epoch_stale = true;
        m.attention = true;
    }
}

fn write_cr3(m: &mut Machine<'_, '_>, value: u64) -> Step {
    let mut value = value;
    if m.is_long_mode() {
        if m.cpu.cr4 & CR4_PCIDE != 0 {
            // Bit 63 says "flush nothing" and is not stored; flushing all the same is legal.
            value &= !(1 << 63);
        }
        if value >> m.profile.physical_bits != 0 {
            return Err(GP);
        }
    }
    m.load_cr3(value)
}

/// The bits of CR4 that the profile's features define.
fn cr4_defined(m: &Machine<'_, '_>) -> u64 {
    const BITS: [(u64, Features); 20] = [
        (CR4_VME | CR4_PVI, Features::VME),
        (CR4_TSD, Features::TSC),
        (CR4_DE, Features::DE),
        (CR4_PSE, Features::PSE),
        (CR4_PAE, Features::PAE),
        (CR4_MCE | CR4_PCE, Features::MSR),
        (CR4_PGE, Features::PGE),
        (CR4_OSFXSR, Features::FXSR),
        (CR4_OSXMMEXCPT, Features::SSE),
        (CR4_UMIP, Features::UMIP),
        (CR4_LA57, Features::LA57),
        (CR4_VMXE, Features::VMX),
        (CR4_SMXE, Features::SMX),
        (CR4_FSGSBASE, Features::FSGSBASE),
        (CR4_PCIDE, Features::PCID),
        (CR4_OSXSAVE, Features::XSAVE),
        (CR4_SMEP, Features::SMEP),
        (CR4_SMAP, Features::SMAP),
        (CR4_PKE, Features::PKU),
        (CR4_PKS, Features::PKS),
    ];
    let cet = m.profile.features.intersects(Features::CET_SS.union(Features::CET_IBT));
    let rest = if cet { CR4_CET } else { 0 };
    BITS.iter().fold(rest, |all, (bits, has)| if m.profile.has(*has) { all | bits } else { all })
}

fn write_cr4(m: &mut Machine<'_, '_>, value: u64) -> Step {
    let old = m.cpu.cr4;
    let changed = old ^ value;
    let long = m.is_long_mode();
    let sets_pcide = changed & value & CR4_PCIDE != 0;
    let illegal = value & !cr4_defined(m) != 0
        || long && (value & CR4_PAE == 0 || changed & CR4_LA57 != 0)
        || sets_pcide && (!long || m.cpu.cr3 & 0xFFF != 0)
        || value & CR4_CET != 0 && m.cpu.cr0 & CR0_WP == 0;
    if illegal {
        return Err(GP);
    }
    // SDM vol. 3A, "PDPTE Registers".
    let reloads = changed & (CR4_PAE | CR4_PGE | CR4_PSE | CR4_SMEP) != 0;
    if reloads && m.is_paged() && value & CR4_PAE != 0 && !long {
        m.cpu.pdpte = m.read_pdptes(m.cpu.cr3)?;
    }
    m.cpu.cr4 = value;
    if changed != 0 {
        m.forget_translations();
        m.refresh_mode();
    }
    Ok(())
}

fn write_cr8(m: &mut Machine<'_, '_>, value: u64) -> Step {
    if value > 15 {
        return Err(GP);
    }
    m.require_careful()?;
    m.cpu.cr8 = value;
    m.bus.task_priority(value as u8, &mut m.control);
    m.attention = true;
    Ok(())
}

/// SMSW tells user code about CR0 unless UMIP forbids it.
fn require_visible(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr4 & CR4_UMIP != 0 { m.require_cpl(0) } else { Ok(()) }
}

/// CR0 as SMSW shows it: a 286 reads ones in the bits that do not exist.
fn status_word(m: &Machine<'_, '_>) -> u64 {
    let absent = if m.profile.generation == Generation::I80286 { 0xFFF0 } else { 0 };
    m.cpu.cr0 | absent
}

fn smsw_r<W: Width>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_visible(m)?;
    W::from_u64(status_word(m)).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

fn smsw_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_visible(m)?;
    m.store(op, status_word(m) as u16)
}

fn lmsw_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let value = u16::read(&m.cpu.gpr, op.rm);
    lmsw(m, value)
}

fn lmsw_m(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    let value = m.load::<u16>(op)?;
    lmsw(m, value)
}

/// LMSW changes MP, EM and TS, and can set PE but not clear it.
fn lmsw(m: &mut Machine<'_, '_>, value: u16) -> Step {
    m.intercept(Intercepted::WriteCr0)?;
    const STATUS: u64 = CR0_MP | CR0_EM | CR0_TS;
    let new = m.cpu.cr0 & !STATUS | u64::from(value) & (STATUS | CR0_PE);
    commit_cr0(m, new);
    Ok(())
}

fn clts(m: &mut Machine<'_, '_>, _: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::WriteCr0)?;
    m.cpu.cr0 &= !CR0_TS;
    Ok(())
}

// ---- debug registers ----

/// The debug register that ModRM.reg names, with all that can forbid the access.
fn debug_register(m: &mut Machine<'_, '_>, op: &Op) -> Result<u8, Leave> {
    let number = match op.reg {
        4 | 5 if m.cpu.cr4 & CR4_DE != 0 => return Err(Fault::UD.into()),
        4 | 5 => op.reg + 2,
        0..=7 => op.reg,
        _ => return Err(Fault::UD.into()),
    };
    m.require_cpl(0)?;
    m.intercept(Intercepted::DebugRegister)?;
    if m.cpu.dr7 & DR7_GD != 0 {
        // SDM vol. 3B, "General-Detect Exception Condition": a fault, which DR6.BD explains.
        m.note_debug(DR6_BD);
        return Err(Fault::new(vector::DB).into());
    }
    Ok(number)
}

fn r_dr(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    let number = debug_register(m, op)?;
    let value = match m.cpu.dr.get(usize::from(number)) {
        Some(address) => *address,
        None if number == 6 => m.cpu.dr6,
        None => m.cpu.dr7,
    };
    write_destination(m, op, value);
    Ok(())
}

fn dr_r(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    /// BLD is bit 11: it is not offered, and reads as one. So does RTM where it is not.
    const DR6_WRITABLE: u64 = 0xE00F;
    /// Bits 12, 14 and 15 read as zero, and so does RTM where it is not offered.
    const DR7_WRITABLE: u64 = 0xFFFF_23FF;
    let number = debug_register(m, op)?;
    let value = source(m, op);
    if number >= 6 && value >> 32 != 0 {
        return Err(GP);
    }
    let (rtm6, rtm7) = if m.profile.has(Features::RTM) { (DR6_RTM, DR7_RTM) } else { (0, 0) };
    match m.cpu.dr.get_mut(usize::from(number)) {
        Some(address) => *address = value,
        None if number == 6 => {
            m.cpu.dr6 = value & (DR6_WRITABLE | rtm6) | DR6_RESET & !rtm6;
        }
        None => m.cpu.dr7 = value & (DR7_WRITABLE | rtm7) | DR7_RESET,
    }
    m.attention = true;
    Ok(())
}

// ---- descriptor tables ----

/// Reads the pseudo-descriptor of LGDT or LIDT. A 16-bit operand has a base of 24 bits.
fn load_table(m: &mut Machine<'_, '_>, op: &Op) -> Result<TableRegister, Leave> {
    m.require_cpl(0)?;
    m.intercept(Intercepted::DescriptorTable)?;
    let mut image = [0; 10];
    let size = table_size(op);
    let operand = m.prepare(op.seg, m.offset(op), size, Access::Read)?;
    m.read_operand(&operand, &mut image[..size])?;
    let [low, high, base @ ..] = image;
    let base = match op.width {
        2 => u64::from_le_bytes(base) & 0xFF_FFFF,
        4 => u64::from_le_bytes(base) & 0xFFFF_FFFF,
        _ => u64::from_le_bytes(base),
    };
    if !m.is_canonical(base) {
        return Err(GP);
    }
    Ok(TableRegister { limit: u16::from_le_bytes([low, high]), base })
}

/// A limit of 2 bytes, and a base of 4 or, in 64-bit code, 8.
fn table_size(op: &Op) -> usize {
    if op.width == 8 { 10 } else { 6 }
}

fn lgdt(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.cpu.gdtr = load_table(m, op)?;
    m.epoch_stale = true;
    Ok(())
}

fn lidt(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.cpu.idtr = load_table(m, op)?;
    m.epoch_stale = true;
    Ok(())
}

/// SGDT and SIDT write the whole base whatever the operand size. A 286, whose base has 24 bits,
/// writes ones above.
fn store_table(m: &mut Machine<'_, '_>, op: &Op, table: TableRegister) -> Step {
    require_visible(m)?;
    let mut base = table.base;
    if m.profile.generation == Generation::I80286 {
        base |= 0xFF00_0000;
    }
    let mut image = [0; 10];
    image[..2].copy_from_slice(&table.limit.to_le_bytes());
    image[2..].copy_from_slice(&base.to_le_bytes());
    let size = table_size(op);
    let operand = m.prepare(op.seg, m.offset(op), size, Access::Write)?;
    m.write_operand(&operand, &image[..size])
}

fn sgdt(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    store_table(m, op, m.cpu.gdtr)
}

fn sidt(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    store_table(m, op, m.cpu.idtr)
}

// ---- translations ----

/// INVLPG: no limit, no type, and nothing happens for an address that is not canonical.
fn invlpg(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Invlpg)?;
    let flat = m.cpu.is_64_bit_code() && op.seg < SegReg::Fs as u8;
    let base = match m.cpu.seg.get(usize::from(op.seg)) {
        Some(segment) if !flat => segment.base,
        _ => 0,
    };
    let linear = base.wrapping_add(m.offset(op)) & m.linear_mask;
    if m.is_canonical(linear) {
        m.flush_translation(linear);
        m.bus.invalidate(Some(Linear(linear)));
    }
    Ok(())
}

/// INVPCID. Every kind drops every translation, which is always allowed.
fn invpcid(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    m.require_cpl(0)?;
    m.intercept(Intercepted::Invlpg)?;
    let kind = m.cpu.gpr.slot(op.reg);
    let kind = if op.width == 8 { kind } else { kind & 0xFFFF_FFFF };
    let mut image = [0; 16];
    let operand = m.prepare(op.seg, m.offset(op), 16, Access::Read)?;
    m.read_operand(&operand, &mut image)?;
    let image = u128::from_le_bytes(image);
    let (pcid, linear) = (image as u64, (image >> 64) as u64);
    let names_pcid = kind <= 1;
    let illegal = kind > 3
        || pcid >> 12 != 0
        || names_pcid && pcid != 0 && m.cpu.cr4 & CR4_PCIDE == 0
        || kind == 0 && !m.is_canonical(linear);
    if illegal {
        return Err(GP);
    }
    m.forget_translations();
    m.epoch_stale = true;
    Ok(())
}
