//! What a handler works on: the processor, its lazy flags and its view of memory, for the time of
//! one `run`.

use crate::arch::control::{CR4_LA57, EFER_LMA};
use crate::arch::registers::SegReg;
use crate::arch::rflags::{ARITH, VIF, VIP, VM};
use crate::bus::{Bus, Control, Phys};
use crate::fault::Fault;
use crate::flags::Flags;
use crate::flight::Flight;
use crate::mem::code_map::CodeMap;
use crate::mem::tlb::{Basis, Tlb};
use crate::observe::Observer;
use crate::policy::{Intercepts, SplitLock};
use crate::profile::{Generation, Profile};
use crate::state::{Cpu, Shadow};
use crate::stop::{Intercepted, UnimplementedReason};

/// Why a handler did not simply finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// A guest exception; nothing architectural has changed.
    Fault(Fault),
    /// A taken branch in the middle of a block; RIP is set, the instruction is complete.
    Branch,
    /// A guest exception of the instruction or event that comes after it has changed the state: a
    /// task switch, whose new task it is raised in.
    Late(Fault),
    /// The instruction needs the careful road: device memory, code lines, odd pages. Nothing
    /// has changed.
    Again,
    /// A string instruction has iterations left, and its slice is done; registers show the
    /// progress.
    Repeat,
    /// A string instruction has iterations left in its slice; registers show the progress.
    Iterate,
    /// The bus answered `Pending`; the request is in flight.
    Pending,
    /// HLT: complete, and the processor halts.
    Halt,
    /// VMCALL or VMMCALL: complete.
    Hypercall,
    /// The VMM asked to see this instruction; nothing has changed.
    Intercept(Intercepted),
    /// Not executed; nothing has changed.
    Unimplemented(UnimplementedReason),
}

/// What a handler returns.
pub(crate) type Step = Result<(), Leave>;

const _: () = assert!(size_of::<Step>() <= 8);

impl From<Fault> for Leave {
    #[inline(always)]
    fn from(fault: Fault) -> Leave {
        Leave::Fault(fault)
    }
}

/// How memory is accessed at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    /// In a block: plain memory only, anything else is `Leave::Again`.
    Block,
    /// One instruction alone, every access recorded, devices allowed.
    Careful,
}

/// A segment as the hot path sees it: the base and one past the last offset that may be read or
/// written. An end of 0 sends every access to the slow road.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Window {
    pub(crate) base: u64,
    pub(crate) read_end: u64,
    pub(crate) write_end: u64,
}

/// The processor in motion. `'r` is one call of `run`, `'m` the guest's memory.
#[repr(C)]
pub(crate) struct Machine<'r, 'm> {
    pub(crate) cpu: &'r mut Cpu,
    /// Translations of the privilege that the program has: supervisor or user.
    pub(crate) tlb: &'r mut Tlb<'m>,
    /// Those of the other one.
    pub(crate) other_tlb: &'r mut Tlb<'m>,
    /// `tlb` is that of user mode.
    pub(crate) is_user_tlb: bool,
    pub(crate) basis: &'r mut Basis,
    pub(crate) code_map: &'r mut CodeMap,
    /// The arithmetic flags; the copies in `cpu.rflags` are stale inside `run`.
    pub(crate) flags: Flags,
    /// Bits that a linear address has.
    pub(crate) linear_mask: u64,
    /// Bits of RSP that the stack uses.
    pub(crate) stack_mask: u64,
    /// The highest RIP a branch may go to.
    pub(crate) ip_limit: u64,
    /// Linear address of offset 0 of the code: CS base, or 0 in 64-bit code.
    pub(crate) code_base: u64,
    pub(crate) windows: [Window; 8],
    /// What the slow half of a load has read.
    pub(crate) loaded: u64,
    pub(crate) road: Road,
    /// Something may have to happen before the next instruction: see `run`.
    pub(crate) attention: bool,
    /// CS, the mode, or the map of code changed: blocks have to be looked up anew.
    pub(crate) view_stale: bool,
    /// Code may have been changed by others: blocks have to be compared with memory.
    pub(crate) epoch_stale: bool,
    /// The shadow that the current instruction casts.
    pub(crate) casts: Shadow,
    /// The current instruction set RF by IRET, so its completion does not clear it.
    pub(crate) keep_rf: bool,
    /// The instruction delivered a software interrupt, which takes the place of its trap.
    pub(crate) no_trap: bool,
    /// The processor single-steps or has breakpoints: REP stops after each iteration.
    pub(crate) stepping: bool,
    /// DR6's bits of the data and port breakpoints that the current instruction met.
    pub(crate) watched: u32,
    /// Linear address of the last page fault, for CR2.
    pub(crate) fault_address: u64,
    /// Physical address of a fetch that found no memory.
    pub(crate) fetch_address: u64,
    pub(crate) profile: &'r Profile,
    pub(crate) flight: &'r mut Flight,
    pub(crate) control: Control,
    pub(crate) intercepts: Intercepts,
    pub(crate) split_lock: SplitLock,
    pub(crate) observer: Option<&'r mut (dyn Observer + 'r)>,
    pub(crate) bus: &'r mut (dyn Bus<'m> + 'r),
}

impl Machine<'_, '_> {
    /// Writes the lazy flags back into `cpu.rflags`.
    pub(crate) fn settle_flags(&mut self) {
        self.cpu.rflags = self.rflags();
    }

    /// RFLAGS as software would see them now.
    #[inline]
    pub(crate) fn rflags(&self) -> u64 {
        self.cpu.rflags & !ARITH | self.flags.to_rflags()
    }

    /// Replaces RFLAGS, and asks for a review of what TF, IF and RF decide.
    pub(crate) fn set_rflags(&mut self, value: u64) {
        let switches = (self.cpu.rflags ^ value) & VM != 0;
        self.cpu.rflags = value;
        self.flags = Flags::from_rflags(value);
        self.attention = true;
        if switches {
            self.refresh_mode();
        }
    }

    /// Derives everything that CS, SS, the mode and A20 decide. Called at entry of `run` and by
    /// every instruction that changes one of them.
    pub(crate) fn refresh_mode(&mut self) {
        let long = self.cpu.is_64_bit_code();
        self.linear_mask = if long { u64::MAX } else { self.profile.linear_mask };
        self.basis.paged = self.is_paged();
        self.windows = [Window::default(); 8];
        self.refresh_stack();
        self.refresh_code();
    }

    /// Derives what SS decides.
    pub(crate) fn refresh_stack(&mut self) {
        let big = self.cpu.segment(SegReg::Ss).attributes.is_big();
        self.stack_mask = if self.cpu.is_64_bit_code() {
            u64::MAX
        } else if big && self.has_32_bits() {
            0xFFFF_FFFF
        } else {
            0xFFFF
        };
        self.windows[SegReg::Ss as usize] = Window::default();
        self.refresh_privilege();
    }

    /// Brings the translations of the program's privilege to hand.
    fn refresh_privilege(&mut self) {
        // A program at level 3 may have a virtual interrupt waiting.
        self.attention |= self.cpu.rflags & (VIF | VIP) == VIF | VIP;
        let is_user = self.is_user(self.program());
        if self.is_user_tlb != is_user {
            self.is_user_tlb = is_user;
            core::mem::swap(&mut self.tlb, &mut self.other_tlb);
        }
    }

    /// Forgets every translation, and code that was found through one.
    pub(crate) fn flush_translations(&mut self) {
        self.tlb.flush();
        self.other_tlb.flush();
        self.epoch_stale = true;
    }

    /// Forgets the translation of one page.
    pub(crate) fn flush_translation(&mut self, linear: u64) {
        self.tlb.flush_page(linear);
        self.other_tlb.flush_page(linear);
        self.epoch_stale = true;
    }

    /// Forgets what lies in a physical range.
    pub(crate) fn withdraw(&mut self, start: Phys, len: u64) {
        self.tlb.withdraw(start, len);
        self.other_tlb.withdraw(start, len);
        self.epoch_stale = true;
    }

    /// Moves the A20 gate.
    pub(crate) fn set_a20(&mut self, open: bool) {
        self.cpu.a20 = open;
        if self.basis.a20 != open {
            self.basis.a20 = open;
            self.flush_translations();
        }
    }

    /// Changes the rights of the protection keys of user pages.
    pub(crate) fn set_pkru(&mut self, value: u32) {
        if self.cpu.pkru != value {
            self.cpu.pkru = value;
            self.flush_translations();
        }
    }

    /// Derives what CS decides, and makes the dispatcher look blocks up anew.
    pub(crate) fn refresh_code(&mut self) {
        let cs = self.cpu.segment(SegReg::Cs);
        (self.code_base, self.ip_limit) = if self.cpu.is_64_bit_code() {
            (0, if self.cpu.cr4 & CR4_LA57 != 0 { u64::MAX >> 8 } else { u64::MAX >> 17 })
        } else if self.profile.generation < Generation::I80286 {
            // 8086: no limits.
            (cs.base, 0xFFFF)
        } else {
            (cs.base, u64::from(cs.limit))
        };
        self.windows[SegReg::Cs as usize] = Window::default();
        self.view_stale = true;
    }

    /// A 386 or later.
    #[inline(always)]
    pub(crate) fn has_32_bits(&self) -> bool {
        self.profile.has_32_bits()
    }

    /// Does real-mode segmentation apply?
    #[inline(always)]
    pub(crate) fn is_real(&self) -> bool {
        self.cpu.is_real_segmentation()
    }

    /// Is EFER.LMA set?
    #[inline(always)]
    pub(crate) fn is_long_mode(&self) -> bool {
        self.cpu.msr.efer & EFER_LMA != 0
    }

    /// #GP(0) unless the privilege level is at most `level`.
    #[inline(always)]
    pub(crate) fn require_cpl(&self, level: u8) -> Step {
        if self.cpu.cpl() > level { Err(Fault::GP.into()) } else { Ok(()) }
    }

    /// MOV SS and POP SS: nothing is taken until after the next instruction.
    pub(crate) fn cast_mov_ss(&mut self) {
        self.casts.mov_ss = true;
        self.attention = true;
    }

    /// Sends an instruction that counts time, calls the bus or casts a shadow to the careful
    /// road. It must be the first thing that changes anything.
    #[inline]
    pub(crate) fn require_careful(&self) -> Step {
        if self.road == Road::Block { Err(Leave::Again) } else { Ok(()) }
    }

    /// Lets the VMM see an instruction before it executes, if it asked to.
    #[inline]
    pub(crate) fn intercept(&self, what: Intercepted) -> Step {
        if self.intercepts.contains(what) { Err(Leave::Intercept(what)) } else { Ok(()) }
    }

    /// A near transfer to `target`, which the operand size has already truncated (SDM vol. 2A,
    /// "JMP": the limit is checked before RIP changes).
    #[inline(always)]
    pub(crate) fn jump(&mut self, target: u64) -> Step {
        if target > self.ip_limit {
            return self.far_target(target);
        }
        self.cpu.rip = target;
        Ok(())
    }

    /// A target above the limit: outside 64-bit code #GP(0); in 64-bit code the upper half is
    /// canonical too.
    #[cold]
    fn far_target(&mut self, target: u64) -> Step {
        if self.cpu.is_64_bit_code() && self.is_canonical(target) {
            self.cpu.rip = target;
            return Ok(());
        }
        Err(Fault::GP.into())
    }
}
