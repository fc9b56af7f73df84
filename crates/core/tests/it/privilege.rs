//! What transfers between privilege levels check, and in which order: the manual's pseudo-code
//! of CALL, RET, IRET and INT n.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use crate::protected::*;
use realmode::arch::rflags::{IF, IOPL, RF, TF};
use realmode::*;

/// Runs one instruction that must fault, and returns the fault. Nothing is delivered.
fn fault(guest: &mut Guest) -> Fault {
    guest.policy.exceptions = u32::MAX;
    match guest.run(1) {
        Stop::Exception(fault) => fault,
        stop => panic!("{stop:?} instead of a fault"),
    }
}

fn code(vector: u8, error_code: u16) -> Fault {
    Fault::with_code(vector, error_code)
}

/// The access byte of a descriptor of the GDT.
fn access(guest: &Guest, selector: u16) -> u8 {
    guest.peek(GDT + u64::from(selector & !7) + 5, 1)[0]
}

/// CPL 3 calls level 0 through a gate with two parameters.
fn call_through_gate() -> Guest {
    let guest = user(&[0x9A, 0, 0, 0, 0, CALL_GATE as u8, 0]);
    guest.poke(GDT + 9 * 8 + 4, &[2]);
    guest
}

/// The TSS names a stack of 4 KiB with room for one doubleword.
fn without_room(guest: &Guest) {
    guest.poke(GDT + u64::from(DATA16), &descriptor(0, 0xFFF, 0x92, 4));
    guest.poke(TSS + 4, &4u32.to_le_bytes());
    guest.poke(TSS + 8, &DATA16.to_le_bytes());
}

#[test]
fn a_call_gate_reads_no_parameter_if_the_new_stack_has_no_room() {
    let mut guest = call_through_gate().with(Reg::Rsp, DEVICE + 0x100);
    without_room(&guest);
    assert_eq!(fault(&mut guest), code(12, DATA16));
    assert_eq!(guest.bus.seen, []);
    // With room each parameter is read once.
    guest.poke(TSS + 4, &0x800u32.to_le_bytes());
    guest.step();
    let reads = [Seen::Read(DEVICE + 0x104, 4), Seen::Read(DEVICE + 0x100, 4)];
    assert_eq!(guest.bus.seen, reads);
}

#[test]
fn a_call_gate_reads_no_parameter_if_its_offset_lies_beyond_the_code() {
    let mut guest = call_through_gate().with(Reg::Rsp, DEVICE + 0x100);
    guest.poke(GDT + 9 * 8, &gate(CODE16, 0x1_0000, 0xEC));
    guest.poke(GDT + 9 * 8 + 4, &[2]);
    assert_eq!(fault(&mut guest), code(13, 0));
    assert_eq!(guest.bus.seen, []);
}

#[test]
fn a_transfer_that_fails_leaves_the_accessed_bits_clear() {
    let mut call = call_through_gate();
    without_room(&call);
    fault(&mut call);
    assert_eq!((access(&call, CODE32), access(&call, DATA16)), (0x9A, 0x92));
    // retf to an address beyond the limit of the outer level's code.
    let mut ret = guest(&[0xCB]).with(Reg::Rsp, 0x3000);
    ret.poke(GDT + u64::from(USER_CODE & !3), &descriptor(0, 0xFFF, 0xFA, 4));
    let frame = [0x1000, u32::from(USER_CODE), 0x2000, u32::from(USER_DATA)];
    ret.poke(0x3000, &frame.map(u32::to_le_bytes).concat());
    assert_eq!(fault(&mut ret), code(13, 0));
    assert_eq!((access(&ret, USER_CODE), access(&ret, USER_DATA)), (0xFA, 0xF2));
    ret.poke(0x3000, &[0xFF, 0xF, 0, 0]);
    ret.step();
    assert_eq!((access(&ret, USER_CODE), access(&ret, USER_DATA)), (0xFB, 0xF3));
}

#[test]
fn an_accessed_or_busy_bit_beyond_4_gib_wraps_as_its_descriptor_does() {
    // Selector 8 lies at linear address 0.
    let mut load = guest(&[0x8E, 0xD8]).with(Reg::Rax, 8);
    load.cpu.gdtr.base = 0xFFFF_FFF8;
    load.poke(0, &descriptor(0x1234, 0xFFFF, 0x92, 0));
    load.step();
    assert_eq!(load.cpu.seg[SegReg::Ds as usize].base, 0x1234);
    assert_eq!(load.peek(5, 1), [0x93]);
    let mut ltr = guest(&[0x0F, 0x00, 0xD8]).with(Reg::Rax, 8);
    ltr.cpu.gdtr.base = 0xFFFF_FFF8;
    ltr.poke(0, &descriptor(0x1234, 0x67, 0x89, 0));
    ltr.step();
    assert_eq!(ltr.peek(5, 1), [0x8B]);
}

#[test]
fn a_gate_checks_the_stack_before_its_offset() {
    // Code of 64 KiB, an offset beyond it, and a stack without room.
    let far = |guest: &Guest| guest.poke(IDT + 0x20 * 8, &gate(CODE16, 0x1_0000, 0xEE));
    let mut same = guest(&[0xCD, 0x20]).with(Reg::Rsp, 4);
    far(&same);
    same.cpu.seg[SegReg::Ss as usize].limit = 0xFFF;
    assert_eq!(fault(&mut same), code(12, 0));
    let mut inner = user(&[0xCD, 0x20]);
    far(&inner);
    without_room(&inner);
    assert_eq!(fault(&mut inner), code(12, DATA16));
    inner.poke(TSS + 4, &0x800u32.to_le_bytes());
    assert_eq!(fault(&mut inner), code(13, 0));
}

#[test]
fn a_tss_without_the_stack_of_a_level_is_ts_with_its_selector() {
    let mut short = call_through_gate();
    short.cpu.tr.limit = 8;
    assert_eq!(fault(&mut short), code(10, TSS32));
    short.cpu.tr.limit = 9;
    short.step();
    let mut null = call_through_gate();
    null.poke(TSS + 8, &[3, 0]);
    assert_eq!(fault(&mut null), code(10, 0));
    let mut outer = call_through_gate();
    outer.poke(TSS + 8, &USER_DATA.to_le_bytes());
    assert_eq!(fault(&mut outer), code(10, USER_DATA & !3));
    // An exception adds EXT.
    let mut event = user(&[0x0F, 0x0B]);
    event.poke(TSS + 8, &USER_DATA.to_le_bytes());
    event.poke(IDT + 10 * 8, &gate(CONFORMING, 0x600A, 0x8E));
    assert_eq!(faults(&mut event), (10, u32::from(USER_DATA & !3) | 1));
}

#[test]
fn a_16_bit_tss_holds_words() {
    let mut guest = call_through_gate();
    guest.cpu.tr.attributes = Attributes(0x83);
    guest.cpu.tr.limit = 5;
    guest.poke(TSS + 2, &[0x00, 0x38, DATA32 as u8, 0]);
    guest.step();
    assert_eq!((guest.reg(Reg::Rsp), guest.cpu.cpl()), (0x3800 - 24, 0));
}

#[test]
fn int1_ignores_the_gates_dpl_and_its_faults_are_external() {
    let mut int1 = user(&[0xF1]);
    int1.step();
    assert_eq!((int1.cpu.rip, int1.cpu.cpl()), (0x6001, 0));
    let mut absent = user(&[0xF1]);
    absent.poke(IDT + 8 + 5, &[0x0E]);
    assert_eq!(fault(&mut absent), code(11, 8 + 2 + 1));
}

#[test]
fn b10_a_software_interrupt_pushes_rf_clear() {
    for bytes in [&[0xCD, 0x20][..], &[0xCC], &[0xF1]] {
        let mut int = guest(bytes).with(Reg::Rsp, 0x3000);
        int.cpu.rflags |= RF;
        int.step();
        assert_eq!(u64::from(stacked(&int, 2)) & RF, 0, "{bytes:x?}");
    }
    let mut fault = guest(&[0x0F, 0x0B]).with(Reg::Rsp, 0x3000);
    fault.step();
    assert_eq!(u64::from(stacked(&fault, 2)) & RF, RF);
}

#[test]
fn a_16_bit_iret_clears_rf_and_a_32_bit_one_loads_it() {
    let frame: [u8; 12] = [0, 0x20, 0, 0, CODE32 as u8, 0, 0, 0, 2, 0, 1, 0];
    let mut wide = guest(&[0xCF]).with(Reg::Rsp, 0x3000);
    wide.poke(0x3000, &frame);
    wide.step();
    assert_eq!((wide.cpu.rip, wide.cpu.rflags & RF), (0x2000, RF));
    let mut narrow = guest(&[0x66, 0xCF]).with(Reg::Rsp, 0x3000);
    narrow.poke(0x3000, &[0, 0x20, CODE32 as u8, 0, 2, 0]);
    narrow.cpu.rflags |= RF;
    narrow.step();
    assert_eq!((narrow.cpu.rip, narrow.cpu.rflags & RF), (0x2000, 0));
}

#[test]
fn a_return_to_an_outer_level_clears_null_selectors_whatever_they_hide() {
    // DS as real mode left it, and a null selector with a privilege level in its low bits.
    let mut ret = guest(&[0xCB]).with(Reg::Rsp, 0x3000);
    let frame = [0x2000, u32::from(USER_CODE), 0x3800, u32::from(USER_DATA)];
    ret.poke(0x3000, &frame.map(u32::to_le_bytes).concat());
    let unreal = Segment { attributes: Attributes(0xF3), ..Segment::real(0) };
    ret.cpu.seg[SegReg::Ds as usize] = unreal;
    let null = Segment { attributes: Attributes(Attributes::UNUSABLE), ..Segment::real(3) };
    ret.cpu.seg[SegReg::Fs as usize] = null;
    ret.step();
    assert_eq!(ret.cpu.cpl(), 3);
    for reg in [SegReg::Ds, SegReg::Es, SegReg::Fs, SegReg::Gs] {
        let segment = ret.cpu.seg[reg as usize];
        assert_eq!((segment.selector, segment.attributes.is_usable()), (0, false), "{reg:?}");
    }
}

#[test]
fn a_conforming_code_segment_in_a_data_register_survives_a_return() {
    let mut ret = guest(&[0xCB]).with(Reg::Rsp, 0x3000);
    let frame = [0x2000, u32::from(USER_CODE), 0x3800, u32::from(USER_DATA)];
    ret.poke(0x3000, &frame.map(u32::to_le_bytes).concat());
    ret.cpu.seg[SegReg::Es as usize].selector = CONFORMING;
    ret.cpu.seg[SegReg::Es as usize].attributes = Attributes(0xC09F);
    ret.cpu.seg[SegReg::Ds as usize].selector = CODE32;
    ret.cpu.seg[SegReg::Ds as usize].attributes = Attributes(0xC09B);
    ret.step();
    assert_eq!(ret.cpu.seg[SegReg::Es as usize].selector, CONFORMING);
    assert_eq!(ret.cpu.seg[SegReg::Ds as usize].selector, 0);
}

#[test]
fn task_gates_and_tasks_check_privilege_and_presence_first() {
    let jump = |selector: u16, entry: [u8; 8]| {
        let guest = user(&[0xEA, 0, 0x20, 0, 0, selector as u8, 0]);
        guest.poke(GDT + u64::from(selector & !7), &entry);
        guest
    };
    for entry in [descriptor(TSS as u32, 0x67, 0x89, 0), gate(TSS32, 0, 0x85)] {
        assert_eq!(fault(&mut jump(LDT, entry)), code(13, LDT), "{entry:x?}");
    }
    for entry in [descriptor(TSS as u32, 0x67, 0x69, 0), gate(TSS32, 0, 0x65)] {
        assert_eq!(fault(&mut jump(LDT, entry)), code(11, LDT), "{entry:x?}");
    }
    assert_eq!(fault(&mut jump(LDT | 3, gate(TSS32, 0, 0xC5))), code(13, LDT));
    let mut busy = jump(LDT, descriptor(TSS as u32, 0x67, 0xEB, 0));
    assert_eq!(fault(&mut busy), code(13, LDT));
}

#[test]
fn a_return_below_ring_0_keeps_iopl_and_if() {
    let mut iret = user(&[0xCF]);
    let frame = [0x2000, u32::from(USER_CODE), (IOPL | IF) as u32 | 2];
    iret.poke(0x3000, &frame.map(u32::to_le_bytes).concat());
    iret.step();
    assert_eq!(iret.cpu.rflags & (IOPL | IF), 0);
    let mut popf = user(&[0x9D]);
    popf.poke(0x3000, &[2, 0x32, 0, 0]);
    popf.cpu.rflags |= IOPL;
    popf.step();
    assert_eq!(popf.cpu.rflags & (IOPL | IF), IOPL | IF);
    for bytes in [[0xFA], [0xFB]] {
        assert_eq!(fault(&mut user(&bytes)), code(13, 0));
    }
}

#[test]
fn privileged_instructions_are_gp0_at_level_3() {
    let instructions: [&[u8]; 14] = [
        &[0xF4],
        &[0x0F, 0x01, 0x10],
        &[0x0F, 0x01, 0x18],
        &[0x0F, 0x01, 0xF0],
        &[0x0F, 0x01, 0x38],
        &[0x0F, 0x00, 0xD0],
        &[0x0F, 0x00, 0xD8],
        &[0x0F, 0x06],
        &[0x0F, 0x08],
        &[0x0F, 0x09],
        &[0x0F, 0x20, 0xC0],
        &[0x0F, 0x22, 0xC0],
        &[0x0F, 0x21, 0xC0],
        &[0x0F, 0x32],
    ];
    for bytes in instructions {
        assert_eq!(fault(&mut user(bytes)), code(13, 0), "{bytes:x?}");
    }
}

#[test]
fn tf_traps_a_call_through_a_gate_in_the_callee_but_not_an_interrupt() {
    let mut call = call_through_gate();
    call.cpu.rflags |= TF;
    assert_eq!(call.run(2), Stop::Idle);
    assert_eq!((call.cpu.rip, stacked(&call, 0)), (0x6002, 0x2000));
    let mut int = user(&[0xCD, 0x20]);
    int.poke(IDT + 0x20 * 8 + 5, &[0xEE]);
    int.cpu.rflags |= TF;
    assert_eq!(int.run(2), Stop::Idle);
    assert_eq!((int.cpu.rip, int.cpu.rflags & TF), (0x6021, 0));
    assert_eq!(stacked(&int, 0), CODE as u32 + 2);
}

/// CPL 3 with a TSS whose bitmap, at 68, permits no port but those that `allowed` names.
fn with_bitmap(bytes: &[u8], allowed: &[u16]) -> Guest {
    let mut guest = user(bytes);
    guest.cpu.tr.limit = 0x68 + 0x41;
    guest.poke(TSS + 0x66, &0x68u16.to_le_bytes());
    let mut bitmap = [0xFFu8; 0x42];
    for port in allowed {
        bitmap[usize::from(port >> 3)] &= !(1 << (port & 7));
    }
    guest.poke(TSS + 0x68, &bitmap);
    guest
}

#[test]
fn above_iopl_the_bitmap_of_the_tss_permits_each_byte_of_a_port() {
    // in al, dx; in eax, dx
    let mut byte = with_bitmap(&[0xEC], &[0x17]).with(Reg::Rdx, 0x17);
    byte.step();
    assert_eq!(byte.bus.seen, [Seen::In(0x17, 1)]);
    let mut wide = with_bitmap(&[0xED], &[0x16, 0x17, 0x18, 0x19]).with(Reg::Rdx, 0x16);
    wide.step();
    assert_eq!(wide.bus.seen, [Seen::In(0x16, 4)]);
    let mut last = with_bitmap(&[0xED], &[0x16, 0x17, 0x18]).with(Reg::Rdx, 0x16);
    assert_eq!(fault(&mut last), code(13, 0));
    assert_eq!(last.bus.seen, []);
    // Both bytes that are read must lie in the TSS.
    let mut end = with_bitmap(&[0xEC], &[0x200, 0x208]).with(Reg::Rdx, 0x200);
    end.step();
    let mut beyond = with_bitmap(&[0xEC], &[0x208]).with(Reg::Rdx, 0x208);
    assert_eq!(fault(&mut beyond), code(13, 0));
    let mut short = with_bitmap(&[0xEC], &[0]);
    short.cpu.tr.limit = 0x66;
    assert_eq!(fault(&mut short), code(13, 0));
    let mut old = with_bitmap(&[0xEC], &[0]);
    old.cpu.tr.attributes = Attributes(0x83);
    assert_eq!(fault(&mut old), code(13, 0));
}

#[test]
fn a_string_goes_to_a_permitted_port_one_element_at_a_time_and_can_wait() {
    // rep outsb; out FF, al, which is not permitted
    let mut outs = with_bitmap(&[0xF3, 0x6E, 0xE6, 0xFF], &[0x17])
        .with(Reg::Rdx, 0x17)
        .with(Reg::Rcx, 3)
        .with(Reg::Rsi, 0x2000);
    outs.poke(0x2000, &[1, 2, 3]);
    outs.bus.pending = true;
    let mut emulator = Emulator::new(&outs.profile, &mut []);
    for byte in 1..=3 {
        let stop = emulator.run(&mut outs.cpu, &mut outs.bus, 10).unwrap();
        let Stop::Port(request) = stop else { panic!("{stop:?}") };
        assert_eq!((request.address, request.data), (0x17, byte));
        emulator.reply(0).unwrap();
    }
    assert_eq!(emulator.run(&mut outs.cpu, &mut outs.bus, 10), Ok(Stop::Idle));
    assert_eq!((outs.cpu.rip, outs.reg(Reg::Rcx)), (0x600E, 0));
}

#[test]
fn a_286_knows_48_bits_of_a_descriptor_and_no_type_above_7() {
    let on_286 = |bytes: &[u8], selector: u16| {
        let mut guest = guest(bytes).with(Reg::Rax, u64::from(selector));
        guest.profile = Profile::I80286;
        guest
    };
    let mut load = on_286(&[0x8E, 0xD8], DATA32);
    load.poke(GDT + u64::from(DATA32), &descriptor(0xFF12_3456, 0xF_0FFF, 0x92, 0xC));
    load.step();
    let ds = load.cpu.seg[SegReg::Ds as usize];
    assert_eq!((ds.base, ds.limit, ds.attributes), (0x12_3456, 0xFFF, Attributes(0x93)));
    assert_eq!(fault(&mut on_286(&[0x0F, 0x00, 0xD8], TSS32)), code(13, TSS32));
    let mut old = on_286(&[0x0F, 0x00, 0xD8], TSS32);
    old.poke(GDT + u64::from(TSS32) + 5, &[0x81]);
    old.step();
    assert_eq!(old.cpu.tr.base, TSS);
    assert_eq!(fault(&mut on_286(&[0xCD, 0x20], 0)), code(13, 0x20 * 8 + 2));
}

#[test]
fn an_injected_trap_keeps_rf_as_it_is() {
    for vector in [3, 4] {
        let mut trap = guest(&[0x90]).with(Reg::Rsp, 0x3000);
        trap.cpu.pending.event = Some(Event::Exception(Fault::new(vector)));
        assert_eq!(trap.run(0), Stop::Budget);
        assert_eq!(u64::from(stacked(&trap, 2)) & RF, 0, "vector {vector}");
    }
}

#[test]
fn a_return_to_a_16_bit_stack_keeps_the_upper_half_of_esp() {
    let mut ret = guest(&[0xCB]).with(Reg::Rsp, 0x1_3000);
    ret.poke(GDT + u64::from(USER_DATA & !3), &descriptor(0, 0xFFFF, 0xF2, 0));
    let frame = [0x2000, u32::from(USER_CODE), 0x5_3800, u32::from(USER_DATA)];
    ret.poke(0x1_3000, &frame.map(u32::to_le_bytes).concat());
    ret.step();
    assert_eq!(ret.reg(Reg::Rsp), 0x1_3800);
}

#[test]
fn without_a_stack_for_level_0_an_exception_of_level_3_is_the_end() {
    let mut guest = user(&[0x0F, 0x0B]);
    without_room(&guest);
    assert_eq!(guest.run(1), Stop::Shutdown);
}
