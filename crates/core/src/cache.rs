//! The decode cache: blocks of decoded instructions in memory that the caller owns.

use crate::arch::registers::RIP_SLOT;
use crate::decode::{Context, Incomplete, decode};
use crate::isa::operand::Imm;
use crate::isa::row::Traits;
use crate::isa::table::{Entry, ROWS};
use crate::mem::code_map::{CodeMap, Lines, lines_of};
use crate::mem::fetch::CodePage;
use crate::mem::host::PAGE_SIZE;
use crate::op::Op;

/// Instructions a block holds at most.
const OPS: usize = 14;
/// Bytes a block covers at most.
const BYTES: usize = 64;

/// One block of decoded instructions. Memory for the cache is a slice of these; all zero is empty.
///
/// 576 bytes are an odd number of host cache lines, so that the heads of neighbouring blocks
/// spread over all sets of the host cache.
///
/// ```
/// use realmode::{CacheLine, Emulator, Profile};
/// let mut lines = vec![CacheLine::EMPTY; 128]; // 72 KiB
/// let emulator = Emulator::new(&Profile::INTEL, &mut lines);
/// # let _ = emulator;
/// ```
#[derive(Clone)]
#[repr(C, align(64))]
pub struct CacheLine {
    /// The view the block has been proved in, or 0.
    view: u64,
    /// RIP of its first instruction.
    ip: u64,
    /// The emulator and flush that it belongs to; 0 for none.
    stamp: u64,
    /// Physical address of its first byte.
    phys: u64,
    /// The host page it was decoded from.
    host: usize,
    key: u32,
    /// The next block of its code-map slot, as an index plus one.
    next: u32,
    /// The blocks that followed it last. Hints: proved by RIP and view where they lead to.
    links: [u32; 2],
    slot: u16,
    count: u8,
    len: u8,
    bytes: [u8; BYTES],
    ops: [Op; OPS],
}

const _: () = assert!(size_of::<CacheLine>() == 576);

impl core::fmt::Debug for CacheLine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CacheLine(ip {:#x}, {} instructions)", self.ip, self.count)
    }
}

impl CacheLine {
    /// An empty line.
    pub const EMPTY: CacheLine = CacheLine {
        view: 0,
        ip: 0,
        stamp: 0,
        phys: 0,
        host: 0,
        key: 0,
        next: 0,
        links: [0; 2],
        slot: 0,
        count: 0,
        len: 0,
        bytes: [0; BYTES],
        ops: [Op::EMPTY; OPS],
    };

    /// Its instructions.
    #[inline(always)]
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops[..usize::from(self.count).min(OPS)]
    }

    /// How many bytes they cover.
    #[inline(always)]
    pub(crate) fn len(&self) -> u8 {
        self.len
    }

    /// The bytes of one of its instructions.
    pub(crate) fn bytes_of(&self, op: &Op) -> [u8; 15] {
        let start = usize::from(self.len - op.tail - op.len);
        let mut bytes = [0; 15];
        let len = usize::from(op.len);
        let found = self.bytes.get(start..start + len).unwrap_or_default();
        bytes.iter_mut().zip(found).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// The code lines it covers in its page.
    fn lines(&self) -> Lines {
        lines_of(self.phys as usize % PAGE_SIZE, usize::from(self.len.max(1)))
    }
}

/// What a block is looked up by.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p, 'm> {
    pub(crate) ip: u64,
    pub(crate) linear: u64,
    pub(crate) key: u32,
    pub(crate) page: &'p CodePage<'m>,
    /// Bytes from the first to the end of the code segment.
    pub(crate) to_limit: u64,
}

impl Place<'_, '_> {
    fn within(&self) -> usize {
        self.linear as usize % PAGE_SIZE
    }
    fn phys(&self) -> u64 {
        self.page.phys.0 + self.within() as u64
    }
}

/// The cache.
pub(crate) struct Blocks<'m> {
    lines: &'m mut [CacheLine],
    /// The number of lines used, a power of two, less one.
    mask: usize,
    /// What a line's stamp must be for its block to be ours.
    stamp: u64,
}

impl<'m> Blocks<'m> {
    pub(crate) fn new(lines: &'m mut [CacheLine], stamp: u64) -> Self {
        let count = if lines.is_empty() { 0 } else { 1 << lines.len().ilog2() };
        Blocks { lines, mask: count.max(1) - 1, stamp }
    }

    /// Is there any cache?
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Where the block of a linear address lies.
    #[inline(always)]
    pub(crate) fn index(&self, linear: u64) -> usize {
        // Neighbouring blocks of one page, and equal offsets of distant pages, fall apart.
        (linear ^ linear >> 11) as usize & self.mask
    }

    /// Is the block at `index` that of `ip`, and proved in this view?
    #[inline(always)]
    pub(crate) fn is_proved(&self, index: usize, ip: u64, view: u64) -> bool {
        self.lines.get(index).is_some_and(|line| line.view == view && line.ip == ip)
    }

    /// The block at `index`.
    #[inline(always)]
    pub(crate) fn line(&self, index: usize) -> Option<&CacheLine> {
        self.lines.get(index)
    }

    /// The block that followed `from` at one of the last times, if it is the one wanted now.
    #[inline(always)]
    pub(crate) fn follow(&self, from: usize, ip: u64, view: u64) -> Option<usize> {
        let [first, second] = self.lines.get(from)?.links;
        if self.is_proved(first as usize, ip, view) {
            return Some(first as usize);
        }
        self.is_proved(second as usize, ip, view).then_some(second as usize)
    }

    /// Remembers which block followed `from`.
    pub(crate) fn link(&mut self, from: usize, to: usize) {
        if let Some(line) = self.lines.get_mut(from) {
            line.links = [to as u32, line.links[0]];
        }
    }

    /// Proves the block that is there, or decodes a new one; tells whether it is new. `None` if
    /// not even one instruction lies whole in the page.
    pub(crate) fn prove_or_build(
        &mut self,
        place: &Place<'_, '_>,
        view: u64,
        context: Context<'_>,
        code_map: &mut CodeMap,
    ) -> Option<bool> {
        let index = self.index(place.linear);
        let line = self.lines.get(index)?;
        let proved = line.stamp == self.stamp
            && line.key == place.key
            && line.ip == place.ip
            && line.phys == place.phys()
            && line.host == place.page.host.id()
            && u64::from(line.len) <= place.to_limit
            && line.matches(place);
        if proved {
            self.lines[index].view = view;
            return Some(false);
        }
        self.drop_line(index, code_map);
        let line = &mut self.lines[index];
        if !line.build(place, context) {
            return None;
        }
        line.view = view;
        line.stamp = self.stamp;
        line.slot = place.page.slot;
        let first = code_map.first_mut(line.slot);
        line.next = *first;
        *first = index as u32 + 1;
        let (slot, lines) = (line.slot, line.lines());
        code_map.add(slot, lines);
        Some(true)
    }

    /// Empties a line and takes it out of its slot's chain.
    fn drop_line(&mut self, index: usize, code_map: &mut CodeMap) {
        let line = &mut self.lines[index];
        if line.stamp != self.stamp {
            return;
        }
        line.stamp = 0;
        line.view = 0;
        let (slot, next) = (line.slot, line.next);
        let wanted = index as u32 + 1;
        let mut at = *code_map.first_mut(slot);
        if at == wanted {
            *code_map.first_mut(slot) = next;
            return;
        }
        while let Some(line) = self.lines.get_mut((at as usize).wrapping_sub(1)) {
            if line.next == wanted {
                line.next = next;
                return;
            }
            at = line.next;
        }
    }

    /// Retires the blocks of a slot that cover any of `lines`.
    pub(crate) fn retire(&mut self, slot: u16, lines: Lines, code_map: &mut CodeMap) -> u64 {
        let mut kept: Lines = 0;
        let mut kept_first = 0;
        let mut retired = 0;
        let mut at = *code_map.first_mut(slot);
        while let Some(line) = self.lines.get_mut((at as usize).wrapping_sub(1)) {
            let here = at;
            at = line.next;
            if line.lines() & lines != 0 {
                line.stamp = 0;
                line.view = 0;
                retired += 1;
            } else {
                kept |= line.lines();
                line.next = kept_first;
                kept_first = here;
            }
        }
        *code_map.first_mut(slot) = kept_first;
        code_map.set(slot, kept);
        retired
    }

    /// Forgets every block.
    pub(crate) fn flush(&mut self, stamp: u64, code_map: &mut CodeMap) {
        // A line of another stamp is empty; views are unique, so no stale one can match.
        self.stamp = stamp;
        code_map.clear();
    }
}

impl CacheLine {
    /// Are the bytes in memory still those that were decoded?
    fn matches(&self, place: &Place<'_, '_>) -> bool {
        let mut now = [0; BYTES];
        let len = usize::from(self.len).min(BYTES);
        if place.within() + len > PAGE_SIZE {
            return false;
        }
        place.page.host.read(place.within(), &mut now[..len]);
        now[..len] == self.bytes[..len]
    }

    /// Decodes a block. Returns whether it has any instruction.
    fn build(&mut self, place: &Place<'_, '_>, context: Context<'_>) -> bool {
        let within = place.within();
        let room = (PAGE_SIZE - within).min(BYTES).min(place.to_limit.min(64) as usize);
        place.page.host.read(within, self.bytes.get_mut(..room).unwrap_or_default());
        let (mut at, mut count) = (0, 0);
        while count < OPS {
            let window = self.bytes.get(at..room.min(at + 15)).unwrap_or_default();
            let op = match decode(window, context) {
                Ok((op, _)) => op,
                Err(Incomplete::Short | Incomplete::TooLong) => break,
            };
            at += usize::from(op.len);
            self.ops[count] = op;
            count += 1;
            if ends_block(&op) {
                break;
            }
        }
        (self.ip, self.phys, self.key) = (place.ip, place.phys(), place.key);
        self.host = place.page.host.id();
        (self.count, self.len) = (count as u8, at as u8);
        self.close();
        count != 0
    }

    /// Fills in what an op knows of the rest of its block, and counts displacements from its end.
    fn close(&mut self) {
        let mut start = 0;
        for i in 0..usize::from(self.count) {
            let op = &mut self.ops[i];
            start += op.len;
            op.tail = self.len - start;
            op.left = self.count - i as u8;
            if is_relative(op) {
                op.imm = op.imm.wrapping_sub(u64::from(op.tail));
            }
            if op.rm == RIP_SLOT {
                op.disp = op.disp.wrapping_sub(i32::from(op.tail));
            }
        }
    }
}

fn row_of(op: &Op) -> Option<&'static Entry> {
    ROWS.get(usize::from(op.row))
}

/// Does a block end with this op?
fn ends_block(op: &Op) -> bool {
    let ends = row_of(op).is_none_or(|row| row.has(Traits::ENDS_BLOCK));
    // A RIP-relative displacement that could not be moved to the end of a longer block.
    ends || op.rm == RIP_SLOT && op.disp < i32::MIN + BYTES as i32
}

/// Is its immediate a displacement from the next instruction?
fn is_relative(op: &Op) -> bool {
    row_of(op).is_some_and(|row| matches!(row.plan.imm, Imm::Rel8 | Imm::RelZ))
}
