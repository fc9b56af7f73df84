//! Flags, descriptor tables, control, debug and model-specific registers.

use realmode::Reg;
use realmode::arch::control::{
    CR0_AM, CR0_CD, CR0_EM, CR0_ET, CR0_MP, CR0_NE, CR0_NW, CR0_PE, CR0_PG, CR0_TS, CR0_WP, CR4_DE,
    DR7_GD, DR7_RESET,
};
use realmode::arch::msr;

use super::Maker;
use super::transfer::flags_image;

/// Flags pushed, popped and set.
pub(super) fn flags(m: &mut Maker) {
    let wide = m.operand_size();
    match m.random.below(8) {
        0 | 1 => m.code(&[0x9C]),
        2..5 => {
            let image = flags_image(m);
            m.on_stack(&[image], wide);
            m.code(&[0x9D]);
        }
        _ => {
            let opcode =
                m.pick(&[0xFA, 0xFB, 0xFA, 0xFB, 0xFC, 0xFD, 0xF5, 0xF8, 0xF9, 0x9E, 0x9F]);
            m.code(&[opcode]);
        }
    }
}

/// LGDT, LIDT, SGDT, SIDT, and what real mode does not have.
pub(super) fn table(m: &mut Maker) {
    m.operand_size();
    if m.one_in(8) {
        // SLDT, STR, LLDT, LTR.
        let (digit, rm) = (m.random.below(4) as u8, m.random.below(8) as u8);
        m.code(&[0x0F, 0x00, 0xC0 | digit << 3 | rm]);
        return;
    }
    let operand = m.operand();
    m.code(&[0x0F, 0x01]);
    let digit = m.random.below(4) as u8;
    m.modrm(&operand, digit);
}

/// MOV CR, SMSW, LMSW, CLTS.
pub(super) fn control(m: &mut Maker) {
    let status = CR0_MP | CR0_EM | CR0_TS | CR0_NE | CR0_WP | CR0_AM;
    m.case.cpu.cr0 = CR0_ET | m.random.next() & status;
    let rm = m.random.below(8) as u8;
    match m.random.below(10) {
        0..2 => {
            let reg = m.pick(&[0, 0, 2, 3, 4, 4, 1, 5, 6, 7]);
            let lock: &[u8] = m.pick(&[&[], &[], &[], &[], &[], &[], &[], &[0xF0]]);
            m.code(lock);
            m.code(&[0x0F, 0x20, 0xC0 | reg << 3 | rm]);
        }
        2..6 => {
            let reg = m.pick(&[0, 0, 0, 2, 3, 4, 4, 4, 1, 5, 6, 7]);
            let value = control_value(m, reg);
            m.case.cpu.gpr[GENERAL[usize::from(rm)]] = value;
            m.code(&[0x0F, 0x22, 0xC0 | reg << 3 | rm]);
        }
        6 => m.code(&[0x0F, 0x06]),
        number => {
            m.operand_size();
            let digit = if number == 7 { 4 } else { 6 };
            // LMSW that sets PE has a family of its own: what follows is protected mode.
            if m.one_in(2) {
                m.code(&[0x0F, 0x01, 0xC0 | digit << 3 | rm]);
            } else {
                let operand = m.operand();
                m.code(&[0x0F, 0x01]);
                m.modrm(&operand, digit);
            }
        }
    }
}

/// The general registers in encoding order.
const GENERAL: [Reg; 8] =
    [Reg::Rax, Reg::Rcx, Reg::Rdx, Reg::Rbx, Reg::Rsp, Reg::Rbp, Reg::Rsi, Reg::Rdi];

fn control_value(m: &mut Maker, register: u8) -> u64 {
    let value = u64::from(m.value());
    let random = &mut m.random;
    match register {
        0 => {
            let likely = CR0_MP | CR0_EM | CR0_TS | CR0_NE | CR0_WP | CR0_AM | CR0_CD | CR0_NW;
            let mut value = if random.one_in(4) { value } else { value & likely };
            if !random.one_in(8) {
                value &= !CR0_PE;
            }
            if !random.one_in(8) {
                value &= !CR0_PG;
            }
            value
        }
        // One or two bits: of many one does not exist.
        4 => 1 << random.below(25) | if random.one_in(2) { 0 } else { 1 << random.below(25) },
        _ => value,
    }
}

/// MOV DR.
pub(super) fn debug(m: &mut Maker) {
    for n in 0..4 {
        m.case.cpu.dr[n] = m.value().into();
    }
    if m.one_in(3) {
        m.case.cpu.cr4 |= CR4_DE;
    }
    if m.one_in(6) {
        m.case.cpu.dr7 = DR7_RESET | DR7_GD;
    }
    let (opcode, reg, rm) =
        (m.pick(&[0x21, 0x23]), m.random.below(8) as u8, m.random.below(8) as u8);
    m.code(&[0x0F, opcode, 0xC0 | reg << 3 | rm]);
}

/// RDMSR and WRMSR.
pub(super) fn model_specific(m: &mut Maker) {
    const KNOWN: [u32; 14] = [
        msr::IA32_SYSENTER_CS,
        msr::IA32_SYSENTER_ESP,
        msr::IA32_SYSENTER_EIP,
        msr::IA32_PAT,
        msr::EFER,
        msr::STAR,
        msr::LSTAR,
        msr::CSTAR,
        msr::FMASK,
        msr::FS_BASE,
        msr::GS_BASE,
        msr::KERNEL_GS_BASE,
        msr::TSC_AUX,
        msr::IA32_DEBUGCTL,
    ];
    let values: [u64; 5] = core::array::from_fn(|_| u64::from(m.value()));
    let msr = &mut m.case.cpu.msr;
    [msr.sysenter_cs, msr.sysenter_esp, msr.sysenter_eip, msr.star, msr.fmask] = values;
    let index =
        if m.one_in(6) { m.pick(&[0x4000_0F00, 0xC000_0FFF, 0x0F00_0000]) } else { m.pick(&KNOWN) };
    let random = &mut m.random;
    let high = match random.below(4) {
        0 => random.next() as u32,
        1 => 0xFFFF_FFFF,
        _ => 0,
    };
    let low = match index {
        msr::EFER => random.pick(&[0, 1, 0x100, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x901, 2]),
        msr::IA32_DEBUGCTL => 1 << random.below(16),
        msr::IA32_PAT => random.pick(&[0x0007_0406, 0x0600_0401, 0x0002_0406, 0x0307_0406]),
        _ => random.next() as u32,
    };
    let gpr = &mut m.case.cpu.gpr;
    (gpr[Reg::Rcx], gpr[Reg::Rdx], gpr[Reg::Rax]) = (index.into(), high.into(), low.into());
    let opcode = m.pick(&[0x30, 0x32]);
    m.code(&[0x0F, opcode]);
}

/// HLT, cache and TLB control, and what only other modes have.
pub(super) fn power(m: &mut Maker) {
    match m.random.below(8) {
        0..3 => m.code(&[0xF4]),
        3 => {
            let operand = m.operand();
            m.code(&[0x0F, 0x01]);
            m.modrm(&operand, 7);
        }
        _ => {
            let code: &[u8] = m.pick(&[
                &[0x0F, 0x08],
                &[0x0F, 0x09],
                &[0x90],
                &[0xF3, 0x90],
                &[0x0F, 0x05],
                &[0x0F, 0x34],
                &[0x0F, 0x35],
                &[0x0F, 0xAA],
                &[0x0F, 0x33],
            ]);
            m.code(code);
        }
    }
}
