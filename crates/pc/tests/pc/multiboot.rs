//! A multiboot kernel, with addresses in its header and as an ELF, and what is made of bad ones.

use core::ops::ControlFlow;
use core::sync::atomic::AtomicU8;

use realmode::{CacheLine, Emulator, Profile, Stop};
use realmode_pc::{Channel, Ending, Error, Pc};

use super::bad_input::{is_untouched, memory};

const FLAT: &[u8] = include_bytes!("../../../../testdata/guests/multiboot.bin");
pub(super) const ELF: &[u8] = include_bytes!("../../../../testdata/guests/multiboot.elf");

/// Runs a kernel in slices of `slice`, to the guest's end. Returns what came out of COM1, and the
/// instructions.
fn run(image: &[u8], command_line: &str, slice: u64) -> (String, u64) {
    let ram = memory(4 << 20);
    let mut lines = vec![CacheLine::EMPTY; 256];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut printed = Vec::new();
    let mut pc = Pc::new(&ram, |channel: Channel, byte: u8| {
        assert_eq!(channel, Channel::Serial);
        printed.push(byte);
        ControlFlow::Continue(())
    })
    .expect("4 MiB of whole pages");
    let mut cpu = pc.boot_multiboot(image, command_line).expect("a kernel that fits");
    while pc.ending().is_none() {
        let stop = pc.run(&mut emulator, &mut cpu, slice).expect("nothing is in flight");
        assert!(matches!(stop, Stop::Budget | Stop::Requested), "{stop:?} {cpu:?}");
        assert!(emulator.counters().instructions < 10_000_000);
    }
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
    let printed = String::from_utf8(printed).expect("ASCII").replace("\r\n", "\n");
    (printed, emulator.counters().instructions)
}

const REPORT: &str = "one two by realmode
00000000 000A0000 00000001 
000A0000 00060000 00000002 
00100000 00300000 00000001 
timer 00000003 
fault 00000048 
real 0000B002 
timer 00000003 
";

#[test]
fn a_multiboot_kernel_uses_interrupts_faults_and_real_mode() {
    let (printed, instructions) = run(FLAT, "one two", u64::MAX);
    assert_eq!(printed, REPORT);
    assert_eq!(run(FLAT, "one two", 1), (printed, instructions));
}

#[test]
fn a_multiboot_kernel_is_an_elf_with_segments_apart_and_virtual_addresses() {
    let (printed, _) = run(ELF, "one two", u64::MAX);
    assert_eq!(printed, REPORT);
    assert!(run(ELF, "", u64::MAX).0.starts_with(" by realmode\n"));
}

/// The error of a kernel, once it is sure that nothing was written.
fn refused(image: &[u8], ram: &[AtomicU8]) -> Error {
    let mut pc = Pc::new(ram, ()).expect("whole pages");
    let error = pc.boot_multiboot(image, "").expect_err("a bad kernel");
    assert!(is_untouched(ram), "{error}");
    error
}

#[test]
fn a_kernel_cut_off_at_any_length_is_refused_and_memory_stays_as_it_was() {
    let ram = memory(0x10_0000 + 0x2000);
    let mut found = Vec::new();
    for image in [FLAT, ELF] {
        for len in 0..image.len() {
            let error = refused(&image[..len], &ram);
            let is_expected = match error {
                Error::MultibootNoHeader => true,
                Error::MultibootCutOff { len: at } => at == len as u64,
                _ => false,
            };
            assert!(is_expected, "{len}: {error}");
            found.push(error);
        }
    }
    found.sort_by_key(Error::to_string);
    found.dedup();
    assert!(found.len() > 1000, "both kinds, and the lengths told");
}

#[test]
fn any_byte_of_a_header_may_be_wrong_and_what_is_refused_was_not_loaded() {
    let (mut refusals, mut ram) = (0, memory(0x21_0000));
    for (image, header) in [(FLAT, 0x20), (ELF, 0xA0)] {
        for (at, value) in
            (0..header).flat_map(|at| [0x00, 0x01, 0x7F, 0x80, 0xFF].map(|v| (at, v)))
        {
            let mut image = image.to_vec();
            image[at] = value;
            let mut pc = Pc::new(&ram, ()).expect("whole pages");
            if pc.boot_multiboot(&image, "").is_ok() {
                ram = memory(ram.len());
            } else {
                refusals += 1;
                assert!(is_untouched(&ram), "byte {at:#x} is {value:#x}");
            }
        }
    }
    assert!((200..900).contains(&refusals), "{refusals}");
}
