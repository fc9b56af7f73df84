//! Virtual-8086 mode: how it is entered and left, what IOPL forbids in it, and its extensions
//! (SDM vol. 3B, "8086 Emulation").

use crate::guest::{CODE, Guest, Seen};
use crate::protected::{
    self, CODE32, CONFORMING, DATA32, IDT, TSS, USER_CODE, USER_DATA, faults, gate, stacked,
};
use realmode::arch::control::{CR4_PVI, CR4_VME};
use realmode::arch::rflags::{AC, CF, IF, IOPL, NT, RF, TF, VIF, VIP, VM};
use realmode::*;

/// Where the port bitmap begins in the TSS; the redirection bitmap lies below it.
const PORTS: u64 = 0x88;
const FIXED: u64 = 2;

fn segment(selector: u16) -> Segment {
    Segment {
        selector,
        base: u64::from(selector) << 4,
        limit: 0xFFFF,
        attributes: Attributes(0xF3),
    }
}

/// A guest in virtual-8086 mode: DS, ES, FS, GS are 11h, 12h, 13h, 14h, all INT n are the
/// monitor's, no port is allowed.
fn guest(iopl: u64, code: &[u8]) -> Guest {
    let mut guest = protected::guest(code);
    guest.poke(TSS + 0x66, &(PORTS as u16).to_le_bytes());
    guest.poke(TSS + PORTS - 32, &[0xFF; 32 + 0x21]);
    let cpu = &mut guest.cpu;
    cpu.tr.limit = PORTS as u32 + 0x20;
    cpu.rflags = FIXED | VM | iopl << 12;
    cpu.seg = [0x12, 0, 0, 0x11, 0x13, 0x14].map(segment);
    guest
}

/// The same with the extensions, and this vector sent to the program itself.
fn extended(iopl: u64, code: &[u8], vector: u8) -> Guest {
    let mut guest = guest(iopl, code);
    guest.cpu.cr4 |= CR4_VME;
    let at = TSS + PORTS - 32 + u64::from(vector >> 3);
    guest.poke(at, &[!(1 << (vector & 7))]);
    guest
}

/// The words of an 8086 frame on the program's stack: IP, CS, FLAGS.
fn frame(guest: &Guest) -> [u64; 3] {
    let sp = guest.reg(Reg::Rsp) & 0xFFFF;
    [0, 2, 4].map(|i| u64::from(guest.word(sp + i)))
}

fn is_refused(guest: &mut Guest) {
    let rip = guest.cpu.rip;
    assert_eq!(faults(guest), (13, 0));
    assert_eq!(u64::from(stacked(guest, 1)), rip);
}

#[test]
fn an_exception_pushes_all_segments_and_leaves_them_null() {
    // ud2
    let mut guest = guest(0, &[0x0F, 0x0B]);
    guest.cpu.gpr[Reg::Rsp] = 0x5_0F00;
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x6006, 0x4000 - 36));
    let expected = [CODE as u32, 0, (FIXED | RF | VM) as u32, 0x5_0F00, 0, 0x12, 0x11, 0x13, 0x14];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(|i| stacked(&guest, i)), expected);
    assert_eq!((guest.cpu.cpl(), guest.cpu.rflags & VM), (0, 0));
    for reg in [SegReg::Es, SegReg::Ds, SegReg::Fs, SegReg::Gs] {
        let segment = guest.cpu.segment(reg);
        assert_eq!((segment.selector, segment.attributes.is_usable()), (0, false));
    }
    assert_eq!(guest.cpu.segment(SegReg::Ss).selector, DATA32);
}

#[test]
fn a_16_bit_gate_pushes_words() {
    let mut guest = guest(3, &[0x0F, 0x0B]);
    guest.poke(IDT + 6 * 8, &gate(CODE32, 0x6006, 0x86));
    guest.step();
    let esp = guest.reg(Reg::Rsp);
    assert_eq!(esp, 0x4000 - 18);
    let words: Vec<u16> = (0..9).map(|i| guest.word(esp + 2 * i)).collect();
    assert_eq!(words, [CODE as u16, 0, 0x3002, 0xF00, 0, 0x12, 0x11, 0x13, 0x14]);
}

#[test]
fn only_code_of_level_0_that_does_not_conform_may_interrupt_it() {
    for selector in [USER_CODE, CONFORMING] {
        let mut guest = guest(0, &[0x0F, 0x0B]);
        guest.poke(IDT + 6 * 8, &gate(selector, 0x6006, 0x8E));
        assert_eq!(faults(&mut guest), (13, u32::from(selector & !3) | 1));
    }
}

#[test]
fn iret_of_level_0_enters_it() {
    let mut guest = protected::guest(&[0xCF]);
    let image = FIXED | VM | IOPL | IF | AC | VIP | NT | CF;
    let words = [0x1234, 0x21, image, 0x9_0E00, 0x22, 0x23, 0x24, 0x25, 0x26];
    let bytes: Vec<u8> = words.iter().flat_map(|word| (*word as u32).to_le_bytes()).collect();
    guest.poke(0xF00, &bytes);
    guest.cpu.nmi_blocked = true;
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rsp)), (0x1234, 0x9_0E00));
    assert_eq!(guest.cpu.seg, [0x23, 0x21, 0x22, 0x24, 0x25, 0x26].map(segment));
    assert_eq!((guest.cpu.rflags, guest.cpu.cpl(), guest.cpu.nmi_blocked), (image, 3, false));
    // IP has 16 bits.
    let mut far = protected::guest(&[0xCF]);
    far.poke(0xF00, &bytes);
    far.poke(0xF02, &[1]);
    assert_eq!(faults(&mut far), (13, 0));
}

#[test]
fn vm_in_an_image_means_nothing_outside_level_0_or_in_16_bits() {
    let mut outer = protected::guest(&[0xCF]);
    outer.cpu.seg[SegReg::Cs as usize].selector = USER_CODE;
    outer.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0xC0FB);
    outer.cpu.seg[SegReg::Ss as usize].selector = USER_DATA;
    outer.cpu.seg[SegReg::Ss as usize].attributes = Attributes(0xC0F3);
    let words = [0x1234, u32::from(USER_CODE), (VM | FIXED) as u32];
    for (i, word) in words.iter().enumerate() {
        outer.poke(0xF00 + 4 * i as u64, &word.to_le_bytes());
    }
    outer.step();
    assert_eq!((outer.cpu.rip, outer.cpu.rflags & VM), (0x1234, 0));
    let mut short = protected::guest(&[0x66, 0xCF]);
    short.poke(0xF00, &[0x34, 0x12, CODE32 as u8, 0, 2, 0, 2, 0]);
    short.step();
    assert_eq!((short.cpu.rip, short.cpu.rflags & VM), (0x1234, 0));
}

#[test]
fn below_iopl_3_what_reaches_the_interrupt_flag_is_the_monitors() {
    let codes: [&[u8]; 9] = [
        &[0x9C],
        &[0x9D],
        &[0x66, 0x9C],
        &[0x66, 0x9D],
        &[0xCF],
        &[0x66, 0xCF],
        &[0xFA],
        &[0xFB],
        &[0xCD, 0x21],
    ];
    for code in codes {
        is_refused(&mut guest(2, code));
    }
    // The extensions serve the 16-bit forms, and INT n where the bitmap says so.
    for code in [&[0x66, 0x9C][..], &[0x66, 0x9D], &[0x66, 0xCF], &[0xCD, 0x21]] {
        is_refused(&mut extended(2, code, 0x80));
    }
}

#[test]
fn at_iopl_3_the_flags_are_the_programs_but_for_iopl_and_the_virtual_ones() {
    let mut push = guest(3, &[0x66, 0x9C]);
    push.cpu.rflags |= IF | VIF | RF | CF;
    push.step();
    let pushed = u32::from_le_bytes(push.peek(0xEFC, 4).try_into().unwrap());
    assert_eq!(u64::from(pushed), FIXED | IOPL | IF | VIF | CF);
    let mut pop = guest(3, &[0x66, 0x9D]);
    pop.cpu.rflags |= VIP;
    pop.poke(0xF00, &((IF | NT | AC | VIF | RF) as u32).to_le_bytes());
    pop.step();
    assert_eq!(pop.cpu.rflags, FIXED | VM | IOPL | IF | NT | AC | VIP);
    let mut iret = guest(3, &[0xCF]);
    iret.cpu.rflags |= AC | NT;
    iret.poke(0xF00, &[0x00, 0x20, 0x30, 0x00, 0x01, 0x02]);
    iret.step();
    assert_eq!((iret.cpu.rip, iret.reg(Reg::Rsp)), (0x2000, 0xF06));
    assert_eq!(*iret.cpu.segment(SegReg::Cs), segment(0x30));
    // NT asks for no task here.
    assert_eq!(iret.cpu.rflags, FIXED | VM | IOPL | IF | AC | CF);
}

#[test]
fn with_the_extensions_vif_is_if_below_iopl_3() {
    let mut push = extended(0, &[0x9C], 0);
    push.cpu.rflags |= VIF;
    push.step();
    assert_eq!(u64::from(push.word(0xEFE)), FIXED | IOPL | IF);
    let mut pop = extended(0, &[0x9D], 0);
    pop.cpu.rflags |= IF;
    pop.poke(0xF00, &((IF | CF | NT) as u16).to_le_bytes());
    pop.step();
    assert_eq!(pop.cpu.rflags, FIXED | VM | IF | VIF | CF | NT);
    let mut iret = extended(0, &[0xCF], 0);
    iret.cpu.rflags |= IF | VIF;
    iret.poke(0xF00, &[0x00, 0x20, 0x30, 0x00, 0x03, 0x30]);
    iret.step();
    assert_eq!((iret.cpu.rip, iret.cpu.rflags), (0x2000, FIXED | VM | IF | CF));
    let mut cli = extended(0, &[0xFA], 0);
    cli.cpu.rflags |= IF | VIF;
    cli.step();
    assert_eq!(cli.cpu.rflags, FIXED | VM | IF);
    let mut sti = extended(0, &[0xFB], 0);
    sti.step();
    assert_eq!((sti.cpu.rflags, sti.cpu.shadow), (FIXED | VM | VIF, Shadow::NONE));
}

#[test]
fn a_virtual_interrupt_that_waits_refuses_what_would_let_it_in() {
    for code in [&[0x9D][..], &[0xCF], &[0xFB]] {
        for image in [IF, TF] {
            let mut guest = extended(0, code, 0);
            guest.cpu.rflags |= VIP;
            guest.poke(0xF04, &(image as u16).to_le_bytes());
            guest.poke(0xF00, &(if code == [0x9D] { image as u16 } else { 0 }).to_le_bytes());
            is_refused(&mut guest);
        }
    }
    // Without one, and without TF, it is let in.
    let mut guest = extended(0, &[0x9D], 0);
    guest.cpu.rflags |= VIP;
    guest.step();
    assert_eq!(guest.cpu.rflags, FIXED | VM | VIP);
}

#[test]
fn p31_vif_and_vip_together_fault_before_the_next_instruction() {
    // ud2, which is not looked at.
    let mut guest = extended(0, &[0x0F, 0x0B], 0);
    guest.cpu.rflags |= VIF | VIP;
    is_refused(&mut guest);
    let mut plain = extended(0, &[0x90], 0);
    plain.cpu.rflags |= VIF | VIP;
    plain.cpu.cr4 &= !CR4_VME;
    plain.step();
    assert_eq!(plain.cpu.rip, CODE + 1);
    let mut old = extended(0, &[0x90], 0);
    old.profile.features.remove(Features::VME);
    old.cpu.rflags |= VIF | VIP;
    old.step();
    assert_eq!(old.cpu.rip, CODE + 1);
}

#[test]
fn p31_level_3_of_protected_mode_has_a_virtual_flag_with_pvi() {
    let user = |code: &[u8]| {
        let mut guest = protected::guest(code);
        guest.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0xC0FB);
        guest.cpu.seg[SegReg::Cs as usize].selector = USER_CODE;
        guest.cpu.seg[SegReg::Ss as usize].attributes = Attributes(0xC0F3);
        guest.cpu.seg[SegReg::Ss as usize].selector = USER_DATA;
        guest.cpu.cr4 |= CR4_PVI;
        guest
    };
    let mut waiting = user(&[0x90]);
    waiting.cpu.rflags |= VIF | VIP;
    is_refused(&mut waiting);
    // A return to level 3 inside a block comes upon it too.
    let mut ret = protected::guest(&[0xCB]);
    ret.cpu.cr4 |= CR4_PVI;
    ret.cpu.rflags |= VIF | VIP;
    for (i, word) in [0x2000, USER_CODE.into(), 0xE00, u32::from(USER_DATA)].iter().enumerate() {
        ret.poke(0xF00 + 4 * i as u64, &word.to_le_bytes());
    }
    ret.poke(0x2000, &[0x0F, 0x0B]);
    assert_eq!(ret.run(2), Stop::Budget);
    assert_eq!((ret.cpu.rip, stacked(&ret, 1)), (0x600D, 0x2000));
    let mut inner = user(&[0x90]);
    inner.cpu.rflags |= VIF | VIP;
    inner.cpu.seg[SegReg::Ss as usize].attributes = Attributes(0xC0D3);
    inner.step();
    assert_eq!(inner.cpu.rip, CODE + 1);
    // POPF knows nothing of it.
    let mut pop = user(&[0x9D]);
    pop.cpu.rflags |= VIF;
    pop.poke(0xF00, &(IF as u32).to_le_bytes());
    pop.step();
    assert_eq!(pop.cpu.rflags, FIXED | VIF);
}

/// Methods 1 to 6 of the manual's table of software interrupts.
#[test]
fn int_n_goes_where_iopl_and_the_bitmap_send_it() {
    const INT: &[u8] = &[0xCD, 0x21];
    let open = |guest: &Guest| guest.poke(IDT + 0x21 * 8, &gate(CODE32, 0x6021, 0xEE));
    for mut monitored in [guest(3, INT), extended(3, INT, 0x22)] {
        // The gate's DPL counts.
        assert_eq!(faults(&mut monitored), (13, 0x21 * 8 + 2));
    }
    for mut monitored in [guest(3, INT), extended(3, INT, 0x22)] {
        open(&monitored);
        monitored.step();
        assert_eq!((monitored.cpu.rip, monitored.cpu.cpl()), (0x6021, 0));
        assert_eq!(stacked(&monitored, 0), CODE as u32 + 2);
    }
    for mut refused in [guest(0, INT), extended(0, INT, 0x22)] {
        open(&refused);
        is_refused(&mut refused);
    }
    let mut own = extended(3, INT, 0x21);
    own.cpu.rflags |= IF | TF | VIF | NT;
    own.step();
    assert_eq!((own.cpu.rip, own.cpu.rflags), (0x421, FIXED | VM | IOPL | VIF | NT));
    assert_eq!(frame(&own), [CODE + 2, 0, FIXED | IOPL | IF | TF | NT]);
    let mut with_vif = extended(0, INT, 0x21);
    with_vif.cpu.rflags |= IF | VIF;
    with_vif.step();
    assert_eq!((with_vif.cpu.rip, with_vif.cpu.rflags), (0x421, FIXED | VM | IF));
    assert_eq!(frame(&with_vif), [CODE + 2, 0, FIXED | IOPL | IF]);
    assert_eq!(*with_vif.cpu.segment(SegReg::Cs), segment(0));
}

#[test]
fn a_redirection_bitmap_that_is_not_in_the_tss_is_gp() {
    let mut short = extended(3, &[0xCD, 0xFF], 0xFF);
    short.cpu.tr.limit = PORTS as u32 - 2;
    is_refused(&mut short);
    let mut low = extended(3, &[0xCD, 0x00], 0);
    low.poke(TSS + 0x66, &[0x1F, 0]);
    is_refused(&mut low);
    let mut small = extended(3, &[0xCD, 0x00], 0);
    small.cpu.tr.attributes = Attributes(0x83);
    small.poke(TSS + 2, &[0x00, 0x40, DATA32 as u8, 0]);
    is_refused(&mut small);
}

#[test]
fn int3_and_into_ask_only_the_gate() {
    for (code, vector) in [(&[0xCC][..], 3), (&[0xCE], 4)] {
        for mut program in [guest(0, code), extended(0, code, vector as u8)] {
            program.cpu.rflags |= arch::rflags::OF;
            assert_eq!(faults(&mut program), (13, vector * 8 + 2));
        }
        let mut open = guest(0, code);
        open.cpu.rflags |= arch::rflags::OF;
        open.poke(IDT + u64::from(vector) * 8, &gate(CODE32, 0x6000 + vector, 0xEE));
        open.step();
        assert_eq!(open.cpu.rip, u64::from(0x6000 + vector));
    }
    // INT1 does not ask.
    let mut trap = guest(0, &[0xF1]);
    trap.step();
    assert_eq!(trap.cpu.rip, 0x6001);
}

#[test]
fn ports_are_the_bitmaps_at_any_iopl() {
    for iopl in [0, 3] {
        // in al, 10h
        is_refused(&mut guest(iopl, &[0xE4, 0x10]));
        let mut allowed = guest(iopl, &[0xE4, 0x10]);
        allowed.poke(TSS + PORTS + 2, &[0xFE]);
        allowed.step();
        assert_eq!(allowed.bus.seen, [Seen::In(0x10, 1)]);
    }
}

#[test]
fn what_is_not_there_and_what_is_privileged() {
    // sldt ax; str ax; lldt ax; lar ax, ax; arpl ax, ax
    let absent: [&[u8]; 5] = [
        &[0x0F, 0x00, 0xC0],
        &[0x0F, 0x00, 0xC8],
        &[0x0F, 0x00, 0xD0],
        &[0x0F, 0x02, 0xC0],
        &[0x63, 0xC0],
    ];
    for code in absent {
        let mut guest = guest(3, code);
        guest.step();
        assert_eq!(guest.cpu.rip, 0x6006, "{code:x?}");
    }
    // hlt; mov cr0, eax; mov eax, cr0; lgdt [bx]; lmsw ax; clts; rdmsr
    let privileged: [&[u8]; 7] = [
        &[0xF4],
        &[0x0F, 0x22, 0xC0],
        &[0x0F, 0x20, 0xC0],
        &[0x0F, 0x01, 0x17],
        &[0x0F, 0x01, 0xF0],
        &[0x0F, 0x06],
        &[0x0F, 0x32],
    ];
    for code in privileged {
        is_refused(&mut guest(3, code));
    }
}

#[test]
fn p29_segments_are_paragraphs_of_64_kib() {
    // mov ds, ax; mov al, [FFFF]; mov ax, [FFFF]
    let mut guest = guest(0, &[0x8E, 0xD8, 0xA0, 0xFF, 0xFF, 0xA1, 0xFF, 0xFF]);
    guest.poke(0x2_FFFF, &[0x5A]);
    guest.cpu.gpr[Reg::Rax] = 0x2000;
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(*guest.cpu.segment(SegReg::Ds), segment(0x2000));
    assert_eq!(guest.reg(Reg::Rax) & 0xFF, 0x5A);
    is_refused(&mut guest);
}

#[test]
fn an_interrupt_comes_in_whatever_vif_says() {
    let mut guest = extended(0, &[0x90], 0);
    guest.cpu.rflags |= IF;
    guest.cpu.pending.interrupt = true;
    guest.bus.edge = true;
    assert_eq!(guest.run(1), Stop::Idle);
    assert_eq!((guest.cpu.rip, stacked(&guest, 0)), (0x6021, CODE as u32));
    assert_eq!(u64::from(stacked(&guest, 2)), FIXED | VM | IF);
}
