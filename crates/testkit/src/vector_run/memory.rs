//! The memory a vector runs in: 16 MiB, all writable, all zero between tests.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use realmode::{Access, Bus, Control, Cpu, Fault, HostPage, PAGE_SIZE, Phys, Prepared};

/// The size of the memory, and where addresses wrap: as many address lines as were captured.
pub const MEMORY_BYTES: usize = 16 << 20;

const PAGES: usize = MEMORY_BYTES / PAGE_SIZE;

/// Memory that knows which of its pages the guest has stored to.
#[derive(Debug)]
pub struct VectorMemory {
    cells: Vec<AtomicU8>,
    dirty: Vec<AtomicU64>,
}

impl VectorMemory {
    /// All zero.
    pub fn new() -> VectorMemory {
        VectorMemory {
            cells: (0..MEMORY_BYTES).map(|_| AtomicU8::new(0)).collect(),
            dirty: (0..PAGES / 64).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn cell(&self, address: u32) -> &AtomicU8 {
        &self.cells[address as usize % MEMORY_BYTES]
    }

    /// The byte at an address.
    pub fn get(&self, address: u32) -> u8 {
        self.cell(address).load(Ordering::Relaxed)
    }

    /// Sets the byte at an address. The page does not become dirty.
    pub fn set(&self, address: u32, value: u8) {
        self.cell(address).store(value, Ordering::Relaxed);
    }

    /// Makes dirty pages clean, and calls `visit` for each of their bytes that is not zero after
    /// making it zero.
    pub fn sweep(&self, mut visit: impl FnMut(u32, u8)) {
        for (index, word) in self.dirty.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Relaxed);
            while bits != 0 {
                let page = index * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.sweep_page(page, &mut visit);
            }
        }
    }

    fn sweep_page(&self, page: usize, visit: &mut impl FnMut(u32, u8)) {
        let start = page * PAGE_SIZE;
        for (line, cells) in self.cells[start..start + PAGE_SIZE].chunks(64).enumerate() {
            if cells.iter().fold(0, |all, cell| all | cell.load(Ordering::Relaxed)) == 0 {
                continue;
            }
            for (i, cell) in cells.iter().enumerate() {
                let value = cell.swap(0, Ordering::Relaxed);
                if value != 0 {
                    visit((start + line * 64 + i) as u32, value);
                }
            }
        }
    }
}

impl Default for VectorMemory {
    fn default() -> Self {
        VectorMemory::new()
    }
}

/// The bus of a vector: memory everywhere, and ports that read all ones, which is the default.
pub(super) struct VectorBus<'m> {
    pub(super) memory: &'m VectorMemory,
    /// The first exceptions of the test, and where: what a failure is most likely about.
    pub(super) faults: Vec<(u64, Fault)>,
}

/// How many exceptions are remembered; one that nobody expected leads to more.
const MAX_FAULTS: usize = 3;

impl<'m> Bus<'m> for VectorBus<'m> {
    fn prepare(&mut self, page: Phys, _access: Access, _control: &mut Control) -> Prepared<'m> {
        let start = page.0 as usize % MEMORY_BYTES;
        let index = start / PAGE_SIZE;
        let cells = self.memory.cells.get(start..start + PAGE_SIZE);
        match cells.map(HostPage::from_cells) {
            Some(Ok(host)) => {
                let word = &self.memory.dirty[index / 64];
                Prepared::Ram(host.with_dirty_bit(word, (index % 64) as u32))
            }
            _ => Prepared::Unmapped,
        }
    }

    fn observe_fault(&mut self, cpu: &Cpu, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((cpu.rip, fault));
        }
    }
}
