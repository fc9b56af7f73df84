//! The way into a case and out of it, and the first and last instructions of a signal handler.
//!
//! A case begins with `enter`, which ends in the arena's `way_in`; it ends at the arena's return
//! stub, which goes to `exit`, or in a signal, whose handler goes on at `leave`. All of them bring
//! the host's FS back before anything can use it: thread-local variables lie there.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::offset_of;

use super::context::{Context, Unsaved};
use super::{arena, signals};
use crate::proof::layout::{ARENA_STRIDE, ARENAS, FIRST_ARENA};

/// EFLAGS that compiled code must not meet: AC, NT, DF.
const FOREIGN_FLAGS: u32 = 0x4_4400;

/// Executes the case in the context.
///
/// # Safety
/// The context lies in an arena of this thread and all of it is valid: selectors that can be
/// loaded, a target inside the arena, flags without TF. What the code does is up to the caller.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn enter(context: *mut Context) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi + {host_rsp}], rsp",
        "stmxcsr [rdi + {host_mxcsr}]",
        "mov byte ptr [rdi + {is_inside}], 1",
        "cmp byte ptr [rdi + {has_fpu}], 0",
        "je 3f",
        "call {load_fpu}",
        // Loads of segment registers are slow: those that have the selector already are left out.
        // Nobody changes a descriptor of a living arena.
        "3: mov eax, es",
        "cmp ax, [rdi + {selectors}]",
        "je 4f",
        "mov es, word ptr [rdi + {selectors}]",
        "4: mov eax, ds",
        "cmp ax, [rdi + {selectors} + 6]",
        "je 5f",
        "mov ds, word ptr [rdi + {selectors} + 6]",
        "5: mov eax, fs",
        "cmp ax, [rdi + {selectors} + 8]",
        "je 6f",
        "mov fs, word ptr [rdi + {selectors} + 8]",
        "6: mov eax, gs",
        "cmp ax, [rdi + {selectors} + 10]",
        "je 7f",
        "mov gs, word ptr [rdi + {selectors} + 10]",
        // Whatever the selector, the base is the host's up to here.
        "7: mov rax, [rdi + {fs_base}]",
        "wrfsbase rax",
        "mov rax, [rdi + {gs_base}]",
        "wrgsbase rax",
        // With AC set, everything from here to the case has to be aligned.
        "push [rdi + {rflags}]",
        "popfq",
        "mov rax, [rdi + {gpr}]",
        "mov rcx, [rdi + {gpr} + 8]",
        "mov rdx, [rdi + {gpr} + 16]",
        "mov rbx, [rdi + {gpr} + 24]",
        "mov rbp, [rdi + {gpr} + 40]",
        "mov rsi, [rdi + {gpr} + 48]",
        "mov r8, [rdi + {gpr} + 64]",
        "mov r9, [rdi + {gpr} + 72]",
        "mov r10, [rdi + {gpr} + 80]",
        "mov r11, [rdi + {gpr} + 88]",
        "mov r12, [rdi + {gpr} + 96]",
        "mov r13, [rdi + {gpr} + 104]",
        "mov r14, [rdi + {gpr} + 112]",
        "mov r15, [rdi + {gpr} + 120]",
        "mov ss, word ptr [rdi + {selectors} + 4]",
        "mov rsp, [rdi + {gpr} + 32]",
        "jmp [rdi + {way_in}]", // which loads RDI
        host_rsp = const offset_of!(Context, host_rsp),
        host_mxcsr = const offset_of!(Context, host_mxcsr),
        is_inside = const offset_of!(Context, is_inside),
        has_fpu = const offset_of!(Context, has_fpu),
        load_fpu = sym load_fpu,
        selectors = const offset_of!(Context, selectors),
        fs_base = const offset_of!(Context, fs_base),
        gs_base = const offset_of!(Context, gs_base),
        rflags = const offset_of!(Context, rflags),
        gpr = const offset_of!(Context, gpr),
        way_in = const offset_of!(Context, way_in),
    )
}

/// Loads the case's x87 and SSE registers: RDI is the context.
///
/// # Safety
/// Called by `enter` alone.
#[unsafe(naked)]
unsafe extern "sysv64" fn load_fpu() {
    naked_asm!(
        "fnstcw [rdi + {host_fcw}]",
        "cmp byte ptr [rdi + {has_avx}], 0",
        "je 2f",
        "vzeroupper",
        "2: fxrstor64 [rdi + {fpu}]",
        "ret",
        host_fcw = const offset_of!(Context, host_fcw),
        has_avx = const offset_of!(Context, has_avx),
        fpu = const offset_of!(Context, fpu),
    )
}

/// Where a case goes on that returned: RAX is the context and its own value is stored already.
///
/// # Safety
/// Reached by the return stub of an arena alone.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn exit() {
    naked_asm!(
        "mov [rax + {gpr} + 8], rcx",
        "mov [rax + {gpr} + 32], rsp",
        "mov ecx, ss",
        "mov [rax + {selectors} + 4], cx",
        "mov ecx, 0x2B",
        "mov ss, ecx",
        "mov rsp, [rax + {host_rsp}]",
        // Nothing up to here has changed a flag.
        "pushfq",
        "pop [rax + {rflags}]",
        "mov [rax + {gpr} + 16], rdx",
        "mov [rax + {gpr} + 24], rbx",
        "mov [rax + {gpr} + 40], rbp",
        "mov [rax + {gpr} + 48], rsi",
        "mov [rax + {gpr} + 56], rdi",
        "mov [rax + {gpr} + 64], r8",
        "mov [rax + {gpr} + 72], r9",
        "mov [rax + {gpr} + 80], r10",
        "mov [rax + {gpr} + 88], r11",
        "mov [rax + {gpr} + 96], r12",
        "mov [rax + {gpr} + 104], r13",
        "mov [rax + {gpr} + 112], r14",
        "mov [rax + {gpr} + 120], r15",
        "mov word ptr [rax + {selectors}], es",
        "mov word ptr [rax + {selectors} + 6], ds",
        "mov word ptr [rax + {selectors} + 8], fs",
        "mov word ptr [rax + {selectors} + 10], gs",
        "cmp byte ptr [rax + {has_fpu}], 0",
        "je {leave}",
        "fxsave64 [rax + {fpu}]",
        "jmp {leave}",
        gpr = const offset_of!(Context, gpr),
        selectors = const offset_of!(Context, selectors),
        host_rsp = const offset_of!(Context, host_rsp),
        rflags = const offset_of!(Context, rflags),
        has_fpu = const offset_of!(Context, has_fpu),
        fpu = const offset_of!(Context, fpu),
        leave = sym leave,
    )
}

/// Gives the processor back to the caller of `enter`: RAX is the context. What selectors are in ES,
/// DS, FS and GS does not matter to 64-bit code.
///
/// # Safety
/// RSP is as `enter` left it, SS is the host's.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn leave() {
    naked_asm!(
        "mov rcx, [rax + {host_fs_base}]",
        "wrfsbase rcx",
        "mov rcx, [rax + {host_gs_base}]",
        "wrgsbase rcx",
        "mov byte ptr [rax + {is_inside}], 0",
        "test dword ptr [rax + {rflags}], {foreign}",
        "jz 2f",
        "push 2",
        "popfq",
        "2: cmp byte ptr [rax + {has_fpu}], 0",
        "je 3f",
        "fninit",
        "fldcw [rax + {host_fcw}]",
        "3: ldmxcsr [rax + {host_mxcsr}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        host_fs_base = const offset_of!(Context, host_fs_base),
        host_gs_base = const offset_of!(Context, host_gs_base),
        host_mxcsr = const offset_of!(Context, host_mxcsr),
        host_fcw = const offset_of!(Context, host_fcw),
        is_inside = const offset_of!(Context, is_inside),
        rflags = const offset_of!(Context, rflags),
        has_fpu = const offset_of!(Context, has_fpu),
        foreign = const FOREIGN_FLAGS,
    )
}

/// The handler of every signal of the oracle's. A thread with an arena has its alternate stack in
/// it, at a fixed distance from the context; all others go to whom the signal belonged before.
///
/// # Safety
/// Called by the kernel alone.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn on_signal(
    signal: c_int,
    info: *mut c_void,
    frame: *mut c_void,
) {
    naked_asm!(
        "mov rax, [rdx + 16]", // uc_stack.ss_sp
        "mov r8, rax",
        "shr r8, {stride_bits}",
        "sub r8, {first}",
        "cmp r8, {arenas}",
        "jae 2f",
        "lea r9, [rip + {taken}]",
        "bt [r9], r8",
        "jc 3f",
        "2: jmp {pass_on}",
        "3: pushfq",
        "and dword ptr [rsp], {not_ac}",
        "popfq",
        "lea rbx, [rax - {distance}]",
        "sub rsp, 40", // which aligns it
        "mov word ptr [rsp + {es}], es",
        "mov word ptr [rsp + {ds}], ds",
        "mov word ptr [rsp + {fs}], fs",
        "mov word ptr [rsp + {gs}], gs",
        "rdfsbase r8",
        "mov [rsp + {fs_base}], r8",
        "rdgsbase r8",
        "mov [rsp + {gs_base}], r8",
        "mov al, [rbx + {is_inside}]",
        "mov [rsp + {was_inside}], al",
        "mov byte ptr [rbx + {is_inside}], 0",
        "mov r8, [rbx + {host_fs_base}]",
        "wrfsbase r8",
        "mov r8, [rbx + {host_gs_base}]",
        "wrgsbase r8",
        "mov rcx, rbx",
        "mov r8, rsp",
        "call {handle}",
        "mov r8, [rsp + {fs_base}]",
        "wrfsbase r8",
        "mov r8, [rsp + {gs_base}]",
        "wrgsbase r8",
        "mov al, [rsp + {was_inside}]",
        "mov [rbx + {is_inside}], al",
        "add rsp, 48", // with the address of the C library's way back
        "jmp {resume}",
        stride_bits = const ARENA_STRIDE.trailing_zeros(),
        first = const FIRST_ARENA / ARENA_STRIDE,
        arenas = const ARENAS,
        taken = sym arena::TAKEN,
        pass_on = sym signals::pass_on,
        not_ac = const !0x4_0000_i32,
        distance = const arena::SIGNAL_STACK - arena::CONTEXT,
        es = const offset_of!(Unsaved, es),
        ds = const offset_of!(Unsaved, ds),
        fs = const offset_of!(Unsaved, fs),
        gs = const offset_of!(Unsaved, gs),
        fs_base = const offset_of!(Unsaved, fs_base),
        gs_base = const offset_of!(Unsaved, gs_base),
        was_inside = const offset_of!(Unsaved, is_inside),
        is_inside = const offset_of!(Context, is_inside),
        host_fs_base = const offset_of!(Context, host_fs_base),
        host_gs_base = const offset_of!(Context, host_gs_base),
        handle = sym signals::handle,
        resume = sym resume,
    )
}

/// Length of [`resume`].
pub(super) const RESUME_LEN: usize = 9;

/// Returns from a signal handler: the one system call that is not diverted inside a case.
///
/// # Safety
/// RSP points at the frame of a signal.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn resume() {
    naked_asm!(
        "mov eax, 15", // rt_sigreturn
        "syscall",
        // The kernel looks at the instruction after the call.
        "ud2",
    )
}
