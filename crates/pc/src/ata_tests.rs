//! Commands as a driver gives them, by the registers.

extern crate std;
use super::*;
use crate::disk::DiskError;
use std::vec;
use std::vec::Vec;

/// Every byte of a sector is its number; one sector is bad.
struct Numbered {
    bytes: Vec<u8>,
    bad: u64,
}

impl Disk for Numbered {
    fn sectors(&self) -> u64 {
        (self.bytes.len() / SECTOR) as u64
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        let from = self.bytes.chunks_exact(SECTOR).nth(lba as usize).ok_or(DiskError)?;
        sector.copy_from_slice(from);
        if lba == self.bad { Err(DiskError) } else { Ok(()) }
    }

    fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        let to = self.bytes.chunks_exact_mut(SECTOR).nth(lba as usize).ok_or(DiskError)?;
        to.copy_from_slice(sector);
        if lba == self.bad { Err(DiskError) } else { Ok(()) }
    }
}

fn disk() -> Numbered {
    let bytes = (0..200 * SECTOR).map(|at| (at / SECTOR) as u8).collect();
    Numbered { bytes, bad: 150 }
}

fn start(ata: &mut Ata, disk: &mut Numbered, command: u8, lba: u32, count: u8) {
    let [low, mid, high, top] = lba.to_le_bytes();
    let registers = [(2, count), (3, low), (4, mid), (5, high), (6, 0xE0 | top), (7, command)];
    for (register, value) in registers {
        ata.write(register, value, disk);
    }
}

fn sector(ata: &mut Ata, disk: &mut Numbered) -> Option<u8> {
    let mut data = [0xEE; SECTOR];
    let len = ata.read_data(&mut data, disk);
    (len == SECTOR && data.iter().all(|byte| *byte == data[0])).then_some(data[0])
}

#[test]
fn sectors_are_read_with_one_interrupt_each() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0x20, 5, 2);
    for number in [5, 6] {
        assert!(ata.interrupts());
        assert_eq!((ata.alternate_status(), ata.read(7)), (0x58, 0x58));
        assert!(!ata.interrupts());
        assert_eq!(sector(&mut ata, &mut disk), Some(number));
    }
    assert_eq!((ata.read(7), ata.interrupts()), (0x50, false));
    assert_eq!(sector(&mut ata, &mut disk), None);
}

#[test]
fn read_multiple_interrupts_once_a_block() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0xC4, 0, 3);
    assert_eq!((ata.read(7), ata.read(1)), (0x51, 0x04), "SET MULTIPLE MODE comes first");
    start(&mut ata, &mut disk, 0xC6, 0, 2);
    start(&mut ata, &mut disk, 0xC4, 0, 3);
    let mut interrupts = Vec::new();
    for number in 0..3 {
        interrupts.push(ata.interrupts());
        ata.read(7);
        assert_eq!(sector(&mut ata, &mut disk), Some(number));
    }
    assert_eq!(interrupts, [true, false, true]);
}

#[test]
fn sectors_are_written_when_they_are_whole() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0x30, 7, 2);
    assert!(!ata.interrupts(), "none for the first");
    assert_eq!(ata.write_data(&[0xAA; 300], &mut disk), 300);
    assert_eq!(ata.write_data(&[0xAA; 300], &mut disk), 212);
    assert_eq!(disk.bytes[7 * SECTOR..8 * SECTOR], [0xAA; SECTOR]);
    assert!(ata.interrupts() && ata.read(7) == 0x58);
    ata.write_data(&[0xBB; SECTOR], &mut disk);
    assert!(ata.interrupts() && ata.read(7) == 0x50);
    assert_eq!(disk.bytes[9 * SECTOR - 1], 0xBB);
}

#[test]
fn addresses_of_48_bits_are_written_high_bytes_first() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    ata.write(6, 0x40, &mut disk);
    for (register, value) in [(2, 0), (3, 0), (4, 0), (5, 0), (2, 1), (3, 99), (4, 0), (5, 0)] {
        ata.write(register, value, &mut disk);
    }
    ata.write(7, 0x24, &mut disk);
    assert_eq!(sector(&mut ata, &mut disk), Some(99));
    ata.write(3, 1, &mut disk);
    ata.write(3, 0, &mut disk);
    ata.write(7, 0x24, &mut disk);
    assert_eq!((ata.read(7), ata.read(1)), (0x51, NOT_FOUND), "sector 1000000h");
    ata.write_control(HIGH_ORDER);
    assert_eq!(ata.read(3), 1);
}

#[test]
fn cylinders_heads_and_sectors_follow_the_geometry_that_was_set() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    for (register, value) in [(2, 10), (6, 0xA3), (7, 0x91)] {
        ata.write(register, value, &mut disk);
    }
    for (register, value) in [(2, 1), (3, 5), (4, 2), (5, 0), (6, 0xA1), (7, 0x20)] {
        ata.write(register, value, &mut disk);
    }
    assert_eq!(sector(&mut ata, &mut disk), Some((2 * 4 + 1) * 10 + 4));
    ata.write(3, 0, &mut disk);
    ata.write(7, 0x20, &mut disk);
    assert_eq!(ata.read(1), NOT_FOUND, "sectors count from 1");
    ata.write(3, 1, &mut disk);
    ata.write(6, 0xA4, &mut disk);
    ata.write(7, 0x20, &mut disk);
    assert_eq!(ata.read(1), NOT_FOUND, "there are four heads");
}

#[test]
fn a_geometry_without_sectors_is_refused_and_the_old_one_stays() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    for (register, value) in [(2, 0), (6, 0xA0), (7, 0x91)] {
        ata.write(register, value, &mut disk);
    }
    assert_eq!((ata.read(7), ata.read(1)), (0x51, ABORTED));
    for (register, value) in [(2, 1), (3, 63), (4, 0), (5, 0), (6, 0xA0), (7, 0x20)] {
        ata.write(register, value, &mut disk);
    }
    assert_eq!(sector(&mut ata, &mut disk), Some(62));
}

#[test]
fn a_sector_that_fails_ends_the_command_and_is_named() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0x20, 149, 3);
    assert_eq!(sector(&mut ata, &mut disk), Some(149));
    assert_eq!((ata.read(7), ata.read(1), ata.read(3)), (0x51, UNCORRECTABLE, 150));
    start(&mut ata, &mut disk, 0x30, 150, 1);
    ata.write_data(&[0; SECTOR], &mut disk);
    assert_eq!((ata.read(7), ata.read(1)), (0x51, UNCORRECTABLE));
    start(&mut ata, &mut disk, 0x20, 199, 2);
    assert_eq!((ata.read(7), ata.read(1)), (0x51, NOT_FOUND));
}

#[test]
fn identify_tells_capacity_and_name() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0xEC, 0, 0);
    let mut data = vec![0; SECTOR];
    assert_eq!(ata.read_data(&mut data, &mut disk), SECTOR);
    let word = |at: usize| u16::from_le_bytes([data[2 * at], data[2 * at + 1]]);
    assert_eq!((word(60), word(61), word(100), word(49)), (200, 0, 200, 0x0A00));
    assert_eq!(data[54..62], *b"erlaomed");
}

#[test]
fn there_is_no_device_1() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    ata.write(6, 0xB0, &mut disk);
    ata.write(7, 0xEC, &mut disk);
    assert_eq!((ata.read(7), ata.interrupts()), (0, false));
    ata.write(6, 0xA0, &mut disk);
    assert_eq!(ata.read(7), 0x50);
}

#[test]
fn resets_leave_the_signature_and_no_interrupt_passes_nien() {
    let (mut ata, mut disk) = (Ata::RESET, disk());
    start(&mut ata, &mut disk, 0x20, 5, 2);
    ata.write_control(SOFT_RESET);
    assert_eq!(ata.read(7), 0x80);
    ata.write_control(NO_INTERRUPT);
    assert_eq!([1, 2, 3, 4, 5, 7].map(|register| ata.read(register)), [1, 1, 1, 0, 0, 0x50]);
    ata.write(7, 0x90, &mut disk);
    assert!(!ata.interrupts());
    ata.write_control(0);
    assert!(ata.interrupts());
    start(&mut ata, &mut disk, 0xA1, 0, 0);
    assert_eq!((ata.read(7), ata.read(1)), (0x51, ABORTED));
}
