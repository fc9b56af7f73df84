//! What the 8259A's data sheet says, at the ports of a PC.

use super::*;

/// As a BIOS sets them up: vectors 08h and 70h, nothing masked.
fn pics() -> Pics {
    with_icw4(0x01)
}

fn with_icw4(icw4: u8) -> Pics {
    let mut pics = Pics::RESET;
    for (which, words) in [(0, [0x08, 0x04]), (1, [0x70, 0x02])] {
        pics.write(which, 0, 0x11);
        for word in words {
            pics.write(which, 1, word);
        }
        pics.write(which, 1, icw4);
    }
    pics
}

/// A line that falls and rises within no time.
fn pulse(pics: &mut Pics, line: u8) {
    pics.set(line, false);
    pics.set(line, true);
}

#[test]
fn nothing_passes_before_initialisation() {
    let mut pics = Pics::RESET;
    pics.set(0, true);
    assert!(!pics.is_requesting());
    pics.write(0, 0, 0x11);
    pics.set(1, true);
    assert!(!pics.is_requesting(), "ICW2 to ICW4 are still to come");
}

#[test]
fn the_highest_priority_is_first_and_holds_the_others_off_until_its_eoi() {
    let mut pics = pics();
    pics.set(4, true);
    pics.set(1, true);
    assert_eq!(pics.acknowledge(), 0x09);
    assert!(!pics.is_requesting());
    pics.set(0, true);
    assert_eq!(pics.acknowledge(), 0x08);
    pics.write(0, 0, 0x20);
    pics.write(0, 0, 0x20);
    assert_eq!(pics.acknowledge(), 0x0C);
}

#[test]
fn an_edge_requests_once_and_a_level_as_long_as_it_is_high() {
    let mut pics = pics();
    pics.write_elcr(0, 0xFF);
    assert_eq!(pics.read_elcr(0), 0xF8);
    for (line, again) in [(1, false), (5, true)] {
        pics.set(line, true);
        assert_eq!(pics.acknowledge(), 0x08 + line);
        pics.write(0, 0, 0x20);
        assert_eq!(pics.is_requesting(), again);
        pics.set(line, false);
        assert!(!pics.is_requesting());
    }
}

#[test]
fn the_second_controller_needs_two_ends() {
    let mut pics = pics();
    pics.set(14, true);
    pics.set(8, true);
    assert_eq!(pics.acknowledge(), 0x70);
    pics.write(1, 0, 0x20);
    assert!(!pics.is_requesting(), "line 2 of the first is in service");
    pics.write(0, 0, 0x20);
    assert_eq!(pics.acknowledge(), 0x76);
}

#[test]
fn a_request_that_goes_away_is_spurious_and_is_not_in_service() {
    let mut pics = pics();
    pics.set(3, true);
    pics.set(3, false);
    assert_eq!(pics.acknowledge(), 0x0F);
    pics.write(0, 0, 0x0B);
    assert_eq!(pics.read(0, 0), 0);
    pics.set(12, true);
    // The cascade has been latched by the first when the line of the second falls.
    pics.pics[1].set(4, false);
    assert_eq!(pics.acknowledge(), 0x77);
    assert_eq!(pics.read(0, 0), 1 << 2, "the cascade needs its EOI");
}

#[test]
fn masks_requests_and_what_is_in_service_read_back() {
    let mut pics = pics();
    pics.write(0, 1, 0xFB);
    pics.set(3, true);
    assert!(!pics.is_requesting());
    assert_eq!((pics.read(0, 1), pics.read(0, 0)), (0xFB, 0x08));
    pics.write(0, 1, 0x00);
    assert_eq!(pics.acknowledge(), 0x0B);
    assert_eq!(pics.read(0, 0), 0x00);
    pics.write(0, 0, 0x0B);
    assert_eq!(pics.read(0, 0), 0x08);
    pics.write(0, 0, 0x63);
    assert_eq!(pics.read(0, 0), 0x00, "specific EOI");
}

#[test]
fn automatic_eoi_keeps_nothing_in_service() {
    let mut pics = with_icw4(0x03);
    pics.set(13, true);
    pics.set(15, true);
    assert_eq!((pics.acknowledge(), pics.acknowledge()), (0x75, 0x77));
    assert!(!pics.is_requesting());
}

#[test]
fn rotation_moves_the_served_line_to_the_end() {
    let mut pics = pics();
    pulse(&mut pics, 3);
    pulse(&mut pics, 4);
    assert_eq!(pics.acknowledge(), 0x0B);
    pulse(&mut pics, 3);
    pics.write(0, 0, 0xA0);
    assert_eq!(pics.acknowledge(), 0x0C, "4 is the highest now, 3 the lowest");
    pics.write(0, 0, 0x20);
    pics.write(0, 0, 0xC2);
    pulse(&mut pics, 1);
    assert_eq!(pics.acknowledge(), 0x0B, "set priority: 3 is the highest again");
}

#[test]
fn a_poll_acknowledges_and_special_mask_lets_lower_levels_in() {
    let mut pics = pics();
    pics.set(1, true);
    pics.write(0, 0, 0x0C);
    assert_eq!(pics.read(0, 0), 0x81);
    pics.set(6, true);
    assert!(!pics.is_requesting());
    pics.write(0, 0, 0x68);
    pics.write(0, 1, 0x02);
    assert_eq!(pics.acknowledge(), 0x0E);
}
