//! What a thread gives up for an arena: its alternate signal stack, a timer, and system calls
//! while a case runs.

use core::arch::asm;
use core::ptr;

use super::Unavailable;
use super::arena::{
    Arena, SIGNAL_STACK, SIGNAL_STACK_SIZE, is_signal_stack, refused_if_negative, set_taken,
};
use super::signals;
use super::switch::{RESUME_LEN, resume};

/// Processor time between two looks at whether a case hangs.
const PERIOD_NS: i64 = 10_000_000;

/// `prctl`: divert system calls to SIGSYS while a byte says so.
const SYSCALL_USER_DISPATCH: i32 = 59;
const DISPATCH_OFF: u64 = 0;
const DISPATCH_ON: u64 = 1;

/// The thread's own arrangements, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Thread {
    number: u16,
    stack_before: libc::stack_t,
    timer: Option<libc::timer_t>,
    has_dispatch: bool,
}

impl Thread {
    /// Arranges the calling thread for the arena.
    pub(super) fn prepare(arena: &Arena) -> Result<Thread, Unavailable> {
        let number = arena.layout.number;
        let stack = libc::stack_t {
            ss_sp: arena.at(SIGNAL_STACK).cast(),
            ss_flags: 0,
            ss_size: SIGNAL_STACK_SIZE as usize,
        };
        let mut thread =
            Thread { number, stack_before: current_stack()?, timer: None, has_dispatch: false };
        // From here on dropping the thread undoes what was done.
        set_taken(number, true);
        // SAFETY: the stack is mapped as long as the arena, which outlives this.
        let result = unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
        refused_if_negative(result.into(), "sigaltstack")?;
        thread.timer = Some(start_timer()?);
        // SAFETY: the byte is the context's `is_inside`, mapped as long as the arena.
        let is_inside = unsafe { &raw const (*arena.context()).is_inside };
        let allowed = resume as *const () as usize;
        dispatch(DISPATCH_ON, allowed, RESUME_LEN, is_inside)?;
        thread.has_dispatch = true;
        Ok(thread)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        forget_selectors();
        if self.has_dispatch {
            let _ = dispatch(DISPATCH_OFF, 0, 0, ptr::null());
        }
        if let Some(timer) = self.timer {
            // SAFETY: the timer is this thread's.
            unsafe { libc::timer_delete(timer) };
        }
        // SAFETY: the stack that was there before; whoever set it up still has it.
        unsafe { libc::sigaltstack(&self.stack_before, ptr::null_mut()) };
        set_taken(self.number, false);
    }
}

/// Cases leave their selectors in registers that 64-bit code does not look at.
fn forget_selectors() {
    // SAFETY: null selectors are fine for 64-bit code, and FS has its base back before anything
    // can use it.
    unsafe {
        asm!(
            "rdfsbase {base}",
            "mov es, {null:e}",
            "mov ds, {null:e}",
            "mov fs, {null:e}",
            "mov gs, {null:e}",
            "wrfsbase {base}",
            base = out(reg) _,
            null = in(reg) 0,
        );
    }
}

/// The alternate stack that the thread has, unless it is an arena's.
fn current_stack() -> Result<libc::stack_t, Unavailable> {
    let mut stack = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the kernel writes the structure.
    let result = unsafe { libc::sigaltstack(ptr::null(), &mut stack) };
    refused_if_negative(result.into(), "sigaltstack")?;
    if is_signal_stack(stack.ss_sp as usize) {
        return Err(Unavailable::ThreadIsTaken);
    }
    Ok(stack)
}

/// Starts a timer that signals the thread while it uses the processor. A clock on the wall would
/// end cases of threads that others keep waiting.
fn start_timer() -> Result<libc::timer_t, Unavailable> {
    // SAFETY: a structure of numbers and pointers, for which zero is fine.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signals::tick();
    // SAFETY: no conditions.
    event.sigev_notify_thread_id = unsafe { libc::gettid() };
    let mut timer: libc::timer_t = ptr::null_mut();
    // SAFETY: the kernel reads one structure and writes the other.
    let result =
        unsafe { libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) };
    refused_if_negative(result.into(), "timer_create")?;
    let period = libc::timespec { tv_sec: 0, tv_nsec: PERIOD_NS };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: the timer was made above.
    let result = unsafe { libc::timer_settime(timer, 0, &times, ptr::null_mut()) };
    refused_if_negative(result.into(), "timer_settime")?;
    Ok(timer)
}

fn dispatch(mode: u64, from: usize, len: usize, byte: *const u8) -> Result<(), Unavailable> {
    // SAFETY: the caller has a byte that stays mapped, or none.
    let result = unsafe { libc::prctl(SYSCALL_USER_DISPATCH, mode, from, len, byte) };
    refused_if_negative(result.into(), "prctl(PR_SET_SYSCALL_USER_DISPATCH), since Linux 5.11")
}
