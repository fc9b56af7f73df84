//! The state of x87, MMX, SSE and AVX: its moves, and its images in memory.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use crate::native::long_guest;
use realmode::arch::control::*;
use realmode::*;

/// Where operands lie.
const DATA: u64 = 0x3000;
const LOW: u64 = 0x0706_0504_0302_0100;
const HIGH: u64 = 0x0F0E_0D0C_0B0A_0908;

/// A guest in 64-bit code that may use all of it. RBX is DATA, where sixteen bytes 0 to 15 lie.
fn guest(code: &[u8]) -> Guest {
    let mut guest = long_guest(&Profile::INTEL);
    guest.poke(CODE, code);
    guest.cpu.rip = CODE;
    guest.cpu.cr4 |= CR4_OSFXSR | CR4_OSXSAVE | CR4_OSXMMEXCPT;
    guest.cpu.cr0 = guest.cpu.cr0 & !(CR0_EM | CR0_TS) | CR0_PE | CR0_NE;
    guest.cpu.xcr0 = 7;
    guest.cpu.gpr[Reg::Rbx] = DATA;
    guest.poke(DATA, &LOW.to_le_bytes());
    guest.poke(DATA + 8, &HIGH.to_le_bytes());
    let fpu = &mut guest.cpu.fpu;
    for i in 0..16 {
        fpu.xmm[i] = [0x1111 * i as u64, 0x2222 * i as u64];
        fpu.ymm_high[i] = [0x3333, 0x4444];
    }
    guest.policy.exceptions = u32::MAX;
    guest
}

fn done(code: &[u8]) -> Guest {
    let mut guest = guest(code);
    assert_eq!(guest.run(1), Stop::Budget, "{code:02x?}");
    assert_eq!(guest.cpu.rip, CODE + code.len() as u64);
    guest
}

fn raises(mut guest: Guest, fault: Fault) {
    let before = guest.cpu.clone();
    assert_eq!(guest.run(1), Stop::Exception(fault));
    assert_eq!(guest.cpu, before);
}

#[test]
fn loads_keep_or_clear_what_they_do_not_load() {
    const OLD: [u64; 2] = [0x1111, 0x2222];
    // movups, movss, movsd, movlps, movhps, movq, movd, movntdqa, lddqu xmm1, [rbx]
    for (code, expected) in [
        (&[0x0F, 0x10, 0x0B][..], [LOW, HIGH]),
        (&[0xF3, 0x0F, 0x10, 0x0B], [LOW & 0xFFFF_FFFF, 0]),
        (&[0xF2, 0x0F, 0x10, 0x0B], [LOW, 0]),
        (&[0x0F, 0x12, 0x0B], [LOW, OLD[1]]),
        (&[0x0F, 0x16, 0x0B], [OLD[0], LOW]),
        (&[0xF3, 0x0F, 0x7E, 0x0B], [LOW, 0]),
        (&[0x66, 0x0F, 0x6E, 0x0B], [LOW & 0xFFFF_FFFF, 0]),
        (&[0x66, 0x48, 0x0F, 0x6E, 0x0B], [LOW, 0]),
        (&[0x66, 0x0F, 0x38, 0x2A, 0x0B], [LOW, HIGH]),
        (&[0xF2, 0x0F, 0xF0, 0x0B], [LOW, HIGH]),
        (&[0x66, 0x0F, 0x6F, 0x0B], [LOW, HIGH]),
    ] {
        let guest = done(code);
        assert_eq!(guest.cpu.fpu.xmm[1], expected, "{code:02x?}");
        assert_eq!(guest.cpu.fpu.ymm_high[1], [0x3333, 0x4444], "SSE leaves it alone");
    }
}

#[test]
fn moves_between_registers_move_their_part() {
    // xmm1 = [1111, 2222], xmm2 = [2222, 4444]; movss, movsd, movhlps, movlhps, movaps, movq
    for (code, to, expected) in [
        (&[0xF3, 0x0F, 0x10, 0xCA][..], 1, [0x2222, 0x2222]),
        (&[0xF2, 0x0F, 0x11, 0xCA], 2, [0x1111, 0x4444]),
        (&[0x0F, 0x12, 0xCA], 1, [0x4444, 0x2222]),
        (&[0x0F, 0x16, 0xCA], 1, [0x1111, 0x2222]),
        (&[0x0F, 0x29, 0xCA], 2, [0x1111, 0x2222]),
        (&[0x66, 0x0F, 0xD6, 0xCA], 2, [0x1111, 0]),
        (&[0x66, 0x45, 0x0F, 0x6F, 0xCA], 9, [0xAAAA, 0x1_5554]),
    ] {
        assert_eq!(done(code).cpu.fpu.xmm[to], expected, "{code:02x?}");
    }
    let to_general = done(&[0x66, 0x48, 0x0F, 0x7E, 0xC8]);
    assert_eq!(to_general.reg(Reg::Rax), 0x1111);
}

#[test]
fn stores_write_their_part_alone() {
    // movups, movss, movlps, movhps, movd [rbx+1], xmm2; movntps [rbx+10h], xmm2
    for (code, at, expected) in [
        (&[0x0F, 0x11, 0x53, 0x01][..], 1, &[0x22, 0x22, 0, 0, 0, 0, 0, 0, 0x44, 0x44][..]),
        (&[0xF3, 0x0F, 0x11, 0x53, 0x01], 1, &[0x22, 0x22, 0, 0, 5]),
        (&[0x0F, 0x13, 0x53, 0x01], 1, &[0x22, 0x22, 0, 0, 0, 0, 0, 0, 9]),
        (&[0x0F, 0x17, 0x53, 0x01], 1, &[0x44, 0x44, 0, 0, 0, 0, 0, 0, 9]),
        (&[0x66, 0x0F, 0x7E, 0x53, 0x01], 1, &[0x22, 0x22, 0, 0, 5]),
        (&[0x0F, 0x2B, 0x53, 0x10], 16, &[0x22, 0x22, 0, 0, 0, 0, 0, 0, 0x44, 0x44]),
    ] {
        assert_eq!(done(code).peek(DATA + at, expected.len()), expected, "{code:02x?}");
    }
}

#[test]
fn aligned_forms_fault_and_others_do_not() {
    for code in [[0x0F, 0x28, 0x4B, 0x08], [0x0F, 0x29, 0x4B, 0x08], [0x0F, 0x2B, 0x4B, 0x08]] {
        raises(guest(&code), Fault::GP);
    }
    done(&[0x0F, 0x10, 0x4B, 0x08]);
    // vmovaps ymm1, [rbx+10h] wants 32, vmovaps xmm1, [rbx+10h] has 16; vmovups takes anything.
    raises(guest(&[0xC5, 0xFC, 0x28, 0x4B, 0x10]), Fault::GP);
    done(&[0xC5, 0xF8, 0x28, 0x4B, 0x10]);
    done(&[0xC5, 0xFC, 0x10, 0x4B, 0x01]);
}

#[test]
fn avx_moves_clear_what_lies_above() {
    let wide = done(&[0xC5, 0xFC, 0x10, 0x0B]);
    assert_eq!((wide.cpu.fpu.xmm[1], wide.cpu.fpu.ymm_high[1]), ([LOW, HIGH], [0, 0]));
    let narrow = done(&[0xC5, 0xF8, 0x28, 0xCA]);
    assert_eq!((narrow.cpu.fpu.xmm[1], narrow.cpu.fpu.ymm_high[1]), ([0x2222, 0x4444], [0, 0]));
    let registers = done(&[0xC5, 0xFC, 0x28, 0xCA]);
    assert_eq!(registers.cpu.fpu.ymm_high[1], [0x3333, 0x4444]);
    // vmovss xmm1, xmm3, xmm2; vmovlps xmm1, xmm3, [rbx]; vmovhps xmm1, xmm3, [rbx]
    let merged = done(&[0xC5, 0xE2, 0x10, 0xCA]);
    assert_eq!((merged.cpu.fpu.xmm[1], merged.cpu.fpu.ymm_high[1]), ([0x2222, 0x6666], [0, 0]));
    assert_eq!(done(&[0xC5, 0xE0, 0x12, 0x0B]).cpu.fpu.xmm[1], [LOW, 0x6666]);
    assert_eq!(done(&[0xC5, 0xE0, 0x16, 0x0B]).cpu.fpu.xmm[1], [0x3333, LOW]);
    let stored = done(&[0xC5, 0xFC, 0x11, 0x0B]);
    assert_eq!(stored.peek(DATA + 16, 9), [0x33, 0x33, 0, 0, 0, 0, 0, 0, 0x44]);
    let zeroed = done(&[0xC5, 0xF8, 0x77]);
    assert!(zeroed.cpu.fpu.ymm_high == [[0; 2]; 16] && zeroed.cpu.fpu.xmm[1] == [0x1111, 0x2222]);
    assert_eq!(done(&[0xC5, 0xFC, 0x77]).cpu.fpu.xmm, [[0; 2]; 16]);
}

#[test]
fn p26_ud_and_nm_come_first_also_for_what_is_not_executed() {
    let with = |code: &[u8], change: fn(&mut Cpu)| {
        let mut guest = guest(code);
        change(&mut guest.cpu);
        guest
    };
    // movaps, addps: SSE; movq mm, paddb mm: MMX; vmovaps, vaddps: AVX.
    let sse: [&[u8]; 2] = [&[0x0F, 0x28, 0x4B, 0x08], &[0x0F, 0x58, 0x4B, 0x08]];
    let mmx: [&[u8]; 2] = [&[0x0F, 0x6F, 0x0B], &[0x0F, 0xFC, 0x0B]];
    let avx: [&[u8]; 2] = [&[0xC5, 0xFC, 0x28, 0x4B, 0x08], &[0xC5, 0xF4, 0x58, 0x0B]];
    for code in sse {
        raises(with(code, |cpu| cpu.cr0 |= CR0_EM | CR0_TS), Fault::UD);
        raises(with(code, |cpu| cpu.cr4 &= !CR4_OSFXSR), Fault::UD);
        raises(with(code, |cpu| cpu.cr0 |= CR0_TS), Fault::NM);
    }
    for code in mmx {
        raises(with(code, |cpu| cpu.cr0 |= CR0_EM | CR0_TS), Fault::UD);
        raises(with(code, |cpu| cpu.cr0 |= CR0_TS), Fault::NM);
        raises(with(code, |cpu| cpu.fpu.status |= 0x80), Fault::MF);
    }
    for code in avx {
        raises(with(code, |cpu| cpu.cr4 &= !CR4_OSXSAVE), Fault::UD);
        raises(with(code, |cpu| cpu.xcr0 = 3), Fault::UD);
        raises(with(code, |cpu| cpu.cr0 |= CR0_TS), Fault::NM);
    }
    for code in [sse[1], mmx[1], avx[1]] {
        assert!(matches!(guest(code).run(1), Stop::Unimplemented(_)), "{code:02x?}");
    }
    // CR0.EM is #NM for FXSAVE.
    raises(with(&[0x0F, 0xAE, 0x03], |cpu| cpu.cr0 |= CR0_EM), Fault::NM);
    raises(with(&[0x0F, 0xAE, 0x23], |cpu| cpu.cr4 &= !CR4_OSXSAVE), Fault::UD);
}

#[test]
fn mmx_registers_are_the_physical_ones_of_the_stack() {
    let mut guest = guest(&[0x0F, 0x6F, 0x0B, 0x0F, 0x7F, 0x4B, 0x10, 0x0F, 0x77]);
    guest.cpu.fpu.status = 3 << 11 | 0x41;
    guest.cpu.fpu.st = core::array::from_fn(|i| [i as u8; 10]);
    // movq mm1, [rbx]; movq [rbx+10h], mm1; emms
    assert_eq!(guest.run(1), Stop::Budget);
    let fpu = &guest.cpu.fpu;
    assert_eq!((fpu.status, fpu.tags), (0x41, 0xFF));
    assert_eq!(fpu.st[1], [0, 1, 2, 3, 4, 5, 6, 7, 0xFF, 0xFF]);
    // Physical register 3 was ST(0), and register 0 was ST(5).
    assert_eq!((fpu.st[3], fpu.st[0]), ([0; 10], [5; 10]));
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(guest.peek(DATA + 16, 8), LOW.to_le_bytes());
    assert_eq!(guest.cpu.fpu.tags, 0);
}

#[test]
fn m14_a_move_of_32_bytes_reaches_a_device_in_pieces() {
    let mut guest = guest(&[0xC5, 0xFC, 0x10, 0x0B]);
    guest.cpu.gpr[Reg::Rbx] = DEVICE;
    guest.bus.device[..32].copy_from_slice(&[0x5A; 32]);
    assert_eq!(guest.run(1), Stop::Budget);
    let pieces = [0, 8, 16, 24].map(|at| Seen::Read(DEVICE + at, 8));
    assert_eq!(guest.bus.seen, pieces);
    assert_eq!(guest.cpu.fpu.ymm_high[1], [0x5A5A_5A5A_5A5A_5A5A; 2]);
}

#[test]
fn mxcsr_has_no_reserved_bits() {
    let mut load = guest(&[0x0F, 0xAE, 0x13]);
    load.poke(DATA, &0x9FC0u32.to_le_bytes());
    assert_eq!(load.run(1), Stop::Budget);
    assert_eq!(load.cpu.fpu.mxcsr, 0x9FC0);
    let reserved = guest(&[0x0F, 0xAE, 0x13]);
    reserved.poke(DATA, &0x1_1F80u32.to_le_bytes());
    raises(reserved, Fault::GP);
    let stored = done(&[0xC5, 0xF8, 0xAE, 0x1B]);
    assert_eq!(stored.peek(DATA, 4), 0x1F80u32.to_le_bytes());
}

#[test]
fn a20_fxsave_writes_no_more_than_the_mode_has() {
    let end = |guest: &mut Guest| {
        guest.poke(DATA, &[0xEE; 512]);
        guest.cpu.fpu.xmm = [[u64::MAX; 2]; 16];
        assert_eq!(guest.run(1), Stop::Budget);
        let bytes = guest.peek(DATA, 512);
        512 - bytes.iter().rev().take_while(|byte| **byte == 0xEE).count()
    };
    assert_eq!(end(&mut guest(&[0x0F, 0xAE, 0x03])), 416);
    let mut compatible = guest(&[0x0F, 0xAE, 0x03]);
    compatible.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0xC09B);
    compatible.cpu.seg[SegReg::Ds as usize].attributes = Attributes(0xC093);
    compatible.cpu.seg[SegReg::Ds as usize].limit = u32::MAX;
    assert_eq!(end(&mut compatible), 288);
    let mut unaware = guest(&[0x0F, 0xAE, 0x03]);
    unaware.cpu.cr4 &= !CR4_OSFXSR;
    assert_eq!(end(&mut unaware), 160);
    raises(guest(&[0x0F, 0xAE, 0x43, 0x08]), Fault::GP);
    let reserved = guest(&[0x0F, 0xAE, 0x0B]);
    reserved.poke(DATA, &[0; 512]);
    reserved.poke(DATA + 26, &[1]);
    raises(reserved, Fault::GP);
}

/// An image that a processor can have come to.
fn image(fill: u8) -> [u8; 512] {
    let mut image: [u8; 512] = core::array::from_fn(|i| (i as u8).wrapping_mul(37) ^ fill);
    // Every other one leaves an exception unmasked.
    let control = if fill & 1 != 0 { 0x0270u16 } else { 0x027F };
    image[0..2].copy_from_slice(&control.to_le_bytes());
    image[2..4].copy_from_slice(&(0x3821u16 ^ u16::from(fill) << 8 & 0x4700).to_le_bytes());
    // Canonical pointers: parts may extend bit 47.
    for end in [14, 22] {
        image[end - 1] &= 0x7F;
        image[end..end + 2].fill(0);
    }
    image[24..28].copy_from_slice(&0x5F80u32.to_le_bytes());
    image
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod host {
    use super::*;
    use crate::native::fxsave;

    #[test]
    fn fxrstor_and_fxsave_do_what_the_host_does() {
        for fill in [0, 0x55, 0xAA, 0xFF] {
            let image = image(fill);
            // fxrstor64 [rbx]; fxsave64 [rbx+200h]
            let code = [0x48, 0x0F, 0xAE, 0x0B, 0x48, 0x0F, 0xAE, 0x83, 0, 2, 0, 0];
            let mut guest = guest(&code);
            if is_x86_feature_detected!("sse4a") {
                guest.profile = Profile::AMD;
            }
            guest.poke(DATA, &image);
            guest.poke(DATA + 512, &[0xEE; 512]);
            assert_eq!(guest.run(2), Stop::Budget);
            let (ours, theirs) = (guest.peek(DATA + 512, 512), fxsave(&image));
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                assert_eq!(*ours, theirs, "byte {at} with {fill:x}");
            }
        }
    }
}

#[test]
fn xsave_writes_what_is_asked_for_and_says_what_is_in_use() {
    let mut all = guest(&[0x48, 0x0F, 0xAE, 0x23]);
    all.poke(DATA, &[0xEE; 1024]);
    all.poke(DATA + 512, &[0xF8, 0, 0, 0, 0, 0, 0, 0]);
    (all.cpu.gpr[Reg::Rax], all.cpu.gpr[Reg::Rdx]) = (u64::MAX, u64::MAX);
    assert_eq!(all.run(1), Stop::Budget);
    assert_eq!(all.peek(DATA + 512, 9), [0xFF, 0, 0, 0, 0, 0, 0, 0, 0xEE]);
    assert_eq!(all.peek(DATA + 576, 9), [0x33, 0x33, 0, 0, 0, 0, 0, 0, 0x44]);
    assert_eq!(all.peek(DATA + 832, 1), [0xEE]);
    let mut initial = guest(&[0x0F, 0xC7, 0x23]);
    initial.poke(DATA, &[0xEE; 1024]);
    initial.cpu.fpu.ymm_high = [[0; 2]; 16];
    (initial.cpu.gpr[Reg::Rax], initial.cpu.gpr[Reg::Rdx]) = (6, 0);
    assert_eq!(initial.run(1), Stop::Budget);
    // XSAVEC: SSE in use, AVX not; XCOMP_BV says both.
    assert_eq!(initial.peek(DATA + 512, 8), [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(initial.peek(DATA + 520, 8), [6, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!((initial.peek(DATA, 1), initial.peek(DATA + 576, 1)), (vec![0xEE], vec![0xEE]));
    raises(guest(&[0x0F, 0xAE, 0x63, 0x20]), Fault::GP);
}

#[test]
fn xrstor_brings_back_what_was_saved_and_initialises_the_rest() {
    // xsavec64 [rbx]; xrstor64 [rbx]
    for save in [[0x48, 0x0F, 0xC7, 0x23], [0x48, 0x0F, 0xAE, 0x23], [0x48, 0x0F, 0xAE, 0x33]] {
        let mut guest = guest(&[&save[..], &[0x48, 0x0F, 0xAE, 0x2B]].concat());
        guest.poke(DATA, &[0; 1024]);
        guest.cpu.gpr[Reg::Rax] = 7;
        guest.cpu.fpu.mxcsr = 0x3F80;
        guest.cpu.fpu.control = 0x27F;
        guest.cpu.fpu.st[3] = [9; 10];
        let saved = guest.cpu.fpu;
        assert_eq!(guest.run(1), Stop::Budget);
        guest.cpu.fpu = Fpu::RESET;
        assert_eq!(guest.run(1), Stop::Budget);
        assert_eq!(guest.cpu.fpu, saved, "{save:02x?}");
    }
    let mut nothing = guest(&[0x0F, 0xAE, 0x2B]);
    nothing.poke(DATA, &[0; 1024]);
    nothing.cpu.gpr[Reg::Rax] = 7;
    nothing.poke(DATA + 24, &0x3F80u32.to_le_bytes());
    assert_eq!(nothing.run(1), Stop::Budget);
    let fpu = &nothing.cpu.fpu;
    assert_eq!((fpu.control, fpu.tags, fpu.xmm[1], fpu.ymm_high[1]), (0x37F, 0, [0; 2], [0; 2]));
    assert_eq!(fpu.mxcsr, 0x3F80, "the standard form always has MXCSR");
}

#[test]
fn a_header_of_xrstor_has_to_be_sound() {
    let refused = |code: &[u8], header: &[u8]| {
        let mut guest = guest(code);
        guest.poke(DATA, &[0; 1024]);
        guest.poke(DATA + 512, header);
        guest.cpu.gpr[Reg::Rax] = 7;
        raises(guest, Fault::GP);
    };
    const XRSTOR: &[u8] = &[0x0F, 0xAE, 0x2B];
    const XRSTORS: &[u8] = &[0x0F, 0xC7, 0x1B];
    refused(XRSTOR, &[8]);
    refused(XRSTOR, &[0, 0, 0, 0, 0, 0, 0, 0, 1]);
    refused(XRSTOR, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    refused(XRSTOR, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x80]);
    refused(XRSTOR, &[0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x80]);
    refused(XRSTORS, &[0; 16]);
    let mut user = guest(XRSTORS);
    user.cpu.seg[SegReg::Ss as usize].attributes = Attributes(0xC0F3);
    raises(user, Fault::GP);
}
