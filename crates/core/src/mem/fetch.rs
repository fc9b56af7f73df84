//! Instruction fetch: a window of up to 15 bytes, bounded by the page and the code segment.

use crate::arch::registers::SegReg;
use crate::bus::{Access, Phys, Prepared};
use crate::fault::Fault;
use crate::machine::{Leave, Machine};
use crate::mem::code_map::{CodeMap, lines_of};
use crate::mem::host::{HostPage, PAGE_SIZE};
use crate::profile::Generation;
use crate::stop::UnimplementedReason;

/// The longest instruction any processor takes.
pub(crate) const MAX_LENGTH: usize = 15;

/// A page that code is fetched from.
#[derive(Clone, Copy)]
pub(crate) struct CodePage<'m> {
    pub(crate) phys: Phys,
    pub(crate) host: HostPage<'m>,
    pub(crate) slot: u16,
}

/// What a fetch at RIP can see.
pub(crate) struct Window<'m> {
    pub(crate) bytes: [u8; 16],
    /// Bytes that are there.
    pub(crate) len: usize,
    /// What lies behind them.
    pub(crate) end: End,
    /// The page of the first byte.
    pub(crate) page: CodePage<'m>,
    /// Offset of the first byte in its page.
    pub(crate) within: usize,
    /// Bytes that come from that page.
    head: usize,
    /// Where the rest comes from: the slot and the offset in its page.
    tail: Option<(u16, usize)>,
}

/// What ends a fetch window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Nothing: the longest instruction fits.
    Full,
    /// The page; more bytes lie in the next one.
    Page,
    /// The code segment.
    Limit,
}

impl<'m> Machine<'_, 'm> {
    /// Opens a window at RIP. Never looks at a second page.
    pub(crate) fn fetch(&mut self) -> Result<Window<'m>, Leave> {
        let (linear, to_limit) = self.fetch_place(0)?;
        let within = linear as usize % PAGE_SIZE;
        let to_page = PAGE_SIZE - within;
        let page = self.code_page(linear)?;
        let len = MAX_LENGTH.min(to_page).min(to_limit as usize);
        let mut bytes = [0; 16];
        if within <= PAGE_SIZE - 16 {
            // One load of two words, the usual case.
            bytes[..8].copy_from_slice(&page.host.load::<u64>(within).to_le_bytes());
            bytes[8..].copy_from_slice(&page.host.load::<u64>(within + 8).to_le_bytes());
        } else {
            page.host.read(within, bytes.get_mut(..len).unwrap_or_default());
        }
        let wraps = self.profile.generation < Generation::I80286;
        let end = if len == MAX_LENGTH {
            End::Full
        } else if to_limit as usize == len && !wraps {
            End::Limit
        } else {
            End::Page
        };
        Ok(Window { bytes, len, end, page, within, head: len, tail: None })
    }

    /// Adds the bytes of the next page to a window that ends at its page.
    pub(crate) fn fetch_more(&mut self, window: &mut Window<'m>) -> Result<(), Leave> {
        let (linear, to_limit) = self.fetch_place(window.len as u64)?;
        let page = self.code_page(linear)?;
        let len = (MAX_LENGTH - window.len).min(to_limit as usize);
        let place = window.bytes.get_mut(window.len..window.len + len).unwrap_or_default();
        page.host.read(linear as usize % PAGE_SIZE, place);
        window.tail = Some((page.slot, linear as usize % PAGE_SIZE));
        window.len += len;
        window.end = if window.len == MAX_LENGTH { End::Full } else { End::Limit };
        Ok(())
    }

    /// Treats the first `len` bytes of a window as code, as a block would: a repeated store that
    /// meets them stops there, and the next iteration is fetched anew.
    pub(crate) fn guard(&mut self, window: &Window<'m>, len: usize) {
        let head = len.min(window.head).max(1);
        self.code_map.add(window.page.slot, lines_of(window.within, head));
        if let Some((slot, within)) = window.tail
            && len > head
        {
            self.code_map.add(slot, lines_of(within, len - head));
        }
    }

    /// The linear address `ahead` bytes after RIP, and how many bytes the segment has from there.
    fn fetch_place(&mut self, ahead: u64) -> Result<(u64, u64), Leave> {
        let rip = self.cpu.rip.wrapping_add(ahead);
        let cs = self.cpu.segment(SegReg::Cs);
        if self.cpu.is_64_bit_code() {
            if !self.is_canonical(rip) {
                return Err(Fault::GP.into());
            }
            return Ok((rip, PAGE_SIZE as u64 * 2));
        }
        if self.profile.generation < Generation::I80286 {
            // 8086: IP wraps within the segment; the window ends there and goes on at 0.
            let ip = rip & 0xFFFF;
            return Ok((cs.base.wrapping_add(ip) & self.linear_mask, 0x1_0000 - ip));
        }
        let limit = u64::from(cs.limit);
        if rip > limit {
            return Err(Fault::GP.into());
        }
        Ok((cs.base.wrapping_add(rip) & self.linear_mask, limit - rip + 1))
    }

    /// The page of a linear code address.
    pub(crate) fn code_page(&mut self, linear: u64) -> Result<CodePage<'m>, Leave> {
        let within = linear & 0xFFF;
        let entry = self.tlb.entry(linear);
        if entry.read == linear - within && entry.executable {
            return Ok(CodePage { phys: entry.phys, host: entry.host, slot: entry.slot });
        }
        let by = self.program();
        let translation = self.translate(linear, Access::Execute, by)?;
        let phys = translation.phys;
        let prepared = self.bus.prepare(phys, Access::Execute, &mut self.control);
        self.attention |= self.control.is_pending();
        let (host, writable) = match prepared {
            Prepared::Ram(host) => (host, !host.has_dirty_bit()),
            Prepared::Rom(host) => (host, false),
            Prepared::Mmio | Prepared::Unmapped => {
                self.fetch_address = phys.0 + within;
                return Err(Leave::Unimplemented(UnimplementedReason::FetchFromMmio));
            }
        };
        let slot = CodeMap::slot(host.id());
        self.remember(linear, by, &translation, host, slot, writable);
        Ok(CodePage { phys, host, slot })
    }
}
