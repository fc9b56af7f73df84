//! How software gets in: firmware, or a flat image or a boot sector in the state firmware hands
//! over.

use core::sync::atomic::AtomicU8;

use realmode::{Cpu, Phys, Reg, SegReg, Segment};

use crate::console::Console;
use crate::error::Error;
use crate::firmware_config::Contents;
use crate::kernel;
use crate::pc::Pc;

/// Where a BIOS loads the boot sector.
const BOOT_SECTOR: u16 = 0x7C00;
const SECTOR: usize = 512;
const SIGNATURE: [u8; 2] = [0x55, 0xAA];

/// Where vector 0 points at first; vector n points n bytes on. Nothing is there, so that a call
/// of a service this machine does not have stops, and the address tells which service it was.
const MISSING: (u16, u16) = (0xF000, 0xE000);

/// Firmware configuration files that a small machine wants, unless the caller gave others:
/// INT 10h text goes to COM1, and a machine with nothing to boot halts for ever.
const SETTINGS: [(&str, &[u8]); 2] =
    [("etc/sercon-port", &[0xF8, 0x03, 0, 0, 0, 0, 0, 0]), ("etc/boot-fail-wait", &[0xFF; 4])];
const E820: &str = "etc/e820";

impl<'m, C: Console> Pc<'m, C> {
    /// Puts a BIOS at the top of 4 GiB, its last 128 KiB also below 1 MiB, and returns the
    /// processor about to start it, a modern one: for an emulator of another profile start with
    /// [`Cpu::reset_as`]. What it boots are files of [`Pc::add_file`] and the disk.
    ///
    /// # Errors
    /// The image is of a size no BIOS has, begins nowhere, or there is less than 1 MiB of RAM.
    pub fn boot_bios(&mut self, image: &'m [AtomicU8]) -> Result<Cpu, Error> {
        self.memory.map_bios(image)?;
        let mut entry = [0; 20];
        entry[8..16].copy_from_slice(&self.memory.len().to_le_bytes());
        entry[16] = 1;
        if self.kernel.is_some() {
            for (name, contents) in [kernel::ORDER_FILE, kernel::ROM_FILE] {
                self.add_file(name, contents)?;
            }
        }
        for (name, contents) in SETTINGS.into_iter().chain([(E820, &entry[..])]) {
            let is_known = self.board.config.has(name);
            if !is_known && !self.board.config.add(name, Contents::short(contents)) {
                return Err(Error::FileRefused);
            }
        }
        Ok(Cpu::reset())
    }

    /// Loads a flat image at `segment:offset` and returns the processor about to run its first
    /// byte: real mode, DS = ES = CS, SS:SP = 0000:7C00, interrupts off, A20 open. It is a
    /// modern processor: for an emulator of another profile, pass its flags through
    /// [`canonical_flags`](realmode::Profile::canonical_flags).
    ///
    /// # Errors
    /// The image is empty or does not lie in memory; then nothing was written.
    pub fn boot_image(&mut self, image: &[u8], segment: u16, offset: u16) -> Result<Cpu, Error> {
        let start = Phys(linear(segment, offset));
        self.memory.cells(start, image.len() as u64)?;
        // Before the image, which may bring vectors of its own.
        self.set_vectors();
        self.load(start, image)?;
        Ok(self.start(segment, offset))
    }

    /// Loads the first sector of a floppy at 0000:7C00 and returns the processor about to run
    /// it, with DL = 0, the drive a BIOS booted from.
    ///
    /// # Errors
    /// The floppy has no whole sector or no boot signature, or RAM ends below 7E00h.
    pub fn boot_floppy(&mut self, floppy: &[u8]) -> Result<Cpu, Error> {
        let len = floppy.len() as u64;
        let sector = floppy.get(..SECTOR).ok_or(Error::FloppyTooShort { len })?;
        if !sector.ends_with(&SIGNATURE) {
            let found = u16::from_be_bytes([sector[SECTOR - 2], sector[SECTOR - 1]]);
            return Err(Error::NoBootSignature { found });
        }
        self.boot_image(sector, 0, BOOT_SECTOR)
    }

    /// Which vector led the processor to where it is, if the guest has not set that vector:
    /// there is no BIOS, and nothing to execute where it points.
    pub fn missing_handler(&self, cpu: &Cpu) -> Option<u8> {
        let cs = cpu.segment(SegReg::Cs);
        let at = cs.base.checked_add(cpu.rip)?;
        let vector = u8::try_from(at.checked_sub(linear(MISSING.0, MISSING.1))?).ok()?;
        (cs.selector == MISSING.0 && !self.is_memory(Phys(at))).then_some(vector)
    }

    pub(crate) fn set_vectors(&mut self) {
        for vector in 0..=255u8 {
            let offset = (MISSING.1 + u16::from(vector)).to_le_bytes();
            let segment = MISSING.0.to_le_bytes();
            let pointer = [offset[0], offset[1], segment[0], segment[1]];
            // A page is the least RAM there can be, so the table always fits.
            let _ = self.load(Phys(4 * u64::from(vector)), &pointer);
        }
        if let Some(screen) = self.screen() {
            screen.clear();
        }
    }

    fn start(&self, segment: u16, offset: u16) -> Cpu {
        let mut cpu = Cpu::reset();
        for reg in SegReg::ALL {
            *cpu.segment_mut(reg) = Segment::real(0);
        }
        for reg in [SegReg::Cs, SegReg::Ds, SegReg::Es] {
            *cpu.segment_mut(reg) = Segment::real(segment);
        }
        cpu.rip = u64::from(offset);
        cpu.gpr[Reg::Rsp] = u64::from(BOOT_SECTOR);
        cpu.gpr[Reg::Rdx] = 0;
        cpu.a20 = self.is_a20_open();
        cpu
    }
}

fn linear(segment: u16, offset: u16) -> u64 {
    (u64::from(segment) << 4) + u64::from(offset)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::sync::atomic::AtomicU8;
    use std::vec;
    use std::vec::Vec;

    fn ram() -> Vec<AtomicU8> {
        (0..0x10_0000).map(|_| AtomicU8::new(0)).collect()
    }

    fn boot_sector() -> Vec<u8> {
        let mut floppy = vec![0x90; 1474560];
        floppy[510..512].copy_from_slice(&SIGNATURE);
        floppy
    }

    #[test]
    fn a_boot_sector_starts_at_0000_7c00_with_dl_0() {
        let ram = ram();
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        let cpu = pc.boot_floppy(&boot_sector()).expect("a bootable floppy");
        assert_eq!((cpu.segment(SegReg::Cs).selector, cpu.rip), (0, 0x7C00));
        assert_eq!(cpu.segment(SegReg::Cs).base, 0);
        assert_eq!(cpu.gpr[Reg::Rdx], 0);
        assert!(cpu.is_real_mode() && cpu.a20);
        assert_eq!(pc.byte(Phys(0x7DFF)), 0xAA);
        assert_eq!(pc.byte(Phys(0x7E00)), 0x00, "one sector only");
    }

    #[test]
    fn a_floppy_without_sector_or_signature_is_refused() {
        let ram = ram();
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        let short = pc.boot_floppy(&[0x90; 511]).err();
        assert_eq!(short, Some(Error::FloppyTooShort { len: 511 }));
        let mut floppy = boot_sector();
        floppy[511] = 0x55;
        assert_eq!(pc.boot_floppy(&floppy).err(), Some(Error::NoBootSignature { found: 0x5555 }));
    }

    #[test]
    fn a_flat_image_starts_where_it_lies_with_data_segments_to_match() {
        let ram = ram();
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        let cpu = pc.boot_image(&[0xF4], 0x1234, 0x0010).expect("one byte in low memory");
        assert_eq!((cpu.segment(SegReg::Cs).base, cpu.rip), (0x1_2340, 0x10));
        assert_eq!(cpu.segment(SegReg::Ds), &Segment::real(0x1234));
        assert_eq!(cpu.segment(SegReg::Ss), &Segment::real(0));
        assert_eq!(pc.byte(Phys(0x1_2350)), 0xF4);
    }

    #[test]
    fn a_vector_the_guest_has_not_set_is_told_by_its_address() {
        let ram = ram();
        let mut pc = Pc::new(&ram, ()).expect("1 MiB of whole pages");
        let mut cpu = pc.boot_image(&[0xCD, 0x13], 0, 0x1000).expect("two bytes in low memory");
        assert_eq!(pc.missing_handler(&cpu), None);
        let pointer = [0x4C, 0x4D, 0x4E, 0x4F].map(|at| pc.byte(Phys(at)));
        cpu.rip = u64::from(u16::from_le_bytes([pointer[0], pointer[1]]));
        let segment = u16::from_le_bytes([pointer[2], pointer[3]]);
        *cpu.segment_mut(SegReg::Cs) = Segment::real(segment);
        assert_eq!(pc.missing_handler(&cpu), Some(0x13));
        cpu.rip += 256;
        assert_eq!(pc.missing_handler(&cpu), None);
    }
}
