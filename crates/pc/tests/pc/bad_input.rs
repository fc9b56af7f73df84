//! What is damaged, cut off or goes away: a clear error before anything was written, or an error
//! that the guest sees.

use core::sync::atomic::{AtomicU8, Ordering};

use realmode_pc::{Disk, DiskError, Ending, Error, Pc, SECTOR};

use super::firmware::{Log, SERVICES, boot, seabios};

/// What memory holds before.
const OLD: u8 = 0xA5;

pub(super) fn memory(bytes: usize) -> Vec<AtomicU8> {
    (0..bytes).map(|_| AtomicU8::new(OLD)).collect()
}

pub(super) fn is_untouched(ram: &[AtomicU8]) -> bool {
    ram.iter().all(|cell| cell.load(Ordering::Relaxed) == OLD)
}

#[test]
fn a_bios_of_no_size_a_rom_has_is_refused_and_memory_stays_as_it_was() {
    let ram = memory(1 << 20);
    let rom = memory((16 << 20) + 0x1_0000);
    let (most, step) = (16 << 20, 0x1_0000);
    for len in
        [0, 1, 15, 16, 512, step - 1, step + 1, 2 * step - 1, most - 1, most + 1, most + step]
    {
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        let expected = Error::BiosSize { len: len as u64 };
        assert_eq!(pc.boot_bios(&rom[..len]).err(), Some(expected));
    }
    for found in [0x00, 0xFF] {
        rom[step - 16].store(found, Ordering::Relaxed);
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        assert_eq!(pc.boot_bios(&rom[..step]).err(), Some(Error::BiosNoStart { found }));
    }
    assert!(is_untouched(&ram));
}

#[test]
fn an_image_or_a_boot_sector_that_does_not_fit_leaves_memory_as_it_was() {
    let ram = memory(0x7000);
    let mut pc = Pc::new(&ram, ()).expect("7 pages");
    let past_ram = |start, len| Some(Error::ImagePastRam { start, len, ram: 0x7000 });
    assert_eq!(pc.boot_image(&[0xF4; 16], 0x06FF, 1).err(), past_ram(0x6FF1, 16));
    assert_eq!(pc.boot_image(&[], 0, 0x1000).err(), Some(Error::ImageEmpty));
    let mut floppy = [0; SECTOR];
    floppy[510..].copy_from_slice(&[0x55, 0xAA]);
    assert_eq!(pc.boot_floppy(&floppy).err(), past_ram(0x7C00, 512));
    assert!(is_untouched(&ram));
}

/// A bzImage with setup code of one sector.
fn kernel() -> Vec<u8> {
    let mut image = vec![0x90; 4 * SECTOR];
    image[0x1F1] = 1;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&[0x0C, 0x02]);
    image[0x211] = 1;
    image
}

#[test]
fn a_bzimage_cut_off_at_any_length_is_refused_and_memory_stays_as_it_was() {
    let (ram, kernel) = (memory(2 << 20), kernel());
    let refused = |image: &[u8]| {
        let mut pc = Pc::new(&ram, ()).expect("2 MiB of whole pages");
        pc.set_kernel(image, "").err()
    };
    for len in 0..=2 * SECTOR {
        let expected = match len {
            ..0x22C => Error::KernelNoHeader,
            _ => Error::KernelCutOff { len: len as u64 },
        };
        assert_eq!(refused(&kernel[..len]), Some(expected), "{len}");
    }
    assert_eq!(refused(&kernel), None);
    let mut setup = vec![0x90; 66 * SECTOR];
    setup[..kernel.len()].copy_from_slice(&kernel);
    for (sectors, expected) in [
        (55, None),
        (
            65,
            Some(Error::KernelSetupTooLarge { len: 66 * SECTOR as u64, most: 65 * SECTOR as u64 }),
        ),
    ] {
        setup[0x1F1] = sectors;
        setup.push(0x90);
        assert_eq!(refused(&setup), expected);
    }
    assert_eq!(refused(&[0; 4096]), Some(Error::KernelNoHeader));
    assert!(is_untouched(&ram));
}

/// A disk of which only so many reads succeed. Then it is broken, or gone.
struct Failing {
    reads: u32,
    is_gone: bool,
}

const SECTORS: u64 = 4096;

impl Disk for Failing {
    fn sectors(&self) -> u64 {
        if self.is_gone && self.reads == 0 { 0 } else { SECTORS }
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        self.reads = self.reads.checked_sub(1).ok_or(DiskError)?;
        sector.fill(0);
        if let Some(from) = SERVICES.chunks_exact(SECTOR).nth(lba as usize) {
            sector.copy_from_slice(from);
        }
        Ok(())
    }

    fn write(&mut self, _lba: u64, _sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        Err(DiskError)
    }
}

/// Boots the guest of services from a disk. Returns what the debug ports printed.
fn boot_from(bios: &[AtomicU8], disk: &mut Failing, until: &'static str) -> (String, bool) {
    let ram = memory(16 << 20);
    let mut pc = Pc::new(&ram, Log::until(until)).expect("16 MiB of whole pages");
    pc.attach_disk(disk).expect("it has sectors");
    boot(&mut pc, bios, 100_000);
    (pc.console().text(), pc.ending() == Some(Ending::PowerOff))
}

#[test]
fn a_disk_that_breaks_or_goes_away_is_an_error_to_the_guest() {
    let Some(bios) = seabios() else { return };
    for is_gone in [false, true] {
        // SeaBIOS reads the boot sector.
        let mut disk = Failing { reads: 1, is_gone };
        let (text, has_ended) = boot_from(&bios, &mut disk, "?");
        assert!(has_ended && text.ends_with("hello no sector 5B?k"), "{text}");
    }
    let mut whole = Failing { reads: 2, is_gone: true };
    let (text, has_ended) = boot_from(&bios, &mut whole, "?");
    assert!(has_ended && text.ends_with("hello sector 2 5B?k"), "{text}");
}

#[test]
fn a_disk_that_cannot_be_read_at_all_is_an_error_to_seabios() {
    let Some(bios) = seabios() else { return };
    let mut disk = Failing { reads: 0, is_gone: false };
    let (text, _) = boot_from(&bios, &mut disk, "No bootable device.");
    assert!(text.contains("Boot failed: could not read the boot disk"), "{text}");
}
