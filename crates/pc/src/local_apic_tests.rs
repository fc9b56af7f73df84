//! The local APIC and the I/O APIC, register by register.

use super::*;
use crate::io_apic::IoApic;

const BASE: u64 = LOCAL_APIC;

fn booted() -> LocalApic {
    LocalApic::BOOTED
}

fn write(apic: &mut LocalApic, register: u64, value: u32) -> Signal {
    apic.write(BASE + register, value, 0)
}

#[test]
fn firmware_hands_over_virtual_wire_mode() {
    let mut apic = booted();
    assert!(apic.is_requesting(true) && !apic.is_requesting(false));
    assert_eq!(apic.acknowledge(), None);
    // LINT0 masked, then the whole APIC off: the controllers reach the processor again.
    write(&mut apic, 0x350, MASKED | EXTERNAL << 8);
    assert!(!apic.is_requesting(true));
    assert_eq!(apic.acknowledge(), Some(0xFF));
    assert!(apic.set_base(LOCAL_APIC | BOOTSTRAP));
    assert!(apic.is_requesting(true) && !apic.has(BASE));
    assert!(!apic.set_base(0x1234_5000));
}

#[test]
fn the_highest_vector_above_the_priority_is_served_first() {
    let mut apic = booted();
    for vector in [0x31, 0x52, 0x45] {
        apic.request(vector, false);
    }
    assert_eq!(apic.acknowledge(), Some(0x52));
    assert_eq!(apic.read(BASE + PROCESSOR_PRIORITY, 0), 0x50);
    assert!(!apic.is_requesting(false), "45 is below what is served");
    apic.request(0x61, false);
    assert_eq!(apic.acknowledge(), Some(0x61));
    assert_eq!(write(&mut apic, END_OF_INTERRUPT, 0), Signal::Nothing);
    assert_eq!(write(&mut apic, END_OF_INTERRUPT, 0), Signal::Nothing);
    assert_eq!(write(&mut apic, TASK_PRIORITY, 0x40), Signal::Priority(4));
    assert!(!apic.is_requesting(false), "45 is of the class of the task");
    apic.set_task_priority(3);
    assert_eq!(apic.acknowledge(), Some(0x45));
    assert_eq!(apic.read(BASE + IN_SERVICE + 0x20, 0), 1 << 5);
    assert_eq!(apic.read(BASE + REQUESTS + 0x10, 0), 1 << 0x11);
}

#[test]
fn the_timer_counts_once_or_again_and_again() {
    let mut apic = booted();
    write(&mut apic, LOCAL_VECTORS, 0x40);
    // Divided by 16.
    write(&mut apic, DIVIDE, 3);
    apic.write(BASE + INITIAL_COUNT, 100, 1000);
    assert_eq!((apic.next_event(), apic.read(BASE + CURRENT_COUNT, 1160)), (Some(2600), 90));
    apic.settle(2599);
    assert!(!apic.is_requesting(false));
    apic.settle(2600);
    assert_eq!((apic.acknowledge(), apic.next_event()), (Some(0x40), None));
    assert_eq!(apic.read(BASE + CURRENT_COUNT, 5000), 0);
    write(&mut apic, END_OF_INTERRUPT, 0);
    write(&mut apic, LOCAL_VECTORS, PERIODIC | 0x41);
    apic.write(BASE + INITIAL_COUNT, 100, 3000);
    apic.settle(3000 + 2 * 1600 + 5);
    assert_eq!((apic.acknowledge(), apic.next_event()), (Some(0x41), Some(3000 + 3 * 1600)));
    // Masked, it goes on in silence.
    write(&mut apic, LOCAL_VECTORS, MASKED | PERIODIC | 0x41);
    write(&mut apic, END_OF_INTERRUPT, 0);
    apic.settle(3000 + 5 * 1600);
    assert!(!apic.is_requesting(false) && apic.next_event().is_some());
}

#[test]
fn it_sends_to_itself_and_to_nobody_else() {
    let mut apic = booted();
    for (high, low, arrives) in [
        (0, 0x30, true),
        (1 << 24, 0x30, false),
        (0xFF << 24, 0x30, true),
        (0, 0x4_0030, true),
        (0, 0x8_0030, true),
        (0, 0xC_0030, false),
    ] {
        write(&mut apic, COMMAND_HIGH, high);
        write(&mut apic, COMMAND_LOW, low);
        assert_eq!(apic.deliverable().is_some(), arrives, "{high:x} {low:x}");
        apic.requests = [0; 8];
    }
    assert_eq!(write(&mut apic, COMMAND_LOW, 0x4_0400), Signal::Nmi);
}

#[test]
fn switched_off_by_software_it_takes_nothing_and_masks_its_vectors() {
    let mut apic = booted();
    write(&mut apic, SPURIOUS, 0x1F);
    apic.request(0x40, false);
    assert!(!apic.is_requesting(true));
    assert_eq!(apic.read(BASE + 0x350, 0) as u32 & MASKED, MASKED);
    write(&mut apic, LOCAL_VECTORS, 0x40);
    assert_eq!(apic.read(BASE + LOCAL_VECTORS, 0) as u32, MASKED | 0x40);
}

#[test]
fn a_level_of_the_io_apic_comes_again_until_it_falls() {
    let (mut io, mut apic) = (IoApic::RESET, booted());
    let register = |io: &mut IoApic, apic: &mut LocalApic, number: u32, value: u32| {
        io.write(0xFEC0_0000, number, apic);
        io.write(0xFEC0_0010, value, apic);
    };
    register(&mut io, &mut apic, 0x18, 1 << 15 | 0x44);
    io.set(4, true, &mut apic);
    assert_eq!(apic.acknowledge(), Some(0x44));
    io.set(4, true, &mut apic);
    assert!(!apic.is_requesting(false), "it waits for the end of the first");
    assert_eq!(write(&mut apic, END_OF_INTERRUPT, 0), Signal::End(0x44));
    io.end(0x44, &mut apic);
    assert_eq!(apic.acknowledge(), Some(0x44));
    io.set(4, false, &mut apic);
    write(&mut apic, END_OF_INTERRUPT, 0);
    io.end(0x44, &mut apic);
    assert!(!apic.is_requesting(false));
    // An edge of the timer, on pin 2.
    register(&mut io, &mut apic, 0x14, 0x50);
    io.set(0, false, &mut apic);
    io.set(0, true, &mut apic);
    io.set(0, true, &mut apic);
    assert_eq!((apic.acknowledge(), apic.is_requesting(false)), (Some(0x50), false));
    assert!(io.is_sound());
}
