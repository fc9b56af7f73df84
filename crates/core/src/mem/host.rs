//! Host pages: the one place where guest memory is touched, and the one module with `unsafe`.
//!
//! Guest memory is shared with other processors of the guest and with devices, so nothing here
//! makes a Rust reference to it: plain accesses are single machine instructions on x86-64 hosts
//! and relaxed byte accesses elsewhere, LOCK forms are real atomics.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::error::Error;
use crate::width::Width;

/// The size of a page.
pub const PAGE_SIZE: usize = 4096;

/// One page of host memory that backs guest memory.
///
/// ```
/// use core::sync::atomic::AtomicU8;
/// use realmode::HostPage;
/// let ram: Vec<AtomicU8> = (0..8192).map(|_| AtomicU8::new(0)).collect();
/// let page = HostPage::from_cells(&ram[..4096]).unwrap();
/// assert!(HostPage::from_cells(&ram[..100]).is_err());
/// # let _ = page;
/// ```
#[derive(Clone, Copy)]
pub struct HostPage<'m> {
    base: NonNull<u8>,
    dirty: Option<Dirty<'m>>,
    memory: PhantomData<&'m [AtomicU8]>,
}

/// Where to mark a page dirty.
#[derive(Clone, Copy)]
struct Dirty<'m> {
    word: &'m AtomicU64,
    mask: u64,
}

// SAFETY: a HostPage is a view of memory that is Sync for 'm: cells of AtomicU8, or memory whose
// provider promised in `from_raw` that any thread may access it at any time.
unsafe impl Send for HostPage<'_> {}
// SAFETY: as above; every access through a shared HostPage is a volatile or atomic one.
unsafe impl Sync for HostPage<'_> {}

/// Backs empty cache entries, so that they hold a valid page too. Never read for the guest.
static NOTHING: [AtomicU8; PAGE_SIZE] = [const { AtomicU8::new(0) }; PAGE_SIZE];

impl<'m> HostPage<'m> {
    /// A page of cells. There must be exactly 4096.
    ///
    /// # Errors
    /// `Error::PageSize` for any other length.
    pub fn from_cells(cells: &'m [AtomicU8]) -> Result<Self, Error> {
        if cells.len() != PAGE_SIZE {
            return Err(Error::PageSize { found: cells.len(), expected: PAGE_SIZE });
        }
        Ok(HostPage { base: NonNull::from(&cells[0]).cast(), dirty: None, memory: PhantomData })
    }

    /// A page of memory that is mapped by other means, such as `mmap`.
    ///
    /// # Safety
    /// The 4096 bytes from `base` must be readable and writable, and must be accessed by the
    /// host only through raw pointers or atomics, until every emulator that was given this page
    /// has completed `withdraw` of it or was dropped. Other threads: make them return from
    /// `run`, withdraw, then unmap. A page answered as `Prepared::Rom` is never written.
    pub unsafe fn from_raw(base: NonNull<u8>) -> Self {
        HostPage { base, dirty: None, memory: PhantomData }
    }

    /// The same page, with a bit that is set in `word` *after* each store to it. Marking before
    /// the store would lose pages: the word may be collected in between.
    pub fn with_dirty_bit(self, word: &'m AtomicU64, bit: u32) -> Self {
        HostPage { dirty: Some(Dirty { word, mask: 1 << (bit % 64) }), ..self }
    }

    /// A page that no guest address leads to.
    pub(crate) fn nothing() -> HostPage<'m> {
        HostPage { base: NonNull::from(&NOTHING[0]).cast(), dirty: None, memory: PhantomData }
    }

    /// Does a store have to mark a dirty bit?
    pub(crate) fn has_dirty_bit(&self) -> bool {
        self.dirty.is_some()
    }

    /// A number that two views of the same host page share.
    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        self.base.as_ptr() as usize
    }

    #[inline(always)]
    fn mark_dirty(&self) {
        if let Some(dirty) = self.dirty {
            dirty.word.fetch_or(dirty.mask, Ordering::Release);
        }
    }

    /// Loads a value that lies within the page. Out of range, which the callers exclude, is 0.
    #[inline(always)]
    pub(crate) fn load<W: Width>(&self, offset: usize) -> W {
        debug_assert!(offset <= PAGE_SIZE - W::BYTES);
        if offset > PAGE_SIZE - W::BYTES {
            return W::from_u64(0);
        }
        // SAFETY: `base` is valid for 4096 bytes (from_cells, from_raw, nothing) and the access
        // was just checked to lie within them.
        let value = unsafe { raw::load(self.base.as_ptr().add(offset), W::BYTES) };
        W::from_u64(value)
    }

    /// Stores a value that lies within the page, then marks the page dirty.
    #[inline(always)]
    pub(crate) fn store<W: Width>(&self, offset: usize, value: W) {
        debug_assert!(offset <= PAGE_SIZE - W::BYTES);
        if offset > PAGE_SIZE - W::BYTES {
            return;
        }
        // SAFETY: as in `load`; pages that are not writable (ROM) never come here, because the
        // TLB gives them no write tag.
        unsafe { raw::store(self.base.as_ptr().add(offset), W::BYTES, value.to_u64()) };
        self.mark_dirty();
    }

    /// Copies bytes out of the page; as many as lie within it.
    /// A value of 1, 2, 4 or 8 bytes is read by one load.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() && at < PAGE_SIZE {
            let step = piece(rest.len().min(PAGE_SIZE - at));
            let Some((now, later)) = rest.split_at_mut_checked(step) else { return };
            // SAFETY: at + step <= 4096, within the page.
            let value = unsafe { raw::load(self.base.as_ptr().add(at), step) };
            if let Some(word) = now.first_chunk_mut() {
                *word = value.to_le_bytes();
            } else {
                now.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
            }
            at += step;
            rest = later;
        }
    }

    /// Copies bytes into the page, as many as lie within it, then marks it dirty.
    /// A value of 1, 2, 4 or 8 bytes is written by one store.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() && at < PAGE_SIZE {
            let step = piece(rest.len().min(PAGE_SIZE - at));
            let Some((now, later)) = rest.split_at_checked(step) else { return };
            let mut word = [0; 8];
            word.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            // SAFETY: at + step <= 4096, within the page.
            unsafe { raw::store(self.base.as_ptr().add(at), step, u64::from_le_bytes(word)) };
            at += step;
            rest = later;
        }
        self.mark_dirty();
    }

    /// REP MOVS upwards: `len` bytes in steps of `size`, exactly as the instruction would, also
    /// where the two ranges overlap. Both ranges must lie within their pages.
    pub(crate) fn copy_up(
        &self,
        offset: usize,
        from: &HostPage<'_>,
        from_offset: usize,
        len: usize,
        size: usize,
    ) {
        debug_assert!(offset + len <= PAGE_SIZE && from_offset + len <= PAGE_SIZE);
        if offset + len > PAGE_SIZE || from_offset + len > PAGE_SIZE {
            return;
        }
        // SAFETY: both ranges were just checked to lie within their pages.
        unsafe {
            let target = self.base.as_ptr().add(offset);
            raw::copy_up(target, from.base.as_ptr().add(from_offset), len, size);
        }
        self.mark_dirty();
    }

    /// REP STOS upwards: `len` bytes of repetitions of the low `size` bytes of `value`.
    pub(crate) fn fill(&self, offset: usize, len: usize, size: usize, value: u64) {
        debug_assert!(offset + len <= PAGE_SIZE);
        if offset + len > PAGE_SIZE {
            return;
        }
        // SAFETY: the range was just checked to lie within the page.
        unsafe { raw::fill(self.base.as_ptr().add(offset), len, size, value) };
        self.mark_dirty();
    }

    /// One step of an atomic update: if the `W` at `offset` still equals `old`, replaces it with
    /// `new`. Returns what was there. The caller has checked `is_atomic`.
    pub(crate) fn compare_exchange<W: Width>(&self, offset: usize, old: W, new: W) -> W {
        debug_assert!(self.is_atomic(offset, W::BYTES));
        if offset > PAGE_SIZE - W::BYTES {
            return W::from_u64(0);
        }
        // SAFETY: the access lies within the page; alignment is handled by `raw`.
        let seen = unsafe {
            let at = self.base.as_ptr().add(offset);
            raw::compare_exchange(at, W::BYTES, old.to_u64(), new.to_u64())
        };
        if seen == old.to_u64() {
            self.mark_dirty();
        }
        W::from_u64(seen)
    }

    /// The same for 16 bytes, CMPXCHG16B. `offset` must be a multiple of 16.
    pub(crate) fn compare_exchange_16(&self, offset: usize, old: u128, new: u128) -> Option<u128> {
        let address = self.id() + offset;
        if offset > PAGE_SIZE - 16 || !address.is_multiple_of(16) {
            return None;
        }
        // SAFETY: within the page and aligned, just checked.
        let seen = unsafe { raw::compare_exchange_16(self.base.as_ptr().add(offset), old, new) };
        if seen == old {
            self.mark_dirty();
        }
        Some(seen)
    }

    /// Can a locked access of `size` bytes at `offset` be one atomic host operation: aligned, or
    /// inside an aligned 8 or 16 bytes?
    pub(crate) fn is_atomic(&self, offset: usize, size: usize) -> bool {
        let address = self.id() + offset;
        // The whole aligned unit must lie in the page, because it is the unit that is exchanged.
        let is_inside = |unit: usize| {
            let inside = address % unit.max(1);
            inside + size <= unit && inside <= offset && offset - inside + unit <= PAGE_SIZE
        };
        // A page need not be aligned: at its ends only smaller units may be whole.
        let has_16 = cfg!(all(target_arch = "x86_64", not(miri)));
        is_inside(size) || is_inside(8) || has_16 && is_inside(16)
    }
}

impl core::fmt::Debug for HostPage<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "HostPage({:p}{})", self.base, if self.dirty.is_some() { ", dirty" } else { "" })
    }
}

/// The largest power of two, up to 8, that is at most `len`.
fn piece(len: usize) -> usize {
    match len {
        0 | 1 => 1,
        2 | 3 => 2,
        4..=7 => 4,
        _ => 8,
    }
}

/// Accesses to memory that other threads may change.
mod raw {
    use super::*;

    /// # Safety
    /// `at` must be valid for reads of `size` (1, 2, 4 or 8) bytes.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) unsafe fn load(at: *const u8, size: usize) -> u64 {
        use core::arch::asm;
        let value: u64;
        // SAFETY: one load of `size` bytes that the caller vouches for; readonly, no flags.
        unsafe {
            match size {
                1 => asm!("movzx {0:e}, byte ptr [{1}]", out(reg) value, in(reg) at,
                          options(nostack, preserves_flags, readonly)),
                2 => asm!("movzx {0:e}, word ptr [{1}]", out(reg) value, in(reg) at,
                          options(nostack, preserves_flags, readonly)),
                4 => asm!("mov {0:e}, [{1}]", out(reg) value, in(reg) at,
                          options(nostack, preserves_flags, readonly)),
                _ => asm!("mov {0}, [{1}]", out(reg) value, in(reg) at,
                          options(nostack, preserves_flags, readonly)),
            }
        }
        value
    }

    /// # Safety
    /// `at` must be valid for writes of `size` (1, 2, 4 or 8) bytes.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) unsafe fn store(at: *mut u8, size: usize, value: u64) {
        use core::arch::asm;
        // SAFETY: one store of `size` bytes that the caller vouches for; no flags, no stack.
        unsafe {
            match size {
                1 => asm!("mov byte ptr [{0}], {1}", in(reg) at, in(reg_byte) value as u8,
                          options(nostack, preserves_flags)),
                2 => asm!("mov word ptr [{0}], {1:x}", in(reg) at, in(reg) value,
                          options(nostack, preserves_flags)),
                4 => asm!("mov dword ptr [{0}], {1:e}", in(reg) at, in(reg) value,
                          options(nostack, preserves_flags)),
                _ => asm!("mov qword ptr [{0}], {1}", in(reg) at, in(reg) value,
                          options(nostack, preserves_flags)),
            }
        }
    }

    /// # Safety
    /// `at` must be valid for reads of `size` bytes.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(super) unsafe fn load(at: *const u8, size: usize) -> u64 {
        (0..size).fold(0, |value, i| {
            // SAFETY: byte i of the `size` bytes the caller vouches for.
            let byte = unsafe { AtomicU8::from_ptr(at.add(i).cast_mut()) };
            value | u64::from(byte.load(Ordering::Relaxed)) << (8 * i)
        })
    }

    /// # Safety
    /// `at` must be valid for writes of `size` bytes.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(super) unsafe fn store(at: *mut u8, size: usize, value: u64) {
        for i in 0..size {
            // SAFETY: byte i of the `size` bytes the caller vouches for.
            let byte = unsafe { AtomicU8::from_ptr(at.add(i)) };
            byte.store((value >> (8 * i)) as u8, Ordering::Relaxed);
        }
    }

    /// # Safety
    /// Both pointers must be valid for `len` bytes; `len` must be a multiple of `size`.
    pub(super) unsafe fn copy_up(to: *mut u8, from: *const u8, len: usize, size: usize) {
        let distance = (to as usize).wrapping_sub(from as usize);
        // Wide steps give what single steps give unless a step reads what an earlier one wrote.
        let wide = if distance >= 8 || size == 8 { len / 8 * 8 } else { 0 };
        // SAFETY: the first `wide` bytes of both ranges.
        unsafe { copy_words(to, from, wide / 8) };
        let mut at = wide;
        while at < len {
            // SAFETY: at + size <= len, within both ranges.
            unsafe { store(to.add(at), size, load(from.add(at), size)) };
            at += size;
        }
    }

    /// # Safety
    /// `to` must be valid for `len` bytes; `len` must be a multiple of `size`.
    pub(super) unsafe fn fill(to: *mut u8, len: usize, size: usize, value: u64) {
        let pattern = match size {
            1 => (value & 0xFF) * 0x0101_0101_0101_0101,
            2 => (value & 0xFFFF) * 0x0001_0001_0001_0001,
            4 => (value & 0xFFFF_FFFF) * 0x0000_0001_0000_0001,
            _ => value,
        };
        // SAFETY: the first `len / 8` words of the range.
        unsafe { fill_words(to, len / 8, pattern) };
        let mut at = len / 8 * 8;
        while at < len {
            // SAFETY: at + size <= len, within the range.
            unsafe { store(to.add(at), size, pattern) };
            at += size;
        }
    }

    /// From how many words on the host's own REP is faster than a loop.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    const REPEAT_WORDS: usize = 32;

    /// Copies 8 bytes at a time, upwards.
    ///
    /// # Safety
    /// Both pointers must be valid for `words` times 8 bytes.
    unsafe fn copy_words(to: *mut u8, from: *const u8, words: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if words >= REPEAT_WORDS {
            // SAFETY: MOVSQ moves each word after the one below it, whatever overlaps, in the
            // two ranges that the caller vouches for; DF is clear by the calling convention.
            unsafe {
                core::arch::asm!(
                    "rep movsq",
                    inout("rcx") words => _,
                    inout("rdi") to => _,
                    inout("rsi") from => _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        for i in 0..words {
            // SAFETY: word i of the ranges that the caller vouches for.
            unsafe { store(to.add(8 * i), 8, load(from.add(8 * i), 8)) };
        }
    }

    /// Stores `pattern` again and again.
    ///
    /// # Safety
    /// `to` must be valid for `words` times 8 bytes.
    unsafe fn fill_words(to: *mut u8, words: usize, pattern: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if words >= REPEAT_WORDS {
            // SAFETY: STOSQ stays in the range that the caller vouches for; DF is clear by the
            // calling convention.
            unsafe {
                core::arch::asm!(
                    "rep stosq",
                    inout("rcx") words => _,
                    inout("rdi") to => _,
                    in("rax") pattern,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        for i in 0..words {
            // SAFETY: word i of the range that the caller vouches for.
            unsafe { store(to.add(8 * i), 8, pattern) };
        }
    }

    /// # Safety
    /// `at` must be valid for reads and writes of the aligned 8 or 16 bytes that hold the `size`
    /// bytes at `at`, which must lie within one such unit.
    pub(super) unsafe fn compare_exchange(at: *mut u8, size: usize, old: u64, new: u64) -> u64 {
        // SAFETY: aligned atomics on memory that the caller vouches for; a misaligned operand is
        // updated through the aligned unit around it.
        unsafe {
            match size {
                1 => exchange_in(AtomicU8::from_ptr(at), old as u8, new as u8).into(),
                2 if at.cast::<u16>().is_aligned() => {
                    exchange_in(AtomicU16::from_ptr(at.cast()), old as u16, new as u16).into()
                }
                4 if at.cast::<u32>().is_aligned() => {
                    exchange_in(AtomicU32::from_ptr(at.cast()), old as u32, new as u32).into()
                }
                8 if at.cast::<u64>().is_aligned() => {
                    exchange_in(AtomicU64::from_ptr(at.cast()), old, new)
                }
                _ => exchange_inside(at, size, old, new),
            }
        }
    }

    /// A misaligned locked operand: compare and exchange the aligned 8 or 16 bytes around it.
    ///
    /// # Safety
    /// As `compare_exchange`.
    unsafe fn exchange_inside(at: *mut u8, size: usize, old: u64, new: u64) -> u64 {
        let mask = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        let in_word = at as usize % 8;
        if in_word + size <= 8 {
            // SAFETY: the aligned 8 bytes around the operand are the caller's to vouch for.
            let word = unsafe { AtomicU64::from_ptr(at.sub(in_word).cast()) };
            let shift = 8 * in_word;
            let mut seen = word.load(Ordering::SeqCst);
            loop {
                let part = seen >> shift & mask;
                if part != old & mask {
                    return part;
                }
                let wanted = seen & !(mask << shift) | (new & mask) << shift;
                match word.compare_exchange(seen, wanted, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => return part,
                    Err(now) => seen = now,
                }
            }
        }
        let in_unit = at as usize % 16;
        let shift = 8 * in_unit;
        let mut seen = 0;
        loop {
            let part = (seen >> shift) as u64 & mask;
            let wanted = seen & !(u128::from(mask) << shift) | u128::from(new & mask) << shift;
            // A wrong guess exchanges nothing, or the same value, and tells what is there.
            let wanted = if part == old & mask { wanted } else { seen };
            // SAFETY: the aligned 16 bytes around the operand are the caller's to vouch for.
            let now = unsafe { compare_exchange_16(at.sub(in_unit), seen, wanted) };
            if now == seen {
                return part;
            }
            seen = now;
        }
    }

    /// # Safety
    /// `at` must be 16-byte aligned and valid for reads and writes of 16 bytes.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) unsafe fn compare_exchange_16(at: *mut u8, old: u128, new: u128) -> u128 {
        use core::arch::asm;
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: every x86-64 part but the earliest has CMPXCHG16B, and the operand is aligned
        // and valid. rbx, which LLVM reserves, is saved by exchange; the other operands are
        // named, because one that the compiler chose could be rbx itself.
        unsafe {
            asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, rsi",
                in("rdi") at,
                inout("rsi") new as u64 => _,
                in("rcx") (new >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
                options(nostack),
            );
        }
        u128::from(low) | u128::from(high) << 64
    }

    /// Hosts without a 16-byte exchange: two halves, the lower one first. Not atomic, and
    /// `is_atomic` never sends an operand here on such hosts.
    ///
    /// # Safety
    /// As above.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(super) unsafe fn compare_exchange_16(at: *mut u8, old: u128, new: u128) -> u128 {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe {
            let seen = u128::from(load(at, 8)) | u128::from(load(at.add(8), 8)) << 64;
            if seen == old {
                store(at, 8, new as u64);
                store(at.add(8), 8, (new >> 64) as u64);
            }
            seen
        }
    }

    /// The four atomic widths, behind one name.
    trait Cell<T> {
        fn exchange(&self, old: T, new: T) -> T;
    }
    macro_rules! cell {
        ($cell:ty, $t:ty) => {
            impl Cell<$t> for $cell {
                fn exchange(&self, old: $t, new: $t) -> $t {
                    match self.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                        Ok(seen) | Err(seen) => seen,
                    }
                }
            }
        };
    }
    cell!(AtomicU8, u8);
    cell!(AtomicU16, u16);
    cell!(AtomicU32, u32);
    cell!(AtomicU64, u64);

    fn exchange_in<T>(cell: &impl Cell<T>, old: T, new: T) -> T {
        cell.exchange(old, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<AtomicU8> {
        (0..PAGE_SIZE).map(|i| AtomicU8::new((i * 7 % 251) as u8)).collect()
    }

    fn bytes(cells: &[AtomicU8]) -> Vec<u8> {
        cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn overlapping_copies_are_what_single_steps_make_of_them() {
        // 40 bytes are copied by the loop, 400 by the host's REP.
        for (len, size) in [40, 400].into_iter().flat_map(|len| [1, 2, 4, 8].map(|s| (len, s))) {
            for distance in -17..=17isize {
                let (from, to) = (1000, 1000usize.wrapping_add_signed(distance));
                let cells = cells();
                let mut wanted = bytes(&cells);
                for at in (0..len).step_by(size) {
                    wanted.copy_within(from + at..from + at + size, to + at);
                }
                let page = HostPage::from_cells(&cells).unwrap();
                page.copy_up(to, &page, from, len, size);
                assert!(bytes(&cells) == wanted, "{len} by {size}, {distance} apart");
            }
        }
    }

    #[test]
    fn fills_stay_in_their_range() {
        for (len, size) in
            [8, 24, 40, 400].into_iter().flat_map(|len| [1, 2, 4, 8].map(|s| (len, s)))
        {
            // One element less than a number of words, too.
            for len in [len, len - size] {
                let cells = cells();
                let mut wanted = bytes(&cells);
                let value = 0x1122_3344_5566_7788u64;
                for at in (0..len).step_by(size) {
                    wanted[77 + at..77 + at + size].copy_from_slice(&value.to_le_bytes()[..size]);
                }
                HostPage::from_cells(&cells).unwrap().fill(77, len, size, value);
                assert!(bytes(&cells) == wanted, "{len} by {size}");
            }
        }
    }
}
