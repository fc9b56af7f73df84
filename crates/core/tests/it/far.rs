//! Tests of `isa/far.rs` that take more than a case of `testdata/cases/far.case`.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use realmode::arch::control::{DR6_BS, DR6_RESET};
use realmode::arch::rflags::{AC, IF, RF, TF};
use realmode::*;

/// The three words of a frame, from its lowest.
fn frame(guest: &Guest, at: u64) -> [u16; 3] {
    [at, at + 2, at + 4].map(|at| guest.word(at))
}

#[test]
fn w28_a_frame_is_three_words_each_at_sp_modulo_64k() {
    let mut guest = Guest::new(&[0xCD, 0x21]).with(Reg::Rsp, 0xABCD_0004);
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x421, 0xABCD_FFFE));
    // IVT entry 0 was overwritten by the first two words, which is what the guest asked for.
    assert_eq!([guest.word(2), guest.word(0), guest.word(0xFFFE)], [2, 0, CODE as u16 + 2]);
}

#[test]
fn w28_a_frame_word_that_crosses_the_end_of_the_stack_writes_nothing() {
    for sp in [1, 3, 5] {
        let mut guest = Guest::new(&[0xCD, 0x21]).with(Reg::Rsp, sp);
        let low = guest.peek(0, 8);
        guest.poke(0xFFF8, &[0xAA; 8]);
        assert_eq!(guest.run(1), Stop::Shutdown);
        assert_eq!((guest.reg(Reg::Rsp), guest.cpu.rip), (sp, CODE));
        assert_eq!((guest.peek(0, 8), guest.peek(0xFFF8, 8)), (low, vec![0xAA; 8]));
    }
}

#[test]
fn w28_a_stack_limit_counts() {
    let mut guest = Guest::new(&[0xCD, 0x21]).with(Reg::Rsp, 0x24);
    let ss = &mut guest.cpu.seg[SegReg::Ss as usize];
    *ss = Segment { limit: 0x1F, ..Segment::real(0x300) };
    guest.poke(0x3000, &[0xAA; 0x30]);
    assert_eq!(guest.run(1), Stop::Shutdown);
    assert_eq!(guest.peek(0x3000, 0x30), [0xAA; 0x30]);
}

#[test]
fn w29_the_idt_limit_is_checked_before_anything_is_pushed() {
    // INT 21 beyond the limit is #GP; the only frame is that of #GP, with the IP of INT.
    let mut guest = Guest::new(&[0xCD, 0x21]);
    guest.cpu.idtr.limit = 0x21 * 4 + 2;
    assert_eq!(guest.fault(), Some(13));
    assert_eq!((guest.reg(Reg::Rsp), frame(&guest, 0xEFA)), (0xEFA, [CODE as u16, 0, 2]));
    // No room for #GP: #DF. No room for #DF: shutdown.
    let mut guest = Guest::new(&[0xCD, 0x21]);
    guest.cpu.idtr.limit = 8 * 4 + 3;
    assert_eq!(guest.fault(), Some(8));
    assert_eq!((guest.reg(Reg::Rsp), frame(&guest, 0xEFA)), (0xEFA, [CODE as u16, 0, 2]));
    let mut guest = Guest::new(&[0xCD, 0x21]);
    guest.cpu.idtr.limit = 8 * 4 + 2;
    assert_eq!(guest.run(1), Stop::Shutdown);
    assert_eq!((guest.reg(Reg::Rsp), guest.cpu.rip), (0xF00, CODE));
}

#[test]
fn w29_an_entry_that_just_fits_is_used() {
    let mut guest = Guest::new(&[0xCD, 0x21]);
    guest.cpu.idtr = TableRegister { base: 0x8000, limit: 0x21 * 4 + 3 };
    guest.poke(0x8000 + 0x21 * 4, &[0x34, 0x12, 0x00, 0x20]);
    guest.step();
    assert_eq!((guest.cpu.segment(SegReg::Cs).base, guest.cpu.rip), (0x2_0000, 0x1234));
}

#[test]
fn int_clears_if_tf_and_ac_and_iretd_brings_them_back() {
    // INT 21; at 2000:0, a CLC and a 16-bit IRET that keeps AC clear
    let mut guest = Guest::new(&[0xCD, 0x21]);
    guest.poke(0x21 * 4, &[0, 0, 0, 0x20]);
    guest.poke(0x2_0000, &[0xF8, 0xCF]);
    guest.cpu.rflags |= IF | AC;
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!(guest.cpu.rflags, 2);
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!((guest.cpu.rflags, guest.cpu.rip), (2 | IF, CODE + 2));
    assert_eq!(guest.reg(Reg::Rsp), 0xF00);
}

#[test]
fn b10_iretd_sets_rf_and_iret_does_not() {
    // IRETD
    let mut guest = Guest::new(&[0x66, 0xCF]);
    guest.poke(0xF00, &[0, 0x20, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0]);
    guest.poke(0x2000, &[0xF8]);
    guest.step();
    assert_eq!(guest.cpu.rflags, RF | 2);
    guest.step();
    assert_eq!(guest.cpu.rflags, 2);
    // IRET, executed with RF set
    let mut guest = Guest::new(&[0xCF]);
    guest.poke(0xF00, &[0, 0x20, 0, 0, 2, 0]);
    guest.cpu.rflags |= RF;
    guest.step();
    assert_eq!(guest.cpu.rflags, 2);
}

#[test]
fn b11_int1_is_db_with_dr6_as_it_was_even_with_tf() {
    let mut guest = Guest::new(&[0xF1]);
    guest.cpu.rflags |= TF;
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.dr6), (0x401, DR6_RESET));
    assert_eq!(frame(&guest, 0xEFA), [CODE as u16 + 1, 0, 2 | TF as u16]);
    // And no trap after it.
    assert_eq!(guest.run(1), Stop::Idle);
    assert_eq!((guest.reg(Reg::Rsp), guest.cpu.dr6), (0xEFA, DR6_RESET));
}

#[test]
fn b13_retf_that_faults_with_tf_set_is_not_half_done() {
    // POPF; RETFD to an offset beyond the limit
    let mut guest = Guest::new(&[0x9D, 0x66, 0xCB]);
    guest.poke(0xF00, &[2, 1]);
    guest.poke(0xF02, &[0, 0, 1, 0, 0, 0x20, 0, 0]);
    // POPF itself is not trapped: TF was clear when it began.
    guest.step();
    assert_eq!((guest.cpu.rip, guest.cpu.pending.debug), (CODE + 1, 0));
    // The fault comes first, with CS:IP of RETF and TF in its frame, and no trap behind it.
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.cpu.dr6 & DR6_BS), (0x40D, 0));
    assert_eq!(frame(&guest, 0xEFC), [CODE as u16 + 1, 0, 2 | TF as u16]);
    assert_eq!(guest.cpu.pending.debug, 0);
}

#[test]
fn b14_an_iret_that_faults_keeps_nmis_blocked() {
    // IRETD to an offset beyond the limit
    let mut guest = Guest::new(&[0x66, 0xCF]);
    guest.poke(0xF00, &[0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    guest.cpu.nmi_blocked = true;
    guest.cpu.pending.nmi = true;
    assert_eq!(guest.fault(), Some(13));
    assert!(guest.cpu.nmi_blocked && guest.cpu.pending.nmi);
    // One that succeeds lets it in, before the next instruction.
    let mut guest = Guest::new(&[0xCF]);
    guest.poke(0xF00, &[0, 0x20, 0, 0, 2, 0]);
    guest.cpu.nmi_blocked = true;
    guest.cpu.pending.nmi = true;
    assert_eq!(guest.run(2), Stop::Idle);
    assert_eq!((guest.cpu.rip, guest.word(0xF00)), (0x403, 0x2000));
}

#[test]
fn a_call_through_a_device_reads_it_once_and_only_if_the_stack_is_there() {
    // CALL FAR [0] with DS = B800
    let mut guest = Guest::new(&[0xFF, 0x1E, 0x00, 0x00]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[..4].copy_from_slice(&[0x34, 0x12, 0x00, 0x20]);
    guest.step();
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE, 2), Seen::Read(DEVICE + 2, 2)]);
    assert_eq!((guest.cpu.segment(SegReg::Cs).selector, guest.cpu.rip), (0x2000, 0x1234));
    let mut guest = Guest::new(&[0xFF, 0x1E, 0x00, 0x00]).with(Reg::Rsp, 3);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    assert_eq!(guest.run(1), Stop::Shutdown);
    assert_eq!(guest.bus.seen, []);
}

#[test]
fn far_transfers_change_the_code_that_is_executed_in_cached_and_uncached_runs() {
    for lines in [0, 64] {
        // CALL 2000:0; HLT -- at 2000:0: INC AX; RETF
        let mut guest = Guest::new(&[0x9A, 0, 0, 0, 0x20, 0xF4]);
        guest.lines = lines;
        guest.poke(0x2_0000, &[0x40, 0xCB]);
        assert_eq!(guest.run(100), Stop::Idle);
        assert_eq!((guest.reg(Reg::Rax), guest.cpu.rip, guest.reg(Reg::Rsp)), (1, CODE + 6, 0xF00));
    }
}

#[test]
fn on_a_286_a_stack_fault_is_interrupt_13() {
    let mut guest = Guest::with_profile(&Profile::I80286, &[0xCB]).with(Reg::Rsp, 0xFFFF);
    assert_eq!(guest.fault(), Some(13));
    let mut guest = Guest::new(&[0xCB]).with(Reg::Rsp, 0xFFFF);
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!(guest.cpu.rip, 0x40C);
}
