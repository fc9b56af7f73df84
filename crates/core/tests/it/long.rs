//! Long mode, without the tables: delivery through 16-byte gates, far transfers between code of
//! 64, 32 and 16 bits, fast system calls. Paging is off although EFER.LMA is set: a state that no
//! processor enters, in which linear addresses are physical ones.

use crate::guest::{CODE, Guest};
use crate::protected::descriptor;
use realmode::arch::control::*;
use realmode::arch::rflags::{IF, NT, RF, TF};
use realmode::*;

const GDT: u64 = 0x5000;
const IDT: u64 = 0x8000;
const TSS: u64 = 0x6000;

const CODE64: u16 = 0x08;
const DATA: u16 = 0x10;
const USER32: u16 = 0x1B;
const USER_DATA: u16 = 0x23;
const USER64: u16 = 0x2B;
const CODE32: u16 = 0x30;
const TSS64: u16 = 0x38;
const BOTH: u16 = 0x48;
const GATE: u16 = 0x53;
const CODE16: u16 = 0x60;
const HANDLERS: u64 = 0x7000;

/// A gate or system descriptor of 16 bytes.
fn wide(low: [u8; 8], high: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low);
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

fn gate(selector: u16, offset: u64, access: u8, ist: u8) -> [u8; 16] {
    let low = offset & 0xFFFF
        | u64::from(selector) << 16
        | u64::from(ist) << 32
        | u64::from(access) << 40
        | (offset >> 16 & 0xFFFF) << 48;
    wide(low.to_le_bytes(), offset >> 32)
}

fn segment(selector: u16, attributes: u32) -> Segment {
    Segment { selector, base: 0, limit: u32::MAX, attributes: Attributes(attributes) }
}

/// A guest in 64-bit code at level 0 or 3. Gate n leads to HANDLERS + n, where a HLT is.
fn guest(level: u8, code: &[u8]) -> Guest {
    let mut guest = Guest::new(code);
    let table = [
        [0; 8],
        descriptor(0, 0xFFFFF, 0x9A, 0xA),
        descriptor(0, 0xFFFFF, 0x92, 0xC),
        descriptor(0, 0xFFFFF, 0xFA, 0xC),
        descriptor(0, 0xFFFFF, 0xF2, 0xC),
        descriptor(0, 0xFFFFF, 0xFA, 0xA),
        descriptor(0, 0xFFFFF, 0x9A, 0xC),
    ];
    for (i, entry) in table.iter().enumerate() {
        guest.poke(GDT + 8 * i as u64, entry);
    }
    guest.poke(GDT + 0x38, &wide(descriptor(TSS as u32, 0x67, 0x89, 0), 0));
    guest.poke(GDT + 0x48, &descriptor(0, 0xFFFFF, 0x1A, 0xE));
    guest.poke(GDT + 0x50, &gate(CODE64, 0x2000, 0xEC, 0));
    guest.poke(GDT + 0x60, &descriptor(0, 0xFFFF, 0x9A, 0));
    for vector in 0..64u64 {
        guest.poke(IDT + 16 * vector, &gate(CODE64, HANDLERS + vector, 0x8E, 0));
    }
    guest.poke(HANDLERS, &[0xF4; 64]);
    guest.poke(TSS + 4, &0x4000u64.to_le_bytes());
    guest.poke(TSS + 0x24, &0x4808u64.to_le_bytes());
    let cpu = &mut guest.cpu;
    cpu.cr0 |= CR0_PE;
    cpu.cr4 |= CR4_PAE;
    cpu.msr.efer = EFER_LME | EFER_LMA | EFER_SCE;
    cpu.gdtr = TableRegister { base: GDT, limit: 0x67 };
    cpu.idtr = TableRegister { base: IDT, limit: 64 * 16 - 1 };
    cpu.tr = Segment { base: TSS, limit: 0x67, ..segment(TSS64, 0x8B) };
    let (code, data) = match level {
        0 => (segment(CODE64, 0xA09B), segment(DATA, 0xC093)),
        _ => (segment(USER64, 0xA0FB), segment(USER_DATA, 0xC0F3)),
    };
    cpu.seg = [data; 6];
    cpu.seg[SegReg::Cs as usize] = code;
    cpu.gpr[Reg::Rsp] = 0xF08;
    guest
}

fn selector(guest: &Guest, reg: SegReg) -> u16 {
    guest.cpu.seg[reg as usize].selector
}

/// The quadwords above RSP.
fn stacked<const N: usize>(guest: &Guest) -> [u64; N] {
    let rsp = guest.reg(Reg::Rsp);
    core::array::from_fn(|i| {
        u64::from_le_bytes(guest.peek(rsp + 8 * i as u64, 8).try_into().unwrap())
    })
}

/// Runs one instruction; it raises this exception and changes nothing.
fn refuses(guest: &mut Guest, fault: Fault) {
    guest.policy.exceptions = u32::MAX;
    let before = guest.cpu.clone();
    assert_eq!(guest.run(1), Stop::Exception(fault));
    assert_eq!(guest.cpu, before);
}

fn gp(code: u16) -> Fault {
    Fault::with_code(13, code)
}

// ---- delivery ----

#[test]
fn an_interrupt_at_the_same_level_aligns_its_frame_and_keeps_ss() {
    // int3
    let mut guest = guest(0, &[0xCC]);
    guest.cpu.rflags |= IF;
    guest.step();
    assert_eq!(guest.cpu.rip, HANDLERS + 3);
    assert_eq!(guest.reg(Reg::Rsp), 0xF00 - 40);
    assert_eq!(stacked(&guest), [CODE + 1, CODE64.into(), 0x202, 0xF08, DATA.into()]);
    assert_eq!((selector(&guest, SegReg::Ss), guest.cpu.rflags & IF), (DATA, 0));
}

#[test]
fn an_exception_from_level_3_takes_the_stack_of_the_tss_and_a_null_ss() {
    // ud2
    let mut guest = guest(3, &[0x0F, 0x0B]);
    guest.cpu.rflags |= IF | TF;
    guest.step();
    let flags = 0x302 | RF;
    assert_eq!(guest.cpu.rip, HANDLERS + 6);
    assert_eq!(guest.reg(Reg::Rsp), 0x4000 - 40);
    assert_eq!(stacked(&guest), [CODE, USER64.into(), flags, 0xF08, USER_DATA.into()]);
    assert_eq!((selector(&guest, SegReg::Ss), guest.cpu.cpl()), (0, 0));
    assert_eq!(guest.cpu.rflags & (IF | TF | RF | NT), 0);
}

#[test]
fn an_error_code_is_a_quadword_below_the_frame() {
    // mov ds, ax: a selector beyond the table
    let mut guest = guest(3, &[0x8E, 0xD8]).with(Reg::Rax, 0x1234);
    guest.step();
    let [code, rip, ..] = stacked::<6>(&guest);
    assert_eq!((guest.cpu.rip, code, rip), (HANDLERS + 13, 0x1234, CODE));
    assert_eq!(guest.reg(Reg::Rsp), 0x4000 - 48);
}

#[test]
fn a_gate_with_an_ist_uses_that_stack_at_any_level() {
    for level in [0, 3] {
        let mut guest = guest(level, &[0x0F, 0x0B]);
        guest.poke(IDT + 16 * 6, &gate(CODE64, HANDLERS + 6, 0x8F, 1));
        guest.cpu.rflags |= IF;
        let old = selector(&guest, SegReg::Ss);
        guest.step();
        assert_eq!(guest.reg(Reg::Rsp), 0x4800 - 40);
        assert_eq!(selector(&guest, SegReg::Ss), if level == 0 { old } else { 0 });
        // A trap gate.
        assert_ne!(guest.cpu.rflags & IF, 0);
    }
}

#[test]
fn what_a_gate_of_long_mode_must_be() {
    // Each with INT 20h at level 3.
    let cases: &[(&str, [u8; 16], Fault)] = &[
        ("DPL", gate(CODE64, HANDLERS, 0x8E, 0), gp(0x102)),
        ("a 16-bit type", gate(CODE64, HANDLERS, 0xE6, 0), gp(0x102)),
        ("a task gate", gate(CODE64, HANDLERS, 0xE5, 0), gp(0x102)),
        ("absent", gate(CODE64, HANDLERS, 0x6E, 0), Fault::with_code(11, 0x102)),
        ("null code", gate(0, HANDLERS, 0xEE, 0), gp(0)),
        ("32-bit code", gate(CODE32, HANDLERS, 0xEE, 0), gp(CODE32)),
        ("data", gate(DATA, HANDLERS, 0xEE, 0), gp(DATA)),
        ("L and D", gate(BOTH, HANDLERS, 0xEE, 0), gp(BOTH)),
        ("an offset", gate(CODE64, 0x8000_0000_0000, 0xEE, 0), gp(0)),
    ];
    for (what, gate, fault) in cases {
        let mut guest = guest(3, &[0xCD, 0x20]);
        guest.poke(IDT + 16 * 0x20, gate);
        guest.policy.exceptions = u32::MAX;
        assert_eq!(guest.run(1), Stop::Exception(*fault), "{what}");
    }
}

#[test]
fn an_entry_of_the_idt_has_16_bytes() {
    let mut guest = guest(0, &[0xCD, 0x20]);
    guest.cpu.idtr.limit = 16 * 0x20 + 14;
    refuses(&mut guest, gp(0x102));
}

#[test]
fn a_frame_that_is_not_canonical_is_a_stack_fault_and_a_short_tss_an_invalid_one() {
    let mut ill = guest(0, &[0xCC]);
    ill.cpu.gpr[Reg::Rsp] = 0x8000_0000_0010;
    refuses(&mut ill, Fault::SS);
    let mut short = guest(3, &[0xCD, 0x20]);
    short.poke(IDT + 16 * 0x20, &gate(CODE64, HANDLERS, 0xEE, 0));
    short.cpu.tr.limit = 10;
    refuses(&mut short, Fault::with_code(10, TSS64));
}

#[test]
fn an_interrupt_from_compatibility_mode_and_iretq_back() {
    // INT 20h, HLT in 32-bit code at level 3; IRETQ in the handler
    let mut guest = guest(3, &[0xCD, 0x20, 0x90]);
    guest.cpu.seg[SegReg::Cs as usize] = segment(USER32, 0xC0FB);
    guest.poke(IDT + 16 * 0x20, &gate(CODE64, 0x2000, 0xEE, 0));
    guest.poke(0x2000, &[0x48, 0xCF]);
    let before = guest.cpu.clone();
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!(stacked(&guest), [CODE + 2, USER32.into(), 2, 0xF08, USER_DATA.into()]);
    assert_eq!(guest.run(1), Stop::Budget);
    // The data segments that level 0 had were those of level 3.
    assert_eq!(guest.cpu, Cpu { rip: CODE + 2, ..before });
}

// ---- IRET ----

#[test]
fn iretq_pops_ss_and_rsp_at_the_same_level_too() {
    let mut guest = guest(0, &[0x48, 0xCF]);
    let frame = [0x3000, u64::from(CODE64), 0x202, 0xABC0, 0];
    for (i, word) in frame.into_iter().enumerate() {
        guest.poke(0xF08 + 8 * i as u64, &word.to_le_bytes());
    }
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x3000, 0xABC0));
    assert_eq!((selector(&guest, SegReg::Ss), guest.cpu.cpl()), (0, 0));
    assert_ne!(guest.cpu.rflags & IF, 0);
}

#[test]
fn what_iretq_refuses() {
    let cases: &[(&str, [u64; 5], Fault)] = &[
        ("a null CS", [0x3000, 3, 2, 0, 0x23], gp(0)),
        ("L and D", [0x3000, BOTH as u64, 2, 0, 0x10], gp(BOTH)),
        ("RIP", [1 << 47, CODE64 as u64, 2, 0, 0x10], gp(0)),
        ("a null SS for level 3", [0x3000, USER64 as u64, 2, 0, 3], gp(0)),
        ("a null SS of another RPL", [0x3000, CODE64 as u64, 2, 0, 1], gp(0)),
        ("a null SS for 32-bit code", [0x3000, CODE32 as u64, 2, 0, 0], gp(0)),
        ("SS of another level", [0x3000, USER64 as u64, 2, 0, DATA as u64], gp(DATA)),
    ];
    for (what, frame, fault) in cases {
        let mut guest = guest(0, &[0x48, 0xCF]);
        for (i, word) in frame.iter().enumerate() {
            guest.poke(0xF08 + 8 * i as u64, &word.to_le_bytes());
        }
        guest.policy.exceptions = u32::MAX;
        let before = guest.cpu.clone();
        assert_eq!(guest.run(1), Stop::Exception(*fault), "{what}");
        assert_eq!(guest.cpu, before, "{what}");
    }
    let mut nested = guest(0, &[0x48, 0xCF]);
    nested.cpu.rflags |= NT;
    refuses(&mut nested, gp(0));
}

// ---- far JMP, CALL, RET ----

#[test]
fn far_jumps_between_64_bit_code_and_compatibility_mode() {
    // jmp far [rip+0]
    let mut guest = guest(0, &[0xFF, 0x2D, 0, 0, 0, 0, 0x00, 0x30, 0, 0, 0x30, 0]);
    guest.step();
    assert_eq!((guest.cpu.rip, selector(&guest, SegReg::Cs)), (0x3000, CODE32));
    // jmp 8:2000 in 32-bit code
    guest.poke(0x3000, &[0xEA, 0, 0x20, 0, 0, 8, 0]);
    guest.step();
    assert_eq!((guest.cpu.rip, selector(&guest, SegReg::Cs)), (0x2000, CODE64));
    assert!(guest.cpu.is_64_bit_code());
}

#[test]
fn p02_l_with_d_comes_before_absence() {
    for pointer in [BOTH, TSS64] {
        let mut guest = guest(0, &[0xFF, 0x2D, 0, 0, 0, 0, 0, 0x30, 0, 0]);
        guest.poke(CODE + 10, &pointer.to_le_bytes());
        refuses(&mut guest, gp(pointer));
    }
}

#[test]
fn a_far_call_pushes_by_the_operand_size_and_retf_returns() {
    for (code, size) in [(&[0xFF, 0x1B][..], 4), (&[0x48, 0xFF, 0x1B], 8), (&[0x66, 0xFF, 0x1B], 2)]
    {
        let mut guest = guest(0, code).with(Reg::Rbx, 0x3800);
        // offset, selector
        guest.poke(0x3800, &0x2000u64.to_le_bytes());
        guest.poke(0x3800 + size, &CODE64.to_le_bytes());
        guest.step();
        assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x2000, 0xF08 - 2 * size));
        let mut back: Vec<u8> = code[..code.len() - 2].to_vec();
        back.push(0xCB);
        guest.poke(0x2000, &back);
        guest.step();
        assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (CODE + code.len() as u64, 0xF08));
    }
}

#[test]
fn amd_has_no_far_pointer_of_64_bits() {
    // REX.W is ignored: a pointer of 32 bits.
    let mut guest = guest(0, &[0x48, 0xFF, 0x1B]).with(Reg::Rbx, 0x3800);
    guest.profile = Profile::AMD;
    guest.poke(0x3800, &0x2000u32.to_le_bytes());
    guest.poke(0x3804, &CODE64.to_le_bytes());
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x2000, 0xF00));
}

#[test]
fn a_call_gate_leads_to_level_0_and_retfq_back() {
    // call far [rbx] through the gate; retfq
    let mut guest = guest(3, &[0xFF, 0x1B]).with(Reg::Rbx, 0x3800);
    guest.poke(0x3804, &GATE.to_le_bytes());
    guest.poke(0x2000, &[0x48, 0xCB]);
    let before = guest.cpu.clone();
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl(), selector(&guest, SegReg::Ss)), (0x2000, 0, 0));
    assert_eq!(guest.reg(Reg::Rsp), 0x4000 - 32);
    assert_eq!(stacked(&guest), [CODE + 2, USER64.into(), 0xF08, USER_DATA.into()]);
    guest.step();
    assert_eq!(guest.cpu, Cpu { rip: CODE + 2, ..before });
}

#[test]
fn what_a_call_gate_of_long_mode_must_be() {
    let cases: &[(&str, [u8; 16], Fault)] = &[
        (
            "the type above",
            wide(gate(CODE64, 0x2000, 0xEC, 0)[..8].try_into().unwrap(), 1 << 40),
            gp(0x50),
        ),
        ("DPL", gate(CODE64, 0x2000, 0x8C, 0), gp(0x50)),
        ("absent", gate(CODE64, 0x2000, 0x6C, 0), Fault::with_code(11, 0x50)),
        ("32-bit code", gate(CODE32, 0x2000, 0xEC, 0), gp(CODE32)),
        ("a 16-bit gate", gate(CODE64, 0x2000, 0xE4, 0), gp(0x50)),
        ("an offset", gate(CODE64, 1 << 47, 0xEC, 0), gp(0)),
    ];
    for (what, gate, fault) in cases {
        let mut guest = guest(3, &[0xFF, 0x1B]).with(Reg::Rbx, 0x3800);
        guest.poke(0x3804, &GATE.to_le_bytes());
        guest.poke(GDT + 0x50, gate);
        guest.policy.exceptions = u32::MAX;
        assert_eq!(guest.run(1), Stop::Exception(*fault), "{what}");
    }
    // Its second half lies beyond the table.
    let mut guest = guest(3, &[0xFF, 0x1B]).with(Reg::Rbx, 0x3800);
    guest.poke(0x3804, &GATE.to_le_bytes());
    guest.cpu.gdtr.limit = 0x57;
    refuses(&mut guest, gp(0x50));
}

#[test]
fn retf_to_an_outer_level_drops_the_segments_of_the_inner_one() {
    // retfq
    let mut guest = guest(0, &[0x48, 0xCB]);
    let frame = [0x3000, u64::from(USER32), 0xABC0, u64::from(USER_DATA)];
    for (i, word) in frame.into_iter().enumerate() {
        guest.poke(0xF08 + 8 * i as u64, &word.to_le_bytes());
    }
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl()), (0x3000, 3));
    assert_eq!(selector(&guest, SegReg::Ds), 0);
    assert_eq!(guest.reg(Reg::Rsp), 0xABC0);
}

#[test]
fn a_return_to_a_16_bit_stack_keeps_the_upper_bits_of_rsp() {
    let mut guest = guest(0, &[0x48, 0xCF]).with(Reg::Rsp, 0x1_0F08);
    guest.poke(GDT + 0x10, &descriptor(0, 0xFFFF, 0x92, 0));
    let frame = [0x3000, u64::from(CODE16), 2, 0x7777_ABC0, u64::from(DATA)];
    for (i, word) in frame.into_iter().enumerate() {
        guest.poke(0x1_0F08 + 8 * i as u64, &word.to_le_bytes());
    }
    guest.step();
    assert_eq!(guest.reg(Reg::Rsp), 0x1_ABC0);
}

#[test]
fn retf_into_64_bit_code_releases_by_the_whole_of_rsp() {
    // retf F800h of 32 bits, in 16-bit code with a 16-bit stack
    let mut guest = guest(0, &[0x66, 0xCA, 0x00, 0xF8]).with(Reg::Rsp, 0x1_0F08);
    *guest.cpu.segment_mut(SegReg::Cs) = Segment { limit: 0xFFFF, ..segment(CODE16, 0x9B) };
    *guest.cpu.segment_mut(SegReg::Ss) = Segment { limit: 0xFFFF, ..segment(DATA, 0x93) };
    guest.poke(0xF08, &0x3000u32.to_le_bytes());
    guest.poke(0xF0C, &u32::from(CODE64).to_le_bytes());
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x3000, 0x1_0F10 + 0xF800));
}

// ---- system segments ----

#[test]
fn p05_ltr_and_lldt_read_16_bytes_in_64_bit_code() {
    // ltr ax; lldt bx
    let code = [0x0F, 0x00, 0xD8, 0x0F, 0x00, 0xD3];
    let mut guest = guest(0, &code).with(Reg::Rax, 0x80).with(Reg::Rbx, 0x90);
    guest.cpu.gdtr.limit = 0x9F;
    guest.poke(GDT + 0x80, &wide(descriptor(0x1000, 0x67, 0x89, 0), 0xFFFF_8000));
    guest.poke(GDT + 0x90, &wide(descriptor(0x2000, 0xFF, 0x82, 0), 0x7FFF));
    guest.step();
    guest.step();
    assert_eq!(guest.cpu.tr.base, 0xFFFF_8000_0000_1000);
    assert_eq!(guest.cpu.ldtr.base, 0x7FFF_0000_2000);
    assert_eq!(guest.peek(GDT + 0x85, 1), [0x8B]);
}

#[test]
fn what_ltr_refuses_in_64_bit_code() {
    let tss = descriptor(0x1000, 0x67, 0x89, 0);
    let cases = [
        ("a base", wide(tss, 0x8000)),
        ("the type above", wide(tss, 1 << 40)),
        ("a 16-bit TSS", wide(descriptor(0, 0x2B, 0x81, 0), 0)),
    ];
    for (what, descriptor) in cases {
        let mut guest = guest(0, &[0x0F, 0x00, 0xD8]).with(Reg::Rax, 0x80);
        guest.cpu.gdtr.limit = 0x8F;
        guest.poke(GDT + 0x80, &descriptor);
        guest.policy.exceptions = u32::MAX;
        assert_eq!(guest.run(1), Stop::Exception(gp(0x80)), "{what}");
    }
    let mut guest = guest(0, &[0x0F, 0x00, 0xD8]).with(Reg::Rax, 0x80);
    guest.cpu.gdtr.limit = 0x87;
    guest.poke(GDT + 0x80, &tss);
    refuses(&mut guest, gp(0x80));
}

// ---- fast system calls ----

#[test]
fn syscall_and_sysret() {
    // syscall; at 2000: o64 sysret
    let mut guest = guest(3, &[0x0F, 0x05]);
    guest.cpu.msr.star = 0x0018_0008_0000_0000;
    guest.cpu.msr.lstar = 0x2000;
    guest.cpu.msr.fmask = IF;
    guest.cpu.rflags |= IF;
    guest.poke(0x2000, &[0x48, 0x0F, 0x07]);
    guest.step();
    assert_eq!(
        (guest.cpu.rip, guest.reg(Reg::Rcx), guest.reg(Reg::R11)),
        (0x2000, CODE + 2, 0x202)
    );
    assert_eq!((selector(&guest, SegReg::Cs), selector(&guest, SegReg::Ss)), (8, 0x10));
    assert_eq!((guest.cpu.cpl(), guest.cpu.rflags & IF), (0, 0));
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl(), guest.cpu.rflags), (CODE + 2, 3, 0x202));
    assert_eq!((selector(&guest, SegReg::Cs), selector(&guest, SegReg::Ss)), (USER64, USER_DATA));
}

#[test]
fn sysret_to_an_address_that_is_not_canonical_faults_before_it_on_intel_and_after_it_on_amd() {
    let code = &[0x48, 0x0F, 0x07];
    let mut intel = guest(0, code).with(Reg::Rcx, 1 << 47);
    refuses(&mut intel, gp(0));
    let mut amd = guest(0, code).with(Reg::Rcx, 1 << 47);
    amd.profile = Profile::AMD;
    amd.step();
    assert_eq!((amd.cpu.cpl(), amd.cpu.rip), (3, 1 << 47));
}

#[test]
fn p22_amds_sysret_keeps_what_ss_hides_but_for_the_level() {
    let mut guest = guest(0, &[0x48, 0x0F, 0x07]).with(Reg::Rcx, 0x3000);
    guest.profile = Profile::AMD;
    guest.cpu.msr.star = 0x0018 << 48;
    guest.cpu.seg[SegReg::Ss as usize].limit = 0x1234;
    guest.step();
    let ss = guest.cpu.seg[SegReg::Ss as usize];
    assert_eq!((ss.selector, ss.limit, ss.attributes.dpl()), (USER_DATA, 0x1234, 3));
}

#[test]
fn syscall_needs_sce_and_on_intel_64_bit_code() {
    let mut off = guest(3, &[0x0F, 0x05]);
    off.cpu.msr.efer &= !EFER_SCE;
    refuses(&mut off, Fault::UD);
    let mut compatible = guest(3, &[0x0F, 0x05]);
    compatible.cpu.seg[SegReg::Cs as usize] = segment(USER32, 0xC0FB);
    compatible.cpu.msr.cstar = 0x2000;
    compatible.cpu.msr.star = 8 << 32;
    let mut amd = Guest { cpu: compatible.cpu.clone(), ..guest(3, &[0x0F, 0x05]) };
    refuses(&mut compatible, Fault::UD);
    amd.profile = Profile::AMD;
    amd.step();
    assert_eq!((amd.cpu.rip, amd.cpu.is_64_bit_code()), (0x2000, true));
}

#[test]
fn sysenter_and_sysexit_in_both_widths() {
    let mut guest = guest(3, &[0x0F, 0x34]);
    guest.cpu.msr.sysenter_cs = 0x103;
    guest.cpu.msr.sysenter_eip = 0x2000;
    guest.cpu.msr.sysenter_esp = 0x9_0000_1000;
    guest.cpu.rflags |= IF;
    guest.poke(0x2000, &[0x48, 0x0F, 0x35]);
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x2000, 0x9_0000_1000));
    assert_eq!((selector(&guest, SegReg::Cs), selector(&guest, SegReg::Ss)), (0x100, 0x108));
    assert_eq!((guest.cpu.cpl(), guest.cpu.rflags & IF), (0, 0));
    guest.cpu.gpr[Reg::Rdx] = 0x3000;
    guest.cpu.gpr[Reg::Rcx] = 0x7000;
    let entered = guest.cpu.clone();
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp), guest.cpu.cpl()), (0x3000, 0x7000, 3));
    assert_eq!((selector(&guest, SegReg::Cs), selector(&guest, SegReg::Ss)), (0x123, 0x12B));
    guest.cpu = Cpu { rip: 0x2001, ..entered };
    guest.step();
    assert_eq!((selector(&guest, SegReg::Cs), guest.cpu.is_64_bit_code()), (0x113, false));
}

#[test]
fn sysenter_without_a_segment_and_sysexit_at_level_3_are_refused() {
    refuses(&mut guest(3, &[0x0F, 0x34]), gp(0));
    let mut outer = guest(3, &[0x0F, 0x35]);
    outer.cpu.msr.sysenter_cs = 0x100;
    refuses(&mut outer, gp(0));
    // AMD has neither in long mode.
    let mut amd = guest(3, &[0x0F, 0x34]);
    amd.profile = Profile::AMD;
    amd.cpu.msr.sysenter_cs = 0x100;
    refuses(&mut amd, Fault::UD);
    // As measured on Zen 3: the level comes before the mode.
    let mut outer_amd = guest(3, &[0x0F, 0x35]);
    outer_amd.profile = Profile::AMD;
    refuses(&mut outer_amd, gp(0));
}

// ---- addresses ----

#[test]
fn p23_only_fs_and_gs_have_a_base_in_64_bit_code() {
    // mov eax, es:[rbx]; mov ecx, fs:[rbx]
    let mut guest = guest(0, &[0x26, 0x8B, 0x03, 0x64, 0x8B, 0x0B]).with(Reg::Rbx, 0x3000);
    for reg in [SegReg::Es, SegReg::Fs] {
        guest.cpu.seg[reg as usize].base = 0x800;
        guest.cpu.seg[reg as usize].limit = 0;
    }
    guest.poke(0x3000, &[1]);
    guest.poke(0x3800, &[2]);
    guest.step();
    guest.step();
    assert_eq!((guest.reg(Reg::Rax), guest.reg(Reg::Rcx)), (1, 2));
}

#[test]
fn p29_a_table_has_a_base_of_64_bits_in_compatibility_mode_too() {
    // mov ds, eax
    let mut near = guest(0, &[0x8E, 0xD8]);
    near.cpu.seg[SegReg::Cs as usize] = segment(CODE32, 0xC09B);
    near.cpu.gpr[Reg::Rax] = u64::from(DATA);
    let mut far = Guest { cpu: near.cpu.clone(), ..guest(0, &[0x8E, 0xD8]) };
    near.step();
    assert_eq!(near.cpu.segment(SegReg::Ds).base, 0);
    // Nothing is there: the descriptor is all ones.
    far.cpu.gdtr.base += 1 << 32;
    far.step();
    assert_eq!(far.cpu.segment(SegReg::Ds).base, 0xFFFF_FFFF);
}

#[test]
fn p13_the_last_byte_of_an_operand_has_to_be_canonical_too() {
    // mov eax, [rbx]; mov eax, [rbp]
    for (code, fault) in [([0x8B, 0x03, 0x90], gp(0)), ([0x8B, 0x45, 0x00], Fault::SS)] {
        for at in [0x7FFF_FFFF_FFFD, 0xFFFF_7FFF_FFFF_FFFE, 1 << 47] {
            let mut guest = guest(0, &code).with(Reg::Rbx, at).with(Reg::Rbp, at);
            refuses(&mut guest, fault);
        }
    }
}

#[test]
fn p11_a_branch_to_an_address_that_is_not_canonical_faults_where_it_is() {
    // jmp rbx; call rbx; ret
    for code in [&[0xFF, 0xE3][..], &[0xFF, 0xD3], &[0xC3]] {
        let mut guest = guest(0, code).with(Reg::Rbx, 1 << 47);
        guest.poke(0xF08, &(1u64 << 47).to_le_bytes());
        refuses(&mut guest, gp(0));
    }
}
