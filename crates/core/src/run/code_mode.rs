//! What decides how code is decoded: the mode of the processor, and its profile.

use crate::arch::control::{CR0_PE, EFER_LMA};
use crate::arch::registers::SegReg;
use crate::arch::rflags::VM;
use crate::decode::{CodeSize, Context};
use crate::profile::{Generation, Profile, Vendor};
use crate::state::Cpu;

/// An 8086 has sixteen bits of IP; a block that ends at FFFF leaves a seventeenth.
pub(super) fn wrap_ip(cpu: &mut Cpu, profile: &Profile) {
    if profile.generation < Generation::I80286 {
        cpu.rip &= 0xFFFF;
    }
}

/// The size of the code that `cpu` is running.
pub(super) fn code_size(cpu: &Cpu, profile: &Profile) -> CodeSize {
    if cpu.is_64_bit_code() {
        CodeSize::Bits64
    } else if cpu.segment(SegReg::Cs).attributes.is_big() && profile.has_32_bits() {
        CodeSize::Bits32
    } else {
        CodeSize::Bits16
    }
}

/// Everything besides the bytes that decides what decode yields.
pub(super) fn decode_key(cpu: &Cpu, profile: &Profile) -> u32 {
    let bit = |on: bool, at: u32| u32::from(on) << at;
    code_size(cpu, profile) as u32
        | bit(cpu.cr0 & CR0_PE != 0, 2)
        | bit(cpu.rflags & VM != 0, 3)
        | bit(cpu.msr.efer & EFER_LMA != 0, 4)
        | bit(profile.vendor == Vendor::Amd, 5)
        // Pages that a program may fetch from.
        | bit(cpu.cpl() == 3, 6)
        | u32::from(profile.id) << 8
}

/// What decode has to know of the processor.
pub(super) fn context<'p>(cpu: &Cpu, profile: &'p Profile) -> Context<'p> {
    Context { size: code_size(cpu, profile), real: cpu.is_real_segmentation(), profile }
}
