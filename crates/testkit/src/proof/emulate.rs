//! The emulator's side: a case executed by [`Emulator`], uncached, with the memory it has.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use realmode::arch::control::{
    CR0_ET, CR0_MP, CR0_NE, CR0_PE, CR0_PG, CR0_WP, CR4_FSGSBASE, CR4_OSFXSR, CR4_OSXMMEXCPT,
    CR4_OSXSAVE, CR4_PAE, CR4_UMIP, EFER_LMA, EFER_LME, EFER_NXE, EFER_SCE,
};
use realmode::arch::rflags::{OF, RF};
use realmode::arch::vector;
use realmode::{
    Attributes, Cpu, Emulator, Fpu, Intercepted, Intercepts, Pending, Profile, Registers, SegReg,
    Segment, Shadow, Stop, TableRegister,
};

use super::case::{Case, Mode, Paging};
pub use super::ground::Ground;
use super::ground::{GATES, LOCAL, ROOT, TASK, World, linear_tables};
use super::layout::{CODE, Layout, PAGES};
use super::memory::Memory;
use super::outcome::{End, Outcome};
use super::placed::{back_len, placed_code};

/// Steps after which a case counts as hung: instructions and slices of REP.
const STEPS: usize = 64;

/// Why a case cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// It reaches memory outside its arena.
    Strays,
    /// It stores over itself: when that is seen is up to the processor.
    Modifies,
    /// It names a segment of another arena: all of a process share one local table.
    SharesTable,
    /// It runs into the middle of what returns from it, or for too long.
    Wanders,
    /// The emulator does not execute it in this state.
    Unimplemented,
    /// It does something the VMM would have to act on.
    Stops,
}

/// Numbers of pages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages([u64; PAGES.div_ceil(64)]);

impl Pages {
    /// Is a page one of them?
    pub(super) fn contains(&self, page: usize) -> bool {
        self.0[page / 64] >> (page % 64) & 1 != 0
    }

    /// Adds a page.
    pub(super) fn insert(&mut self, page: usize) {
        if let Some(word) = self.0.get_mut(page / 64) {
            *word |= 1 << (page % 64);
        }
    }
}

impl Iterator for Pages {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let (i, word) = self.0.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        Some(i * 64 + bit)
    }
}

/// The emulator with an arena. Its memory stays as a case left it, for whoever compares it, until
/// [`restore`](Emulated::restore).
pub struct Emulated<'m> {
    emulator: Emulator<'m>,
    world: World<'m>,
    layout: Layout,
    /// The processor of the last case.
    cpu: Box<Cpu>,
}

impl<'m> Emulated<'m> {
    /// An emulator of `profile` with the arena at `layout`.
    pub fn new(ground: &'m Ground, layout: Layout, profile: &Profile) -> Emulated<'m> {
        let mut emulator = Emulator::new(profile, &mut []);
        emulator.policy_mut().exceptions = u32::MAX;
        Emulated { emulator, world: World::new(ground), layout, cpu: Box::default() }
    }

    /// What the last case left in the x87, MMX and SSE registers.
    pub fn fpu(&self) -> &Fpu {
        &self.cpu.fpu
    }

    /// The arena.
    pub fn memory(&self) -> &'m Memory {
        self.world.memory()
    }

    /// The pages that the case has stored to since the last [`restore`](Emulated::restore).
    pub fn dirty(&self) -> Pages {
        Pages(self.world.memory().dirty.each_ref().map(|word| word.load(Relaxed)))
    }

    /// Makes the arena what it was before the case.
    pub fn restore(&self, case: &Case) {
        self.dirty().for_each(|page| self.world.memory().restore(page));
        case.poked_words().for_each(|range| self.world.memory().restore_words(range));
        self.world.memory().dirty.iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Executes a case.
    ///
    /// # Errors
    /// If there is nothing that could be compared.
    pub fn run(&mut self, case: &Case) -> Result<Outcome, Unfit> {
        debug_assert_eq!(case.layout, self.layout, "a case is for one arena");
        let memory = self.world.memory();
        case.pokes.iter().for_each(|poke| memory.put(poke.at, poke.as_slice()));
        let placed = placed_code(case);
        memory.put(placed.at, placed.as_slice());
        self.world.begin(case);
        case.start(&mut self.cpu);
        let start = self.cpu.rip;
        let result = self.run_to(case, start..start + u64::from(placed.len));
        self.world.end(case);
        let is_whole = (placed.at..).zip(placed.as_slice()).all(|(at, b)| memory.byte(at) == *b);
        memory.put(placed.at, &[0xCC; 32][..usize::from(placed.len)]);
        if self.world.has_strayed {
            return Err(Unfit::Strays);
        }
        if !is_whole {
            return Err(Unfit::Modifies);
        }
        let end = result?;
        let is_page_fault = matches!(end, End::Exception { vector: vector::PF, .. });
        if is_page_fault && !self.world.is_known(self.cpu.cr2) {
            return Err(Unfit::Strays);
        }
        if let End::Exception { vector: vector::NP | vector::SS | vector::GP, error, .. } = end
            && is_of_another(case.layout, error)
        {
            return Err(Unfit::SharesTable);
        }
        Ok(outcome(&self.cpu, case.mode, end))
    }

    /// Runs until the instruction after the case, or an exception. The case and its way back lie
    /// in `placed`.
    fn run_to(&mut self, case: &Case, placed: Range<u64>) -> Result<End, Unfit> {
        let end = placed.start + u64::from(case.code.len);
        let is_whole = placed.end == end + u64::from(back_len(case.mode));
        self.emulator.policy_mut().intercepts = SOFTWARE_INTERRUPTS;
        for _ in 0..STEPS {
            let cpu = &mut self.cpu;
            let stop = self.emulator.run(cpu, &mut self.world, 1);
            self.emulator.policy_mut().intercepts = SOFTWARE_INTERRUPTS;
            match stop.map_err(|_| Unfit::Unimplemented)? {
                Stop::Budget => match self.next(case, &placed) {
                    Next::WayBack if is_whole => return Ok(End::Returned),
                    Next::Wanders => return Err(Unfit::Wanders),
                    Next::WayBack | Next::Same | Next::Breakpoint => {}
                },
                Stop::Exception(fault) => {
                    let (vector, error) = (fault.vector, u32::from(fault.error_code));
                    return Ok(End::Exception { vector, error, rip: cpu.rip });
                }
                Stop::Intercept(_) => match self.software_interrupt() {
                    Some(end) => return Ok(end),
                    None => self.emulator.policy_mut().intercepts = Intercepts::NONE,
                },
                Stop::Unimplemented(_) => return Err(Unfit::Unimplemented),
                _ => return Err(Unfit::Stops),
            }
        }
        Err(Unfit::Wanders)
    }

    /// Where a step has led.
    fn next(&self, case: &Case, placed: &Range<u64>) -> Next {
        let cpu = &self.cpu;
        let cs = cpu.segment(SegReg::Cs);
        if cpu.rip == placed.start {
            return Next::Same;
        }
        if placed.contains(&cpu.rip) {
            let is_back = cpu.rip == placed.start + u64::from(case.code.len);
            let is_same_code = cs.selector == case.selector(SegReg::Cs);
            return if is_back && is_same_code { Next::WayBack } else { Next::Wanders };
        }
        let base = if cpu.is_64_bit_code() { 0 } else { cs.base };
        let at = base.wrapping_add(cpu.rip).wrapping_sub(self.world.base());
        let byte = u32::try_from(at).map(|at| self.world.memory().byte(at));
        // What lies outside the arena is for the fetch to say.
        if matches!(byte, Ok(0xCC)) || at >= u64::from(CODE) + 0x1_0000 {
            Next::Breakpoint
        } else {
            Next::Wanders
        }
    }

    /// What INT3, INT1 and INTO raise; INT n is left to the gates, which are not for level 3.
    fn software_interrupt(&self) -> Option<End> {
        let cpu = &self.cpu;
        let base = if cpu.is_64_bit_code() { 0 } else { cpu.segment(SegReg::Cs).base };
        let start = base + cpu.rip - self.world.base();
        // Prefixes may come before it.
        let (len, opcode) = (0..15)
            .map(|i| (i + 1, self.world.memory().byte(start as u32 + i)))
            .find(|(_, byte)| matches!(byte, 0xCC | 0xCD | 0xCE | 0xF1))?;
        let vector = match opcode {
            0xCC => vector::BP,
            0xF1 => vector::DB,
            0xCE if cpu.rflags & OF != 0 => vector::OF,
            _ => return None,
        };
        Some(End::Exception { vector, error: 0, rip: cpu.rip + u64::from(len) })
    }
}

/// Is it an error code with a selector of another arena, which this process may or may not have?
fn is_of_another(layout: Layout, error: u32) -> bool {
    let (index, is_local) = (error >> 3, error & 4 != 0);
    is_local && index / u32::from(Layout::SELECTORS) != u32::from(layout.number) && index != 0x1FFF
}

/// Where a step of a case leads.
enum Next {
    /// To the instruction after the case.
    WayBack,
    /// To the instruction itself: a slice of REP, or a branch.
    Same,
    /// To an INT3, or to where nothing can be fetched.
    Breakpoint,
    /// Into the middle of something.
    Wanders,
}

const SOFTWARE_INTERRUPTS: Intercepts = Intercepts::NONE.with(Intercepted::SoftwareInterrupt);

fn outcome(cpu: &Cpu, mode: Mode, end: End) -> Outcome {
    let mut gpr = cpu.gpr.as_array();
    if mode != Mode::Bits64 {
        gpr[..8].iter_mut().for_each(|register| *register &= 0xFFFF_FFFF);
        gpr[8..].fill(0);
    }
    let is_page_fault = matches!(end, End::Exception { vector: vector::PF, .. });
    Outcome {
        end,
        gpr,
        rflags: cpu.rflags & !RF,
        selectors: cpu.seg.map(|segment| segment.selector),
        cr2: if is_page_fault { cpu.cr2 } else { 0 },
    }
}

impl Case {
    /// The selector that a segment register has in the beginning.
    pub(super) fn selector(&self, reg: SegReg) -> u16 {
        match (self.mode, reg) {
            (Mode::Bits64, SegReg::Cs) => 0x33,
            (Mode::Bits64, SegReg::Fs | SegReg::Gs) => 0,
            (Mode::Bits64, _) => 0x2B,
            _ => self.layout.selector(self.segments[reg as usize]),
        }
    }

    /// The processor that it starts with.
    pub fn cpu(&self) -> Cpu {
        let mut cpu = Cpu::reset();
        self.start(&mut cpu);
        cpu
    }

    /// Makes a processor that another case left, or that was reset, the one that it starts with.
    fn start(&self, cpu: &mut Cpu) {
        cpu.shadow = Shadow::NONE;
        cpu.pending = Pending::default();
        cpu.msr.efer = 0;
        cpu.gpr = Registers::from(self.gpr);
        cpu.rip = u64::from(self.entry);
        cpu.rflags = self.rflags;
        cpu.fpu = Fpu { control: 0x37F, tags: 0, ..Fpu::RESET };
        if self.mode == Mode::Real {
            cpu.seg = self.segments.map(|kind| {
                let base = self.layout.base + kind.shape().0;
                Segment::real((base >> 4) as u16)
            });
            return;
        }
        cpu.cr0 = CR0_PE | CR0_ET | CR0_NE | CR0_MP;
        cpu.cr4 = CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE | CR4_UMIP | CR4_FSGSBASE;
        cpu.msr.efer = EFER_SCE;
        cpu.xcr0 = 7;
        cpu.msr.efer = EFER_SCE;
        cpu.seg = self.segments.map(|kind| self.layout.segment(kind));
        if self.mode == Mode::Bits64 {
            self.make_long(cpu);
        }
        if self.paging != Paging::Off {
            cpu.cr0 |= CR0_PG | CR0_WP;
            cpu.cr3 = ROOT;
            cpu.cr4 |= CR4_PAE;
            cpu.msr.efer |= EFER_LMA | EFER_LME | EFER_NXE;
        }
        let tables = linear_tables(self);
        let table = |at, limit| TableRegister { base: tables + at, limit };
        cpu.gdtr = table(0, 0x7F);
        cpu.idtr = table(GATES, 0x7FF);
        let system = |selector, base, limit, attributes| Segment {
            selector,
            base: tables + base,
            limit,
            attributes: Attributes(attributes),
        };
        let entries = u32::from(self.layout.number + 1) * u32::from(Layout::SELECTORS);
        cpu.ldtr = system(0x50, LOCAL, 8 * entries - 1, 0x82);
        cpu.tr = system(0x40, TASK, 0x67, 0x8B);
    }

    /// Flat 64-bit code at level 3, as the host's programs have it.
    fn make_long(&self, cpu: &mut Cpu) {
        cpu.msr.efer |= EFER_LMA | EFER_LME;
        cpu.rip += u64::from(self.layout.base + CODE);
        let flat = |selector, attributes| Segment {
            selector,
            base: 0,
            limit: 0xFFFF_FFFF,
            attributes: Attributes(attributes),
        };
        for reg in [SegReg::Es, SegReg::Ss, SegReg::Ds] {
            *cpu.segment_mut(reg) = flat(0x2B, 0xC0F3);
        }
        *cpu.segment_mut(SegReg::Cs) = flat(0x33, 0xA0FB);
        for reg in [SegReg::Fs, SegReg::Gs] {
            cpu.segment_mut(reg).selector = 0;
        }
    }
}
