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
fn the_exit_port_can_be_another_that_no_device_has() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    assert_eq!(pc.set_exit_port(0xF4), Ok(()));
    output(&mut pc, 0x501, 1, 2);
    assert_eq!((pc.ending(), pc.exit_port()), (None, 0xF4));
    output(&mut pc, 0xF4, 1, 2);
    assert_eq!(pc.ending(), Some(Ending::Exit(2)));
    for port in [0x20, 0x60, 0x61, 0x1F7, 0x3FF, 0x508, 0x511, 0x604, 0xCF8, 0xCF9] {
        assert_eq!(pc.set_exit_port(port), Err(crate::Error::PortTaken { port }));
    }
    for port in (0..=0xFFFF).filter(|port| pc.set_exit_port(*port).is_ok()).collect::<Vec<_>>() {
        assert_eq!(input(&mut pc, port, 1), 0xFF, "{port:04X}h answers, and so it is a device's");
    }
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

#[test]
fn the_cursor_is_on_the_screen_that_is_shown() {
    let ram = ram();
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    for (start, at, expected) in [
        (80u16, 161u16, Some((1, 1))),
        (80, 79, None),
        // So far back the screen would not end in text memory: the first is shown.
        (0x3FFF, 81, Some((1, 1))),
    ] {
        let [[start_high, start_low], [high, low]] = [start, at].map(u16::to_be_bytes);
        let registers = [(0x0C, start_high), (0x0D, start_low), (0x0E, high), (0x0F, low)];
        for (index, value) in registers {
            output(&mut pc, 0x3D4, 1, index);
            output(&mut pc, 0x3D5, 1, u64::from(value));
        }
        assert_eq!(pc.cursor(), expected, "{start}, {at}");
    }
}

/// A disk that fails now and then.
struct Unreliable(u32);

impl crate::Disk for Unreliable {
    fn sectors(&self) -> u64 {
        1 << 20
    }

    fn read(&mut self, _: u64, _: &mut [u8; 512]) -> Result<(), crate::DiskError> {
        self.0 += 1;
        if self.0.is_multiple_of(7) { Err(crate::DiskError) } else { Ok(()) }
    }

    fn write(&mut self, lba: u64, _: &[u8; 512]) -> Result<(), crate::DiskError> {
        assert!(lba < self.sectors());
        self.read(lba, &mut [0; 512])
    }
}

#[test]
fn rep_insw_and_outsw_move_whole_words_also_after_a_single_byte() {
    for (command, is_in) in [(0x20, true), (0x30, false)] {
        let (ram, mut disk) = (ram(), Unreliable(0));
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        pc.attach_disk(&mut disk).expect("it has sectors");
        for (register, value) in [(2, 1), (6, 0xE0), (7, command)] {
            output(&mut pc, 0x1F0 + register, 1, value);
        }
        let control = &mut Control::default();
        let mut string = |pc: &mut Pc<'_, Log>, len: usize| match is_in {
            true => pc.port_in_string(0x1F0, 2, &mut [0; 512][..len], control),
            false => pc.port_out_string(0x1F0, 2, &[0; 512][..len], control),
        };
        if is_in {
            input(&mut pc, 0x1F0, 1);
        } else {
            output(&mut pc, 0x1F0, 1, 0);
        }
        assert_eq!([string(&mut pc, 512), string(&mut pc, 512)], [510, 0]);
        assert_eq!(input(&mut pc, 0x1F7, 1) & 8, 8, "a byte is left");
    }
}

#[test]
fn no_sequence_of_accesses_panics_or_leaves_an_event_in_the_past() {
    let ram = ram();
    let mut disk = Unreliable(0);
    let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
    pc.attach_disk(&mut disk).expect("it has sectors");
    let ranges = [0x20..0x22, 0x40..0x44, 0x60..0x65, 0x70..0x72, 0xA0..0xA2, 0x1F0..0x1F8];
    let more = [0x3B0..0x3E0, 0x3F6..0x400, 0x4D0..0x4D2, 0x501..0x502, 0x510..0x512, 0xCF8..0xD00];
    let ports: Vec<u16> = ranges.into_iter().chain(more).flatten().collect();
    let mut seed = 0x1234_5678_9ABC_DEF1u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..300_000 {
        let (port, kind, data) = (random() as usize % ports.len(), random(), random());
        let (port, size) = (ports[port], [1, 1, 1, 2, 4][kind as usize % 5]);
        match kind >> 8 & 15 {
            0 => pc.board.time.skip_to(pc.now().saturating_add(data >> 24 >> (data & 31))),
            1 => pc.board.time.skip_to(pc.next_event().unwrap_or(0)),
            2 | 3 => {
                let control = &mut Control::default();
                let done = match kind >> 8 & 1 {
                    0 => pc.port_in_string(port, size, &mut [0; 300], control),
                    _ => pc.port_out_string(port, size, &[0; 300], control),
                };
                assert!(done.is_multiple_of(usize::from(size)), "{port:#x} {size} {done}");
            }
            4 => drop(pc.interrupt_acknowledge(&mut Control::default())),
            5 => drop(pc.type_text("aA") + pc.send_serial(b"xyz")),
            6..=9 => drop(input(&mut pc, port, size)),
            _ => output(&mut pc, port, size, data),
        }
        pc.board.settle();
        let event = pc.next_event();
        assert!(event.is_none_or(|at| at > pc.now()), "{port:#x} {size} {data:#x}");
    }
    // The end of time: nothing overflows.
    pc.board.time.skip_to(u64::MAX - 5);
    for port in ports {
        input(&mut pc, port, 1);
        output(&mut pc, port, 1, 0x34);
    }
    pc.board.settle();
    input(&mut pc, 0x71, 1);
}
