//! The host's processor as an oracle: cases are executed by it, at level 3, under Linux.
//!
//! 16- and 32-bit code runs in segments of the local descriptor table, 64-bit code as the process
//! itself does. A far jump leads into the case and another one out of it; exceptions arrive as
//! signals, and a timer ends what does not come back.
//!
//! What differs from the bare processor, and who has to know:
//! - The oracle clears RF in the flags of an exception: Linux shows it as the processor sets it,
//!   and nothing else can see it. All else is as the processor left it.
//! - CS of a case that returned is the one it began with: the jump back replaces it before anyone
//!   can look.
//! - Linux executes SGDT, SIDT, SLDT, SMSW and STR itself, with values of its own (UMIP). Some
//!   hypervisors report INT1 at its own address and not after it. Cases leave both out.
//! - INT 80h, SYSCALL and SYSENTER are system calls: they are not made, and the run panics.
//! - Interrupt gates of Linux: 3 and 4 may be used at level 3, others are #GP.
//! - Code is writable and executable, as it changes with every case; data is not executable.
//! - Segments confine cases of 16- and 32-bit code to their arena as long as they load no
//!   selectors but an arena's. Cases of 64-bit code reach the whole process: it is up to them to
//!   keep to the arena.
//! - A thread that has an arena must have no signal handlers that run on the stack they find
//!   (without `SA_ONSTACK`): they would find a case's.
#![allow(unsafe_code)]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod absent;
mod image;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod oracle;
mod unavailable;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
pub use absent::Native;
pub use image::FpuImage;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
pub use oracle::Native;
pub use unavailable::Unavailable;
