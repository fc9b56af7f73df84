//! What the way in, the way out and the signal handler share: a page of the arena that they find
//! from where they are, since a case has every register.

use super::FpuImage;

/// How a case ended, as the handler says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Ending {
    Returned,
    Exception,
    Hung,
    SystemCall,
}

/// The page. The kernel reads `is_inside`, the rest is read and written by the way in and out
/// (`switch.rs`), by the handler, and in between by [`super::Native`].
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Context {
    /// Before a case and after it.
    pub(super) gpr: [u64; 16],
    pub(super) rflags: u64,
    /// ES, CS, SS, DS, FS, GS.
    pub(super) selectors: [u16; 6],
    /// 1 while a case has the registers, and all system calls are diverted: a selector of
    /// syscall user dispatch.
    pub(super) is_inside: u8,
    /// Whether `fpu` is loaded before the case and stored after it.
    pub(super) has_fpu: u8,
    /// Whether VZEROUPPER may be executed.
    pub(super) has_avx: u8,
    pub(super) fs_base: u64,
    pub(super) gs_base: u64,
    /// Where the case begins: an offset and a selector, or an address.
    pub(super) target: u64,
    /// The address of the instructions that jump there.
    pub(super) way_in: u64,
    /// The address of `switch::exit`.
    pub(super) way_out: u64,

    pub(super) host_rsp: u64,
    pub(super) host_fs_base: u64,
    pub(super) host_gs_base: u64,
    pub(super) host_mxcsr: u32,
    pub(super) host_fcw: u16,

    pub(super) ending: Ending,
    pub(super) vector: u8,
    pub(super) error: u32,
    pub(super) rip: u64,
    pub(super) cr2: u64,

    /// Cases begun.
    pub(super) begun: u64,
    /// What the timer saw.
    pub(super) watch: Watch,

    pub(super) fpu: FpuImage,
}

const _: () = assert!(size_of::<Context>() <= 4096);

/// The watch over cases that hang.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Watch {
    /// The case it is about.
    case: u64,
    /// How often the timer met that case, and how often in a row in the same state.
    looks: u64,
    looks_alike: u64,
    /// The registers when it last looked.
    state: [i64; 23],
}

impl Watch {
    /// Looks that the same state may last, as it does in a jump to itself.
    const PATIENCE: u64 = 3;
    /// Looks that a case may last whatever it does.
    const LIMIT: u64 = 50;

    /// Notes the state in which the timer meets a case; says whether that case hangs. Time alone
    /// does not tell: of a machine that is shared, most of it may be somebody else's.
    pub(super) fn is_hung(&mut self, case: u64, state: [i64; 23]) -> bool {
        let is_same = case == self.case;
        self.looks = if is_same { self.looks + 1 } else { 1 };
        self.looks_alike = if is_same && state == self.state { self.looks_alike + 1 } else { 1 };
        (self.case, self.state) = (case, state);
        self.looks_alike >= Watch::PATIENCE || self.looks >= Watch::LIMIT
    }
}

/// Registers that the kernel does not save in the frame of a signal, as the case left them.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Unsaved {
    pub(super) fs_base: u64,
    pub(super) gs_base: u64,
    pub(super) es: u16,
    pub(super) ds: u16,
    pub(super) fs: u16,
    pub(super) gs: u16,
    pub(super) is_inside: u8,
}

const _: () = assert!(size_of::<Unsaved>() <= 40);
