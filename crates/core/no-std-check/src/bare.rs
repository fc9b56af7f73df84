//! What stands where std and libc would: the entry, the exit, the panic handler, and the memory
//! functions that the compiler calls.

use core::arch::{asm, global_asm};

#[cfg(target_os = "linux")]
global_asm!(
    ".global _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {entry}",
    "ud2",
    entry = sym entry,
);

/// The same without an operating system: that it links is all there is to show.
#[cfg(not(target_os = "linux"))]
global_asm!(".global _start", "_start:", "call {entry}", "ud2", entry = sym entry);

extern "C" fn entry() -> ! {
    exit(if super::run() { 0 } else { 1 })
}

fn exit(code: u32) -> ! {
    // SAFETY: exit_group(code) does not return and touches no memory. Without Linux the
    // instruction faults, which ends the program too.
    unsafe { asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack)) }
}

/// The optimiser has to prove that nobody panics: a panic that is left keeps this handler alive,
/// and what it calls is nowhere, so the program does not link.
#[cfg(not(feature = "find-panics"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn a_panic_is_reachable_from_run() -> !;
    }
    a_panic_is_reachable_from_run()
}

/// With this one it links all the same, and the calls of `core::panicking` can be looked for.
#[cfg(feature = "find-panics")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// Without optimisation the precompiled core still names it; nothing unwinds.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The memory functions, where the target's own library does not bring them.
#[cfg(target_os = "linux")]
mod memory {
    use core::arch::asm;

    /// # Safety
    /// As C's `memcpy`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: the caller vouches for both ranges; DF is clear by the ABI.
        unsafe {
            asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                 options(nostack, preserves_flags));
        }
        to
    }

    /// # Safety
    /// As C's `memmove`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        if (to as usize).wrapping_sub(from as usize) >= len {
            // SAFETY: upwards nothing is overwritten before it is read.
            return unsafe { memcpy(to, from, len) };
        }
        // SAFETY: as above, from the last byte down; DF is restored.
        unsafe {
            asm!("std", "rep movsb", "cld",
                 inout("rcx") len => _,
                 inout("rdi") to.wrapping_add(len).wrapping_sub(1) => _,
                 inout("rsi") from.wrapping_add(len).wrapping_sub(1) => _,
                 options(nostack));
        }
        to
    }

    /// # Safety
    /// As C's `memset`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the range.
        unsafe {
            asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8,
                 options(nostack, preserves_flags));
        }
        to
    }

    /// # Safety
    /// As C's `memcmp`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
        for i in 0..len {
            // SAFETY: byte i of the ranges the caller vouches for.
            let (a, b) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
            if a != b {
                return i32::from(a) - i32::from(b);
            }
        }
        0
    }

    /// # Safety
    /// As POSIX's `bcmp`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
        // SAFETY: the same conditions.
        unsafe { memcmp(a, b, len) }
    }
}
