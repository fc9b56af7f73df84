//! Tests of blocks: what runs cached ends as what runs uncached.

use crate::guest::{CODE, Guest};
use realmode::arch::control::{CR0_PE, EFER_LMA, EFER_LME};
use realmode::*;

#[test]
fn ip_of_an_8086_is_0_after_an_instruction_that_ends_at_ffff() {
    let mut guest = Guest::with_profile(&Profile::I8086, &[]);
    guest.poke(0xFFFE, &[0xB0, 0x01]);
    guest.cpu.rip = 0xFFFE;
    guest.step();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (0, 1));
}

#[test]
fn an_8086_has_neither_limits_nor_32_bit_code() {
    // mov al, [bx+si] with a code segment that claims a limit and D.
    let mut guest = Guest::with_profile(&Profile::I8086, &[0x8A, 0x00]);
    let cs = &mut guest.cpu.seg[SegReg::Cs as usize];
    (cs.limit, cs.attributes) = (0x10, Attributes(0x93 | Attributes::DB));
    guest.cpu.gpr[Reg::Rbx] = 0xFFFF_F000;
    guest.cpu.gpr[Reg::Rsi] = 0x2000;
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0x8A);
}

#[test]
fn code_of_64_bits_ignores_the_base_of_cs() {
    // mov eax, 0x11223344
    for lines in [0, 64] {
        let mut guest = Guest::new(&[0xB8, 0x44, 0x33, 0x22, 0x11]);
        guest.lines = lines;
        guest.cpu.cr0 |= CR0_PE;
        guest.cpu.msr.efer = EFER_LMA | EFER_LME;
        let cs = &mut guest.cpu.seg[SegReg::Cs as usize];
        (cs.base, cs.attributes) = (0x5_0000, Attributes(0x9B | Attributes::L));
        guest.step();
        assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (CODE + 5, 0x1122_3344));
    }
}
