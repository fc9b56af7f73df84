//! Tests of what a host or a device seldom does, or should not: a gate moved from outside, memory
//! written by a device, damaged restart records, processors in impossible states.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::guest::{CODE, DEVICE, Guest, TestBus};
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
