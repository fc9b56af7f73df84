//! Tests of `isa/{flag,hint,system,msr,control,fpu}.rs` that take more than a case of
//! `testdata/cases/system.case`: several instructions, a trap, a policy, the bus.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use realmode::arch::control::*;
use realmode::arch::rflags::{CF, IF, RF, TF};
use realmode::*;

/// 64-bit code at CPL 0 without paging: a state that hardware cannot enter, and decode can.
fn long(code: &[u8]) -> Guest {
    let mut guest = Guest::new(code);
    guest.cpu.cr0 |= CR0_PE;
    guest.cpu.msr.efer = EFER_LME | EFER_LMA;
    guest.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0x9B | Attributes::L);
    guest
}

// ---- FACTS ----

#[test]
fn m10_clflush_on_mmio_is_a_check_and_no_access() {
    // CLFLUSH, CLFLUSHOPT, CLWB [bx]
    for code in [&[0x0F, 0xAE, 0x3F][..], &[0x66, 0x0F, 0xAE, 0x3F], &[0x66, 0x0F, 0xAE, 0x37]] {
        let mut guest = Guest::new(code).with(Reg::Rbx, 0xFFF);
        guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
        guest.step();
        assert_eq!((guest.bus.seen, guest.cpu.rip), (vec![], CODE + code.len() as u64));
    }
}

#[test]
fn m16_every_hint_nop_decodes_its_operand_and_touches_nothing() {
    let mut guest = Guest::new(&[]).with(Reg::Rbx, 0xFFFF);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    let before = guest.cpu.clone();
    for (opcode, modrm) in (0x18..=0x1Fu8).flat_map(|o| (0..=0xFFu8).map(move |m| (o, m))) {
        guest.poke(CODE, &[0x0F, opcode, modrm, 0, 0]);
        guest.cpu = before.clone();
        guest.step();
        let displacement = match (modrm >> 6, modrm & 7) {
            (0, 6) | (2, _) => 2,
            (1, _) => 1,
            _ => 0,
        };
        let rip = CODE + 3 + displacement;
        let after = Cpu { rip, ..before.clone() };
        assert_eq!(guest.cpu, after, "0F {opcode:02X} {modrm:02X}");
    }
    assert!(guest.bus.seen.is_empty());
}

#[test]
fn m16_endbr_and_rdssp_are_nops() {
    for last in [0xFA, 0xFB, 0xC8] {
        let mut guest = Guest::new(&[0xF3, 0x0F, 0x1E, last]).with(Reg::Rax, 0x1234);
        guest.step();
        assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (CODE + 4, 0x1234));
    }
}

#[test]
fn m20_instructions_without_memory_or_port_are_emulated() {
    // CLD; FNINIT; PAUSE; CPUID; MOV EAX, CR0; INC AX
    let code = [0xFC, 0xDB, 0xE3, 0xF3, 0x90, 0x0F, 0xA2, 0x0F, 0x20, 0xC0, 0x40];
    let mut guest = Guest::new(&code);
    assert_eq!(guest.run(6), Stop::Budget);
    assert_eq!(guest.cpu.rip, CODE + code.len() as u64);
}

#[test]
fn m22_mov_cr8_in_64_bit_code() {
    // MOV R10, CR8
    let mut guest = long(&[0x45, 0x0F, 0x20, 0xC2]);
    guest.cpu.cr8 = 9;
    guest.step();
    assert_eq!(guest.reg(Reg::R10), 9);
    // MOV CR8, R10
    let mut guest = long(&[0x45, 0x0F, 0x22, 0xC2]).with(Reg::R10, 15);
    guest.step();
    assert_eq!(guest.cpu.cr8, 15);
    let mut guest = long(&[0x45, 0x0F, 0x22, 0xC2]).with(Reg::R10, 16);
    guest.poke(8, &[0; 8]);
    guest.policy.exceptions = 1 << 13;
    assert_eq!(guest.run(1), Stop::Exception(Fault::GP));
    assert_eq!((guest.cpu.cr8, guest.cpu.rip), (0, CODE));
}

#[test]
fn m22_the_same_bytes_in_16_bit_code_are_inc_bp_and_mov_edx_cr0() {
    let mut guest = Guest::new(&[0x45, 0x0F, 0x20, 0xC2]).with(Reg::Rbp, 7);
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!((guest.reg(Reg::Rbp), guest.reg(Reg::Rdx)), (8, guest.cpu.cr0));
}

#[test]
fn d07_lock_before_rdrand_is_ud() {
    for code in [[0xF0, 0x0F, 0xC7, 0xF0], [0xF0, 0x0F, 0xC7, 0xF8]] {
        let mut guest = Guest::new(&code);
        guest.bus.random = Some(1);
        assert_eq!(guest.fault(), Some(6));
    }
}

#[test]
fn rdrand_takes_the_bus_number_and_sets_cf() {
    let mut guest = Guest::new(&[0x66, 0x0F, 0xC7, 0xF0]).with(Reg::Rax, u64::MAX);
    guest.bus.random = Some(0x1122_3344_5566_7788);
    guest.cpu.rflags |= arch::rflags::ARITH;
    guest.step();
    assert_eq!((guest.reg(Reg::Rax), guest.flags()), (0x5566_7788, CF));
}

#[test]
fn w13_after_pe_is_set_code_runs_on_in_the_real_mode_segment() {
    // MOV CR0, EAX; zeros up to IP = 1000: ADD [BX+SI], AL; then JMP FAR.
    let mut guest = Guest::new(&[]).with(Reg::Rax, 0x6000_0011).with(Reg::Rbx, 0x4000);
    guest.poke(0x9_F000, &[0x0F, 0x22, 0xC0]);
    guest.poke(0x9_F101, &[0xEA, 0x00, 0x00, 0x08, 0x00]);
    guest.cpu.seg[SegReg::Cs as usize] = Segment::real(0x9F00);
    guest.cpu.rip = 0;
    assert_eq!(guest.run(1 + 127), Stop::Budget);
    assert_eq!(guest.cpu.rip, 3 + 2 * 127);
    assert_eq!(guest.cpu.seg[SegReg::Cs as usize], Segment::real(0x9F00));
    assert_eq!(guest.peek(0x4000, 1)[0], 0x11u8.wrapping_mul(127));
    // The far jump reads the GDT, whose second descriptor is empty here.
    guest.poke(8, &[0; 8]);
    guest.policy.exceptions = 1 << 13;
    assert_eq!(guest.run(1), Stop::Exception(Fault::with_code(13, 8)));
    assert_eq!(guest.cpu.rip, 0x101);
}

#[test]
fn w14_selectors_that_keep_their_low_bits_do_not_lower_the_privilege() {
    // MOV CR0, EAX; MOV ECX, CR0; CLI; CLTS; MOV [2000], AX
    let code = [0x0F, 0x22, 0xC0, 0x0F, 0x20, 0xC1, 0xFA, 0x0F, 0x06, 0xA3, 0x00, 0x20];
    let mut guest = Guest::new(&[]).with(Reg::Rax, 0x6000_0019);
    guest.poke(0x1_0030 + 0x1000, &code);
    guest.cpu.seg = [Segment::real(0x1003); 6];
    assert_eq!(guest.run(5), Stop::Budget);
    assert_eq!((guest.reg(Reg::Rcx), guest.cpu.cr0), (0x6000_0019, 0x6000_0011));
    assert_eq!(guest.word(0x1_2030), 0x19);
    assert_eq!(guest.cpu.seg[SegReg::Ss as usize].selector, 0x1003);
}

#[test]
fn w19_an_exception_in_real_mode_pushes_no_error_code() {
    // MOV AX, [FFFF]: #GP has an error code elsewhere.
    let mut guest = Guest::new(&[0xA1, 0xFF, 0xFF]);
    assert_eq!(guest.fault(), Some(13));
    assert_eq!(guest.reg(Reg::Rsp), 0xF00 - 6);
    assert_eq!([0xEFA, 0xEFC, 0xEFE].map(|at| guest.word(at)), [CODE as u16, 0, 2]);
}

#[test]
fn w25_smsw_of_a_doubleword_register_stores_the_upper_bits_too() {
    let mut guest = Guest::new(&[0x66, 0x0F, 0x01, 0xE0]);
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0x6000_0010);
    let mut guest = Guest::new(&[0x66, 0x0F, 0x01, 0x26, 0x00, 0x20]);
    guest.poke(0x2000, &[0xAA; 4]);
    guest.step();
    assert_eq!(guest.peek(0x2000, 4), [0x10, 0, 0xAA, 0xAA]);
}

#[test]
fn w32_an_ap_trampoline_started_by_sipi() {
    // CLI; WBINVD; MOV AX, CS; MOV DS, AX; MOV dword [0100], 12345678; LIDT [0200]; HLT
    let code = [
        0xFA, 0x0F, 0x09, 0x8C, 0xC8, 0x8E, 0xD8, 0x66, 0xC7, 0x06, 0x00, 0x01, 0x78, 0x56, 0x34,
        0x12, 0x0F, 0x01, 0x1E, 0x00, 0x02, 0xF4,
    ];
    let mut guest = Guest::new(&[]);
    guest.poke(0x9_F000, &code);
    guest.poke(0x9_F200, &[0xFF, 0x03, 0, 0x10, 0, 0]);
    guest.cpu.activity = Activity::WaitForSipi;
    assert_eq!(guest.run(100), Stop::WaitForSipi);
    guest.cpu.pending.sipi = Some(0x9F);
    assert_eq!(guest.run(100), Stop::Idle);
    assert_eq!((guest.cpu.rip, guest.cpu.segment(SegReg::Cs).selector), (0x16, 0x9F00));
    assert_eq!(guest.peek(0x9_F100, 4), [0x78, 0x56, 0x34, 0x12]);
    assert_eq!(guest.cpu.idtr, TableRegister { base: 0x1000, limit: 0x3FF });
}

#[test]
fn b01_sti_with_tf_traps_at_once_and_holds_off_only_the_interrupt() {
    let mut guest = Guest::new(&[0xFB, 0xF8]);
    guest.cpu.rflags |= TF;
    guest.cpu.pending.interrupt = true;
    // The trap comes right after STI, with IF and TF in its frame, and before the interrupt.
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.word(0xEFA)), (0x401, CODE as u16 + 1));
    assert_eq!(u64::from(guest.word(0xEFE)), 2 | IF | TF);
    assert_eq!(guest.cpu.dr6, DR6_RESET | DR6_BS);
}

#[test]
fn b01_an_interrupt_is_taken_after_the_instruction_that_follows_sti() {
    for lines in [0, 64] {
        let mut guest = Guest::new(&[0xFB, 0x40, 0x40, 0x40]);
        guest.lines = lines;
        guest.cpu.pending.interrupt = true;
        guest.bus.vector = 0x21;
        assert_eq!(guest.run(3), Stop::Idle);
        assert_eq!((guest.word(0xEFA), guest.reg(Reg::Rax)), (CODE as u16 + 2, 1));
    }
}

#[test]
fn b02_after_mov_ss_nothing_is_taken_until_the_next_instruction_is_done() {
    // MOV SS, AX; CLC
    let mut guest = Guest::new(&[0x8E, 0xD0, 0xF8]);
    guest.cpu.rflags |= TF;
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.cpu.pending.debug), (CODE + 2, 0));
    assert!(guest.cpu.shadow.mov_ss);
    guest.cpu.rflags |= IF;
    guest.cpu.pending.interrupt = true;
    guest.cpu.pending.nmi = true;
    // CLC, then its trap, whose handler the NMI interrupts; the interrupt finds IF clear.
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.word(0xEFA), guest.cpu.dr6 & DR6_BS), (CODE as u16 + 3, DR6_BS));
    assert_eq!((guest.cpu.rip, guest.word(0xEF4)), (0x402, 0x401));
}

#[test]
fn b02_of_two_mov_ss_in_a_row_the_second_casts_no_shadow() {
    let mut guest = Guest::new(&[0x8E, 0xD0, 0x8E, 0xD0, 0xF8]);
    guest.cpu.rflags |= TF;
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.word(0xEFA)), (0x401, CODE as u16 + 4));
}

#[test]
fn b07_tf_traps_after_cpuid_rdmsr_and_in() {
    // CPUID; RDMSR; IN AL, DX
    for code in [&[0x0F, 0xA2][..], &[0x0F, 0x32], &[0xEC]] {
        let mut guest = Guest::new(code).with(Reg::Rcx, 0x1B).with(Reg::Rdx, 0x60);
        guest.bus.msrs.insert(0x1B, 0xFEE0_0900);
        guest.cpu.rflags |= TF;
        assert_eq!(guest.run(2), Stop::Idle);
        let next = CODE as u16 + code.len() as u16;
        assert_eq!((guest.cpu.rip, guest.word(0xEFA)), (0x402, next));
        assert_eq!(guest.cpu.dr6, DR6_RESET | DR6_BS);
    }
}

#[test]
fn b07_tf_traps_after_an_in_that_had_to_wait() {
    let mut guest = Guest::new(&[0xEC]).with(Reg::Rdx, 0x60);
    guest.cpu.rflags |= TF;
    guest.bus.pending = true;
    let mut lines = vec![CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&guest.profile, &mut lines);
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 10).unwrap();
    assert!(matches!(stop, Stop::Port(Request { address: 0x60, size: 1, .. })));
    emulator.reply(0x41).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 10).unwrap(), Stop::Idle);
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (0x402, 0x41));
    assert_eq!(guest.bus.seen, [Seen::In(0x60, 1)]);
}

#[test]
fn b10_rf_is_cleared_by_the_next_instruction() {
    let mut guest = Guest::new(&[0xF8]);
    guest.cpu.rflags |= RF;
    guest.step();
    assert_eq!(guest.cpu.rflags & RF, 0);
}

#[test]
fn b10_rf_stays_set_between_the_iterations_of_a_rep() {
    // REP STOSB, more than one slice
    let mut guest = Guest::new(&[0xF3, 0xAA]).with(Reg::Rcx, 0xF000);
    guest.cpu.seg[SegReg::Es as usize] = Segment::real(0x4000);
    guest.cpu.rflags |= RF;
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.cpu.rflags & RF), (CODE, RF));
    assert!((1..0xF000).contains(&guest.reg(Reg::Rcx)));
    while guest.cpu.rip == CODE {
        assert_eq!(guest.run(1), Stop::Budget);
    }
    assert_eq!((guest.reg(Reg::Rcx), guest.cpu.rflags & RF), (0, 0));
}

#[test]
fn b10_popfd_clears_rf() {
    // POPFD
    let mut guest = Guest::new(&[0x66, 0x9D]);
    guest.poke(0xF00, &(RF as u32 | 2).to_le_bytes());
    guest.step();
    assert_eq!(guest.cpu.rflags, 2);
}

#[test]
fn p19_invlpg_ignores_the_segment_limit() {
    // INVLPG [EBX]
    let mut guest = Guest::new(&[0x67, 0x0F, 0x01, 0x3B]).with(Reg::Rbx, 0x1234_5678);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0x1000);
    guest.step();
    assert_eq!(guest.bus.stale, [Some(Linear(0x1235_5678))]);
}

#[test]
fn p19_invlpg_of_an_address_that_is_not_canonical_does_nothing() {
    let mut guest = long(&[0x0F, 0x01, 0x3B]).with(Reg::Rbx, 1 << 60);
    guest.step();
    assert_eq!(guest.bus.stale, []);
}

#[test]
fn p20_ud_comes_before_the_operands_fault() {
    // ARPL, LAR, VERR, MOV to a segment register that does not exist, LGDT of a register; [FFFF].
    let codes: [&[u8]; 4] = [
        &[0x63, 0x06, 0xFF, 0xFF],
        &[0x0F, 0x02, 0x06, 0xFF, 0xFF],
        &[0x0F, 0x00, 0x26, 0xFF, 0xFF],
        &[0x8E, 0x36, 0xFF, 0xFF],
    ];
    for code in codes {
        assert_eq!(Guest::new(code).fault(), Some(6), "{code:02x?}");
    }
}

// ---- beside FACTS ----

#[test]
fn hlt_waits_for_what_can_wake_it() {
    let mut guest = Guest::new(&[0xF4]);
    assert_eq!(guest.run(9), Stop::Idle);
    assert_eq!((guest.cpu.rip, guest.cpu.activity), (CODE + 1, Activity::Halted));
    let mut guest = Guest::new(&[0xFB, 0xF4]);
    assert_eq!(guest.run(9), Stop::Halt);
    guest.cpu.pending.interrupt = true;
    assert_eq!(guest.run(9), Stop::Idle);
    assert_eq!(guest.word(0xEFA), CODE as u16 + 2);
}

#[test]
fn intercepts_stop_before_the_instruction() {
    let cases: [(&[u8], Intercepted); 12] = [
        (&[0xF4], Intercepted::Hlt),
        (&[0x0F, 0xA2], Intercepted::Cpuid),
        (&[0x0F, 0x31], Intercepted::Rdtsc),
        (&[0x0F, 0x32], Intercepted::Rdmsr),
        (&[0x0F, 0x22, 0xC0], Intercepted::WriteCr0),
        (&[0x0F, 0x01, 0xF0], Intercepted::WriteCr0),
        (&[0x0F, 0x23, 0xC0], Intercepted::DebugRegister),
        (&[0x0F, 0x01, 0x3F], Intercepted::Invlpg),
        (&[0x0F, 0x01, 0x16, 0, 0x20], Intercepted::DescriptorTable),
        (&[0xCD, 0x21], Intercepted::SoftwareInterrupt),
        (&[0xCF], Intercepted::Iret),
        (&[0xF3, 0x90], Intercepted::Pause),
    ];
    for (code, what) in cases {
        let mut guest = Guest::new(code);
        guest.policy.intercepts = Intercepts::NONE.with(what);
        let before = guest.cpu.clone();
        assert_eq!(guest.run(1), Stop::Intercept(what), "{code:02x?}");
        assert_eq!(guest.cpu, before);
    }
}

#[test]
fn cpuid_shows_the_operating_systems_bits_of_cr4() {
    let mut guest = Guest::new(&[0x0F, 0xA2]).with(Reg::Rax, 1);
    guest.cpu.cr4 = CR4_OSXSAVE;
    guest.step();
    assert_eq!(guest.reg(Reg::Rcx) >> 26 & 3, 3);
    let mut guest = Guest::new(&[0x0F, 0xA2]).with(Reg::Rax, 1);
    guest.step();
    assert_eq!(guest.reg(Reg::Rcx) >> 26 & 3, 1);
}

#[test]
fn rdtsc_counts_the_same_in_a_block_and_alone() {
    for lines in [0, 64] {
        // CLC; CLC; RDTSC
        let mut guest = Guest::new(&[0xF8, 0xF8, 0x0F, 0x31]);
        guest.lines = lines;
        assert_eq!(guest.run(3), Stop::Budget);
        assert_eq!(guest.reg(Reg::Rax), 2);
    }
}

#[test]
fn other_msrs_are_the_bus_s() {
    // WRMSR; RDMSR
    let mut guest = Guest::new(&[0x0F, 0x30, 0x0F, 0x32])
        .with(Reg::Rcx, 0x1B)
        .with(Reg::Rax, 0xFEE0_0800)
        .with(Reg::Rdx, 1);
    guest.bus.msrs.insert(0x1B, 0);
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(guest.bus.msrs[&0x1B], 0x1_FEE0_0800);
    assert_eq!((guest.reg(Reg::Rax), guest.reg(Reg::Rdx)), (0xFEE0_0800, 1));
}

#[test]
fn ptwrite_sends_32_bits_whatever_the_operand_size() {
    let mut guest = Guest::new(&[0xF3, 0x0F, 0xAE, 0xE0, 0xF3, 0x0F, 0xAE, 0x26, 0x00, 0x20]);
    guest.cpu.gpr[Reg::Rax] = 0x1234_5678_9ABC_DEF0;
    guest.poke(0x2000, &[1, 2, 3, 4, 5]);
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(guest.bus.traced, [0x9ABC_DEF0, 0x0403_0201]);
}

#[test]
fn clearing_and_setting_pe_forgets_translations_and_nothing_of_the_segments() {
    // MOV CR0, EAX; AND AL, FE; MOV CR0, EAX
    let code = [0x0F, 0x22, 0xC0, 0x24, 0xFE, 0x0F, 0x22, 0xC0];
    let mut guest = Guest::new(&code).with(Reg::Rax, 0x6000_0011);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::big_real(0x1234);
    let seg = guest.cpu.seg;
    assert_eq!(guest.run(3), Stop::Budget);
    assert_eq!((guest.cpu.cr0, guest.cpu.seg), (0x6000_0010, seg));
    assert_eq!(guest.bus.stale, [None, None]);
}

#[test]
fn paging_needs_pae_for_long_mode_and_sets_lma() {
    // MOV CR0, EAX
    let mut guest = Guest::new(&[0x0F, 0x22, 0xC0]).with(Reg::Rax, 0xE000_0011);
    guest.cpu.msr.efer = EFER_LME;
    assert_eq!(guest.fault(), Some(13));
    let mut guest = Guest::new(&[0x0F, 0x22, 0xC0]).with(Reg::Rax, 0xE000_0011);
    guest.cpu.msr.efer = EFER_LME;
    guest.cpu.cr4 = CR4_PAE;
    assert_eq!(guest.run(1), Stop::Budget);
    assert_eq!((guest.cpu.cr0, guest.cpu.msr.efer), (0xE000_0011, EFER_LME | EFER_LMA));
}

#[test]
fn without_ne_an_x87_error_goes_out_on_ferr() {
    // FWAIT; FNCLEX; FWAIT
    let mut guest = Guest::new(&[0x9B, 0xDB, 0xE2, 0x9B]);
    (guest.cpu.fpu.control, guest.cpu.fpu.status) = (0x37E, 0x8081);
    assert_eq!(guest.run(3), Stop::Budget);
    assert_eq!((guest.bus.ferr, guest.cpu.fpu.status), (1, 0));
}

#[test]
fn x87_control_words_in_a_device_are_one_access() {
    // FLDCW [0]; FNSTSW [2]
    let mut guest = Guest::new(&[0xD9, 0x2E, 0x00, 0x00, 0xDD, 0x3E, 0x02, 0x00]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[..2].copy_from_slice(&[0x7F, 0x02]);
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE, 2), Seen::Write(DEVICE + 2, 2, 0)]);
    assert_eq!(guest.cpu.fpu.control, 0x27F | 0x40);
}

#[test]
fn monitor_checks_its_address_and_mwait_ends_at_once() {
    let machine = |code: &[u8], rcx: u64| {
        let mut guest = Guest::new(code).with(Reg::Rcx, rcx).with(Reg::Rax, 0x1000);
        guest.profile.features |= Features::MONITOR | Features::MONITORX;
        guest
    };
    for (code, known) in [
        ([0x0F, 0x01, 0xC8], 0),
        ([0x0F, 0x01, 0xC9], 1),
        ([0x0F, 0x01, 0xFA], 0),
        ([0x0F, 0x01, 0xFB], 3),
    ] {
        assert_eq!(machine(&code, known).fault(), None, "{code:02x?}");
        assert_eq!(machine(&code, 4).fault(), Some(13), "{code:02x?}");
        let mut without = Guest::new(&code);
        assert_eq!(without.fault(), Some(6), "{code:02x?}");
    }
    // The address is a byte of DS, or of another segment.
    let mut beyond = machine(&[0x66, 0x67, 0x0F, 0x01, 0xC8], 0);
    assert_eq!(beyond.fault(), Some(6), "66 makes it another instruction");
    let mut beyond = machine(&[0x67, 0x0F, 0x01, 0xC8], 0).with(Reg::Rax, 0x1_0000);
    assert_eq!(beyond.fault(), Some(13));
    let mut big = machine(&[0x65, 0x67, 0x0F, 0x01, 0xC8], 0).with(Reg::Rax, 0x1_0000);
    big.cpu.seg[SegReg::Gs as usize] = Segment::big_real(0);
    assert_eq!(big.fault(), None);
}
