//! Headers, right and wrong, and what becomes of memory and the processor.

extern crate std;
use super::*;
use core::sync::atomic::{AtomicU8, Ordering};
use std::vec;
use std::vec::Vec;

const RAM: usize = 0x11_0000;
/// What memory holds before.
const OLD: u8 = 0xA5;

fn memory() -> Vec<AtomicU8> {
    (0..RAM).map(|_| AtomicU8::new(OLD)).collect()
}

/// An image of `len` bytes with a header `at` so many, without a checksum yet.
fn image(len: usize, at: usize, flags: u32, addresses: [u32; 5]) -> Vec<u8> {
    let mut image: Vec<u8> = (0..len).map(|i| i as u8).collect();
    let words = [MAGIC, flags, 0u32.wrapping_sub(MAGIC.wrapping_add(flags))];
    let bytes: Vec<u8> =
        words.into_iter().chain(addresses).flat_map(|word| word.to_le_bytes()).collect();
    image[at..at + bytes.len()].copy_from_slice(&bytes);
    image
}

/// For a header 40h in: the file from 20h on goes to 100000h, and starts there.
const GOOD: [u32; 5] = [0x10_0020, 0x10_0000, 0x10_0080, 0x10_0100, 0x10_0000];

fn good(addresses: [u32; 5]) -> Vec<u8> {
    image(0x100, 0x40, HAS_ADDRESSES | 3, addresses)
}

fn error(image: &[u8]) -> Option<Error> {
    let ram = memory();
    let mut pc = Pc::new(&ram, ()).expect("whole pages");
    let error = pc.boot_multiboot(image, "").err();
    assert!(error.is_none() || ram.iter().all(|cell| cell.load(Ordering::Relaxed) == OLD));
    error
}

#[test]
fn a_kernel_is_put_where_its_header_says_and_the_rest_is_cleared() {
    let ram = memory();
    let mut pc = Pc::new(&ram, ()).expect("whole pages");
    let image = good(GOOD);
    let cpu = pc.boot_multiboot(&image, "one two").expect("a kernel that fits");
    let bytes =
        |at: u64, len: u64| -> Vec<u8> { (at..at + len).map(|at| pc.byte(Phys(at))).collect() };
    assert_eq!(bytes(0x10_0000, 0x80), image[0x20..0xA0]);
    assert_eq!(bytes(0x10_0080, 0x81), [[0; 0x80].as_slice(), &[OLD]].concat());
    assert_eq!(bytes(0xF_FFFF, 1), [0xFF], "a hole");

    assert_eq!((cpu.rip, cpu.cr0, cpu.a20), (0x10_0000, 0x11, true));
    assert_eq!((cpu.gpr[Reg::Rax], cpu.gpr[Reg::Rbx]), (0x2BAD_B002, INFO));
    assert_eq!(cpu.rflags & (1 << 9 | 1 << 17), 0, "no interrupts, not virtual-8086 mode");
    let (cs, ss) = (cpu.segment(SegReg::Cs), cpu.segment(SegReg::Ss));
    assert_eq!((cs.base, cs.limit, cs.attributes.0), (0, u32::MAX, 0xC09B));
    assert_eq!((ss.base, ss.limit, ss.attributes.0), (0, u32::MAX, 0xC093));
}

#[test]
fn the_boot_information_tells_memory_the_command_line_and_the_screen() {
    let ram = memory();
    let mut pc = Pc::new(&ram, ()).expect("whole pages");
    pc.boot_multiboot(&good(GOOD), "one two").expect("a kernel that fits");
    let word = |at: u64| (0..4).rev().fold(0, |n, i| n << 8 | u32::from(pc.byte(Phys(at + i))));
    let text = |at: u32| -> Vec<u8> {
        (u64::from(at)..).map(|at| pc.byte(Phys(at))).take_while(|byte| *byte != 0).collect()
    };
    assert_eq!(word(INFO), 0x124D);
    assert_eq!((word(INFO + 4), word(INFO + 8)), (640, 64));
    assert_eq!(text(word(INFO + 16)), b"one two");
    assert_eq!(text(word(INFO + 64)), b"realmode");
    assert_eq!(word(INFO + 20), 0, "no modules");
    let (len, mut at) = (word(INFO + 44), u64::from(word(INFO + 48)));
    let end = at + u64::from(len);
    let mut ranges = Vec::new();
    while at < end {
        ranges.push([4, 8, 12, 16, 20].map(|offset| word(at + offset)));
        at += u64::from(word(at)) + 4;
    }
    let expected = [[0, 0, 0xA_0000, 0, 1], [0xA_0000, 0, 0x6_0000, 0, 2]];
    assert_eq!(ranges, [expected[0], expected[1], [0x10_0000, 0, 0x1_0000, 0, 1]]);
    assert_eq!([88, 92, 96, 100, 104].map(|at| word(INFO + at)), [0xB_8000, 0, 160, 80, 25]);
    assert_eq!(word(INFO + 108) & 0xFFFF, 0x0210, "text, 16 bits a character");
}

#[test]
fn ends_of_0_are_the_end_of_the_file_and_no_bss() {
    let ram = memory();
    let mut pc = Pc::new(&ram, ()).expect("whole pages");
    let image = good([GOOD[0], GOOD[1], 0, 0, GOOD[4]]);
    pc.boot_multiboot(&image, "").expect("a kernel that fits");
    let bytes: Vec<u8> = (0x10_0000..0x10_00E1).map(|at| pc.byte(Phys(at))).collect();
    assert_eq!(bytes, [&image[0x20..], &[OLD]].concat());
}

#[test]
fn the_header_is_whole_in_the_first_8_kib_at_a_multiple_of_4() {
    let addresses = [0x10_0000, 0x10_0000, 0, 0, 0x10_0000];
    let at = |at: usize| image(9000, at, HAS_ADDRESSES, addresses);
    assert_eq!(error(&at(8192 - 32)), None);
    assert_eq!(error(&at(8192 - 28)), Some(Error::MultibootNoHeader));
    assert_eq!(error(&at(0x42)), Some(Error::MultibootNoHeader));
    let mut wrong = at(0);
    wrong[8] ^= 1;
    assert_eq!(error(&wrong), Some(Error::MultibootNoHeader));
    assert_eq!(error(&[]), Some(Error::MultibootNoHeader));
}

#[test]
fn what_a_kernel_requires_is_known_or_it_is_refused() {
    for bit in 0..16 {
        let image = image(0x100, 0x40, HAS_ADDRESSES | 1 << bit, GOOD);
        let expected = (bit > 2).then_some(Error::MultibootRequires { unknown: 1 << bit });
        assert_eq!(error(&image), expected, "bit {bit}");
    }
    assert_eq!(error(&image(0x100, 0x40, HAS_ADDRESSES | 1 << 31, GOOD)), None);
    assert_eq!(error(&image(0x100, 0x40, 3, GOOD)), Some(Error::MultibootNoAddresses));
}

#[test]
fn addresses_out_of_order_are_refused() {
    let with = |index: usize, value: u32| {
        let mut addresses = GOOD;
        addresses[index] = value;
        addresses
    };
    let out_of_order = [
        with(0, GOOD[1] - 1),
        // The header would lie further in than it does.
        with(0, GOOD[1] + 0x41),
        with(2, GOOD[1] - 1),
        with(3, GOOD[2] - 1),
        with(3, 1),
    ];
    for addresses in out_of_order {
        let [header, load, load_end, bss_end, _] = addresses;
        let expected = Error::MultibootAddresses { header, load, load_end, bss_end };
        assert_eq!(error(&good(addresses)), Some(expected));
    }
    assert_eq!(error(&good(with(2, u32::MAX))), Some(Error::MultibootCutOff { len: 0x100 }));
    for entry in [GOOD[1] - 1, GOOD[3], 0, u32::MAX] {
        let expected = Some(Error::MultibootEntry { entry });
        assert_eq!(error(&good(with(4, entry))), expected);
    }
}

/// A kernel of 10h bytes in the file, its header, at `start`.
fn at(start: u32, len: u32) -> Vec<u8> {
    let data_end = start.wrapping_add(0x20);
    image(0x20, 0, HAS_ADDRESSES, [start, start, data_end, start.wrapping_add(len), start])
}

#[test]
fn a_kernel_lies_in_ram_and_leaves_the_boot_information_alone() {
    assert_eq!(error(&at(0, 0x9_F000)), None);
    let hole = |start, len| Some(Error::MultibootInHole { start, len });
    assert_eq!(error(&at(0, 0x9_F001)), hole(0, 0x9_F001));
    assert_eq!(error(&at(0x9_FFE0, 0x20)), hole(0x9_FFE0, 0x20));
    assert_eq!(error(&at(0xB_8000, 0x20)), hole(0xB_8000, 0x20));
    assert_eq!(error(&at(0xF_FFE1, 0x20)), hole(0xF_FFE1, 0x20));
    assert_eq!(error(&at(0x10_0000, 0x1_0000)), None);
    let past = |start, len| Some(Error::ImagePastRam { start, len, ram: RAM as u64 });
    assert_eq!(error(&at(0x10_0000, 0x1_0001)), past(0x10_0000, 0x1_0001));
    assert_eq!(error(&at(0xFFFF_FF00, 0x20)), past(0xFFFF_FF00, 0x20));
}

#[test]
fn a_command_line_has_its_limit_and_ram_its_least() {
    let ram = memory();
    let boot = |ram: &[AtomicU8], len: usize| {
        let text: std::string::String = vec!['x'; len].into_iter().collect();
        let mut pc = Pc::new(ram, ()).expect("whole pages");
        pc.boot_multiboot(&at(0x1000, 0x20), &text).err()
    };
    assert_eq!(boot(&ram, 2047), None);
    let too_long = Error::CommandLineTooLong { len: 2048, most: 2047 };
    assert_eq!(boot(&ram, 2048), Some(too_long));
    assert_eq!(boot(&ram[..0x10_0000], 0), None);
    let short = &ram[..0xF_F000];
    assert_eq!(boot(short, 0), Some(Error::MultibootNoRam { len: 0xF_F000 }));
}
