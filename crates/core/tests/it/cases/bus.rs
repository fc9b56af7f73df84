//! The machine around the processor of a case: all of memory, with pages made when they are first
//! asked for, scattered over the host so that neighbours never are neighbours there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::cases::file::{Page, PageKind};
use crate::guest::Seen;
use realmode::*;

/// Pages that a case can touch.
const PAGES: usize = 64;

/// The content of memory where it is not zero, by page.
pub type Image = BTreeMap<u64, [u8; PAGE_SIZE]>;

/// Puts bytes in an image.
pub fn put(image: &mut Image, at: u64, bytes: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        let at = at + i as u64;
        let page = at & !0xFFF;
        image.entry(page).or_insert([0; PAGE_SIZE])[(at - page) as usize] = *byte;
    }
}

/// A byte of an image.
pub fn get(image: &Image, at: u64) -> u8 {
    image.get(&(at & !0xFFF)).map_or(0, |page| page[at as usize % PAGE_SIZE])
}

/// Host memory for the pages of a case; used again for the next one.
pub struct Arena(Vec<AtomicU8>);

impl Arena {
    pub fn new() -> Arena {
        Arena((0..PAGES * PAGE_SIZE).map(|_| AtomicU8::new(0)).collect())
    }

    fn cells(&self, index: usize) -> &[AtomicU8] {
        &self.0[index * PAGE_SIZE..][..PAGE_SIZE]
    }
}

pub struct CaseBus<'m> {
    arena: &'m Arena,
    image: &'m Image,
    /// Guest page to arena page.
    placed: BTreeMap<u64, usize>,
    kinds: BTreeMap<u64, PageKind>,
    device: Image,
    ports: BTreeMap<u16, Vec<u64>>,
    /// Everything that devices were asked.
    pub seen: Vec<Seen>,
    /// Answer every access with `Pending`.
    pub held: bool,
    /// The vector of the interrupt that waits.
    pub vector: u8,
    /// Pages that code was fetched from.
    pub executed: BTreeSet<u64>,
}

impl<'m> CaseBus<'m> {
    pub fn new(arena: &'m Arena, image: &'m Image, pages: &[Page]) -> CaseBus<'m> {
        let mut device = Image::new();
        for page in pages.iter().filter(|page| page.kind == PageKind::Device) {
            device.extend(image.get_key_value(&page.start));
            put(&mut device, page.start, &page.bytes);
        }
        CaseBus {
            arena,
            image,
            placed: BTreeMap::new(),
            kinds: pages.iter().map(|page| (page.start, page.kind)).collect(),
            device,
            ports: BTreeMap::new(),
            seen: Vec::new(),
            held: false,
            vector: 0,
            executed: BTreeSet::new(),
        }
    }

    /// Sets what IN from a port returns, in order.
    pub fn port(&mut self, port: u16, values: &[u64]) {
        self.ports.insert(port, values.iter().rev().copied().collect());
    }

    /// The pages that were asked for.
    pub fn touched(&self) -> impl Iterator<Item = u64> {
        self.placed.keys().copied()
    }

    /// What a byte of RAM holds now.
    pub fn byte(&self, at: u64) -> u8 {
        match self.placed.get(&(at & !0xFFF)) {
            Some(index) => self.arena.cells(*index)[at as usize % PAGE_SIZE].load(Relaxed),
            None => get(self.image, at),
        }
    }

    /// Does a page hold exactly these bytes, or zeros?
    pub fn holds(&self, page: u64, bytes: Option<&[u8; PAGE_SIZE]>) -> bool {
        let bytes = bytes.unwrap_or(&[0; PAGE_SIZE]);
        match self.placed.get(&page) {
            Some(index) => {
                let cells = self.arena.cells(*index);
                cells.iter().zip(bytes).all(|(cell, byte)| cell.load(Relaxed) == *byte)
            }
            None => self.image.get(&page).unwrap_or(&[0; PAGE_SIZE]) == bytes,
        }
    }

    fn page(&mut self, page: u64) -> HostPage<'m> {
        let count = self.placed.len();
        let index = *self.placed.entry(page).or_insert_with(|| {
            assert!(count < PAGES, "a case touches at most {PAGES} pages");
            let index = (count * 27 + 5) % PAGES;
            let cells = self.arena.cells(index);
            match self.image.get(&page) {
                Some(bytes) => cells.iter().zip(bytes).for_each(|(c, b)| c.store(*b, Relaxed)),
                None => cells.iter().for_each(|cell| cell.store(0, Relaxed)),
            }
            index
        });
        HostPage::from_cells(self.arena.cells(index)).expect("a page is 4096 cells")
    }

    /// Does what a request asks, without recording it: the VMM's part when an access is held.
    pub fn serve(&mut self, request: &Request, is_port: bool) -> u64 {
        let (address, size) = (request.address, usize::from(request.size));
        let value = match (is_port, request.direction) {
            (true, Direction::Read) => self.next_of_port(address as u16),
            (true, Direction::Write) => 0,
            (false, Direction::Read) => {
                let mut word = [0; 8];
                for (i, byte) in word[..size].iter_mut().enumerate() {
                    *byte = get(&self.device, address + i as u64);
                }
                u64::from_le_bytes(word)
            }
            (false, Direction::Write) => {
                put(&mut self.device, address, &request.data.to_le_bytes()[..size]);
                0
            }
        };
        // Whatever lies above the access must not matter.
        if size < 8 { value | 0xDEAD_BEEF_DEAD_BEEF << (8 * size) } else { value }
    }

    fn next_of_port(&mut self, port: u16) -> u64 {
        self.ports.get_mut(&port).and_then(Vec::pop).unwrap_or(u64::MAX)
    }

    fn access(&mut self, seen: Seen) -> Reply {
        let (address, size, direction, data, is_port) = match seen {
            Seen::Read(address, size) => (address, size, Direction::Read, 0, false),
            Seen::Write(address, size, data) => (address, size, Direction::Write, data, false),
            Seen::In(port, size) => (u64::from(port), size, Direction::Read, 0, true),
            Seen::Out(port, size, data) => (u64::from(port), size, Direction::Write, data, true),
        };
        self.seen.push(seen);
        if self.held {
            return Reply::Pending;
        }
        Reply::Ready(self.serve(&Request { address, size, direction, data }, is_port))
    }
}

impl<'a, 'm: 'a> Bus<'a> for CaseBus<'m> {
    fn prepare(&mut self, page: Phys, access: Access, _: &mut Control) -> Prepared<'a> {
        if access == Access::Execute {
            self.executed.insert(page.0);
        }
        match self.kinds.get(&page.0) {
            None => Prepared::Ram(self.page(page.0)),
            Some(PageKind::Rom) => Prepared::Rom(self.page(page.0)),
            Some(PageKind::Device) => Prepared::Mmio,
            Some(PageKind::Unmapped) => Prepared::Unmapped,
        }
    }

    fn mmio_read(&mut self, address: Phys, size: u8, _: &mut Control) -> Reply {
        self.access(Seen::Read(address.0, size))
    }

    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, _: &mut Control) -> Reply {
        self.access(Seen::Write(address.0, size, data))
    }

    fn port_in(&mut self, port: u16, size: u8, _: &mut Control) -> Reply {
        self.access(Seen::In(port, size))
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, _: &mut Control) -> Reply {
        self.access(Seen::Out(port, size, data))
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        control.interrupt(false);
        self.vector
    }
}
