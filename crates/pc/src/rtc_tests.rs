//! What the MC146818's data sheet says, by its two ports.

use super::*;

/// 2024-02-29 23:59:58, a Thursday.
const START: i64 = 1_709_251_198;

fn get(rtc: &mut Rtc, index: u8, now: u64) -> u8 {
    rtc.write(0, index | 0x80, now);
    rtc.read(1, now)
}

fn put(rtc: &mut Rtc, index: u8, value: u8, now: u64) {
    rtc.write(0, index, now);
    rtc.write(1, value, now);
}

fn time(rtc: &mut Rtc, now: u64) -> [u8; 8] {
    [0x32, 9, 8, 7, 6, 4, 2, 0].map(|index| get(rtc, index, now))
}

#[test]
fn the_date_is_in_bcd_and_moves_on() {
    let mut rtc = Rtc::new(START);
    assert_eq!(time(&mut rtc, 0), [0x20, 0x24, 0x02, 0x29, 5, 0x23, 0x59, 0x58]);
    assert_eq!(time(&mut rtc, 2 * SECOND), [0x20, 0x24, 0x03, 0x01, 6, 0, 0, 0]);
}

#[test]
fn status_b_chooses_binary_and_12_hours() {
    let mut rtc = Rtc::new(START);
    put(&mut rtc, 0x0B, 0x06, 0);
    assert_eq!(time(&mut rtc, 0), [20, 24, 2, 29, 5, 23, 59, 58]);
    put(&mut rtc, 0x0B, 0x00, 0);
    assert_eq!(get(&mut rtc, 4, 0), 0x91);
    assert_eq!(get(&mut rtc, 4, 2 * SECOND), 0x12, "midnight");
    put(&mut rtc, 4, 0x92, 0);
    put(&mut rtc, 0x0B, 0x02, 0);
    assert_eq!(get(&mut rtc, 4, 0), 0x12, "noon");
}

#[test]
fn a_time_that_is_set_holds_until_it_is_released() {
    let mut rtc = Rtc::new(START);
    put(&mut rtc, 0x0B, 0x82, 0);
    for (index, value) in [(0x32, 0x19), (9, 0x99), (8, 0x12), (7, 0x31), (4, 0x23), (0, 0x59)] {
        put(&mut rtc, index, value, 0);
    }
    assert_eq!(get(&mut rtc, 0, 9 * SECOND), 0x59);
    put(&mut rtc, 0x0B, 0x02, 9 * SECOND);
    assert_eq!(time(&mut rtc, 10 * SECOND), [0x20, 0x00, 0x01, 0x01, 7, 0, 0, 0]);
}

#[test]
fn update_in_progress_comes_before_the_second_and_goes() {
    let mut rtc = Rtc::new(START);
    assert_eq!(get(&mut rtc, 0x0A, SECOND / 2), 0x26);
    assert_eq!(get(&mut rtc, 0x0A, SECOND - 1), 0xA6);
    assert_eq!(get(&mut rtc, 0x0A, SECOND), 0x26);
    put(&mut rtc, 0x0B, 0x82, SECOND);
    assert_eq!(get(&mut rtc, 0x0A, 2 * SECOND - 1), 0x26);
}

#[test]
fn the_periodic_interrupt_comes_1024_times_a_second_until_it_is_read() {
    let mut rtc = Rtc::new(START);
    assert_eq!(rtc.next_event(), None);
    put(&mut rtc, 0x0B, 0x42, 0);
    let event = rtc.next_event().expect("the rate is 1024 Hz");
    assert_eq!(event, 976_563);
    rtc.settle(event - 1);
    assert!(!rtc.interrupts());
    rtc.settle(event);
    assert!(rtc.interrupts());
    assert_eq!(rtc.next_event(), None, "one is pending");
    assert_eq!((get(&mut rtc, 0x0C, event), get(&mut rtc, 0x0C, event)), (0xC0, 0x00));
    assert!(!rtc.interrupts());
    assert_eq!(rtc.next_event(), Some(1_953_125));
}

#[test]
fn update_and_alarm_interrupts_come_with_the_second() {
    let mut rtc = Rtc::new(START);
    put(&mut rtc, 0x01, 0x00, 0);
    put(&mut rtc, 0x03, 0xFF, 0);
    put(&mut rtc, 0x05, 0xFF, 0);
    put(&mut rtc, 0x0B, 0x32, 0);
    rtc.settle(SECOND);
    assert_eq!(get(&mut rtc, 0x0C, SECOND) & 0xB0, 0x90);
    assert_eq!(rtc.next_event(), Some(2 * SECOND));
    rtc.settle(2 * SECOND);
    assert_eq!(get(&mut rtc, 0x0C, 2 * SECOND) & 0xB0, 0xB0, "00 seconds, any minute and hour");
}

#[test]
fn memory_keeps_what_is_written_and_status_d_is_valid() {
    let mut rtc = Rtc::new(START);
    put(&mut rtc, 0x0F, 0x0A, 0);
    put(&mut rtc, 0x0D, 0x00, 0);
    assert_eq!((get(&mut rtc, 0x0F, 0), get(&mut rtc, 0x0D, 0)), (0x0A, 0x80));
}

#[test]
fn no_date_is_too_far_away_to_be_changed() {
    for epoch in [i64::MIN, i64::MAX] {
        let mut rtc = Rtc::new(START);
        rtc.set_epoch(epoch);
        for index in [7, 8, 4, 9, 0x32] {
            put(&mut rtc, index, 0xFF, u64::MAX);
        }
        put(&mut rtc, 0x0B, 0x02, u64::MAX);
        assert_eq!(get(&mut rtc, 0x0B, u64::MAX), 0x02);
    }
}
