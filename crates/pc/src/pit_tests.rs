//! What the 8254's data sheet says, by its ports.

use super::*;

/// The time in the middle of a tick.
fn at(tick: u64) -> u64 {
    begin(tick) + 100
}

/// A counter with its control word and a count of 16 bits, written during tick 0.
fn with(counter: u16, mode: u8, count: u16) -> Pit {
    let mut pit = Pit::RESET;
    let [low, high] = count.to_le_bytes();
    pit.write(3, (counter as u8) << 6 | 0x30 | mode << 1, at(0));
    pit.write(counter, low, at(0));
    pit.write(counter, high, at(0));
    pit
}

fn count(pit: &mut Pit, counter: u16, tick: u64) -> u16 {
    let low = pit.read(counter, at(tick));
    u16::from_le_bytes([low, pit.read(counter, at(tick))])
}

fn outputs(pit: &mut Pit, counter: usize, ticks: core::ops::Range<u64>) -> u64 {
    ticks.fold(0, |bits, tick| bits << 1 | u64::from(pit.output(counter, at(tick))))
}

#[test]
fn ticks_are_those_of_1193182_hz() {
    assert_eq!(ticks(1_000_000_000), 1_193_181);
    for tick in [0, 1, 2, 20, 21, 1_000_003] {
        assert_eq!((ticks(begin(tick)), ticks(begin(tick + 1) - 1)), (tick, tick));
    }
}

#[test]
fn mode_0_rises_once_at_terminal_count() {
    let mut pit = with(0, 0, 4);
    assert_eq!(outputs(&mut pit, 0, 0..8), 0b0000_0111);
    assert_eq!(pit.next_event(), Some(begin(5)));
    assert!(!pit.take_rise(at(4)) && pit.take_rise(at(5)) && !pit.take_rise(at(70_000)));
    assert_eq!(pit.next_event(), None);
    assert_eq!(count(&mut pit, 0, 2), 3);
    assert_eq!(count(&mut pit, 0, 6), 0xFFFF, "it counts on");
}

#[test]
fn mode_2_is_low_for_the_last_tick_of_each_cycle() {
    let mut pit = with(0, 2, 3);
    assert_eq!(outputs(&mut pit, 0, 1..10), 0b110_110_110);
    assert_eq!((count(&mut pit, 0, 1), count(&mut pit, 0, 3), count(&mut pit, 0, 4)), (3, 1, 3));
    let mut rises = 0;
    for tick in 0..=30 {
        rises += u32::from(pit.take_rise(at(tick)));
    }
    assert_eq!(rises, 9, "at 4, 7, ... 28");
}

#[test]
fn a_count_written_to_mode_2_is_taken_up_at_the_end_of_the_cycle() {
    let mut pit = with(0, 2, 10);
    pit.write(0, 4, at(5));
    pit.write(0, 0, at(5));
    assert_eq!(count(&mut pit, 0, 10), 1);
    assert!(!pit.take_rise(at(10)) && pit.take_rise(at(11)));
    assert_eq!(pit.next_event(), Some(begin(15)));
}

#[test]
fn mode_3_is_a_square_wave_that_counts_by_two() {
    let mut pit = with(0, 3, 6);
    assert_eq!(outputs(&mut pit, 0, 1..13), 0b111_000_111_000);
    let counts = [1, 2, 3, 4, 5].map(|tick| count(&mut pit, 0, tick));
    assert_eq!(counts, [6, 4, 2, 6, 4]);
    let mut odd = with(0, 3, 5);
    assert_eq!(outputs(&mut odd, 0, 1..11), 0b11_1001_1100);
}

#[test]
fn mode_4_strobes_once() {
    let mut pit = with(0, 4, 3);
    assert_eq!(outputs(&mut pit, 0, 1..8), 0b111_0111);
    assert_eq!(pit.next_event(), Some(begin(5)));
}

#[test]
fn the_gate_of_counter_2_holds_mode_0() {
    let mut pit = with(2, 0, 10);
    assert_eq!(count(&mut pit, 2, 50), 10);
    pit.set_gate_2(true, at(100));
    assert_eq!(count(&mut pit, 2, 104), 6);
    pit.set_gate_2(false, at(104));
    assert_eq!((count(&mut pit, 2, 900), pit.output(2, at(900))), (6, false));
    pit.set_gate_2(true, at(1000));
    assert_eq!(outputs(&mut pit, 2, 1005..1007), 0b01);
}

#[test]
fn modes_1_and_5_wait_for_the_gate() {
    let mut pit = with(2, 1, 3);
    assert!(pit.output(2, at(50)));
    pit.set_gate_2(true, at(60));
    assert_eq!(outputs(&mut pit, 2, 60..66), 0b100_011);
    let mut pit = with(2, 5, 2);
    pit.set_gate_2(true, at(60));
    assert_eq!(outputs(&mut pit, 2, 60..66), 0b111_011);
}

#[test]
fn the_gate_restarts_modes_2_and_3_and_holds_their_output_high() {
    let mut pit = with(2, 3, 4);
    assert!(pit.output(2, at(3)) && pit.output(2, at(4)));
    pit.set_gate_2(true, at(9));
    assert_eq!(outputs(&mut pit, 2, 10..14), 0b1100);
    pit.set_gate_2(false, at(13));
    assert_eq!(outputs(&mut pit, 2, 13..17), 0b1111);
}

#[test]
fn a_latched_count_stays_until_both_bytes_are_read() {
    let mut pit = with(0, 2, 0x1000);
    pit.write(3, 0x00, at(0x101));
    pit.write(3, 0x00, at(0x201));
    assert_eq!(count(&mut pit, 0, 0x301), 0xF00);
    assert_eq!(count(&mut pit, 0, 0x401), 0xC00);
}

#[test]
fn read_back_latches_status_before_count() {
    let mut pit = with(0, 2, 0x1000);
    pit.write(3, 0xC2, at(0));
    assert_eq!(pit.read(0, at(0)), 0xF4, "high, not yet counting, both bytes, mode 2");
    pit.write(3, 0xC2, at(0));
    let _ = count(&mut pit, 0, 0);
    pit.write(3, 0xC2, at(0x11));
    assert_ne!(pit.read(0, at(0x11)), 0xF4);
    pit.write(3, 0xE2, at(0x11));
    assert_eq!(pit.read(0, at(0x11)), 0xB4);
}

#[test]
fn bcd_counts_in_decimal() {
    let mut pit = Pit::RESET;
    pit.write(3, 0x31, at(0));
    pit.write(0, 0x00, at(0));
    pit.write(0, 0x10, at(0));
    assert_eq!(count(&mut pit, 0, 2), 0x0999);
    assert_eq!(pit.next_event(), Some(begin(1001)));
}

#[test]
fn a_single_byte_count_has_the_other_byte_clear() {
    let mut pit = Pit::RESET;
    pit.write(3, 0x24, at(0));
    pit.write(0, 0x02, at(0));
    assert_eq!(pit.next_event(), Some(begin(0x201)));
    assert_eq!((pit.read(0, at(1)), pit.read(0, at(1))), (2, 2));
}
