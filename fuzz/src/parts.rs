//! The parts of a PC.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode_pc::{Channel, Console, Disk, DiskError, SECTOR};

/// Bytes around RAM, which the PC is not given.
const MARGIN: usize = 64;
const CANARY: u8 = 0xC5;

/// Memory within a margin.
pub(crate) struct Ram(Vec<AtomicU8>);

impl Ram {
    /// Zeros.
    pub(crate) fn new(len: usize) -> Ram {
        let ram = Ram(bytemuck::zeroed_vec(len + 2 * MARGIN));
        ram.margin().for_each(|cell| cell.store(CANARY, Relaxed));
        ram
    }

    fn margin(&self) -> impl Iterator<Item = &AtomicU8> {
        self.0[..MARGIN].iter().chain(&self.0[self.0.len() - MARGIN..])
    }

    /// What the guest has.
    pub(crate) fn cells(&self) -> &[AtomicU8] {
        &self.0[MARGIN..self.0.len() - MARGIN]
    }

    /// Panics unless the margin is as it was.
    pub(crate) fn check(&self) {
        let is_whole = self.margin().all(|cell| cell.load(Relaxed) == CANARY);
        assert!(is_whole, "memory of the host changed");
    }

    /// Takes what another holds.
    pub(crate) fn fill(&self, other: &Ram) {
        for (cell, from) in self.0.iter().zip(&other.0) {
            cell.store(from.load(Relaxed), Relaxed);
        }
    }

    /// Another one that holds the same.
    pub(crate) fn copy(&self) -> Ram {
        Ram(self.0.iter().map(|cell| AtomicU8::new(cell.load(Relaxed))).collect())
    }

    /// Is it the same as another?
    pub(crate) fn is_same(&self, other: &Ram) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a.load(Relaxed) == b.load(Relaxed))
    }
}

/// A disk in memory, which its clones share. Every `fails`th sector cannot be read or written, if
/// that is not 0.
#[derive(Clone)]
pub(crate) struct Sectors {
    bytes: Rc<RefCell<Vec<u8>>>,
    fails: u64,
}

impl Sectors {
    /// A disk that begins with `start` and goes on with its last byte.
    pub(crate) fn new(start: &[u8], sectors: usize, fails: u64) -> Sectors {
        let mut bytes = start.to_vec();
        bytes.resize(sectors * SECTOR, start.last().copied().unwrap_or(0));
        Sectors { bytes: Rc::new(RefCell::new(bytes)), fails }
    }

    /// Another one that holds the same.
    pub(crate) fn copy(&self) -> Sectors {
        let bytes = self.bytes.borrow().clone();
        Sectors { bytes: Rc::new(RefCell::new(bytes)), fails: self.fails }
    }

    fn place(&self, lba: u64) -> Result<Range<usize>, DiskError> {
        // The PC asks for no sector that is not there.
        assert!(lba < self.sectors(), "a guest reached sector {lba} of {}", self.sectors());
        if self.fails != 0 && lba % self.fails == self.fails - 1 {
            return Err(DiskError);
        }
        let start = lba as usize * SECTOR;
        Ok(start..start + SECTOR)
    }
}

impl Disk for Sectors {
    fn sectors(&self) -> u64 {
        (self.bytes.borrow().len() / SECTOR) as u64
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        let place = self.place(lba)?;
        sector.copy_from_slice(&self.bytes.borrow()[place]);
        Ok(())
    }

    fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        let place = self.place(lba)?;
        self.bytes.borrow_mut()[place].copy_from_slice(sector);
        Ok(())
    }
}

/// Collects what the guest prints, and wants the run to stop at every newline.
#[derive(Default)]
pub(crate) struct Printed(pub(crate) Vec<u8>);

impl Console for Printed {
    fn byte(&mut self, _: Channel, byte: u8) -> ControlFlow<()> {
        self.0.push(byte);
        if byte == b'\n' { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
