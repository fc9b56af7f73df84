//! A clock that interrupts the system calls of the thread that made it: KVM_RUN may never return
//! by itself.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::c_int;
use nix::sys::signal::{
    SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;

/// How often it ticks.
const TICK: Duration = Duration::from_millis(50);
/// What nobody else here uses, and what does no harm when it comes late.
const SIGNAL: Signal = Signal::SIGURG;

/// Ticks as long as it lives, on the thread that made it.
pub(super) struct Watchdog {
    _timer: Timer,
    /// The timer belongs to a thread.
    _thread: PhantomData<*const ()>,
}

/// A signal without a handler of its own interrupts nothing.
extern "C" fn on_tick(_: c_int) {}

impl Watchdog {
    pub(super) fn new() -> Result<Watchdog, Errno> {
        let handler = SigHandler::Handler(on_tick);
        let action =
            SigAction::new(handler, SaFlags::SA_RESTART | SaFlags::SA_ONSTACK, SigSet::empty());
        // SAFETY: the handler does nothing, which any handler may do. The signal has no other
        // meaning in programs that use this crate.
        unsafe { sigaction(SIGNAL, &action)? };
        let notify = SigevNotify::SigevThreadId {
            signal: SIGNAL,
            thread_id: gettid().as_raw(),
            si_value: 0,
        };
        let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))?;
        timer.set(Expiration::Interval(TICK.into()), TimerSetTimeFlags::empty())?;
        Ok(Watchdog { _timer: timer, _thread: PhantomData })
    }
}
