//! The oracle: cases in, outcomes out.

mod arena;
mod context;
mod signals;
mod switch;
mod thread;

use core::arch::asm;
use core::cell::Cell;
use core::ptr;

use super::{FpuImage, Unavailable};
use crate::proof::layout::{CODE, Kind, Layout, PAGES};
use crate::proof::{Case, End, Mode, Outcome, Poke, placed_code};
use arena::{Arena, BREAKPOINT, exit_address};
use context::{Context, Ending};
use thread::Thread;

/// TF: a case that single-steps would step through the way out.
const TF: u64 = 0x100;
/// Selector of 64-bit code in Linux, and of its data.
const HOST_CS: u16 = 0x33;
const HOST_DATA: u16 = 0x2B;
/// Bit of AT_HWCAP2: programs may use RDFSBASE and its relatives.
const HWCAP2_FSGSBASE: u64 = 2;

/// The host's processor, and an arena for the cases it executes. One a thread.
///
/// ```
/// use realmode_testkit::proof::{Case, Code, End, Kind, Layout, Mode, Native, Paging, Poke};
/// let mut native = match Native::new(200) {
///     Ok(native) => native,
///     Err(reason) => return println!("skipped: {reason}"),
/// };
/// let mut code = Code::default();
/// [0x01, 0xD8].map(|byte| code.push(byte)); // add ax, bx
/// let outcome = native.run(&Case {
///     mode: Mode::Bits16,
///     layout: native.layout(),
///     code,
///     entry: 0x100,
///     gpr: [7; 16],
///     rflags: 0x202,
///     segments: [
///         Kind::Extra, Kind::Code16, Kind::Stack16, Kind::Data, Kind::Fs, Kind::Gs,
///     ],
///     pokes: [Poke::default(); 3],
///     paging: Paging::Off,
/// });
/// assert_eq!((outcome.end, outcome.gpr[0]), (End::Returned, 14));
/// ```
#[derive(Debug)]
pub struct Native {
    // Dropped in this order.
    _thread: Thread,
    arena: Arena,
    /// Not for other threads: signals find the arena through the thread's.
    _not_send: core::marker::PhantomData<*mut ()>,
}

impl Native {
    /// Takes arena `number` and makes the calling thread ready for it.
    ///
    /// # Errors
    /// Where the system refuses something, or somebody has the arena.
    pub fn new(number: u16) -> Result<Native, Unavailable> {
        // SAFETY: no conditions.
        if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
            return Err(Unavailable::NoFsGsBase);
        }
        let arena = Arena::map(number)?;
        signals::install()?;
        let (fs_base, gs_base): (u64, u64);
        // SAFETY: two reads of registers, which the kernel allows as it said above.
        unsafe { asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs_base, out(reg) gs_base) };
        // SAFETY: the context's page is mapped, and no thread uses it yet.
        unsafe {
            let context = arena.context();
            (*context).has_avx = std::is_x86_feature_detected!("avx").into();
            (*context).way_out = exit_address();
            (*context).host_fs_base = fs_base;
            (*context).host_gs_base = gs_base;
        }
        let thread = Thread::prepare(&arena)?;
        Ok(Native { _thread: thread, arena, _not_send: core::marker::PhantomData })
    }

    /// Where the arena lies.
    pub fn layout(&self) -> Layout {
        self.arena.layout
    }

    /// A page of the arena. Between runs it is the caller's: what a case left there stays.
    ///
    /// # Panics
    /// If there is no page `number`: there are [`PAGES`].
    pub fn page(&self, number: usize) -> &[Cell<u64>; 512] {
        assert!(number < PAGES, "page {number} of {PAGES}");
        // SAFETY: 4096 aligned bytes that are mapped as long as `self`. Cases write them only
        // during a `run`, which has `self` alone; no other thread has this arena.
        unsafe { &*self.arena.at(number as u32 * 4096).cast() }
    }

    /// Executes a case whose instruction does not touch the x87, MMX, SSE and AVX registers: they
    /// are what they happen to be.
    ///
    /// # Panics
    /// If the case cannot be executed: it is of real mode or of another arena, its segments cannot
    /// be loaded, it sets TF, or it makes a system call.
    pub fn run(&mut self, case: &Case) -> Outcome {
        self.execute(case, None)
    }

    /// Executes a case with the given x87 and SSE registers; of longer registers the upper parts
    /// are zero, but for those numbered from 16 up.
    ///
    /// # Panics
    /// As [`Native::run`].
    pub fn run_with_fpu(&mut self, case: &Case, fpu: &FpuImage) -> (Outcome, FpuImage) {
        let outcome = self.execute(case, Some(fpu));
        // SAFETY: the context is mapped and not in use between cases.
        let mut after = unsafe { (*self.arena.context()).fpu };
        after.0[464..].fill(0);
        (outcome, after)
    }

    fn execute(&mut self, case: &Case, fpu: Option<&FpuImage>) -> Outcome {
        let placed = placed_code(case);
        self.assert_is_executable(case, &placed);
        for poke in &case.pokes {
            self.write(poke);
        }
        self.write(&placed);
        let context = self.arena.context();
        // SAFETY: the context is mapped and not in use between cases.
        self.fill(unsafe { &mut *context }, case, fpu);
        self.arena.set_odd(case.paging, true);
        // SAFETY: the context is filled in with what the processor can load, as was asserted.
        // Outside 64-bit code the case is confined by its segments; in 64-bit code it is what the
        // caller made it.
        unsafe { switch::enter(context) };
        self.arena.set_odd(case.paging, false);
        // SAFETY: the code was written there.
        unsafe {
            ptr::write_bytes(self.arena.at(placed.at), BREAKPOINT, placed.len.into());
        }
        // SAFETY: as before.
        outcome(unsafe { &*context }, case)
    }

    /// What would fail on the way in, or would not come back.
    fn assert_is_executable(&self, case: &Case, placed: &Poke) {
        assert_eq!(case.layout, self.arena.layout, "a case of another arena");
        assert!(placed.at + u32::from(placed.len) <= CODE + 0x2_0000, "entry {:#x}", case.entry);
        assert_eq!(case.rflags & TF, 0, "a case must not set TF: flags {:#x}", case.rflags);
        let [es, cs, ss, ds, fs, gs] = case.segments;
        // Data, or code that may be read; present.
        let can_read = |kind: Kind| {
            let access = kind.shape().2;
            kind == Kind::Null || access & 0x80 != 0 && access & 0xA != 8
        };
        let can_load = match case.mode {
            Mode::Real => false,
            Mode::Bits64 => true,
            Mode::Bits16 => matches!(cs, Kind::Code16 | Kind::ExecuteOnly),
            Mode::Bits32 => matches!(cs, Kind::Code32 | Kind::PagedCode32 | Kind::ExecuteOnly32),
        };
        assert!(can_load, "no native code of mode {:?} in a segment {cs:?}", case.mode);
        if case.mode != Mode::Bits64 {
            let can_stack = ss != Kind::Null && can_read(ss) && ss.shape().2 & 0xA == 2;
            assert!(can_stack, "SS cannot be {ss:?}");
            let segments = [es, ds, fs, gs];
            assert!(segments.into_iter().all(can_read), "ES, DS, FS, GS cannot be {segments:?}");
        }
    }

    fn write(&mut self, poke: &Poke) {
        let bytes = poke.as_slice();
        let end = poke.at as usize + bytes.len();
        assert!(end <= PAGES * 4096, "a poke outside the arena, at {:#x}", poke.at);
        // SAFETY: the arena is mapped and writable up to there, and nobody has a reference.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.arena.at(poke.at), bytes.len());
        }
    }

    fn fill(&self, context: &mut Context, case: &Case, fpu: Option<&FpuImage>) {
        let layout = self.arena.layout;
        let is_long = case.mode == Mode::Bits64;
        context.gpr = case.gpr;
        context.rflags = case.rflags;
        context.has_fpu = fpu.is_some().into();
        if let Some(fpu) = fpu {
            context.fpu = *fpu;
        }
        if is_long {
            context.selectors = [HOST_DATA, HOST_CS, HOST_DATA, HOST_DATA, 0, 0];
            context.target = u64::from(layout.base + CODE + case.entry);
        } else {
            context.selectors = case.segments.map(|kind| layout.selector(kind));
            context.target = u64::from(case.entry) | u64::from(context.selectors[1]) << 32;
        }
        context.fs_base = layout.segment(case.segments[4]).base;
        context.gs_base = layout.segment(case.segments[5]).base;
        context.way_in = self.arena.way_in(!is_long);
        context.ending = Ending::Returned;
        context.begun += 1;
    }
}

/// What the context says after a case.
fn outcome(context: &Context, case: &Case) -> Outcome {
    let mut gpr = context.gpr;
    if case.mode != Mode::Bits64 {
        gpr[8..].fill(0);
        gpr[..8].iter_mut().for_each(|value| *value = u64::from(*value as u32));
    }
    let mut cr2 = 0;
    let end = match context.ending {
        Ending::Returned => End::Returned,
        Ending::Hung => End::Hung,
        Ending::SystemCall => panic!(
            "{:02x?} makes a system call at {:#x}: leave INT 80h, SYSCALL and SYSENTER out",
            case.code.as_slice(),
            context.rip,
        ),
        Ending::Exception => {
            if context.vector == 14 {
                cr2 = context.cr2;
            }
            End::Exception { vector: context.vector, error: context.error, rip: context.rip }
        }
    };
    Outcome { end, gpr, rflags: context.rflags, selectors: context.selectors, cr2 }
}
