//! Kernels that are started in 32-bit protected mode (Multiboot Specification 0.6.96).
//!
//! All is checked before anything is written. A preference for a video mode is read over: what
//! there is, text, is told in the boot information, as the specification allows.

use realmode::arch::control::{CR0_ET, CR0_PE};
use realmode::{Attributes, Cpu, Phys, Reg, SegReg, Segment, TableRegister};

use crate::console::Console;
use crate::elf::{Elf, Part};
use crate::error::Error;
use crate::little_endian::u32_at;
use crate::memory::{Memory, UPPER_END};
use crate::multiboot_info::{INFO, info};
use crate::pc::Pc;

/// The header lies in so many bytes from the start, at a multiple of 4.
const SEARCHED: usize = 8192;
const MAGIC: u32 = 0x1BAD_B002;
/// What EAX says to the kernel.
const LOADED: u32 = 0x2BAD_B002;

/// Offsets in the header.
const FLAGS: usize = 4;
const CHECKSUM: usize = 8;
const HEADER_ADDRESS: usize = 12;
const LOAD_ADDRESS: usize = 16;
const LOAD_END: usize = 20;
const BSS_END: usize = 24;
const ENTRY: usize = 28;
const SHORT_END: usize = 12;
const ADDRESSES_END: usize = 32;

/// What a kernel may require: modules at pages, a memory map, a video mode.
const KNOWN: u32 = 0b111;
const REQUIRED: u32 = 0xFFFF;
const HAS_ADDRESSES: u32 = 1 << 16;

/// Selectors as most loaders leave them. The kernel loads its own before it uses any.
const CODE: Segment = Segment {
    selector: 0x08,
    base: 0,
    limit: u32::MAX,
    attributes: Attributes(0x9B | Attributes::DB | Attributes::G),
};
const DATA: Segment = Segment {
    selector: 0x10,
    attributes: Attributes(0x93 | Attributes::DB | Attributes::G),
    ..CODE
};

/// Is this a multiboot kernel: is there a header?
///
/// ```
/// let mut kernel = vec![0; 64];
/// kernel[32..36].copy_from_slice(&0x1BAD_B002u32.to_le_bytes());
/// kernel[40..44].copy_from_slice(&0x1BAD_B002u32.wrapping_neg().to_le_bytes());
/// assert!(realmode_pc::is_multiboot(&kernel));
/// assert!(!realmode_pc::is_multiboot(&kernel[1..]));
/// ```
pub fn is_multiboot(image: &[u8]) -> bool {
    header(image).is_some()
}

impl<C: Console> Pc<'_, C> {
    /// Loads a multiboot 1 kernel and returns the processor about to run its entry: protected
    /// mode without paging, flat segments, interrupts off, A20 open, EBX at the boot information.
    /// There are no modules. The kernel needs no BIOS, and there is none.
    ///
    /// ```
    /// # use core::sync::atomic::AtomicU8;
    /// use realmode_pc::{Error, Pc};
    /// # let ram: Vec<AtomicU8> = (0..2 << 20).map(|_| AtomicU8::new(0)).collect();
    /// let mut pc = Pc::new(&ram, ())?;
    /// // magic, flags (the header has addresses), checksum
    /// let head = [0x1BAD_B002, 0x1_0000, 0xE451_4FFE];
    /// // addresses of header and first byte, ends of file and bss, entry; cli; hlt
    /// let rest = [0x10_0000, 0x10_0000, 0, 0, 0x10_0020, 0xF4FA];
    /// let kernel: Vec<u8> = head.into_iter().chain(rest).flat_map(u32::to_le_bytes).collect();
    /// assert_eq!(pc.boot_multiboot(&kernel, "debug")?.rip, 0x10_0020);
    /// assert_eq!(pc.boot_multiboot(&kernel[1..], "").err(), Some(Error::MultibootNoHeader));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// It has no header, requires what is not there, is cut off or contradicts itself, or lies
    /// where no memory is or the boot information goes; or the command line is longer than 2047
    /// bytes. Then nothing was written.
    pub fn boot_multiboot(&mut self, image: &[u8], command_line: &str) -> Result<Cpu, Error> {
        let kernel = Multiboot::new(image, self.memory.len())?;
        let info = info(self.memory.len(), command_line)?;
        self.set_vectors();
        kernel.load(&mut self.memory)?;
        self.load(Phys(INFO), &info)?;
        self.board.a20 = true;
        Ok(start(kernel.entry))
    }
}

/// A kernel that fits.
struct Multiboot<'i> {
    parts: Parts<'i>,
    entry: u32,
}

#[derive(Clone, Copy)]
enum Parts<'i> {
    Flat(Part<'i>),
    Elf(Elf<'i>),
}

impl<'i> Multiboot<'i> {
    fn new(image: &'i [u8], ram: u64) -> Result<Self, Error> {
        let (at, header) = header(image).ok_or(Error::MultibootNoHeader)?;
        let flags = u32_at(header, FLAGS).unwrap_or(0);
        let unknown = flags & REQUIRED & !KNOWN;
        if unknown != 0 {
            return Err(Error::MultibootRequires { unknown: unknown as u16 });
        }
        let kernel = if flags & HAS_ADDRESSES != 0 {
            let entry = u32_at(header, ENTRY).unwrap_or(0);
            Multiboot { parts: Parts::Flat(flat(image, at, header)?), entry }
        } else {
            let elf = Elf::new(image)?;
            Multiboot { parts: Parts::Elf(elf), entry: elf.entry() }
        };
        kernel.check(ram)?;
        Ok(kernel)
    }

    fn parts(&self) -> impl Iterator<Item = Result<Part<'i>, Error>> {
        let (flat, elf) = match self.parts {
            Parts::Flat(part) => (Some(part), None),
            Parts::Elf(elf) => (None, Some(elf)),
        };
        flat.into_iter().map(Ok).chain(elf.into_iter().flat_map(|elf| elf.parts()))
    }

    fn check(&self, ram: u64) -> Result<(), Error> {
        let (mut sum, mut is_entered) = (0, false);
        for part in self.parts() {
            let part = part?;
            let (start, len) = (u64::from(part.start), u64::from(part.len));
            // From the boot information to the end of the ROMs there is nothing for a kernel.
            if start < UPPER_END && start + len > INFO {
                return Err(Error::MultibootInHole { start, len });
            }
            // Parts that fit beside each other are together no larger than RAM; those that lie
            // over each other would be copied for hours.
            sum += len;
            if start + len > ram || sum > ram {
                return Err(Error::ImagePastRam { start, len, ram });
            }
            is_entered |= part.contains(self.entry);
        }
        if is_entered { Ok(()) } else { Err(Error::MultibootEntry { entry: self.entry }) }
    }

    fn load(&self, memory: &mut Memory<'_>) -> Result<(), Error> {
        for part in self.parts() {
            let Part { start, bytes, len } = part?;
            if !bytes.is_empty() {
                memory.load(Phys(u64::from(start)), bytes)?;
            }
            let from = u64::from(start) + bytes.len() as u64;
            memory.clear(Phys(from), u64::from(len) - bytes.len() as u64);
        }
        Ok(())
    }
}

/// The first header that is whole, and where it lies.
fn header(image: &[u8]) -> Option<(usize, &[u8])> {
    let head = image.get(..SEARCHED).unwrap_or(image);
    (0..head.len()).step_by(4).find_map(|at| {
        let header = head.get(at..)?;
        let (magic, flags) = (u32_at(header, 0)?, u32_at(header, FLAGS)?);
        let sum = magic.wrapping_add(flags).wrapping_add(u32_at(header, CHECKSUM)?);
        let end = if flags & HAS_ADDRESSES != 0 { ADDRESSES_END } else { SHORT_END };
        (magic == MAGIC && sum == 0 && header.len() >= end).then_some((at, header))
    })
}

/// The one part of a kernel whose header gives addresses; the header lies `at` so many bytes in.
fn flat<'i>(image: &'i [u8], at: usize, header: &[u8]) -> Result<Part<'i>, Error> {
    let word = |at| u32_at(header, at).unwrap_or(0);
    let [address, start, load_end, bss_end] =
        [HEADER_ADDRESS, LOAD_ADDRESS, LOAD_END, BSS_END].map(word);
    let wrong = Error::MultibootAddresses { header: address, load: start, load_end, bss_end };
    let before = address.checked_sub(start).ok_or(wrong)? as usize;
    let loaded = at.checked_sub(before).and_then(|at| image.get(at..)).ok_or(wrong)?;
    let bytes = match load_end {
        0 => loaded,
        end => {
            let len = end.checked_sub(start).ok_or(wrong)? as usize;
            loaded.get(..len).ok_or(Error::MultibootCutOff { len: image.len() as u64 })?
        }
    };
    let data = u32::try_from(bytes.len()).map_err(|_| wrong)?;
    let len = match bss_end {
        0 => data,
        end => end.checked_sub(start).filter(|len| *len >= data).ok_or(wrong)?,
    };
    Ok(Part { start, bytes, len })
}

/// The machine state the specification names. GDTR and IDTR lead to nothing.
fn start(entry: u32) -> Cpu {
    let mut cpu = Cpu::reset();
    cpu.cr0 = CR0_ET | CR0_PE;
    for reg in SegReg::ALL {
        *cpu.segment_mut(reg) = DATA;
    }
    *cpu.segment_mut(SegReg::Cs) = CODE;
    (cpu.gdtr, cpu.idtr) = (TableRegister::default(), TableRegister::default());
    cpu.rip = u64::from(entry);
    cpu.gpr[Reg::Rax] = u64::from(LOADED);
    cpu.gpr[Reg::Rbx] = INFO;
    cpu
}

#[cfg(test)]
#[path = "multiboot_tests.rs"]
mod tests;
