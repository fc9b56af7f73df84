//! What is behind the ports, as the processor sees it.

extern crate std;
use super::*;
use crate::console::Channel;
use core::sync::atomic::AtomicU8;
use std::vec::Vec;

struct Log(Vec<(Channel, u8)>);

impl Console for Log {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        self.0.push((channel, byte));
        ControlFlow::Continue(())
    }
}

fn ram() -> Vec<AtomicU8> {
    (0..4096).map(|_| AtomicU8::new(0)).collect()
}

fn input(pc: &mut Pc<'_, Log>, port: u16, size: u8) -> u64 {
    match pc.port_in(port, size, &mut Control::default()) {
        Reply::Ready(value) => value,
        other => panic!("{other:?}"),
    }
}

fn output(pc: &mut Pc<'_, Log>, port: u16, size: u8, data: u64) {
    let _ = pc.port_out(port, size, data, &mut Control::default());
}

#[test]
fn unclaimed_ports_read_all_ones_at_every_size() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    assert_eq!(input(&mut pc, 0x278, 1), 0xFF);
    assert_eq!(input(&mut pc, 0xCF8, 4), 0xFFFF_FFFF);
    assert_eq!(input(&mut pc, 0xFFFF, 2), 0xFFFF);
}

#[test]
fn both_debug_ports_read_e9_and_print() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    assert_eq!((input(&mut pc, 0x402, 1), input(&mut pc, 0xE9, 1)), (0xE9, 0xE9));
    output(&mut pc, 0x402, 1, 0x41);
    output(&mut pc, 0xE9, 1, 0x142);
    output(&mut pc, 0x3F8, 1, 0x43);
    let log = [(Channel::Debug, 0x41), (Channel::Debug, 0x42), (Channel::Serial, 0x43)];
    assert_eq!(pc.console().0, log);
}

#[test]
fn a_word_reaches_two_byte_wide_ports() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    output(&mut pc, 0x3FE, 2, 0x5AFF);
    assert_eq!(input(&mut pc, 0x3FE, 2), 0x5AB0);
    output(&mut pc, 0xE8, 2, 0x4100);
    assert_eq!(pc.console().0, [(Channel::Debug, 0x41)]);
}

#[test]
fn port_501_ends_the_run_with_the_value_written() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    assert_eq!(pc.ending(), None);
    output(&mut pc, 0x501, 4, 0x1_0002);
    assert_eq!(pc.ending(), Some(Ending::Exit(0x1_0002)));
}

#[test]
fn port_604_powers_off_on_a_word_of_2000h_only() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    output(&mut pc, 0x604, 1, 0x00);
    output(&mut pc, 0x604, 2, 0x0001);
    assert_eq!(pc.ending(), None);
    output(&mut pc, 0x604, 2, 0x2000);
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
}

#[test]
fn port_92_reads_back_the_gate_and_resets() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    assert_eq!(input(&mut pc, 0x92, 1), 0x02);
    output(&mut pc, 0x92, 1, 0x00);
    assert!(!pc.is_a20_open());
    output(&mut pc, 0x92, 1, 0x01);
    assert_eq!(pc.ending(), Some(Ending::Reset));
}
