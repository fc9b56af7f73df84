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

#[test]
fn the_modrm_byte_that_makes_bytes_undefined_is_one_of_them() {
    // FF /7 is #UD; then something else makes it FF /6, push si. The block has to be decoded anew.
    let mut guest = Guest::new(&[0xFF, 0xFF]).with(Reg::Rsi, 0x1234);
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&guest.profile, &mut lines);
    emulator.policy_mut().exceptions = 1 << 6;
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 1);
    assert_eq!(stop, Ok(Stop::Exception(Fault::UD)));
    guest.poke(CODE + 1, &[0xF6]);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Budget));
    assert_eq!(guest.word(0xEFE), 0x1234);
}

#[test]
fn a_modrm_byte_in_the_next_page_is_fetched_before_an_opcode_is_undefined() {
    // bt ax, 1: 0F BA /4, where /0 does not exist
    let mut guest = Guest::new(&[]).with(Reg::Rax, 2);
    guest.poke(0x1FFE, &[0x0F, 0xBA, 0xE0, 0x01]);
    guest.cpu.rip = 0x1FFE;
    assert_eq!(guest.fault(), None);
    assert_eq!(guest.flags() & arch::rflags::CF, 1);
    // Beyond the segment it is #GP, and #UD where no ModRM byte would help.
    for (opcode, vector) in [(0xBA, 13), (0x0A, 6)] {
        let mut guest = Guest::new(&[]);
        guest.poke(0xFFFE, &[0x0F, opcode]);
        guest.cpu.rip = 0xFFFE;
        assert_eq!(guest.fault(), Some(vector), "0F {opcode:02X}");
    }
}
