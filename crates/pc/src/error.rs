//! Misuse by the host: each message says what was wrong and what to change.

/// The PC cannot be built, or an image cannot be loaded. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No RAM at all.
    #[error("a PC needs at least one page (4096 bytes) of RAM")]
    NoRam,
    /// RAM that ends within a page.
    #[error("RAM is {len} bytes, which is not a whole number of 4096-byte pages")]
    RamNotPages {
        /// The bytes given.
        len: u64,
    },
    /// RAM that would reach into the space devices and the BIOS have below 4 GiB.
    #[error("RAM is {len} bytes; this PC takes at most {most}")]
    RamTooLarge {
        /// The bytes given.
        len: u64,
        /// The most it takes.
        most: u64,
    },
    /// An image of no bytes.
    #[error("the image is empty")]
    ImageEmpty,
    /// An image that does not fit below the end of RAM.
    #[error("an image of {len} bytes at {start:#x} does not fit into {ram} bytes of RAM")]
    ImagePastRam {
        /// The physical address it was to start at.
        start: u64,
        /// Its length.
        len: u64,
        /// The size of RAM.
        ram: u64,
    },
    /// An image that would lie where no memory is.
    #[error("an image of {len} bytes at {start:#x} covers A0000h-B7FFFh, where no memory is")]
    ImageInHole {
        /// The physical address it was to start at.
        start: u64,
        /// Its length.
        len: u64,
    },
    /// A floppy without a whole first sector.
    #[error("the floppy image is {len} bytes, less than its boot sector of 512")]
    FloppyTooShort {
        /// Its length.
        len: u64,
    },
    /// A floppy that a BIOS would refuse to boot.
    #[error("not bootable: the boot sector ends in {found:04X}, not in the signature 55AA")]
    NoBootSignature {
        /// Its last two bytes, in the order they lie there.
        found: u16,
    },
    /// A BIOS image of a size no ROM has: most likely cut off.
    #[error("the BIOS is {len} bytes; a BIOS is a multiple of 65536, up to 16777216: cut off?")]
    BiosSize {
        /// Its length.
        len: u64,
    },
    /// A BIOS image with nothing where the processor starts.
    #[error("not a BIOS: its 16th last byte, where the processor starts, is {found:02X}")]
    BiosNoStart {
        /// That byte.
        found: u8,
    },
    /// A BIOS needs memory up to 1 MiB.
    #[error("a BIOS needs 1 MiB of RAM, and there are {len} bytes")]
    BiosNoRam {
        /// The size of RAM.
        len: u64,
    },
    /// A disk of no sectors.
    #[error("the disk has no whole sector of 512 bytes")]
    DiskEmpty,
    /// A disk larger than 48 bits can address.
    #[error("the disk has {sectors} sectors; at most 2^48 can be addressed")]
    DiskTooLarge {
        /// Its size.
        sectors: u64,
    },
    /// A firmware configuration file that has no room in the directory.
    #[error("a firmware file needs a name of 1 to 55 bytes, and there can be 32 files")]
    FileRefused,
    /// An exit port that is a device's.
    #[error("port {port:X}h belongs to a device of this PC; 501h and F4h do not")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// A kernel that is not one.
    #[error("not a kernel: no `HdrS` at 202h; a bzImage is needed")]
    KernelNoHeader,
    /// A kernel that is loaded in a way that has not been needed for long.
    #[error("the kernel has boot protocol {version:04X}h; a bzImage of 0202h or later is needed")]
    KernelTooOld {
        /// The version of the protocol it has.
        version: u16,
    },
    /// A kernel that ends within its setup code.
    #[error("the kernel ends within its setup code at {len} bytes: cut off?")]
    KernelCutOff {
        /// Its length.
        len: u64,
    },
    /// A kernel with more setup code than fits below its stack.
    #[error("the kernel has {len} bytes of setup code, and there is room for {most}: is it one?")]
    KernelSetupTooLarge {
        /// Its length.
        len: u64,
        /// The most.
        most: u64,
    },
    /// A state that another version of this crate has saved.
    #[error("the state has version {found}, and this program reads version {expected}")]
    StateVersion {
        /// The version it has.
        found: u32,
        /// The version this crate reads.
        expected: u32,
    },
    /// A state of a machine that was put together in another way.
    #[error("the state is of a machine with {saved} {what}, and this one has {here}")]
    StateOfAnother {
        /// What is counted.
        what: &'static str,
        /// How many the saved machine had.
        saved: u64,
        /// How many this one has.
        here: u64,
    },
    /// A state that no machine can have come to.
    #[error("the state is damaged: no machine comes to what it says of the {what}")]
    StateDamaged {
        /// The part of the machine.
        what: &'static str,
    },
    /// A command line longer than kernels read.
    #[error("the command line has {len} bytes, at most {most} are read: shorten it")]
    CommandLineTooLong {
        /// Its length.
        len: u64,
        /// The most.
        most: u64,
    },
    /// A kernel without a multiboot header.
    #[error("not a multiboot kernel: no whole header 1BADB002h in the first 8192 bytes")]
    MultibootNoHeader,
    /// A kernel that requires what this loader does not know.
    #[error("the multiboot header requires {unknown:04X}h; bits 0, 1 and 2 of its flags are known")]
    MultibootRequires {
        /// The bits of its flags that are not known.
        unknown: u16,
    },
    /// A kernel whose header does not say where it is loaded.
    #[error("the multiboot header has no addresses (flag bit 16), so an ELF is needed: it is none")]
    MultibootNoAddresses,
    /// A kernel whose header has addresses out of order.
    #[error(
        "the addresses of the multiboot header are out of order: header {header:#x}, \
         load {load:#x}, load end {load_end:#x}, bss end {bss_end:#x}"
    )]
    MultibootAddresses {
        /// Where the header is loaded.
        header: u32,
        /// Where the first byte is loaded.
        load: u32,
        /// The end of what is loaded; 0 is all of the file.
        load_end: u32,
        /// The end of what is cleared; 0 is none.
        bss_end: u32,
    },
    /// A kernel that ends within what is to be loaded.
    #[error("the kernel ends at {len} bytes, within what is to be loaded: cut off?")]
    MultibootCutOff {
        /// Its length.
        len: u64,
    },
    /// A kernel that would lie where no memory is, or where it is told of its machine.
    #[error(
        "{len} bytes of the kernel at {start:#x} cover 9F000h-FFFFFh, where the boot information \
         and devices are: link it at 100000h"
    )]
    MultibootInHole {
        /// The physical address they were to start at.
        start: u64,
        /// How many they are.
        len: u64,
    },
    /// A kernel that starts where nothing of it is.
    #[error("the entry of the kernel is {entry:#x}, where nothing of it is loaded")]
    MultibootEntry {
        /// The address.
        entry: u32,
    },
    /// A multiboot kernel needs memory up to 1 MiB, where others lie.
    #[error("a multiboot kernel needs 1 MiB of RAM, and there are {len} bytes")]
    MultibootNoRam {
        /// The size of RAM.
        len: u64,
    },
    /// A kernel for 64-bit loaders.
    #[error("the kernel is a 64-bit ELF; multiboot 1 takes a 32-bit one (objcopy -O elf32-i386)")]
    Elf64,
    /// An ELF that is no program for this machine.
    #[error(
        "the kernel is an ELF of class {class}, data {data}, type {kind}, machine {machine}; \
         needed are 1, 1, 2, 3: an executable for the 80386"
    )]
    ElfOther {
        /// 1 is 32 bits, 2 is 64.
        class: u8,
        /// 1 is little endian.
        data: u8,
        /// 2 is an executable.
        kind: u16,
        /// 3 is the 80386.
        machine: u16,
    },
    /// An ELF with program headers that are too short.
    #[error("the kernel has program headers of {size} bytes, at least 32 are needed: damaged?")]
    ElfHeaderSize {
        /// Their size.
        size: u16,
    },
    /// A segment of an ELF that is larger in the file than in memory.
    #[error("the segment at {start:#x} has {file} bytes and memory for {memory}: damaged?")]
    ElfSegment {
        /// Its physical address.
        start: u32,
        /// Bytes in the file.
        file: u32,
        /// Bytes in memory.
        memory: u32,
    },
}
