//! Tests of what waits for a device: the restart record, and callbacks that ask for something.

use crate::guest::{CODE, DEVICE, Guest, Seen, TestBus};
use realmode::*;

/// A bus whose device also asks something of the emulator.
struct Asking<'m> {
    inner: TestBus<'m>,
    ask: fn(&mut Control),
}

impl<'a, 'm: 'a> Bus<'a> for Asking<'m> {
    fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
        self.inner.prepare(page, access, control)
    }

    fn mmio_read(&mut self, address: Phys, size: u8, control: &mut Control) -> Reply {
        (self.ask)(control);
        self.inner.mmio_read(address, size, control)
    }
}

/// Runs one instruction of `guest` with a device that asks, and answers its request with 0.
fn run_asking(guest: Guest, ask: fn(&mut Control)) -> Cpu {
    let mut cpu = guest.cpu;
    let mut bus = Asking { inner: guest.bus, ask };
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Mmio(_))));
    emulator.reply(0).unwrap();
    assert_eq!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Budget));
    cpu
}

/// `mov al, [0]` from the device, which answers `Pending`, and an instruction after it.
fn load_from_device() -> Guest {
    let mut guest = Guest::new(&[0xA0, 0, 0, 0xB0, 1]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.bus.pending = true;
    guest
}

#[test]
fn what_a_callback_asks_for_survives_a_pending_answer() {
    let cpu = run_asking(load_from_device(), |control| control.interrupt(true));
    assert!(cpu.pending.interrupt);
    let cpu = run_asking(load_from_device(), |control| control.a20(false));
    assert!(!cpu.a20);
    let cpu = run_asking(load_from_device(), Control::nmi);
    assert!(cpu.nmi_blocked, "the NMI was delivered after the load");
}

#[test]
fn a_page_withdrawn_by_a_callback_that_answers_pending_is_asked_for_again() {
    struct Counting<'m> {
        inner: TestBus<'m>,
        code_pages: u32,
    }
    impl<'a, 'm: 'a> Bus<'a> for Counting<'m> {
        fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
            self.code_pages += u32::from(page.0 == CODE);
            self.inner.prepare(page, access, control)
        }
        fn mmio_read(&mut self, _: Phys, _: u8, control: &mut Control) -> Reply {
            control.withdraw(Phys(CODE), 1);
            Reply::Pending
        }
    }
    let mut guest = load_from_device();
    let mut bus = Counting { inner: guest.bus, code_pages: 0 };
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut bus, 2), Ok(Stop::Mmio(_))));
    emulator.reply(0).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 2), Ok(Stop::Budget));
    assert_eq!(bus.code_pages, 2);
}

#[test]
fn the_delivery_of_an_event_goes_on_without_budget() {
    // The handler's address lies in the device, and the last instruction has been paid for.
    let mut guest = Guest::new(&[0x90]);
    guest.cpu.idtr.base = DEVICE;
    guest.cpu.pending.nmi = true;
    guest.bus.pending = true;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 0);
    assert!(matches!(stop, Ok(Stop::Mmio(request)) if request.address == DEVICE + 8));
    emulator.reply(0x0000_4321).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 0), Ok(Stop::Budget));
    assert_eq!(guest.cpu.rip, 0x4321);
}

#[test]
fn the_budget_that_was_used_is_counted() {
    // mov al, 1; ud2
    let mut guest = Guest::new(&[0xB0, 1, 0x0F, 0x0B]);
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 2), Ok(Stop::Budget));
    assert_eq!(emulator.counters().spent, 2);
    assert_eq!(emulator.counters().instructions, 1);
}

#[test]
fn an_operand_read_before_a_request_is_not_read_twice() {
    // enter 0, 3 copies two frame pointers: the first from memory, the second from the device,
    // and pushes each.
    let mut guest = Guest::new(&[0xC8, 0, 0, 3]);
    guest.cpu.seg[SegReg::Ss as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.cpu.gpr[Reg::Rsp] = 0x100;
    guest.cpu.gpr[Reg::Rbp] = 0x1002;
    guest.bus.pending = true;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    let mut requests = 0;
    while let Ok(Stop::Mmio(_)) = emulator.run(&mut guest.cpu, &mut guest.bus, 1) {
        requests += 1;
        assert!(requests < 20);
        emulator.reply(0).unwrap();
    }
    let reads = guest.bus.seen.iter().filter(|seen| matches!(seen, Seen::Read(..))).count();
    assert_eq!((reads, guest.cpu.rip), (1, CODE + 4));
}

#[test]
fn an_event_after_the_last_byte_of_an_8086_segment_can_wait_for_a_device() {
    // hlt at FFFF; the NMI waits for the end of a MOV SS shadow and its vector for the device.
    let mut guest = Guest::with_profile(&Profile::I8086, &[]);
    guest.poke(0xFFFF, &[0xF4]);
    guest.cpu.rip = 0xFFFF;
    guest.cpu.idtr.base = DEVICE;
    guest.cpu.shadow.mov_ss = true;
    guest.cpu.pending.nmi = true;
    guest.bus.pending = true;
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    assert!(matches!(emulator.run(&mut guest.cpu, &mut guest.bus, 1), Ok(Stop::Mmio(_))));
    emulator.reply(0x0000_4321).unwrap();
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 0), Ok(Stop::Budget));
    assert_eq!((guest.cpu.rip, guest.word(0xEFA)), (0x4321, 0));
}

/// A bus whose RAM the host can take away.
struct Leaving<'m> {
    inner: TestBus<'m>,
    is_gone: bool,
}

impl<'a, 'm: 'a> Bus<'a> for Leaving<'m> {
    fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
        if self.is_gone { Prepared::Unmapped } else { self.inner.prepare(page, access, control) }
    }
}

#[test]
fn a_withdrawn_page_reads_ones_takes_no_store_and_stops_a_fetch_by_name() {
    // mov al, [2000]; mov [2000], bl; nop, with the page of the data withdrawn before it.
    let guest = Guest::new(&[0xA0, 0, 0x20, 0x88, 0x1E, 0, 0x20, 0x90]);
    guest.poke(0x2000, &[0x55]);
    let mut cpu = guest.cpu.clone();
    cpu.gpr[Reg::Rbx] = 0x77;
    let mut lines = vec![CacheLine::EMPTY; 16];
    let mut bus = Leaving { inner: guest.bus, is_gone: false };
    let mut emulator = Emulator::new(&guest.profile, &mut lines);
    assert_eq!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Budget));
    assert_eq!(cpu.gpr[Reg::Rax] & 0xFF, 0x55);

    bus.is_gone = true;
    emulator.withdraw(Phys(0x2000), 0x1000);
    assert_eq!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Budget));
    cpu.rip = CODE;
    assert_eq!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Budget));
    assert_eq!(cpu.gpr[Reg::Rax] & 0xFF, 0xFF, "nothing is there to read");

    emulator.withdraw(Phys(0), u64::MAX);
    let Ok(Stop::Unimplemented(report)) = emulator.run(&mut cpu, &mut bus, 1) else {
        panic!("code was fetched from a withdrawn page")
    };
    assert_eq!(report.reason, UnimplementedReason::FetchFromMmio);
    assert_eq!((report.address, report.rip), (CODE + 3, CODE + 3));

    // The store of the second instruction went nowhere.
    bus.is_gone = false;
    cpu.rip = CODE;
    assert_eq!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Budget));
    assert_eq!(cpu.gpr[Reg::Rax] & 0xFF, 0x55);
}

#[test]
fn deliveries_that_fail_end_in_shutdown_also_if_each_waits_for_a_device() {
    /// The first byte of each vector has to wait, and the rest raises a benign exception.
    struct Failing<'m>(TestBus<'m>);
    impl<'a, 'm: 'a> Bus<'a> for Failing<'m> {
        fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
            self.0.prepare(page, access, control)
        }
        fn mmio_read(&mut self, address: Phys, _: u8, _: &mut Control) -> Reply {
            let is_first = (address.0 - DEVICE) % 4 == 1;
            if is_first { Reply::Pending } else { Reply::Fault(Fault::new(17)) }
        }
    }
    let mut guest = Guest::new(&[0x0F, 0x0B]);
    guest.cpu.idtr.base = DEVICE + 1;
    let mut bus = Failing(guest.bus);
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    for _ in 0..20 {
        match emulator.run(&mut guest.cpu, &mut bus, 1) {
            Ok(Stop::Mmio(_)) => emulator.reply(0).unwrap(),
            stop => return assert_eq!(stop, Ok(Stop::Shutdown)),
        }
    }
    panic!("no end");
}
