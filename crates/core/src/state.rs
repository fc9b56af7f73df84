//! The state of a processor: plain data, comparable and cloneable. No cache, no pointer, no device.

use crate::arch::control::{CR0_CD, CR0_ET, CR0_NW, CR0_PE, DR6_RESET, DR7_RESET, EFER_LMA};
use crate::arch::descriptor::{Attributes, Segment, TableRegister};
use crate::arch::registers::{Reg, Registers, SegReg};
use crate::arch::rflags;
use crate::fault::Event;
use crate::profile::{Generation, Profile};

/// What the processor is doing between instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Activity {
    /// Executing instructions.
    #[default]
    Running,
    /// After HLT, until an interrupt.
    Halted,
    /// After a triple fault, until reset, INIT or (on some parts) NMI.
    Shutdown,
    /// An application processor after INIT.
    WaitForSipi,
}

/// The interrupt shadow: which instruction, if any, holds off events for one boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Shadow {
    /// STI set IF: holds off maskable interrupts.
    pub sti: bool,
    /// MOV SS or POP SS: holds off interrupts, NMI and debug traps.
    pub mov_ss: bool,
}

impl Shadow {
    /// No shadow.
    pub const NONE: Shadow = Shadow { sti: false, mov_ss: false };

    /// Is either bit set?
    pub const fn is_any(self) -> bool {
        self.sti | self.mov_ss
    }
}

/// Events that wait for an instruction boundary. The VMM sets them; delivery clears them,
/// except `interrupt`, which is the level of the INTR pin and stays the VMM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Pending {
    /// INTR is asserted: the bus will be asked for a vector when the interrupt is taken.
    pub interrupt: bool,
    /// An NMI is latched.
    pub nmi: bool,
    /// An SMI is latched.
    pub smi: bool,
    /// An INIT is latched.
    pub init: bool,
    /// A start-up IPI with its vector is latched; ignored unless the processor waits for it.
    pub sipi: Option<u8>,
    /// An event to deliver before the next instruction, as a VM entry injects one.
    pub event: Option<Event>,
    /// Debug conditions, in DR6's layout, that a MOV SS shadow is holding off.
    pub debug: u32,
}

impl Pending {
    /// Does anything wait?
    pub const fn is_any(&self) -> bool {
        self.interrupt
            | self.nmi
            | self.smi
            | self.init
            | self.sipi.is_some()
            | self.event.is_some()
            | (self.debug != 0)
    }
}

/// x87 and SSE state, in the terms of the FXSAVE image (SDM vol. 1, "FXSAVE Area").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Fpu {
    /// FCW.
    pub control: u16,
    /// FSW; TOP is bits 11 to 13.
    pub status: u16,
    /// The abridged tag word: bit i set means physical register i is not empty.
    pub tags: u8,
    /// FOP.
    pub opcode: u16,
    /// FIP with its selector in bits 32 to 47 where the image holds one.
    pub instruction_pointer: u64,
    /// FDP likewise.
    pub data_pointer: u64,
    /// ST0 to ST7 in stack order, 80 bits each.
    pub st: [[u8; 10]; 8],
    /// MXCSR.
    pub mxcsr: u32,
    /// XMM0 to XMM15.
    pub xmm: [[u64; 2]; 16],
    /// The upper halves of YMM0 to YMM15.
    pub ymm_high: [[u64; 2]; 16],
}

impl Fpu {
    /// State after reset: as FNINIT, but with every register zero and "valid" tags.
    pub const RESET: Fpu = Fpu {
        control: 0x40,
        status: 0,
        tags: 0xFF,
        opcode: 0,
        instruction_pointer: 0,
        data_pointer: 0,
        st: [[0; 10]; 8],
        mxcsr: 0x1F80,
        xmm: [[0; 2]; 16],
        ymm_high: [[0; 2]; 16],
    };
}

/// The model-specific registers that the modes need. Others are the bus's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[allow(missing_docs)] // the manual's names say it
pub struct Msrs {
    pub efer: u64,
    pub star: u64,
    pub lstar: u64,
    pub cstar: u64,
    pub fmask: u64,
    pub kernel_gs_base: u64,
    pub sysenter_cs: u64,
    pub sysenter_esp: u64,
    pub sysenter_eip: u64,
    pub pat: u64,
    pub tsc_aux: u64,
    pub debugctl: u64,
    pub smbase: u64,
    pub xss: u64,
    pub pkrs: u64,
    pub s_cet: u64,
    pub u_cet: u64,
    pub ssp: u64,
    pub pl_ssp: [u64; 4],
    pub interrupt_ssp_table: u64,
}

/// A processor.
///
/// ```
/// use realmode::{Cpu, Reg, SegReg, Segment};
/// let mut cpu = Cpu::reset();
/// cpu.gpr[Reg::Rsp] = 0x7C00;
/// cpu.seg[SegReg::Cs as usize] = Segment::real(0);
/// cpu.rip = 0x7C00;
/// assert_eq!(cpu.clone(), cpu);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Cpu {
    /// RAX to R15.
    pub gpr: Registers,
    /// Instruction pointer.
    pub rip: u64,
    /// Flags, plain; lazy only inside `run`.
    pub rflags: u64,
    /// ES, CS, SS, DS, FS, GS, by [`SegReg`].
    pub seg: [Segment; 6],
    /// Local descriptor table.
    pub ldtr: Segment,
    /// Task register.
    pub tr: Segment,
    /// Global descriptor table.
    pub gdtr: TableRegister,
    /// Interrupt descriptor table; in real mode the interrupt vector table.
    pub idtr: TableRegister,
    /// CR0.
    pub cr0: u64,
    /// CR2.
    pub cr2: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// The PDPTE registers, which PAE paging takes its page directories from: what the last load
    /// of CR3 found in memory (SDM vol. 3A, "PDPTE Registers").
    pub pdpte: [u64; 4],
    /// CR8, the task priority.
    pub cr8: u64,
    /// XCR0.
    pub xcr0: u64,
    /// DR0 to DR3.
    pub dr: [u64; 4],
    /// DR6.
    pub dr6: u64,
    /// DR7.
    pub dr7: u64,
    /// Model-specific registers.
    pub msr: Msrs,
    /// Protection-key rights.
    pub pkru: u32,
    /// x87 and SSE.
    pub fpu: Fpu,
    /// Interrupt shadow.
    pub shadow: Shadow,
    /// NMIs are blocked until the next IRET.
    pub nmi_blocked: bool,
    /// In system-management mode.
    pub smm: bool,
    /// Physical address bit 20 passes (the A20 gate is open).
    pub a20: bool,
    /// Running, halted, shut down, waiting.
    pub activity: Activity,
    /// What waits for a boundary.
    pub pending: Pending,
}

impl Cpu {
    /// The state after RESET of a modern processor (SDM vol. 3A, "Processor State After Reset"):
    /// F000:FFF0 with CS base FFFF0000.
    pub fn reset() -> Cpu {
        Cpu::reset_as(&Profile::INTEL)
    }

    /// The state after RESET of the processor that `profile` describes.
    pub fn reset_as(profile: &Profile) -> Cpu {
        let table = TableRegister { base: 0, limit: 0xFFFF };
        let system = Segment { selector: 0, base: 0, limit: 0xFFFF, attributes: Attributes(0x82) };
        let mut cpu = Cpu {
            gpr: Registers::ZERO,
            rip: 0xFFF0,
            rflags: profile.canonical_flags(0),
            seg: [Segment::real(0); 6],
            ldtr: system,
            tr: Segment { attributes: Attributes(0x8B), ..system },
            gdtr: table,
            idtr: table,
            cr0: CR0_ET | CR0_NW | CR0_CD,
            cr2: 0,
            cr3: 0,
            cr4: 0,
            pdpte: [0; 4],
            cr8: 0,
            xcr0: 1,
            dr: [0; 4],
            dr6: DR6_RESET,
            dr7: DR7_RESET,
            msr: Msrs { pat: 0x0007_0406_0007_0406, smbase: 0x3_0000, ..Msrs::default() },
            pkru: 0,
            fpu: Fpu::RESET,
            shadow: Shadow::NONE,
            nmi_blocked: false,
            smm: false,
            a20: true,
            activity: Activity::Running,
            pending: Pending::default(),
        };
        let cs = &mut cpu.seg[SegReg::Cs as usize];
        *cs = Segment { attributes: Attributes::REAL_CODE, ..Segment::real(0xF000) };
        match profile.generation {
            Generation::I8086 | Generation::I80186 => {
                // 8086 family: FFFF:0000.
                *cs = Segment::real(0xFFFF);
                cpu.rip = 0;
                cpu.cr0 = 0;
                cpu.idtr.limit = 0x3FF;
            }
            Generation::I80286 => {
                cs.base = 0xFF_0000;
                cpu.cr0 = 0;
                cpu.idtr.limit = 0x3FF;
            }
            _ => cs.base = 0xFFFF_0000,
        }
        if matches!(profile.generation, Generation::I80386) {
            cpu.cr0 = 0;
        }
        // SDM vol. 3A, "Processor State After Reset": EDX holds the signature.
        cpu.gpr[Reg::Rdx] = u64::from(profile.signature);
        cpu
    }

    /// A segment register.
    #[inline(always)]
    pub fn segment(&self, reg: SegReg) -> &Segment {
        &self.seg[reg as usize]
    }

    /// A segment register, to change.
    #[inline(always)]
    pub fn segment_mut(&mut self, reg: SegReg) -> &mut Segment {
        &mut self.seg[reg as usize]
    }

    /// Does real-mode segmentation apply: PE clear, or virtual-8086 mode?
    #[inline(always)]
    pub fn is_real_segmentation(&self) -> bool {
        self.cr0 & CR0_PE == 0 || self.rflags & rflags::VM != 0
    }

    /// Is CR0.PE clear?
    #[inline(always)]
    pub fn is_real_mode(&self) -> bool {
        self.cr0 & CR0_PE == 0
    }

    /// Is the processor in virtual-8086 mode?
    #[inline(always)]
    pub fn is_virtual_8086(&self) -> bool {
        self.cr0 & CR0_PE != 0 && self.rflags & rflags::VM != 0
    }

    /// Is 64-bit code running (EFER.LMA and CS.L)?
    #[inline(always)]
    pub fn is_64_bit_code(&self) -> bool {
        self.msr.efer & EFER_LMA != 0 && self.segment(SegReg::Cs).attributes.is_long()
    }

    /// The I/O privilege level, 0 to 3 (SDM vol. 1, "IOPL").
    #[inline(always)]
    pub fn iopl(&self) -> u8 {
        ((self.rflags & rflags::IOPL) >> rflags::IOPL.trailing_zeros()) as u8
    }

    /// The current privilege level: 0 in real mode, 3 in virtual-8086 mode, else SS.DPL.
    #[inline(always)]
    pub fn cpl(&self) -> u8 {
        if self.cr0 & CR0_PE == 0 {
            0
        } else if self.rflags & rflags::VM != 0 {
            3
        } else {
            self.segment(SegReg::Ss).attributes.dpl()
        }
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu::reset()
    }
}
