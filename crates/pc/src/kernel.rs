//! Linux kernels and what has their format (Documentation/arch/x86/boot.rst), by their real-mode
//! entry, which calls the BIOS.
//!
//! A BIOS boots an option ROM of ours before all else. All that it does is to write to a port;
//! then the kernel is put into memory, and the processor at its entry.

use realmode::arch::rflags::IF;
use realmode::{Activity, Cpu, Phys, Reg, SegReg, Segment};

use crate::command_line;
use crate::error::Error;
use crate::little_endian::u16_at;
use crate::memory::Memory;

/// What the option ROM writes to.
pub(crate) const KERNEL_PORT: u16 = 0x508;

/// The ROM and what makes a BIOS boot it.
pub(crate) const ROM_FILE: (&str, &[u8]) = ("genroms/kernel.bin", &ROM);
pub(crate) const ORDER_FILE: (&str, &[u8]) = ("bootorder", b"/rom@genroms/kernel.bin\n");

/// Where the setup code lies, with its stack and the command line in the same segment.
const SETUP: u16 = 0x1000;
const STACK: u16 = 0xE000;
/// The first sector and 64 of setup code; the heap goes on from there to the stack.
const MOST_SETUP: usize = 65 * SECTOR;
const _: () = assert!(MOST_SETUP < STACK as usize);
const COMMAND_LINE: u16 = 0xE000;
/// Where the kernel lies.
const HIGH: u64 = 0x10_0000;

const SECTOR: usize = 512;
/// Offsets in the header.
const SETUP_SECTORS: usize = 0x1F1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const LOADER: usize = 0x210;
const LOAD_FLAGS: usize = 0x211;
const HEAP_END: usize = 0x224;
const COMMAND_LINE_POINTER: usize = 0x228;
const HEADER_END: usize = 0x22C;

const LOADED_HIGH: u8 = 1 << 0;
const CAN_USE_HEAP: u8 = 1 << 7;
/// The first version with a command line pointer.
const LEAST_VERSION: u16 = 0x0202;

/// Is this a bzImage, or what has its format: is there a header?
///
/// ```
/// let mut kernel = vec![0; 1024];
/// assert!(!realmode_pc::is_bzimage(&kernel));
/// kernel[0x202..0x206].copy_from_slice(b"HdrS");
/// assert!(realmode_pc::is_bzimage(&kernel));
/// ```
pub fn is_bzimage(image: &[u8]) -> bool {
    image.get(MAGIC..HEADER_END).is_some_and(|header| header.starts_with(b"HdrS"))
}

/// A kernel that waits for the BIOS.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<'m> {
    setup: &'m [u8],
    high: &'m [u8],
    command_line: &'m str,
}

impl<'m> Kernel<'m> {
    pub(crate) fn new(image: &'m [u8], command_line: &'m str, ram: u64) -> Result<Self, Error> {
        let header = image.get(..HEADER_END).filter(|_| is_bzimage(image));
        let header = header.ok_or(Error::KernelNoHeader)?;
        let version = u16_at(header, VERSION).ok_or(Error::KernelNoHeader)?;
        if version < LEAST_VERSION || header[LOAD_FLAGS] & LOADED_HIGH == 0 {
            return Err(Error::KernelTooOld { version });
        }
        let sectors = match header[SETUP_SECTORS] {
            0 => 4,
            sectors => usize::from(sectors),
        };
        let len = image.len() as u64;
        let (setup, high) = image
            .split_at_checked((sectors + 1) * SECTOR)
            .filter(|(_, high)| !high.is_empty())
            .ok_or(Error::KernelCutOff { len })?;
        if HIGH + high.len() as u64 > ram {
            return Err(Error::ImagePastRam { start: HIGH, len: high.len() as u64, ram });
        }
        if setup.len() > MOST_SETUP {
            let len = setup.len() as u64;
            return Err(Error::KernelSetupTooLarge { len, most: MOST_SETUP as u64 });
        }
        command_line::check(command_line)?;
        Ok(Kernel { setup, high, command_line })
    }

    /// Puts it into memory and the processor at its entry.
    pub(crate) fn start(&self, memory: &mut Memory<'_>, cpu: &mut Cpu) -> Result<(), Error> {
        let base = u64::from(SETUP) << 4;
        let mut load = |offset: u64, bytes: &[u8]| memory.load(Phys(base + offset), bytes);
        load(0, self.setup)?;
        let flags = self.setup.get(LOAD_FLAGS).copied().unwrap_or(0) | CAN_USE_HEAP;
        let pointer = base as u32 + u32::from(COMMAND_LINE);
        load(LOADER as u64, &[0xFF, flags])?;
        load(HEAP_END as u64, &(STACK - SECTOR as u16).to_le_bytes())?;
        load(COMMAND_LINE_POINTER as u64, &pointer.to_le_bytes())?;
        let text = self.command_line.as_bytes();
        let at = u64::from(COMMAND_LINE);
        load(at + text.len() as u64, &[0])?;
        if !text.is_empty() {
            load(at, text)?;
        }
        memory.load(Phys(HIGH), self.high)?;
        // The rest is as the BIOS has it, above all the interrupt vectors.
        cpu.rflags &= !IF;
        cpu.activity = Activity::Running;
        for reg in SegReg::ALL {
            *cpu.segment_mut(reg) = Segment::real(SETUP);
        }
        // The setup code begins after its first sector.
        *cpu.segment_mut(SegReg::Cs) = Segment::real(SETUP + (SECTOR >> 4) as u16);
        cpu.rip = 0;
        cpu.gpr[Reg::Rsp] = u64::from(STACK);
        Ok(())
    }
}

/// An option ROM with a bootstrap entry (Plug and Play BIOS Specification 1.0A, 3.2).
const ROM: [u8; SECTOR] = {
    let mut rom = [0; SECTOR];
    let parts: [(usize, &[u8]); 6] = [
        // Signature, length in sectors; initialisation: mov ax, 20h; retf.
        (0x00, &[0x55, 0xAA, 0x01, 0xB8, 0x20, 0x00, 0xCB]),
        (0x1A, &[0x20, 0x00]),
        // The expansion header: its revision, its length in units of 16 bytes.
        (0x20, b"$PnP\x01\x02"),
        // The product's name; what it is; where it boots.
        (0x30, &[0x50, 0x00, 0x02, 0x00, 0x80, 0x74]),
        (0x3A, &[0x44, 0x00]),
        // mov dx, KERNEL_PORT; out dx, al; hlt; jmp back
        (0x44, &[0xBA, KERNEL_PORT as u8, (KERNEL_PORT >> 8) as u8, 0xEE, 0xF4, 0xEB, 0xFD]),
    ];
    let mut i = 0;
    while i < parts.len() {
        let (at, bytes) = parts[i];
        let mut j = 0;
        while j < bytes.len() {
            rom[at + j] = bytes[j];
            j += 1;
        }
        i += 1;
    }
    let name = b"kernel";
    let mut j = 0;
    while j < name.len() {
        rom[0x50 + j] = name[j];
        j += 1;
    }
    // The header and the whole add up to 0.
    rom[0x29] = 0u8.wrapping_sub(sum(&rom, 0x20, 0x40));
    rom[SECTOR - 1] = 0u8.wrapping_sub(sum(&rom, 0, SECTOR));
    rom
};

const fn sum(bytes: &[u8], mut at: usize, end: usize) -> u8 {
    let mut sum = 0u8;
    while at < end {
        sum = sum.wrapping_add(bytes[at]);
        at += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::sync::atomic::AtomicU8;
    use std::vec;
    use std::vec::Vec;

    const RAM: u64 = 0x20_0000;

    fn image() -> Vec<u8> {
        let mut image = vec![0x90; 6 * SECTOR];
        image[SETUP_SECTORS] = 0;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&0x020Au16.to_le_bytes());
        image[LOAD_FLAGS] = LOADED_HIGH;
        image[5 * SECTOR..].fill(0x5A);
        image
    }

    #[test]
    fn a_kernel_is_put_where_its_header_says() {
        let image = image();
        let kernel = Kernel::new(&image, "quiet", RAM).expect("a kernel of one sector");
        let ram: Vec<AtomicU8> = (0..RAM).map(|_| AtomicU8::new(0)).collect();
        let mut memory = Memory::new(&ram).expect("2 MiB of whole pages");
        let mut cpu = Cpu::reset();
        kernel.start(&mut memory, &mut cpu).expect("it fits");
        let bytes = |at: u64, len: u64| -> Vec<u8> {
            (at..at + len).map(|at| memory.byte(Phys(at))).collect()
        };
        assert_eq!(bytes(0x10_0000, 513), [[0x5A; 512].as_slice(), &[0]].concat());
        assert_eq!(bytes(0x1_E000, 6), b"quiet\0");
        assert_eq!(bytes(0x1_0000 + 0x228, 4), [0x00, 0xE0, 0x01, 0x00]);
        assert_eq!(bytes(0x1_0000 + 0x210, 2), [0xFF, 0x81]);
        assert_eq!((cpu.segment(SegReg::Cs).base, cpu.rip), (0x1_0200, 0));
        assert_eq!(cpu.segment(SegReg::Ss).base, 0x1_0000);
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let whole = image();
        let error = |image: &[u8], ram| Kernel::new(image, "", ram).err();
        assert_eq!(error(&[], RAM), Some(Error::KernelNoHeader));
        assert_eq!(error(&whole[..5 * SECTOR], RAM), Some(Error::KernelCutOff { len: 2560 }));
        let past = Error::ImagePastRam { start: HIGH, len: 512, ram: HIGH };
        assert_eq!(error(&whole, HIGH), Some(past));
        let mut old = whole.clone();
        old[VERSION..VERSION + 2].copy_from_slice(&0x0201u16.to_le_bytes());
        assert_eq!(error(&old, RAM), Some(Error::KernelTooOld { version: 0x0201 }));
        let mut none = whole;
        none[MAGIC] = b'h';
        assert_eq!(error(&none, RAM), Some(Error::KernelNoHeader));
    }

    #[test]
    fn the_rom_adds_up_to_0() {
        assert_eq!((sum(&ROM, 0, SECTOR), sum(&ROM, 0x20, 0x40)), (0, 0));
    }
}
