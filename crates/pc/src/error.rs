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
}
