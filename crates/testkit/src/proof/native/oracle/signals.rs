//! Signals: what they say about a case, and whom they go to if they are not about one.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::io;
use std::sync::OnceLock;

use libc::{
    REG_CR2, REG_CSGSFS, REG_EFL, REG_ERR, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
    REG_R14, REG_R15, REG_RAX, REG_RBP, REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI,
    REG_RSP, REG_TRAPNO, sigaction, siginfo_t, ucontext_t,
};
use realmode::arch::rflags::RF;

use super::context::{Context, Ending, Unsaved};
use super::{Unavailable, switch};

/// The signals that exceptions become, and the one of a diverted system call.
const EXCEPTIONS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGBUS, libc::SIGTRAP, libc::SIGSYS];

/// Linux's selectors of 64-bit code and its data, where the kernel keeps them together: CS below,
/// SS above.
const HOST_CS_SS: i64 = 0x2B << 48 | 0x33;

/// The registers in the order of their numbers.
const REGISTERS: [c_int; 16] = [
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
    REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
];

/// Whom the exceptions' signals went to before, in the order of [`EXCEPTIONS`].
static BEFORE: OnceLock<[sigaction; EXCEPTIONS.len()]> = OnceLock::new();

/// The signal of the timers.
pub(super) fn tick() -> c_int {
    libc::SIGRTMAX() - 3
}

/// Takes the signals, once for the process.
pub(super) fn install() -> Result<(), Unavailable> {
    static RESULT: OnceLock<Result<(), i32>> = OnceLock::new();
    let result = RESULT.get_or_init(|| {
        let mut before = [default_action(); EXCEPTIONS.len()];
        for (signal, before) in EXCEPTIONS.into_iter().zip(&mut before) {
            set_action(signal, None, before)?;
        }
        // Known before the first signal can come.
        let _ = BEFORE.set(before);
        let mut ours = default_action();
        ours.sa_sigaction = switch::on_signal as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the mask is this function's.
        unsafe { libc::sigaddset(&mut ours.sa_mask, tick()) };
        set_action(tick(), Some(&ours), &mut default_action())?;
        ours.sa_flags |= libc::SA_NODEFER;
        EXCEPTIONS
            .into_iter()
            .try_for_each(|signal| set_action(signal, Some(&ours), &mut default_action()))
    });
    let refused = |code| Unavailable::Refused {
        call: "sigaction",
        source: io::Error::from_raw_os_error(code),
    };
    result.map_err(refused)
}

fn default_action() -> sigaction {
    sigaction {
        sa_sigaction: libc::SIG_DFL,
        // SAFETY: a set of signals is bits, and none of them set is one.
        sa_mask: unsafe { core::mem::zeroed() },
        sa_flags: 0,
        sa_restorer: None,
    }
}

fn set_action(signal: c_int, new: Option<&sigaction>, old: &mut sigaction) -> Result<(), i32> {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel reads one structure and writes the other; the handler is `on_signal`,
    // which is made to be one, or what was there before.
    if unsafe { libc::sigaction(signal, new, old) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

/// A signal on a thread that has an arena. The host's FS is in place.
///
/// # Safety
/// Called by [`switch::on_signal`] alone: `context` is the thread's, the other pointers are the
/// kernel's and that function's, and the case is not running.
pub(super) unsafe extern "sysv64" fn handle(
    signal: c_int,
    info: *mut siginfo_t,
    frame: *mut ucontext_t,
    context: *mut Context,
    unsaved: *mut Unsaved,
) {
    // SAFETY: as the caller promises; nobody else uses them while the handler runs.
    let (machine, unsaved) = unsafe { (&mut *frame, &mut *unsaved) };
    if unsaved.is_inside == 0 {
        // SAFETY: the pointers are the kernel's.
        unsafe { pass_on(signal, info, frame) };
        return;
    }
    // SAFETY: as above.
    let context = unsafe { &mut *context };
    let ending = match signal {
        libc::SIGSYS => Ending::SystemCall,
        _ if signal != tick() => Ending::Exception,
        _ if context.watch.is_hung(context.begun, machine.uc_mcontext.gregs) => Ending::Hung,
        _ => return,
    };
    context.ending = ending;
    record(machine, unsaved, context);
    unsaved.is_inside = 0;
    let gregs = &mut machine.uc_mcontext.gregs;
    gregs[REG_RAX as usize] = ptr::from_mut(context) as i64;
    gregs[REG_RIP as usize] = switch::leave as *const () as i64;
    gregs[REG_RSP as usize] = context.host_rsp as i64;
    gregs[REG_EFL as usize] = 0x202;
    gregs[REG_CSGSFS as usize] = HOST_CS_SS;
}

/// Notes the state that a case was interrupted in.
fn record(machine: &ucontext_t, unsaved: &Unsaved, context: &mut Context) {
    let get = |register: c_int| machine.uc_mcontext.gregs[register as usize] as u64;
    context.gpr = REGISTERS.map(get);
    context.rflags = get(REG_EFL) & !RF;
    let cs_ss = get(REG_CSGSFS);
    context.selectors =
        [unsaved.es, cs_ss as u16, (cs_ss >> 48) as u16, unsaved.ds, unsaved.fs, unsaved.gs];
    context.rip = get(REG_RIP);
    context.vector = get(REG_TRAPNO) as u8;
    context.error = get(REG_ERR) as u32;
    context.cr2 = get(REG_CR2);
    if context.has_fpu != 0 && !machine.uc_mcontext.fpregs.is_null() {
        // SAFETY: the kernel saved the registers there, in the format of FXSAVE64.
        context.fpu.0 = unsafe { machine.uc_mcontext.fpregs.cast::<[u8; 512]>().read() };
    }
}

/// A signal that is not about a case: it goes to whom it went before.
///
/// # Safety
/// The pointers are those the kernel gave to a signal handler.
pub(super) unsafe extern "sysv64" fn pass_on(
    signal: c_int,
    info: *mut siginfo_t,
    frame: *mut ucontext_t,
) {
    // A tick that was on its way when its timer was deleted, or came between two cases.
    if signal == tick() {
        return;
    }
    let index = EXCEPTIONS.iter().position(|&exception| exception == signal);
    let Some(before) = index.zip(BEFORE.get()).and_then(|(index, all)| all.get(index)) else {
        return;
    };
    match before.sa_sigaction {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            let _ = set_action(signal, Some(&default_action()), &mut default_action());
            // An instruction that failed would fail again, but a trap or a signal that somebody
            // sent would not come again.
            // SAFETY: a process may signal itself.
            unsafe { libc::raise(signal) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: whoever installed the handler said that it is of this type.
            unsafe {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    core::mem::transmute(handler);
                handler(signal, info, frame.cast());
            }
        }
        handler => {
            // SAFETY: whoever installed the handler said that it is of this type.
            unsafe {
                let handler: extern "C" fn(c_int) = core::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}
