//! Tests of what a host or a device seldom does, or should not: a gate moved from outside, memory
//! written by a device, damaged restart records, processors in impossible states.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::guest::{CODE, DEVICE, Guest, TestBus};
use crate::protected::{CALL_GATE, DATA32, GDT, TSS, guest, user};
use realmode::arch::control::{CR0_PE, EFER_LMA, EFER_LME};
use realmode::*;

type Device = fn(&TestBus<'static>, &mut Control) -> Reply;

/// A guest's bus with one answer to every device access, and one page whose preparation asks for
/// a stop.
struct Odd<'g> {
    inner: &'g mut TestBus<'static>,
    device: Device,
    stop_at: u64,
}

impl<'g> Odd<'g> {
    fn new(inner: &'g mut TestBus<'static>, device: Device) -> Odd<'g> {
        Odd { inner, device, stop_at: u64::MAX }
    }
}

impl<'a, 'g: 'a> Bus<'a> for Odd<'g> {
    fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
        if page.0 == self.stop_at {
            control.stop();
        }
        self.inner.prepare(page, access, control)
    }
    fn mmio_read(&mut self, _: Phys, _: u8, control: &mut Control) -> Reply {
        (self.device)(self.inner, control)
    }
    fn port_out(&mut self, _: u16, _: u8, _: u64, control: &mut Control) -> Reply {
        (self.device)(self.inner, control)
    }
    fn port_in_string(&mut self, _: u16, _: u8, data: &mut [u8], control: &mut Control) -> usize {
        (self.device)(self.inner, control);
        data.len()
    }
}

// ---- the A20 gate ----

#[test]
fn a_gate_that_the_host_moves_between_runs_moves_what_is_cached() {
    // mov al, [10h] twice, at FFFF:10
    let mut guest = Guest::new(&[0xA0, 0x10, 0, 0xA0, 0x10, 0]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xFFFF);
    guest.poke(0x10_0000, &[0x11]);
    guest.poke(0, &[0x22]);
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Budget));
    assert_eq!(guest.reg(Reg::Rax), 0x11);
    guest.cpu.a20 = false;
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Budget));
    assert_eq!(guest.reg(Reg::Rax), 0x22);
}

#[test]
fn a_gate_that_closes_in_mid_instruction_is_closed_for_the_next_one() {
    // movsb from the device to FFFF:10; mov al, es:[10h]
    let mut guest = Guest::new(&[0xA4, 0x26, 0xA0, 0x10, 0]).with(Reg::Rdi, 0x10);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.cpu.seg[SegReg::Es as usize] = Segment::real(0xFFFF);
    guest.poke(0, &[0x22]);
    let mut bus = Odd::new(&mut guest.bus, |_, control| {
        control.a20(false);
        Reply::Pending
    });
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut bus, 2), Ok(Stop::Mmio(_))));
    emulator.reply(0x33).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 2), Ok(Stop::Budget));
    assert_eq!((guest.reg(Reg::Rax), guest.peek(0x10_0000, 1)), (0x22, vec![0x33]));
}

// ---- devices ----

#[test]
fn code_that_a_device_stores_is_seen_by_the_next_instruction() {
    // call 1080, an access to a device, call 1080; a store to the subroutine by the device
    let accesses: [&[u8]; 3] = [&[0xE6, 0x80], &[0x8A, 0x04], &[0xF3, 0x6C]];
    for (access, lines) in accesses.into_iter().flat_map(|access| [(access, 0), (access, 64)]) {
        let mut code = vec![0xE8, 0x7D, 0];
        code.extend(access);
        code.extend([0xE8, (0x80 - code.len() - 3) as u8, 0]);
        let mut guest = Guest::new(&code).with(Reg::Rcx, 2).with(Reg::Rdi, 0x3000);
        guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
        // mov al, 11h; ret
        guest.poke(CODE + 0x80, &[0xB0, 0x11, 0xC3]);
        let mut bus = Odd::new(&mut guest.bus, |ram, control| {
            control.stored();
            ram.poke(CODE + 0x81, 0x99);
            Reply::Ready(0)
        });
        let mut lines = vec![CacheLine::EMPTY; lines];
        let mut emulator = Emulator::new(&guest.profile, &mut lines);
        assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 7), Ok(Stop::Budget));
        assert_eq!(guest.reg(Reg::Rax) & 0xFF, 0x99, "{access:02x?}");
    }
}

#[test]
fn a_stop_asked_for_while_a_page_is_prepared_ends_a_repetition_there() {
    for lines in [0, 64] {
        // rep stosb from 7F00 into page 8000
        let mut guest = Guest::new(&[0xF3, 0xAA]).with(Reg::Rcx, 0x800).with(Reg::Rdi, 0x7F00);
        let mut bus = Odd::new(&mut guest.bus, |_, _| Reply::Ready(0));
        bus.stop_at = 0x8000;
        let mut lines = vec![CacheLine::EMPTY; lines];
        let mut emulator = Emulator::new(&guest.profile, &mut lines);
        assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 7), Ok(Stop::Requested));
        assert_eq!((guest.cpu.rip, guest.reg(Reg::Rdi)), (CODE, 0x8001));
    }
}

/// Asks for a stop when page 8000h is prepared for the second store.
struct SecondLook<'g>(&'g mut TestBus<'static>, u32);

impl<'a, 'g: 'a> Bus<'a> for SecondLook<'g> {
    fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
        if page.0 == 0x8000 && access == Access::Write {
            self.1 += 1;
            if self.1 == 2 {
                control.stop();
            }
        }
        self.0.prepare(page, access, control)
    }
}

#[test]
fn a_call_gate_whose_frame_lies_over_its_parameters_reads_them_once() {
    let mut guest = user(&[0x9A, 0, 0, 0, 0, CALL_GATE as u8, 0]);
    guest.poke(GDT + 9 * 8 + 4, &[2]);
    guest.poke(TSS + 4, &0x9008u32.to_le_bytes());
    // With the A20 gate closed, a MiB higher is the same memory, and the same entry of the TLB.
    guest.cpu.a20 = false;
    guest.cpu.gpr[Reg::Rsp] = 0x10_8FFC;
    guest.poke(0x8FFC, &[0x11, 0, 0, 0, 0x22, 0, 0, 0]);
    let mut bus = SecondLook(&mut guest.bus, 0);
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 1), Ok(Stop::Requested));
    assert_eq!(guest.reg(Reg::Rsp), 0x8FF0);
    assert_eq!(guest.peek(0x8FF8, 12), [0x11, 0, 0, 0, 0x22, 0, 0, 0, 0xFC, 0x8F, 0x10, 0]);
}

#[test]
fn lar_passes_on_a_general_protection_fault_of_the_device_its_table_lies_in() {
    // lar eax, ecx
    let mut guest = guest(&[0x0F, 0x02, 0xC1]).with(Reg::Rcx, u64::from(DATA32));
    guest.cpu.gdtr.base = DEVICE;
    let mut bus = Odd::new(&mut guest.bus, |_, _| Reply::Fault(Fault::GP));
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    emulator.policy_mut().exceptions = u32::MAX;
    let stop = emulator.run(&mut guest.cpu, &mut bus, 1);
    assert_eq!(stop, Ok(Stop::Exception(Fault::GP)));
}

#[test]
fn a_vector_table_that_raises_benign_exceptions_forever_shuts_down() {
    // int3 through a device that answers everything with a machine check
    let mut guest = Guest::new(&[0xCC]);
    guest.cpu.idtr.base = DEVICE;
    let mut bus = Odd::new(&mut guest.bus, |_, _| Reply::Fault(Fault::new(18)));
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 2), Ok(Stop::Shutdown));
    assert_eq!(guest.cpu.activity, Activity::Shutdown);
}

#[test]
fn an_observer_sees_no_access_to_nothing() {
    struct Accesses(Vec<(Access, u64, usize)>);
    impl Observer for Accesses {
        fn access(&mut self, access: Access, address: Phys, bytes: &[u8]) {
            self.0.push((access, address.0, bytes.len()));
        }
    }
    // mov al, [2000h]
    let mut guest = Guest::new(&[0xA0, 0, 0x20]);
    let mut seen = Accesses(Vec::new());
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    let stop = emulator.run_observed(&mut guest.cpu, &mut guest.bus, 1, &mut seen);
    assert_eq!((stop, seen.0), (Ok(Stop::Budget), vec![(Access::Read, 0x2000, 1)]));
}

// ---- host pages ----

#[test]
fn a_lock_at_the_end_of_a_page_that_is_not_aligned_is_not_split() {
    struct Skewed<'r>(&'r [AtomicU8]);
    impl<'a, 'r: 'a> Bus<'a> for Skewed<'r> {
        fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
            let at = page.0 as usize;
            match self.0.get(at..at + PAGE_SIZE) {
                Some(cells) => Prepared::Ram(HostPage::from_cells(cells).unwrap()),
                None => Prepared::Unmapped,
            }
        }
    }
    let ram: Vec<AtomicU8> = (0..0x3010).map(|_| AtomicU8::new(0)).collect();
    let align = ram.as_ptr() as usize % 16;
    // lock inc byte, word, dword [bx], where the host's address is a multiple of the size
    let operations: [(&[u8], u64); 3] =
        [(&[0xF0, 0xFE, 0x07], 1), (&[0xF0, 0xFF, 0x07], 2), (&[0xF0, 0x66, 0xFF, 0x07], 4)];
    for (skew, (code, size)) in (0..16).flat_map(|skew| operations.map(|op| (skew, op))) {
        if !(align + skew).is_multiple_of(size as usize) {
            continue;
        }
        let ram = &ram[skew..];
        for (cell, byte) in ram[CODE as usize..].iter().zip(code) {
            cell.store(*byte, Relaxed);
        }
        for at in [0x2000, 0x3000 - size] {
            let guest = Guest::new(&[]).with(Reg::Rbx, at);
            let mut cpu = guest.cpu;
            let mut emulator = Emulator::new(&guest.profile, &mut []);
            emulator.policy_mut().split_lock = SplitLock::Stop;
            let stop = emulator.run(&mut cpu, &mut Skewed(ram), 1);
            assert_eq!(stop, Ok(Stop::Budget), "{size} bytes at {at:x}, skewed by {skew}");
        }
    }
}

// ---- records and processors from outside ----

/// A store to the device that waits, and its record.
fn store_in_flight() -> (Guest, InFlight) {
    // mov [0], al
    let mut guest = Guest::new(&[0xA2, 0, 0]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.bus.pending = true;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Mmio(_))));
    let record = emulator.in_flight().unwrap().clone();
    (guest, record)
}

#[test]
fn a_record_with_a_page_that_is_none_is_refused() {
    let damages: [fn(&mut Span); 3] =
        [|span| span.linear.0 += 1, |span| span.phys.0 += 0x123, |span| span.phys.0 = u64::MAX];
    for damage in damages {
        let (guest, mut record) = store_in_flight();
        damage(&mut record.spans[0]);
        let mut emulator = Emulator::new(&guest.profile, &mut []);
        let damaged = Error::InFlightDamaged { what: "spans" };
        assert_eq!(emulator.restore_in_flight(&record), Err(damaged));
    }
}

#[test]
fn a_page_that_only_a_foreign_record_names_is_not_kept() {
    // The record says that linear page 3000, which the next load reads, is physical page 5000.
    let mut guest = Guest::new(&[0xA4, 0x26, 0xA0, 0, 0x30]).with(Reg::Rdi, 0x3000);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.poke(0x3000, &[0x22]);
    guest.bus.pending = true;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut guest.bus, 2), Ok(Stop::Mmio(_))));
    let mut record = emulator.in_flight().unwrap().clone();
    let span = record.spans.iter_mut().find(|span| span.linear == Linear(0x3000)).unwrap();
    span.phys = Phys(0x5000);
    emulator.restore_in_flight(&record).unwrap();
    emulator.reply(0x33).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 2), Ok(Stop::Budget));
    assert_eq!((guest.reg(Reg::Rax), guest.peek(0x5000, 1)), (0x22, vec![0x33]));
}

#[test]
fn no_block_is_built_where_rip_is_not_canonical() {
    for (rip, lines) in
        [0x8000_0000_0000, 3 << 62].into_iter().flat_map(|rip| [(rip, 0), (rip, 64)])
    {
        let mut guest = Guest::new(&[]);
        guest.lines = lines;
        guest.cpu.cr0 |= CR0_PE;
        guest.cpu.msr.efer = EFER_LMA | EFER_LME;
        guest.cpu.seg[SegReg::Cs as usize].attributes = Attributes(0x9B | Attributes::L);
        guest.cpu.rip = rip;
        guest.policy.exceptions = !0;
        assert_eq!(guest.run(20), Stop::Exception(Fault::GP));
        assert_eq!(guest.cpu.rip, rip);
    }
}

#[test]
fn eip_wraps_at_four_gigabytes_where_the_limit_allows_it() {
    let mut guest = Guest::new(&[]);
    guest.poke(0x1FFF, &[0x90]);
    guest.poke(0x2000, &[0x40]);
    let cs = &mut guest.cpu.seg[SegReg::Cs as usize];
    (cs.base, cs.limit) = (0x2000, u32::MAX);
    guest.cpu.rip = 0xFFFF_FFFF;
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax)), (1, 1));
}

#[test]
fn an_instruction_that_the_vmm_finishes_is_followed_by_its_trap() {
    let mut guest = Guest::new(&[0xE4, 0x10, 0x90]);
    guest.bus.pending = true;
    guest.cpu.rflags |= arch::rflags::TF;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Port(_))));
    emulator.finish(&mut guest.cpu, 0x1002);
    assert_eq!(emulator.counters().instructions, 1);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Idle));
    assert_eq!(guest.word(guest.reg(Reg::Rsp)), 0x1002);
}

#[test]
fn sti_sets_no_virtual_flag_on_a_processor_without_one() {
    for (profile, flag) in [(&Profile::I80486, 0), (&Profile::INTEL, arch::rflags::VIF)] {
        let mut guest = user(&[0xFB]);
        guest.profile = profile.clone();
        guest.cpu.cr4 = arch::control::CR4_PVI;
        guest.cpu.rflags &= !arch::rflags::IOPL;
        guest.policy.exceptions = !0;
        let stop = guest.run(1);
        assert_eq!(guest.cpu.rflags & arch::rflags::VIF, flag);
        assert_eq!(stop == Stop::Exception(Fault::GP), flag == 0, "{stop:?}");
    }
}
