//! FACTS lines that need more than a case can say: the host's side of the API. Each test is named
//! by the line it covers.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::guest::{CODE, DEVICE, Guest, Seen};
use realmode::arch::rflags::{ARITH, CF, IF, PF, RF, ZF};
use realmode::*;

/// FADD ST, ST(1): recognised, not executed.
const FADD: [u8; 2] = [0xD8, 0xC1];
/// MOV AL, [0].
const LOAD: [u8; 3] = [0xA0, 0x00, 0x00];

/// A guest whose DS is the device page.
fn at_device(code: &[u8]) -> Guest {
    let mut guest = Guest::new(code);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest
}

fn unimplemented(stop: Stop) -> Unimplemented {
    let Stop::Unimplemented(what) = stop else { panic!("{stop:?}") };
    what
}

#[test]
fn m17_what_is_not_executed_is_reported_with_bytes_mode_place_and_reason() {
    let mut guest = Guest::new(&FADD);
    let before = guest.cpu.clone();
    let what = unimplemented(guest.run(1));
    assert_eq!(what.reason, UnimplementedReason::Instruction);
    assert_eq!((what.rip, what.bits), (CODE, 16));
    assert_eq!(what.bytes[..usize::from(what.len)], FADD);
    assert_eq!(guest.cpu, before);
}

#[test]
fn m19_no_bytes_at_the_end_of_a_page_or_segment_panic() {
    let mut guest = Guest::new(&[]);
    let fresh = guest.cpu.clone();
    for first in 0..=255u8 {
        for second in [0x00, 0x04, 0x0F, 0x38, 0x44, 0x84, 0x8D, 0xC4, 0xE0, 0xFF] {
            for left in [1, 2, 3, 7] {
                for (limit, lines) in [(0xFFFF, 0), (0x2FFF, 16)] {
                    let start = 0x3000 - left;
                    guest.poke(start, &[first, second, second, second, second, second, second, 5]);
                    guest.cpu = fresh.clone();
                    guest.cpu.rip = start;
                    guest.cpu.seg[SegReg::Cs as usize].limit = limit;
                    guest.lines = lines;
                    guest.run(1);
                }
            }
        }
    }
}

#[test]
fn m20_a_vmm_can_give_the_guest_an_exception_for_what_is_not_executed() {
    let mut guest = Guest::new(&FADD);
    unimplemented(guest.run(1));
    guest.cpu.pending.event = Some(Event::Exception(Fault::UD));
    assert_eq!(guest.run(0), Stop::Budget);
    assert_eq!(guest.cpu.rip, 0x400 + 6);
    assert_eq!(guest.word(0xEFA), CODE as u16);
}

#[test]
fn r04_bytes_of_a_split_rep_are_not_used_after_the_guest_has_run() {
    let mut guest = Guest::new(&[0xF3, 0xA4]).with(Reg::Rcx, 0xC000);
    guest.cpu.gpr[Reg::Rsi] = 0x2000;
    guest.cpu.gpr[Reg::Rdi] = 0x2000;
    // INT 20h: mov byte [1000], 40h (inc ax); iret
    guest.poke(0x80, &[0x00, 0x06, 0, 0]);
    guest.poke(0x600, &[0xC6, 0x06, 0x00, 0x10, 0x40, 0xCF]);
    let mut lines = [CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
    let left = guest.cpu.gpr[Reg::Rcx];
    assert!(guest.cpu.rip == CODE && left != 0 && left < 0xC000, "{left:x} iterations left");
    guest.cpu.rflags |= IF;
    guest.cpu.pending.interrupt = true;
    guest.bus.edge = true;
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 3).unwrap(), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (CODE + 1, 1));
    assert_eq!(guest.reg(Reg::Rcx), left);
}

#[test]
fn r04_nor_after_the_vmm_has_changed_them() {
    let mut guest = Guest::new(&[0xF3, 0xA4]).with(Reg::Rcx, 0xC000);
    let mut lines = [CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    guest.cpu.gpr[Reg::Rsi] = 0x2000;
    guest.cpu.gpr[Reg::Rdi] = 0x2000;
    emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap();
    assert_eq!(guest.cpu.rip, CODE);
    guest.poke(CODE, &[0x40]);
    emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap();
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (CODE + 1, 1));
}

#[test]
fn r07_an_instruction_with_sixty_device_accesses_is_no_trouble() {
    // enter 0, 31 with frame pointers and stack in the device
    let mut guest = Guest::new(&[0x66, 0xC8, 0, 0, 31]);
    guest.cpu.seg[SegReg::Ss as usize] = Segment::real(0xB800);
    guest.cpu.gpr[Reg::Rsp] = 0x800;
    guest.cpu.gpr[Reg::Rbp] = 0xF00;
    for i in 0..31u8 {
        guest.bus.device[0xF00 - 4 * usize::from(i)] = i;
    }
    guest.step();
    assert_eq!(guest.bus.seen.len(), 1 + 30 * 2 + 1);
    for i in 1..31u8 {
        assert_eq!(guest.bus.device[0x800 - 4 - 4 * usize::from(i)], i);
    }
    assert_eq!(guest.reg(Reg::Rsp), 0x800 - 32 * 4);
}

#[test]
fn r08_rep_insb_of_a_large_block_into_a_device() {
    let mut guest = Guest::new(&[0xF3, 0x6C, 0xF4]).with(Reg::Rcx, 0x800);
    guest.cpu.seg[SegReg::Es as usize] = Segment::real(0xB800);
    guest.bus.port_value = 0x5A;
    assert_eq!(guest.run(0x1000), Stop::Idle);
    assert_eq!(guest.reg(Reg::Rcx), 0);
    assert_eq!(guest.bus.seen.len(), 0x1000);
    assert!(guest.bus.device[..0x800].iter().all(|byte| *byte == 0x5A));
}

#[test]
fn r19_flags_are_in_the_cpu_at_every_kind_of_stop() {
    let add = [0x01, 0xD8];
    let want = CF | ZF | PF | arch::rflags::AF;
    for (after, budget) in [(&[0x90, 0x90][..], 1), (&[0xF4], 9), (&FADD, 9), (&LOAD, 9)] {
        let mut guest = at_device(&[&add, after].concat());
        guest.bus.pending = true;
        guest.cpu.gpr[Reg::Rax] = 0xFFFF;
        guest.cpu.gpr[Reg::Rbx] = 1;
        let stop = guest.run(budget);
        assert_eq!(guest.cpu.rflags & ARITH, want, "{stop:?}");
    }
}

#[test]
fn r20_failure_is_reported_each_time_and_shows_no_progress() {
    let mut guest = Guest::new(&FADD);
    let mut lines = [CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let before = guest.cpu.clone();
    for _ in 0..3 {
        unimplemented(emulator.run(&mut guest.cpu, &mut guest.bus, 100).unwrap());
        assert_eq!(emulator.counters().instructions, 0);
        assert_eq!(guest.cpu, before);
    }
    assert!(emulator.in_flight().is_none());
}

#[test]
fn d04_bytes_that_change_while_an_instruction_waits_are_not_looked_at() {
    let mut guest = at_device(&[&LOAD[..], &[0x90]].concat());
    guest.bus.pending = true;
    let mut lines = [CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap();
    assert!(matches!(stop, Stop::Mmio(Request { address: DEVICE, size: 1, .. })), "{stop:?}");
    guest.poke(CODE, &[0x66; 16]);
    emulator.reply(0x77).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
    assert_eq!((guest.reg(Reg::Rax), guest.cpu.rip), (0x77, CODE + 3));
    // What is there now is longer than fifteen bytes: #GP, without reading past them.
    guest.cpu.rip = CODE;
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
    assert_eq!(guest.cpu.rip, 0x400 + 13);
}

#[test]
fn d04_another_cpu_does_not_go_on_with_what_waits() {
    let mut guest = at_device(&LOAD);
    guest.bus.pending = true;
    let mut lines = [CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap();
    emulator.reply(1).unwrap();
    let mut other = guest.cpu.clone();
    other.rip += 1;
    let refused = emulator.run(&mut other, &mut guest.bus, 1);
    assert!(matches!(refused, Err(Error::StaleInFlight { .. })), "{refused:?}");
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
}

#[test]
fn d26_a_fetch_from_a_device_or_from_nothing_says_where() {
    for (segment, ip, address) in [(0xB800, 0x10, DEVICE), (0xFFFF, 0xFFF0, 0x10_F000)] {
        let mut guest = Guest::new(&[]);
        guest.bus.hole = 0x10_0000;
        guest.cpu.seg[SegReg::Cs as usize] = Segment::real(segment);
        guest.cpu.rip = ip;
        let before = guest.cpu.clone();
        let what = unimplemented(guest.run(1));
        assert_eq!(what.reason, UnimplementedReason::FetchFromMmio);
        assert_eq!(what.address & !0xFFF, address);
        assert_eq!(guest.cpu, before);
        assert!(guest.bus.seen.is_empty());
    }
}

/// Runs `mov al, n; hlt` at a place, in an emulator that has run elsewhere.
fn run_at(emulator: &mut Emulator<'_>, guest: &mut Guest, segment: u16, ip: u64) -> u64 {
    guest.cpu.activity = Activity::Running;
    guest.cpu.seg[SegReg::Cs as usize] = Segment::real(segment);
    guest.cpu.rip = ip;
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 9).unwrap(), Stop::Idle);
    guest.reg(Reg::Rax) & 0xFF
}

#[test]
fn w22_one_offset_in_two_segments_is_two_places() {
    let mut guest = Guest::new(&[]);
    guest.poke(0x2_0100, &[0xB0, 0x22, 0xF4]);
    guest.poke(0x3_0100, &[0xB0, 0x33, 0xF4]);
    let mut lines = [CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    for _ in 0..3 {
        assert_eq!(run_at(&mut emulator, &mut guest, 0x2000, 0x100), 0x22);
        assert_eq!(run_at(&mut emulator, &mut guest, 0x3000, 0x100), 0x33);
        // The same place through another segment, where IP differs.
        assert_eq!(run_at(&mut emulator, &mut guest, 0x2010, 0), 0x22);
    }
}

#[test]
fn w23_an_empty_cache_holds_nothing_at_ip_0_or_address_0() {
    for segment in [0, 0x3000] {
        let mut guest = Guest::new(&[]);
        guest.poke(u64::from(segment) * 16, &[0xB0, 0x44, 0xF4]);
        let mut lines = [CacheLine::EMPTY; 16];
        let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
        assert_eq!(run_at(&mut emulator, &mut guest, segment, 0), 0x44);
        guest.poke(u64::from(segment) * 16, &[0xB0, 0x55, 0xF4]);
        assert_eq!(run_at(&mut emulator, &mut guest, segment, 0), 0x55);
    }
}

#[test]
fn w32_an_application_processor_waits_for_sipi_and_starts_at_its_page() {
    let mut guest = Guest::new(&[]);
    guest.poke(0x9_F000, &[0xFA, 0x0F, 0x09, 0x8C, 0xC8, 0xF4]);
    guest.bus.bootstrap = false;
    guest.cpu.pending.init = true;
    assert_eq!(guest.run(10), Stop::WaitForSipi);
    assert_eq!(guest.cpu.activity, Activity::WaitForSipi);
    guest.cpu.pending.sipi = Some(0x9F);
    assert_eq!(guest.run(10), Stop::Idle);
    assert_eq!((guest.reg(Reg::Rax), guest.cpu.rip), (0x9F00, 6));
}

#[test]
fn b02_the_vector_is_asked_for_once_and_only_when_the_interrupt_is_taken() {
    // mov ss, ax; inc ax; hlt with an interrupt asserted from the start and IF just set
    let mut guest = Guest::new(&[0xFB, 0x8E, 0xD0, 0x40, 0xF4]);
    guest.cpu.pending.interrupt = true;
    guest.bus.edge = true;
    guest.step();
    assert_eq!((guest.bus.acknowledgements, guest.cpu.rip), (0, CODE + 1));
    // STI's shadow has ended, MOV SS casts its own.
    guest.step();
    assert_eq!((guest.bus.acknowledgements, guest.cpu.rip), (0, CODE + 3));
    guest.step();
    assert_eq!((guest.bus.acknowledgements, guest.cpu.rip), (1, 0x420));
    assert_eq!(guest.word(0xEFA), CODE as u16 + 4);
}

#[test]
fn b10_rf_stays_set_between_iterations_and_is_cleared_at_the_end() {
    let mut guest = Guest::new(&[0xF3, 0xA4]).with(Reg::Rcx, 0xC000);
    guest.cpu.gpr[Reg::Rsi] = 0x2000;
    guest.cpu.gpr[Reg::Rdi] = 0x2000;
    guest.cpu.rflags |= RF;
    let mut slices = 0;
    while guest.reg(Reg::Rcx) != 0 {
        assert_eq!((guest.cpu.rip, guest.cpu.rflags & RF), (CODE, RF));
        guest.step();
        slices += 1;
    }
    assert!(slices > 1);
    assert_eq!((guest.cpu.rip, guest.cpu.rflags & RF), (CODE + 2, 0));
}

#[test]
fn b16_a_split_lock_raises_nothing_unless_the_policy_says_so() {
    // lock add dword [203e], 1: across two cache lines
    let code = [0xF0, 0x66, 0x83, 0x06, 0x3E, 0x20, 0x01];
    for (policy, ip) in [(SplitLock::Plain, CODE + 7), (SplitLock::AlignmentCheck, 0x400 + 17)] {
        let mut guest = Guest::new(&code);
        let mut lines = [CacheLine::EMPTY; 16];
        let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
        emulator.policy_mut().split_lock = policy;
        assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
        assert_eq!(guest.cpu.rip, ip);
        assert_eq!(guest.peek(0x203E, 1), [u8::from(policy == SplitLock::Plain)]);
    }
    let mut guest = Guest::new(&code);
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    emulator.policy_mut().split_lock = SplitLock::Stop;
    let what = unimplemented(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap());
    assert_eq!((what.reason, guest.cpu.rip), (UnimplementedReason::SplitLock, CODE));
}

/// Memory that several processors share.
struct Shared(&'static [AtomicU8]);

impl<'a> Bus<'a> for Shared {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        Prepared::in_ram(self.0, page)
    }
}

#[test]
fn a19_xchg_is_atomic_between_processors() {
    const ROUNDS: u16 = 3000;
    #[rustfmt::skip]
    let code = [
        0xB0, 0x01,                     // again: mov al, 1
        0x86, 0x06, 0x00, 0x20,         // wait:  xchg [2000], al
        0x84, 0xC0,                     //        test al, al
        0x75, 0xF8,                     //        jnz wait
        0xFF, 0x06, 0x02, 0x20,         //        inc word [2002]
        0xC6, 0x06, 0x00, 0x20, 0x00,   //        mov byte [2000], 0
        0x49,                           //        dec cx
        0x75, 0xEA,                     //        jnz again
        0xF4,
    ];
    let ram: Vec<AtomicU8> = (0..0x4000).map(|_| AtomicU8::new(0)).collect();
    let ram: &'static [AtomicU8] = Box::leak(ram.into_boxed_slice());
    for (cell, byte) in ram[CODE as usize..].iter().zip(code) {
        cell.store(byte, Relaxed);
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut cpu = Guest::new(&[]).with(Reg::Rcx, u64::from(ROUNDS)).cpu;
                let mut lines = [CacheLine::EMPTY; 16];
                let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
                while emulator.run(&mut cpu, &mut Shared(ram), 1000).unwrap() == Stop::Budget {
                    std::thread::yield_now();
                }
                assert_eq!(cpu.gpr[Reg::Rcx] & 0xFFFF, 0);
            });
        }
    });
    let count = [ram[0x2002].load(Relaxed), ram[0x2003].load(Relaxed)];
    assert_eq!(u16::from_le_bytes(count), 2 * ROUNDS);
}

#[test]
fn r02_a_device_is_asked_once_however_often_the_run_is_interrupted() {
    let mut guest = at_device(&[0xFF, 0x36, 0x00, 0x00]);
    guest.bus.pending = true;
    let mut lines = [CacheLine::EMPTY; 16];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap();
    // Without a reply nothing moves and nobody is asked again.
    for _ in 0..3 {
        assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), stop);
    }
    emulator.flush();
    emulator.reply(0x1234).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1).unwrap(), Stop::Budget);
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE, 2)]);
    assert_eq!((guest.word(0xEFE), guest.reg(Reg::Rsp)), (0x1234, 0xEFE));
}

#[test]
fn d13_a_segment_prefix_does_not_change_the_fault_in_64_bit_code() {
    // mov al, [rbx] and mov al, [rbp] at an address that is not canonical
    let cases: [(&[u8], Fault); 5] = [
        (&[0x8A, 0x03], Fault::GP),
        (&[0x36, 0x8A, 0x03], Fault::GP),
        (&[0x8A, 0x45, 0x00], Fault::SS),
        (&[0x3E, 0x8A, 0x45, 0x00], Fault::SS),
        (&[0x64, 0x8A, 0x45, 0x00], Fault::GP),
    ];
    for (code, fault) in cases {
        let mut guest = Guest::new(code);
        guest.cpu.msr.efer = 0x500;
        guest.cpu.cr0 |= arch::control::CR0_PE;
        guest.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0x209B);
        guest.cpu.gpr[Reg::Rbx] = 1 << 63;
        guest.cpu.gpr[Reg::Rbp] = 1 << 63;
        guest.policy.exceptions = u32::MAX;
        assert_eq!(guest.run(1), Stop::Exception(fault), "{code:x?}");
    }
}

#[test]
fn an_injected_page_fault_keeps_the_cr2_it_came_with() {
    let mut guest = Guest::new(&[0xF4]);
    guest.cpu.cr2 = 0x1234_5678;
    let fault = Fault::with_code(arch::vector::PF, 2);
    guest.cpu.pending.event = Some(Event::Exception(fault));
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 0), Ok(Stop::Budget));
    assert_eq!((guest.cpu.rip, guest.cpu.cr2), (0x400 + 14, 0x1234_5678));
}
