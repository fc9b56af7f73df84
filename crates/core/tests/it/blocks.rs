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

#[test]
fn a_repeated_store_that_meets_its_own_bytes_is_fetched_anew() {
    // rep stosb over itself: the first store makes it inc ax; stosb.
    let run = |lines| {
        let mut guest = Guest::new(&[0xF3, 0xAA, 0x40, 0x40, 0x40, 0x40])
            .with(Reg::Rax, 0x40)
            .with(Reg::Rcx, 8)
            .with(Reg::Rdi, CODE);
        guest.lines = lines;
        assert_eq!(guest.run(3), Stop::Budget);
        guest
    };
    let (cached, uncached) = (run(64), run(0));
    assert_eq!(cached.cpu, uncached.cpu);
    assert_eq!(cached.reg(Reg::Rcx), 7);
    assert_eq!(cached.peek(CODE, 3), uncached.peek(CODE, 3));
}

#[test]
fn a_budget_does_not_depend_on_the_road_that_a_repetition_takes() {
    // rep stosb beside code, so that each iteration is careful, and far from it
    let run = |target| {
        let mut guest =
            Guest::new(&[0xF3, 0xAA, 0xEB, 0xFE]).with(Reg::Rcx, 9).with(Reg::Rdi, target);
        assert_eq!(guest.run(2), Stop::Budget);
        (guest.cpu.rip, guest.reg(Reg::Rcx))
    };
    assert_eq!(run(CODE + 8), run(0x3000));
}

#[test]
fn call_with_a_bad_target_and_a_full_stack_faults_alike_when_observed() {
    struct Nobody;
    impl Observer for Nobody {}
    let run = |observe: bool| {
        // call [0x2000], where 0 + CS limit is 0x1FFF
        let mut guest = Guest::new(&[0xFF, 0x16, 0x00, 0x20]);
        guest.poke(0x2000, &[0x00, 0x30]);
        guest.cpu.seg[SegReg::Cs as usize].limit = 0x1FFF;
        guest.cpu.seg[SegReg::Ss as usize].limit = 0x10;
        let mut emulator = Emulator::new(&guest.profile, &mut []);
        emulator.policy_mut().exceptions = !0;
        if observe {
            emulator.run_observed(&mut guest.cpu, &mut guest.bus, 1, &mut Nobody)
        } else {
            emulator.run(&mut guest.cpu, &mut guest.bus, 1)
        }
    };
    assert_eq!(run(false), run(true));
    assert!(matches!(run(false), Ok(Stop::Exception(_))));
}
