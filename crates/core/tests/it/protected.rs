//! Protected mode without paging: descriptor loads, far transfers, gates, at one privilege level
//! and across levels.

use crate::guest::{CODE, Guest};
use realmode::arch::rflags::{IF, TF, VM, ZF};
use realmode::*;

pub const GDT: u64 = 0x5000;
pub const IDT: u64 = 0x5800;
pub const TSS: u64 = 0x5F00;

/// A descriptor of a 4 GiB or byte-limited segment.
pub fn descriptor(base: u32, limit: u32, access: u8, flags: u8) -> [u8; 8] {
    let raw = u64::from(limit & 0xFFFF)
        | u64::from(base & 0xFF_FFFF) << 16
        | u64::from(access) << 40
        | u64::from(limit >> 16 & 15) << 48
        | u64::from(flags) << 52
        | u64::from(base >> 24) << 56;
    raw.to_le_bytes()
}

pub fn gate(selector: u16, offset: u32, access: u8) -> [u8; 8] {
    let raw = u64::from(offset & 0xFFFF)
        | u64::from(selector) << 16
        | u64::from(access) << 40
        | u64::from(offset >> 16) << 48;
    raw.to_le_bytes()
}

pub const CODE32: u16 = 0x08;
pub const DATA32: u16 = 0x10;
pub const CODE16: u16 = 0x18;
pub const DATA16: u16 = 0x20;
pub const USER_CODE: u16 = 0x2B;
pub const USER_DATA: u16 = 0x33;
pub const TSS32: u16 = 0x38;
pub const LDT: u16 = 0x40;
pub const CALL_GATE: u16 = 0x4B;
pub const ABSENT: u16 = 0x50;
pub const READ_ONLY: u16 = 0x58;
pub const EXECUTE_ONLY: u16 = 0x60;
pub const CONFORMING: u16 = 0x68;

/// A guest at CPL 0 in flat 32-bit code, with a GDT, an IDT of 32-bit interrupt gates that lead
/// to HLTs at 6000 + vector, and a 32-bit TSS.
pub fn guest(code: &[u8]) -> Guest {
    let mut guest = Guest::new(code);
    let table = [
        [0; 8],
        descriptor(0, 0xFFFFF, 0x9A, 0xC),
        descriptor(0, 0xFFFFF, 0x92, 0xC),
        descriptor(0, 0xFFFF, 0x9A, 0),
        descriptor(0, 0xFFFF, 0x92, 0),
        descriptor(0, 0xFFFFF, 0xFA, 0xC),
        descriptor(0, 0xFFFFF, 0xF2, 0xC),
        descriptor(TSS as u32, 0x67, 0x89, 0),
        descriptor(0x7000, 0xFF, 0x82, 0),
        gate(CODE32, 0x2000, 0xEC),
        descriptor(0, 0xFFFF, 0x12, 0),
        descriptor(0, 0xFFFF, 0x90, 0),
        descriptor(0, 0xFFFF, 0x98, 0),
        descriptor(0, 0xFFFFF, 0x9E, 0xC),
    ];
    for (i, entry) in table.iter().enumerate() {
        guest.poke(GDT + i as u64 * 8, entry);
    }
    for vector in 0..64u32 {
        guest.poke(IDT + u64::from(vector) * 8, &gate(CODE32, 0x6000 + vector, 0x8E));
    }
    guest.poke(0x6000, &[0xF4; 64]);
    guest.poke(TSS + 4, &0x4000u32.to_le_bytes());
    guest.poke(TSS + 8, &DATA32.to_le_bytes());
    let cpu = &mut guest.cpu;
    cpu.cr0 |= 1;
    cpu.gdtr = TableRegister { base: GDT, limit: 14 * 8 - 1 };
    cpu.idtr = TableRegister { base: IDT, limit: 64 * 8 - 1 };
    let data =
        Segment { selector: DATA32, base: 0, limit: u32::MAX, attributes: Attributes(0xC093) };
    cpu.seg = [data; 6];
    cpu.seg[SegReg::Cs as usize] =
        Segment { selector: CODE32, attributes: Attributes(0xC09B), ..data };
    cpu.tr = Segment { selector: TSS32, base: TSS, limit: 0x67, attributes: Attributes(0x8B) };
    guest
}

/// The dword `index` places above ESP.
pub fn stacked(guest: &Guest, index: u64) -> u32 {
    let at = guest.reg(Reg::Rsp) + index * 4;
    u32::from_le_bytes(guest.peek(at, 4).try_into().unwrap())
}

/// Runs one instruction that must fault; returns the vector and the error code on the stack.
pub fn faults(guest: &mut Guest) -> (u8, u32) {
    assert_eq!(guest.run(1), Stop::Budget);
    let rip = guest.cpu.rip;
    assert!((0x6000..0x6040).contains(&rip), "no handler at {rip:x}");
    ((rip - 0x6000) as u8, stacked(guest, 0))
}

fn mov_ds(selector: u16) -> Guest {
    guest(&[0x8E, 0xD8]).with(Reg::Rax, u64::from(selector))
}

fn mov_ss(selector: u16) -> Guest {
    guest(&[0x8E, 0xD0]).with(Reg::Rax, u64::from(selector))
}

#[test]
fn a_program_goes_from_real_to_protected_mode_and_back() {
    // lgdt [3000]; mov cr0, eax; jmp dword 8:2000
    let mut real = Guest::new(&[
        0x0F, 0x01, 0x16, 0x00, 0x30, 0x0F, 0x22, 0xC0, 0x66, 0xEA, 0, 0x20, 0, 0, 8, 0,
    ])
    .with(Reg::Rax, 0x6000_0011);
    let setup = guest(&[]);
    real.poke(GDT, &setup.peek(GDT, 14 * 8));
    real.poke(0x3000, &[14 * 8 - 1, 0, 0x00, 0x50, 0, 0]);
    // 32-bit: mov ds, cx; mov byte [110000], 5A; jmp 18:2100
    real.poke(
        0x2000,
        &[0x8E, 0xD9, 0xC6, 0x05, 0, 0, 0x11, 0, 0x5A, 0xEA, 0x00, 0x21, 0, 0, 0x18, 0],
    );
    // 16-bit: mov ds, dx; mov cr0, ebx; jmp 0:2200
    real.poke(0x2100, &[0x8E, 0xDA, 0x0F, 0x22, 0xC3, 0xEA, 0x00, 0x22, 0, 0]);
    real.poke(0x2200, &[0xF4]);
    real.cpu.gpr[Reg::Rcx] = u64::from(DATA32);
    real.cpu.gpr[Reg::Rdx] = u64::from(DATA16);
    real.cpu.gpr[Reg::Rbx] = 0x6000_0010;
    assert_eq!(real.run(100), Stop::Idle);
    assert_eq!(real.cpu.rip, 0x2201);
    assert_eq!(real.peek(0x11_0000, 1), [0x5A]);
    let cs = real.cpu.seg[SegReg::Cs as usize];
    assert_eq!((cs.selector, cs.base, cs.limit), (0, 0, 0xFFFF));
    assert_eq!(real.peek(GDT + 8 + 5, 1), [0x9B], "the accessed bit is in memory");
}

#[test]
fn p01_p02_p04_segment_loads_fault_with_their_selector() {
    assert_eq!(faults(&mut mov_ss(0)), (13, 0));
    assert_eq!(faults(&mut mov_ss(3)), (13, 0));
    assert_eq!(faults(&mut mov_ss(DATA32 | 3)), (13, u32::from(DATA32)));
    assert_eq!(faults(&mut mov_ss(ABSENT)), (12, u32::from(ABSENT)));
    assert_eq!(faults(&mut mov_ss(READ_ONLY)), (13, u32::from(READ_ONLY)));
    assert_eq!(faults(&mut mov_ds(ABSENT)), (11, u32::from(ABSENT)));
    assert_eq!(faults(&mut mov_ds(EXECUTE_ONLY)), (13, u32::from(EXECUTE_ONLY)));
    assert_eq!(faults(&mut mov_ds(TSS32)), (13, u32::from(TSS32)));
    assert_eq!(faults(&mut mov_ds(14 * 8)), (13, 14 * 8));
    let mut loads = mov_ds(READ_ONLY);
    loads.step();
    assert_eq!(loads.cpu.seg[SegReg::Ds as usize].limit, 0xFFFF);
}

#[test]
fn p07_a_table_limit_of_ffff_does_not_wrap() {
    let mut last = mov_ds(0xFFFB);
    last.cpu.gdtr.limit = 0xFFFF;
    last.poke(GDT + 0xFFF8, &descriptor(0x1234, 0xFFFF, 0xF2, 0));
    last.step();
    assert_eq!(last.cpu.seg[SegReg::Ds as usize].base, 0x1234);
    let mut short = mov_ds(0xFFFB);
    short.cpu.gdtr.limit = 0xFFFE;
    assert_eq!(faults(&mut short), (13, 0xFFF8));
}

#[test]
fn p08_an_access_through_a_null_segment_is_gp0() {
    // mov ds, ax; mov al, [0]
    let mut null = guest(&[0x8E, 0xD8, 0xA0, 0, 0, 0, 0]);
    null.step();
    assert_eq!(faults(&mut null), (13, 0));
}

#[test]
fn p11_a_branch_beyond_the_limit_faults_at_the_branch() {
    let mut jump = guest(&[0xE9, 0, 0x10, 0, 0]);
    jump.cpu.seg[SegReg::Cs as usize].limit = 0x1FFF;
    assert_eq!(faults(&mut jump), (13, 0));
    assert_eq!(stacked(&jump, 1), CODE as u32);
}

#[test]
fn p14_push_of_a_segment_register_keeps_the_upper_half_and_a_far_call_clears_it() {
    let mut push = guest(&[0x1E]).with(Reg::Rsp, 0x3000);
    push.poke(0x2FFC, &[0xAA; 4]);
    push.step();
    assert_eq!(push.peek(0x2FFC, 4), [0x10, 0, 0xAA, 0xAA]);
    let mut call = guest(&[0x9A, 0, 0x20, 0, 0, 8, 0]).with(Reg::Rsp, 0x3000);
    call.poke(0x2FF8, &[0xAA; 8]);
    call.step();
    assert_eq!(call.peek(0x2FF8, 8), [0x07, 0x10, 0, 0, 8, 0, 0, 0]);
    assert_eq!((call.cpu.rip, call.reg(Reg::Rsp)), (0x2000, 0x2FF8));
}

#[test]
fn p32_a_violation_through_ss_is_ss0_and_expand_down_ends_where_d_says() {
    // mov al, [ebp]
    let mut down = guest(&[0x8A, 0x45, 0]).with(Reg::Rbp, 0x0FFF).with(Reg::Rsp, 0xF000);
    let ss = &mut down.cpu.seg[SegReg::Ss as usize];
    (ss.limit, ss.attributes) = (0x0FFF, Attributes(0xC097));
    let mut above = down.cpu.clone();
    above.gpr[Reg::Rbp] = 0x1000;
    assert_eq!(faults(&mut down), (12, 0));
    down.cpu = above;
    down.step();
    let mut small = guest(&[0x8A, 0x45, 0]).with(Reg::Rbp, 0x1_0000).with(Reg::Rsp, 0xF000);
    let ss = &mut small.cpu.seg[SegReg::Ss as usize];
    (ss.limit, ss.attributes) = (0x0FFF, Attributes(0x97));
    assert_eq!(faults(&mut small), (12, 0), "a small expand-down segment ends at FFFF");
}

#[test]
fn p10_software_interrupts_check_the_gate_and_name_it() {
    // int 20 from CPL 3 through a gate of DPL 0.
    let mut user = user(&[0xCD, 0x20]);
    assert_eq!(faults(&mut user), (13, 0x20 * 8 + 2));
    let mut absent = guest(&[0xCD, 0x20]);
    absent.poke(IDT + 0x20 * 8 + 5, &[0x0E]);
    assert_eq!(faults(&mut absent), (11, 0x20 * 8 + 2));
    let mut beyond = guest(&[0xCD, 0x40]);
    assert_eq!(faults(&mut beyond), (13, 0x40 * 8 + 2));
}

/// The same guest at CPL 3.
pub fn user(code: &[u8]) -> Guest {
    let mut guest = guest(code).with(Reg::Rsp, 0x3000);
    for (reg, selector, attributes) in [
        (SegReg::Cs, USER_CODE, 0xC0FB),
        (SegReg::Ss, USER_DATA, 0xC0F3),
        (SegReg::Ds, USER_DATA, 0xC0F3),
    ] {
        let segment = &mut guest.cpu.seg[reg as usize];
        (segment.selector, segment.attributes) = (selector, Attributes(attributes));
    }
    guest
}

#[test]
fn an_interrupt_gate_from_cpl_3_switches_to_the_stack_of_the_tss_and_iret_comes_back() {
    let mut guest = user(&[0xCD, 0x20, 0x90]);
    guest.poke(IDT + 0x20 * 8, &gate(CODE32, 0x2000, 0xEE));
    guest.poke(0x2000, &[0xCF]);
    guest.cpu.rflags |= IF;
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl()), (0x2000, 0));
    assert_eq!(guest.cpu.rflags & IF, 0);
    assert_eq!(guest.reg(Reg::Rsp), 0x4000 - 20);
    let frame: Vec<u32> = (0..5).map(|i| stacked(&guest, i)).collect();
    let flags = frame[2];
    assert_eq!(frame, [CODE as u32 + 2, 0x2B, flags, 0x3000, 0x33]);
    assert_ne!(u64::from(flags) & IF, 0);
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl(), guest.reg(Reg::Rsp)), (CODE + 2, 3, 0x3000));
    assert_ne!(guest.cpu.rflags & IF, 0);
    let es = guest.cpu.seg[SegReg::Es as usize];
    assert!(!es.attributes.is_usable(), "a kernel data segment does not survive the return");
    assert!(guest.cpu.seg[SegReg::Ds as usize].attributes.is_usable());
}

#[test]
fn a_call_gate_raises_the_privilege_and_ret_lowers_it() {
    let mut guest = user(&[0x9A, 0, 0, 0, 0, CALL_GATE as u8, 0]);
    guest.poke(0x2000, &[0xCA, 0x08, 0]);
    guest.poke(GDT + 9 * 8, &gate(CODE32, 0x2000, 0xEC));
    guest.poke(GDT + 9 * 8 + 4, &[2]);
    guest.poke(0x3000, &[1, 0, 0, 0, 2, 0, 0, 0]);
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl()), (0x2000, 0));
    let frame: Vec<u32> = (0..6).map(|i| stacked(&guest, i)).collect();
    assert_eq!(frame, [CODE as u32 + 7, 0x2B, 1, 2, 0x3000, 0x33]);
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.cpl(), guest.reg(Reg::Rsp)), (CODE + 7, 3, 0x3008));
}

#[test]
fn far_jumps_check_type_privilege_presence_and_limit_in_this_order() {
    let jump = |selector: u16| guest(&[0xEA, 0, 0x20, 0, 0, selector as u8, 0]);
    assert_eq!(faults(&mut jump(0)), (13, 0));
    assert_eq!(faults(&mut jump(DATA32)), (13, u32::from(DATA32)));
    assert_eq!(faults(&mut jump(USER_CODE)), (13, u32::from(USER_CODE) & !3));
    assert_eq!(faults(&mut jump(14 * 8)), (13, 14 * 8));
    let mut absent = jump(CODE16);
    absent.poke(GDT + 3 * 8 + 5, &[0x1A]);
    assert_eq!(faults(&mut absent), (11, u32::from(CODE16)));
    let mut low = jump(CODE16);
    low.poke(GDT + 3 * 8, &[0xFF, 0x1F]);
    assert_eq!(faults(&mut low), (13, 0));
    let mut conforming = jump(CONFORMING);
    conforming.step();
    assert_eq!(conforming.cpu.seg[SegReg::Cs as usize].selector, CONFORMING);
}

#[test]
fn exceptions_push_an_error_code_and_clear_tf_but_a_trap_gate_keeps_if() {
    let mut guest = guest(&[0x0F, 0x0B]).with(Reg::Rsp, 0x3000);
    guest.poke(IDT + 6 * 8 + 5, &[0x8F]);
    guest.cpu.rflags |= IF | TF;
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!(guest.cpu.rip, 0x6006);
    assert_eq!(guest.reg(Reg::Rsp), 0x3000 - 12, "#UD has no error code");
    assert_eq!(guest.cpu.rflags & (IF | TF), IF);
}

#[test]
fn a_16_bit_gate_pushes_words() {
    let mut guest = guest(&[0xCD, 0x21]).with(Reg::Rsp, 0x3000);
    guest.poke(IDT + 0x21 * 8, &gate(CODE32, 0x2000, 0x86));
    guest.step();
    assert_eq!(guest.reg(Reg::Rsp), 0x3000 - 6);
    assert_eq!(guest.word(0x2FFA), CODE as u16 + 2);
}

#[test]
fn p05_ltr_marks_the_tss_busy_and_null_is_gp0() {
    let mut ltr = guest(&[0x0F, 0x00, 0xD8]).with(Reg::Rax, u64::from(TSS32));
    ltr.step();
    assert_eq!(ltr.peek(GDT + 7 * 8 + 5, 1), [0x8B]);
    assert_eq!(ltr.cpu.tr.base, TSS);
    let mut busy = guest(&[0x0F, 0x00, 0xD8]).with(Reg::Rax, u64::from(TSS32));
    busy.poke(GDT + 7 * 8 + 5, &[0x8B]);
    assert_eq!(faults(&mut busy), (13, u32::from(TSS32)));
    assert_eq!(faults(&mut guest(&[0x0F, 0x00, 0xD8])), (13, 0));
    let mut lldt = guest(&[0x0F, 0x00, 0xD0]).with(Reg::Rax, u64::from(LDT));
    lldt.step();
    assert_eq!((lldt.cpu.ldtr.base, lldt.cpu.ldtr.limit), (0x7000, 0xFF));
    let mut null = guest(&[0x0F, 0x00, 0xD0]);
    null.step();
    assert!(!null.cpu.ldtr.attributes.is_usable());
}

#[test]
fn lar_lsl_verr_and_verw_tell_without_faulting() {
    let ask = |code: &[u8], selector: u16| {
        let mut guest = guest(code).with(Reg::Rcx, u64::from(selector)).with(Reg::Rax, 7);
        guest.step();
        (guest.cpu.rflags & ZF != 0, guest.reg(Reg::Rax))
    };
    let (lar, lsl) = ([0x0F, 0x02, 0xC1], [0x0F, 0x03, 0xC1]);
    assert_eq!(ask(&lar, DATA32), (true, 0xCF_9200));
    assert_eq!(ask(&lar, 0), (false, 7));
    assert_eq!(ask(&lar, 14 * 8), (false, 7));
    assert_eq!(ask(&lsl, DATA32), (true, 0xFFFF_FFFF));
    assert_eq!(ask(&lsl, LDT), (true, 0xFF));
    assert_eq!(ask(&lsl, CALL_GATE & !3), (false, 7));
    let (verr, verw) = ([0x0F, 0x00, 0xE1], [0x0F, 0x00, 0xE9]);
    assert!(ask(&verr, READ_ONLY).0 && !ask(&verw, READ_ONLY).0);
    assert!(!ask(&verr, EXECUTE_ONLY).0 && ask(&verw, DATA32).0);
    // arpl cx, dx
    let mut arpl = guest(&[0x63, 0xD1]).with(Reg::Rcx, 0x10).with(Reg::Rdx, 3);
    arpl.step();
    assert_eq!((arpl.reg(Reg::Rcx), arpl.cpu.rflags & ZF), (0x13, ZF));
}

#[test]
fn a_fault_in_the_handler_of_a_fault_is_a_double_fault_and_then_the_end() {
    let mut guest = guest(&[0xA0, 0, 0, 0, 0]);
    guest.cpu.seg[SegReg::Ds as usize].attributes = Attributes(Attributes::UNUSABLE);
    guest.poke(IDT + 13 * 8 + 5, &[0x0E]);
    let mut twice = Guest { cpu: guest.cpu.clone(), ..guest };
    assert_eq!(faults(&mut twice).0, 8);
    twice.cpu.rip = CODE;
    twice.cpu.seg[SegReg::Ds as usize].attributes = Attributes(Attributes::UNUSABLE);
    twice.poke(IDT + 8 * 8 + 5, &[0x0E]);
    assert_eq!(twice.run(1), Stop::Shutdown);
}

#[test]
fn a_286_has_no_virtual_8086_mode_to_be_in() {
    // popf: no image has VM there, so that the mode would change in the middle of a block.
    let mut guest = Guest::with_profile(&Profile::I80286, &[0x9D]);
    guest.cpu.cr0 |= 1;
    guest.cpu.rflags |= VM;
    let mut emulator = Emulator::new(&Profile::I80286, &mut []);
    let before = guest.cpu.clone();
    let error = emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap_err();
    let what = "the Cpu is in a mode that profile 286 does not have: EFLAGS.VM is set";
    assert_eq!(error.to_string(), what);
    assert_eq!(guest.cpu, before);
}
