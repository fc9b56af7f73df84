//! Physical memory: RAM with the holes a PC has below 1 MiB.
//!
//! The caller's bytes stand for physical memory from 0 up without a gap. Of the bytes a real PC
//! hides beneath A0000h-FFFFFh, those from B8000h serve as text memory, and those of pages an
//! image was loaded to serve as shadow RAM; the rest is never touched.

use core::sync::atomic::{AtomicU8, Ordering};

use realmode::{PAGE_SIZE, Phys, Prepared};

use crate::error::Error;
use crate::screen::{Screen, TEXT_BASE};

/// The most RAM: what lies above belongs to devices and the BIOS.
pub const MAX_RAM: u64 = 0xC000_0000;

/// Where low memory ends.
pub(crate) const HOLE: u64 = 0xA_0000;
const UPPER: u64 = 0xC_0000;
const FOUR_GIB: u64 = 1 << 32;
/// BIOS images come in these, and this much of one is seen below 1 MiB.
const ROM_STEP: u64 = 0x1_0000;
const MOST_ROM: u64 = 0x100_0000;
const MOST_SHADOW: usize = 0x2_0000;
/// The processor starts so far from the end of ROM.
const START: usize = 16;
/// Where memory goes on after the last hole.
pub(crate) const UPPER_END: u64 = 0x10_0000;
const PAGE: u64 = PAGE_SIZE as u64;

/// RAM and what of the space below 1 MiB is memory.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'m> {
    ram: &'m [AtomicU8],
    /// Bit i: the page at C0000h + 4096 * i is RAM.
    shadow: u64,
    /// The BIOS, which ends at 4 GiB.
    rom: &'m [AtomicU8],
}

const _: () = assert!((UPPER_END - UPPER) / PAGE == u64::BITS as u64);

impl<'m> Memory<'m> {
    pub(crate) fn new(ram: &'m [AtomicU8]) -> Result<Self, Error> {
        let len = ram.len() as u64;
        if len == 0 {
            return Err(Error::NoRam);
        }
        if !len.is_multiple_of(PAGE) {
            return Err(Error::RamNotPages { len });
        }
        if len > MAX_RAM {
            return Err(Error::RamTooLarge { len, most: MAX_RAM });
        }
        Ok(Memory { ram, shadow: 0, rom: &[] })
    }

    /// What the page that starts at `page` is.
    pub(crate) fn page(&self, page: Phys) -> Prepared<'m> {
        match self.rom_offset(page) {
            Some(offset) => match Prepared::in_ram(self.rom, Phys(offset)) {
                Prepared::Ram(host) => Prepared::Rom(host),
                other => other,
            },
            None if self.is_memory(page) => Prepared::in_ram(self.ram, page),
            None => Prepared::Unmapped,
        }
    }

    /// Puts a BIOS at the top of 4 GiB, and makes C0000h-FFFFFh RAM that ends with a copy of it.
    pub(crate) fn map_bios(&mut self, rom: &'m [AtomicU8]) -> Result<(), Error> {
        let (len, ram) = (rom.len() as u64, self.ram.len() as u64);
        if len == 0 || !len.is_multiple_of(ROM_STEP) || len > MOST_ROM {
            return Err(Error::BiosSize { len });
        }
        let found = rom[rom.len() - START].load(Ordering::Relaxed);
        if matches!(found, 0x00 | 0xFF) {
            return Err(Error::BiosNoStart { found });
        }
        if ram < UPPER_END {
            return Err(Error::BiosNoRam { len: ram });
        }
        (self.rom, self.shadow) = (rom, u64::MAX);
        self.copy_bios();
        Ok(())
    }

    /// Copies the end of the BIOS to below 1 MiB, as it is after power-on.
    pub(crate) fn copy_bios(&self) {
        let end = self.ram.get(..UPPER_END as usize).unwrap_or(&[]);
        for (cell, byte) in end.iter().rev().zip(self.rom.iter().rev()).take(MOST_SHADOW) {
            cell.store(byte.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Is there a BIOS?
    pub(crate) fn has_bios(&self) -> bool {
        !self.rom.is_empty()
    }

    /// The size of the BIOS; 0 if there is none.
    pub(crate) fn rom_len(&self) -> u64 {
        self.rom.len() as u64
    }

    /// Which pages from C0000h to FFFFFh are RAM.
    pub(crate) fn shadow(&self) -> u64 {
        self.shadow
    }

    /// Makes these pages RAM, and no others.
    pub(crate) fn set_shadow(&mut self, shadow: u64) {
        self.shadow = shadow;
    }

    /// The size of RAM.
    pub(crate) fn len(&self) -> u64 {
        self.ram.len() as u64
    }

    fn rom_offset(&self, at: Phys) -> Option<u64> {
        let base = FOUR_GIB - self.rom.len() as u64;
        at.0.checked_sub(base).filter(|offset| *offset < self.rom.len() as u64)
    }

    /// Copies an image into memory. Pages from C0000h to FFFFFh become RAM by it.
    pub(crate) fn load(&mut self, start: Phys, image: &[u8]) -> Result<(), Error> {
        let cells = self.cells(start, image.len() as u64)?;
        for (cell, byte) in cells.iter().zip(image) {
            cell.store(*byte, Ordering::Relaxed);
        }
        let (first, last) = (start.0.max(UPPER), (start.0 + cells.len() as u64).min(UPPER_END));
        for page in (first / PAGE..last.div_ceil(PAGE)).map(|page| page - UPPER / PAGE) {
            self.shadow |= 1 << page;
        }
        Ok(())
    }

    /// The memory that an image of `len` bytes is loaded to.
    pub(crate) fn cells(&self, start: Phys, len: u64) -> Result<&'m [AtomicU8], Error> {
        let ram = self.ram.len() as u64;
        if len == 0 {
            return Err(Error::ImageEmpty);
        }
        let past_ram = Error::ImagePastRam { start: start.0, len, ram };
        let end = start.0.checked_add(len).filter(|end| *end <= ram).ok_or(past_ram)?;
        if start.0 < TEXT_BASE && end > HOLE {
            return Err(Error::ImageInHole { start: start.0, len });
        }
        // `end` is within `ram`, so both fit a usize.
        self.ram.get(start.0 as usize..end as usize).ok_or(past_ram)
    }

    /// Writes zeros, as far as RAM reaches.
    pub(crate) fn clear(&self, start: Phys, len: u64) {
        let cells = usize::try_from(start.0).ok().and_then(|start| self.ram.get(start..));
        for cell in cells.unwrap_or(&[]).iter().take(usize::try_from(len).unwrap_or(usize::MAX)) {
            cell.store(0, Ordering::Relaxed);
        }
    }

    /// The byte a load from `at` would read; all ones where there is no memory.
    pub(crate) fn byte(&self, at: Phys) -> u8 {
        let (cells, offset) = match self.rom_offset(at) {
            Some(offset) => (self.rom, offset),
            None => (self.ram, at.0),
        };
        let cell = usize::try_from(offset).ok().and_then(|offset| cells.get(offset));
        match cell {
            Some(cell) if self.is_memory(at) => cell.load(Ordering::Relaxed),
            _ => 0xFF,
        }
    }

    /// Is there memory at `at`?
    pub(crate) fn is_memory(&self, at: Phys) -> bool {
        if at.0 >= self.ram.len() as u64 {
            return self.rom_offset(at).is_some();
        }
        match at.0 {
            HOLE..TEXT_BASE => false,
            UPPER..UPPER_END => self.shadow >> ((at.0 - UPPER) / PAGE) & 1 != 0,
            _ => true,
        }
    }

    /// The text screen that begins with the character `start`, or `None` where RAM ends before it.
    pub(crate) fn screen(&self, start: usize) -> Option<Screen<'m>> {
        Screen::in_ram(self.ram, start)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn ram(pages: usize) -> Vec<AtomicU8> {
        (0..pages * PAGE_SIZE).map(|_| AtomicU8::new(0)).collect()
    }

    fn is_ram(memory: &Memory<'_>, page: u64) -> bool {
        matches!(memory.page(Phys(page)), Prepared::Ram(_))
    }

    #[test]
    fn ram_must_be_whole_pages_and_at_least_one() {
        let cells = ram(1);
        assert_eq!(Memory::new(&[]).err(), Some(Error::NoRam));
        assert_eq!(Memory::new(&cells[..100]).err(), Some(Error::RamNotPages { len: 100 }));
        assert!(Memory::new(&cells).is_ok());
    }

    #[test]
    fn the_video_and_rom_windows_are_holes_except_text_memory() {
        let cells = ram(0x200);
        let memory = Memory::new(&cells).expect("2 MiB of whole pages");
        for (page, expected) in [
            (0x0_0000, true),
            (0x9_F000, true),
            (0xA_0000, false),
            (0xB_7000, false),
            (0xB_8000, true),
            (0xB_F000, true),
            (0xC_0000, false),
            (0xF_F000, false),
            (0x10_0000, true),
            (0x1F_F000, true),
            (0x20_0000, false),
            (0xFFFF_F000, false),
            (u64::MAX - 0xFFF, false),
        ] {
            assert_eq!(is_ram(&memory, page), expected, "{page:#x}");
        }
    }

    #[test]
    fn pages_an_image_lies_in_become_ram_in_the_rom_window() {
        let cells = ram(0x100);
        let mut memory = Memory::new(&cells).expect("1 MiB of whole pages");
        memory.load(Phys(0xF_FFF0), &[0xEA; 16]).expect("the last 16 bytes of 1 MiB");
        assert!(is_ram(&memory, 0xF_F000) && !is_ram(&memory, 0xF_E000));
        memory.load(Phys(0xC_0FFF), &[1, 2]).expect("two pages of the ROM window");
        assert!(is_ram(&memory, 0xC_0000) && is_ram(&memory, 0xC_1000));
        assert!(!is_ram(&memory, 0xC_2000));
        assert_eq!((memory.byte(Phys(0xC_1000)), memory.byte(Phys(0xC_2000))), (2, 0xFF));
    }

    #[test]
    fn an_image_outside_memory_is_refused_and_nothing_is_written() {
        let cells = ram(0x100);
        let mut memory = Memory::new(&cells).expect("1 MiB of whole pages");
        assert_eq!(memory.load(Phys(0), &[]), Err(Error::ImageEmpty));
        let past = |start, len| Err(Error::ImagePastRam { start, len, ram: 0x10_0000 });
        assert_eq!(memory.load(Phys(0xF_FFFF), &[1, 2]), past(0xF_FFFF, 2));
        assert_eq!(memory.load(Phys(u64::MAX), &[1, 2]), past(u64::MAX, 2));
        let hole = |start, len| Err(Error::ImageInHole { start, len });
        assert_eq!(memory.load(Phys(0x9_FFFF), &[1, 2]), hole(0x9_FFFF, 2));
        assert_eq!(memory.load(Phys(0xB_7FFF), &[1, 2]), hole(0xB_7FFF, 2));
        assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
        assert_eq!(memory.load(Phys(0x9_FFFE), &[1, 2]), Ok(()));
        assert_eq!(memory.load(Phys(0xB_8000), &[1, 2]), Ok(()));
    }

    fn rom(len: usize) -> Vec<AtomicU8> {
        let rom: Vec<_> = (0..len).map(|at| AtomicU8::new((at / 0x1_0000) as u8 + 1)).collect();
        rom[len - START].store(0xEA, Ordering::Relaxed);
        rom
    }

    #[test]
    fn a_bios_is_rom_below_4_gib_and_its_end_is_ram_below_1_mib() {
        let (cells, rom) = (ram(0x100), rom(0x4_0000));
        let mut memory = Memory::new(&cells).expect("1 MiB of whole pages");
        memory.map_bios(&rom).expect("256 KiB with a start");
        let byte = |at| memory.byte(Phys(at));
        assert_eq!([byte(0xD_FFFF), byte(0xE_0000), byte(0xF_0000)], [0, 3, 4]);
        assert_eq!([byte(0xFFFC_0000), byte(0xFFFF_FFF0)], [1, 0xEA]);
        assert!(is_ram(&memory, 0xC_0000) && is_ram(&memory, 0xF_F000));
        assert!(matches!(memory.page(Phys(0xFFFF_F000)), Prepared::Rom(_)));
        assert!(matches!(memory.page(Phys(0xFFFB_F000)), Prepared::Unmapped));
        cells[0xF_0000].store(9, Ordering::Relaxed);
        memory.copy_bios();
        assert_eq!(memory.byte(Phys(0xF_0000)), 4);
    }

    #[test]
    fn what_is_no_bios_is_refused() {
        let cells = ram(0x100);
        let mut memory = Memory::new(&cells).expect("1 MiB of whole pages");
        let whole = rom(0x2_0000);
        let mut refused = |len| memory.map_bios(&whole[..len]).err();
        assert_eq!(refused(0), Some(Error::BiosSize { len: 0 }));
        assert_eq!(refused(0x1_FFFF), Some(Error::BiosSize { len: 0x1_FFFF }));
        whole[0x1_0000 - START].store(0, Ordering::Relaxed);
        assert_eq!(refused(0x1_0000), Some(Error::BiosNoStart { found: 0 }));
        let mut small = Memory::new(&cells[..PAGE_SIZE]).expect("one page");
        assert_eq!(small.map_bios(&whole), Err(Error::BiosNoRam { len: 4096 }));
    }
}
