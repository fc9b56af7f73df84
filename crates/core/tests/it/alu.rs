//! Tests of `isa/alu.rs`.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use realmode::arch::rflags::{AF, CF, OF, PF, SF, ZF};
use realmode::*;

#[test]
fn add_sets_result_and_flags() {
    let mut guest = Guest::new(&[0x01, 0xD8]).with(Reg::Rax, 0xFFFF).with(Reg::Rbx, 1);
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0);
    assert_eq!(guest.flags(), CF | ZF | AF | PF);
    assert_eq!(guest.cpu.rip, CODE + 2);
}

#[test]
fn m08_or_on_mmio_is_one_read_and_one_write() {
    // or [0], al with DS = B800
    let mut guest = Guest::new(&[0x08, 0x06, 0x00, 0x00]).with(Reg::Rax, 0x81);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[0] = 0x10;
    guest.step();
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE, 1), Seen::Write(DEVICE, 1, 0x91)]);
    assert_eq!(guest.flags(), SF);
}

#[test]
fn m01_test_on_mmio_reads_once_and_writes_nothing() {
    let mut guest = Guest::new(&[0x66, 0xF7, 0x06, 0x04, 0x00, 0xFF, 0xFF, 0, 0]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.step();
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE + 4, 4)]);
    assert_eq!(guest.flags(), ZF | PF);
}

#[test]
fn a_word_at_offset_ffff_raises_gp_and_writes_nothing() {
    let mut guest = Guest::new(&[0x01, 0x06, 0xFF, 0xFF]).with(Reg::Rax, 0x1234);
    assert_eq!(guest.fault(), Some(13));
    assert_eq!(guest.word(0xEFE - 4), CODE as u16);
    assert_eq!(guest.word(0xFFFF), 0);
}

#[test]
fn lock_on_a_register_is_ud() {
    assert_eq!(Guest::new(&[0xF0, 0x01, 0xD8]).fault(), Some(6));
    assert_eq!(Guest::new(&[0xF0, 0x38, 0x06, 0, 0x20]).fault(), Some(6));
    assert_eq!(Guest::new(&[0xF0, 0x00, 0x06, 0, 0x20]).fault(), None);
}

#[test]
fn neg_of_zero_clears_cf_and_of_the_minimum_sets_of() {
    let mut guest = Guest::new(&[0xF7, 0xD8]);
    guest.step();
    assert_eq!(guest.flags(), ZF | PF);
    let mut guest = Guest::new(&[0xF7, 0xD8]).with(Reg::Rax, 0x8000);
    guest.step();
    assert_eq!(guest.flags(), CF | OF | SF | PF);
}
