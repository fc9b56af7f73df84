//! What the 16550A's data sheet says, by its registers.

use super::*;

#[test]
fn a_byte_written_to_the_data_register_leaves_and_the_line_stays_ready() {
    let mut serial = Serial::BOOTED;
    assert_eq!(serial.read(5), 0x60);
    assert_eq!(serial.write(0, b'A'), Some(b'A'));
    assert_eq!(serial.read(5), 0x60);
    assert_eq!(serial.read(0), 0);
}

#[test]
fn with_dlab_set_the_divisor_is_written_and_nothing_is_sent() {
    let mut serial = Serial::BOOTED;
    serial.write(3, 0x83);
    assert_eq!(serial.write(0, 0x01), None);
    assert_eq!(serial.write(1, 0x02), None);
    assert_eq!((serial.read(0), serial.read(1)), (0x01, 0x02));
    serial.write(3, 0x03);
    assert_eq!(serial.read(1), 0, "the divisor's high byte is not IER");
    assert_eq!(serial.write(0, b'B'), Some(b'B'));
}

#[test]
fn the_scratch_register_keeps_its_value_and_status_registers_ignore_writes() {
    let mut serial = Serial::BOOTED;
    serial.write(7, 0xA5);
    serial.write(5, 0x00);
    serial.write(6, 0x00);
    assert_eq!((serial.read(7), serial.read(5), serial.read(6)), (0xA5, 0x60, 0xB0));
}

#[test]
fn fifos_are_reported_once_enabled() {
    let mut serial = Serial::BOOTED;
    assert_eq!(serial.read(2), 0x01);
    serial.write(2, 0xC7);
    assert_eq!(serial.read(2), 0xC1);
}

#[test]
fn loopback_returns_bytes_and_modem_lines_to_the_guest_alone() {
    let mut serial = Serial::BOOTED;
    serial.write(4, 0x1E);
    assert_eq!(serial.read(6), 0xD2, "DSR was taken away");
    assert_eq!(serial.read(6), 0xD0);
    assert_eq!(serial.write(0, 0xAE), None);
    assert_eq!(serial.read(5), 0x61);
    assert_eq!(serial.read(0), 0xAE);
    assert_eq!(serial.read(5), 0x60);
}

#[test]
fn the_empty_event_is_identified_until_it_is_read() {
    let mut serial = Serial::BOOTED;
    serial.write(1, 0x02);
    assert_eq!((serial.read(2), serial.read(2)), (0x02, 0x01));
    serial.write(0, b'x');
    assert_eq!((serial.read(2), serial.read(2)), (0x02, 0x01));
}

#[test]
fn input_interrupts_through_out2_and_waits_for_room() {
    let mut serial = Serial::BOOTED;
    assert_eq!(serial.send(b"abc"), 3);
    serial.write(1, 0x01);
    assert!(!serial.interrupts());
    serial.write(4, 0x08);
    assert!(serial.interrupts());
    assert_eq!(serial.read(2), 0x04);
    assert_eq!([serial.read(0), serial.read(0), serial.read(0)], *b"abc");
    assert!(!serial.interrupts());
    assert_eq!(serial.send(&[b'x'; MOST_INPUT + 9]), MOST_INPUT);
}

#[test]
fn the_fifo_holds_16_bytes_and_reports_its_trigger_level() {
    let mut serial = Serial::BOOTED;
    serial.write(1, 0x01);
    serial.write(2, 0x81);
    serial.write(4, 0x10);
    for byte in 0..20 {
        serial.write(0, byte);
    }
    assert_eq!(serial.read(2), 0xC4);
    (0..9).for_each(|byte| assert_eq!(serial.read(0), byte));
    assert_eq!(serial.read(2), 0xCC, "below 8 bytes it is a time-out");
    (9..16).for_each(|byte| assert_eq!(serial.read(0), byte));
    assert_eq!((serial.read(5), serial.read(2)), (0x60, 0xC1));
}
