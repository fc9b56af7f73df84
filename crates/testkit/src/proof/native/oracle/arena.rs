//! The memory of an arena and its descriptors.
//!
//! Of its stride the first part belongs to cases. The rest is the oracle's, with pages that nobody
//! may touch around each piece: stubs, context, and the stack that signals arrive on.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::Mutex;

use realmode::Attributes;

use super::context::Context;
use super::{Unavailable, switch};
use crate::proof::Paging;
use crate::proof::layout::{
    ARENA_SIZE, ARENA_STRIDE, ARENAS, CODE, DATA, Kind, Layout, PAGES, RETURN,
};

/// Offset of the stubs; the return stub is the first.
const STUBS: u32 = RETURN;
/// Offset of the context.
pub(super) const CONTEXT: u32 = 0xC_0000;
/// Offset of the stack for signals.
pub(super) const SIGNAL_STACK: u32 = 0xD_0000;
/// Its size.
pub(super) const SIGNAL_STACK_SIZE: u32 = 0x1_0000;

/// INT3.
pub(super) const BREAKPOINT: u8 = 0xCC;

/// Bit n: a thread has its signals on the stack of arena n. The signal handler looks here.
pub(super) static TAKEN: [AtomicU64; ARENAS as usize / 64] =
    [const { AtomicU64::new(0) }; ARENAS as usize / 64];

/// A mapped arena. Dropping it unmaps it.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) layout: Layout,
    /// Address of the instructions that jump to a far pointer, and to an address.
    way_in_far: u64,
    way_in_near: u64,
}

impl Arena {
    /// Maps the arena and writes its descriptors.
    pub(super) fn map(number: u16) -> Result<Arena, Unavailable> {
        if number >= ARENAS {
            return Err(Unavailable::NoSuchArena { number });
        }
        let layout = Layout::native(number);
        let base = layout.base as usize as *mut libc::c_void;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping that replaces none.
        let at = unsafe { libc::mmap(base, ARENA_STRIDE as usize, libc::PROT_NONE, flags, -1, 0) };
        let refused = |source| Unavailable::Memory { number, base: layout.base, source };
        if at == libc::MAP_FAILED {
            return Err(refused(io::Error::last_os_error()));
        }
        let mut arena = Arena { layout, way_in_far: 0, way_in_near: 0 };
        if at != base {
            // A kernel before 4.17 takes the address for a hint.
            arena.layout.base = at as usize as u32;
            return Err(refused(io::Error::from(io::ErrorKind::AddrInUse)));
        }
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        arena.protect(CODE, DATA - CODE, read_write | libc::PROT_EXEC)?;
        arena.protect(DATA, ARENA_SIZE - DATA, read_write)?;
        arena.protect(CONTEXT, 0x1000, read_write)?;
        arena.protect(SIGNAL_STACK, SIGNAL_STACK_SIZE, read_write)?;
        arena.protect(STUBS, 0x1000, read_write)?;
        // SAFETY: the pages were made writable above, and nobody else knows them yet.
        unsafe { ptr::write_bytes(arena.at(CODE), BREAKPOINT, (DATA - CODE) as usize) };
        arena.write_stubs();
        arena.protect(STUBS, 0x1000, libc::PROT_READ | libc::PROT_EXEC)?;
        arena.write_descriptors()?;
        Ok(arena)
    }

    /// The address of an offset.
    pub(super) fn at(&self, offset: u32) -> *mut u8 {
        ptr::with_exposed_provenance_mut((self.layout.base + offset) as usize)
    }

    /// The context.
    pub(super) fn context(&self) -> *mut Context {
        self.at(CONTEXT).cast()
    }

    /// Where cases are entered, through a far pointer or an address.
    pub(super) fn way_in(&self, is_far: bool) -> u64 {
        if is_far { self.way_in_far } else { self.way_in_near }
    }

    /// Makes the odd page of a case odd, or like the others.
    pub(super) fn set_odd(&self, paging: Paging, is_odd: bool) {
        let (page, odd) = match paging {
            Paging::Off | Paging::Even => return,
            Paging::Absent(page) => (page, libc::PROT_NONE),
            Paging::ReadOnly(page) => (page, libc::PROT_READ),
        };
        let offset = u32::from(page) * 4096;
        assert!(offset < ARENA_SIZE, "page {page} of {PAGES}");
        let is_code = offset < DATA;
        let code = if is_code { libc::PROT_EXEC } else { 0 };
        let usual = libc::PROT_READ | libc::PROT_WRITE | code;
        let odd = if odd == libc::PROT_NONE { odd } else { odd | code };
        let done = self.protect(offset, 4096, if is_odd { odd } else { usual });
        done.expect("what was mapped can be protected");
    }

    fn protect(&self, offset: u32, size: u32, protection: i32) -> Result<(), Unavailable> {
        // SAFETY: the pages are of this mapping, and no reference into them exists.
        let result = unsafe { libc::mprotect(self.at(offset).cast(), size as usize, protection) };
        refused_if_negative(result.into(), "mprotect")
    }

    /// Writes what leads into cases and out of them. A case has every register, so the context is
    /// found relative to RIP.
    fn write_stubs(&mut self) {
        let gpr = CONTEXT + offset_of!(Context, gpr) as u32;
        let rdi = gpr + 7 * 8;
        let target = CONTEXT + offset_of!(Context, target) as u32;
        let way_out = CONTEXT + offset_of!(Context, way_out) as u32;
        let mut stubs = Stubs { arena: self, at: STUBS };
        stubs.relative(&[0x48, 0x89, 0x05], gpr); // mov [gpr], rax
        stubs.relative(&[0x48, 0x8D, 0x05], CONTEXT); // lea rax, [context]
        stubs.relative(&[0xFF, 0x25], way_out); // jmp [way_out]
        let far = stubs.at;
        stubs.relative(&[0x48, 0x8B, 0x3D], rdi); // mov rdi, [rdi]
        stubs.relative(&[0xFF, 0x2D], target); // jmp far [target]
        let near = stubs.at;
        stubs.relative(&[0x48, 0x8B, 0x3D], rdi);
        stubs.relative(&[0xFF, 0x25], target); // jmp [target]
        self.way_in_far = u64::from(self.layout.base + far);
        self.way_in_near = u64::from(self.layout.base + near);
    }

    /// Writes the local descriptor table's entries.
    fn write_descriptors(&self) -> Result<(), Unavailable> {
        // The kernel copies the whole table for every entry; one thread at a time is enough.
        static TABLE: Mutex<()> = Mutex::new(());
        let _guard = TABLE.lock();
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Null) {
            let entry = UserDescriptor::new(self.layout, kind);
            // SAFETY: the kernel reads the structure, which describes memory of this arena.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_modify_ldt,
                    WRITE_ENTRY,
                    &raw const entry,
                    size_of_val(&entry),
                )
            };
            // Some kernels return a negative 32-bit value with a positive upper half.
            refused_if_negative(i64::from(result as i32), "modify_ldt")?;
        }
        Ok(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this arena's, and whoever had a part of it borrowed the arena.
        unsafe { libc::munmap(self.at(0).cast(), ARENA_STRIDE as usize) };
    }
}

/// An error if a system call returned one.
pub(super) fn refused_if_negative(result: i64, call: &'static str) -> Result<(), Unavailable> {
    if result < 0 {
        return Err(Unavailable::Refused { call, source: io::Error::last_os_error() });
    }
    Ok(())
}

/// A writer of machine code.
struct Stubs<'a> {
    arena: &'a Arena,
    at: u32,
}

impl Stubs<'_> {
    /// An instruction that ends in the distance to an offset of the arena.
    fn relative(&mut self, opcode: &[u8], to: u32) {
        let end = self.at + opcode.len() as u32 + 4;
        for &byte in opcode.iter().chain(&to.wrapping_sub(end).to_le_bytes()) {
            // SAFETY: the page of the stubs is writable, and there is room for all of them.
            unsafe { self.arena.at(self.at).write(byte) };
            self.at += 1;
        }
    }
}

/// `modify_ldt`: write an entry.
const WRITE_ENTRY: i32 = 0x11;

/// The kernel's `struct user_desc`.
#[repr(C)]
struct UserDescriptor {
    entry: u32,
    base: u32,
    limit: u32,
    flags: u32,
}

impl UserDescriptor {
    fn new(layout: Layout, kind: Kind) -> UserDescriptor {
        let segment = layout.segment(kind);
        let attributes = segment.attributes.0;
        let has = |bit: u32| u32::from(attributes & bit != 0);
        let is_code = has(8);
        // Bit 2 of data is "expands down", of code "conforming", which only absent code may be.
        let contents = if is_code == 1 { 2 | has(4) } else { has(4) };
        let in_pages = has(Attributes::G);
        UserDescriptor {
            entry: u32::from(segment.selector >> 3),
            base: segment.base as u32,
            limit: if in_pages == 1 { segment.limit >> 12 } else { segment.limit },
            flags: has(Attributes::DB)
                | contents << 1
                | (1 - has(2)) << 3 // not writable, or not readable
                | in_pages << 4
                | (1 - has(0x80)) << 5,
        }
    }
}

/// Says that a thread has its signals on this arena's stack, or no more.
pub(super) fn set_taken(number: u16, is_taken: bool) {
    let (word, bit) = (&TAKEN[usize::from(number / 64)], 1 << (number % 64));
    if is_taken {
        word.fetch_or(bit, Ordering::SeqCst);
    } else {
        word.fetch_and(!bit, Ordering::SeqCst);
    }
}

/// Is this the lowest address of an arena's signal stack?
pub(super) fn is_signal_stack(address: usize) -> bool {
    let number = (address / ARENA_STRIDE as usize)
        .wrapping_sub((Layout::native(0).base / ARENA_STRIDE) as usize);
    let taken = TAKEN.get(number / 64).map_or(0, |word| word.load(Ordering::SeqCst));
    taken >> (number % 64) & 1 != 0
}

/// The address of `switch::exit`.
pub(super) fn exit_address() -> u64 {
    switch::exit as *const () as usize as u64
}
