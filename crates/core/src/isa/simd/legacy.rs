//! The legacy region of 512 bytes that FXSAVE and XSAVE write: x87 state, MXCSR, XMM registers
//! (SDM vol. 1, "FXSAVE Area"; APM vol. 2, "FXSAVE and FXRSTOR Instructions").

use crate::arch::cpuid::Features;
use crate::isa::fpu::{self, FSW_SUMMARY};
use crate::machine::Machine;
use crate::profile::Vendor;
use crate::state::Fpu;

/// Its size.
pub(crate) const SIZE: usize = 512;
/// Where MXCSR lies, and the mask of its defined bits behind it.
pub(crate) const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
/// Where the x87 registers lie, 16 bytes each.
const ST: usize = 32;
/// Where the XMM registers lie.
pub(crate) const XMM: usize = 160;

/// The bytes of the region.
pub(crate) type Region = [u8; SIZE];

/// How the pointers of the last x87 instruction are kept: REX.W makes them 64 bits wide.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pointers {
    /// A selector and an offset of 32 bits.
    Far,
    /// An address.
    Flat,
}

impl Pointers {
    /// By the operand size.
    pub(crate) fn of(width: u8) -> Pointers {
        if width == 8 { Pointers::Flat } else { Pointers::Far }
    }

    /// The part of a pointer that is kept.
    fn part(self, pointer: u64) -> u64 {
        if self == Pointers::Flat { pointer } else { pointer & 0xFFFF_FFFF_FFFF }
    }
}

/// The bits that MXCSR has: AMD's also misaligned-exception mask.
pub(crate) fn mxcsr_mask(m: &Machine<'_, '_>) -> u32 {
    if m.profile.has(Features::MISALIGN_SSE) { 0x2_FFFF } else { 0xFFFF }
}

/// How many XMM registers the code can name.
pub(crate) fn xmm_count(m: &Machine<'_, '_>) -> usize {
    if m.cpu.is_64_bit_code() { 16 } else { 8 }
}

fn put(region: &mut Region, at: usize, bytes: &[u8]) {
    if let Some(place) = region.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn get<const N: usize>(region: &Region, at: usize) -> [u8; N] {
    region.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

/// Writes the x87 state. AMD's parts show the pointers of an instruction that left an exception,
/// and zeros without one (APM vol. 2, "FXSAVE and FXRSTOR Instructions"; seen on Zen 3).
pub(crate) fn save_x87(m: &Machine<'_, '_>, pointers: Pointers, region: &mut Region) {
    let mut fpu = m.cpu.fpu;
    if m.profile.vendor == Vendor::Amd && fpu.status & FSW_SUMMARY == 0 {
        (fpu.opcode, fpu.instruction_pointer, fpu.data_pointer) = (0, 0, 0);
    }
    put(region, 0, &fpu.control.to_le_bytes());
    put(region, 2, &fpu.status.to_le_bytes());
    put(region, 4, &[fpu.tags, 0]);
    put(region, 6, &fpu.opcode.to_le_bytes());
    put(region, 8, &pointers.part(fpu.instruction_pointer).to_le_bytes());
    put(region, 16, &pointers.part(fpu.data_pointer).to_le_bytes());
    for (i, st) in fpu.st.iter().enumerate() {
        put(region, ST + 16 * i, st);
        put(region, ST + 16 * i + 10, &[0; 6]);
    }
}

/// Loads the x87 state. Bits that FCW has not are dropped, and the summary of FSW follows from the
/// rest, as FLDCW makes it.
pub(crate) fn load_x87(fpu: &mut Fpu, pointers: Pointers, region: &Region) {
    let word = |at| u16::from_le_bytes(get(region, at));
    fpu.status = word(2);
    fpu::set_control(fpu, word(0));
    fpu.tags = get::<1>(region, 4)[0];
    fpu.opcode = word(6) & 0x7FF;
    fpu.instruction_pointer = pointers.part(u64::from_le_bytes(get(region, 8)));
    fpu.data_pointer = pointers.part(u64::from_le_bytes(get(region, 16)));
    for (i, st) in fpu.st.iter_mut().enumerate() {
        *st = get(region, ST + 16 * i);
    }
}

/// Writes MXCSR and its mask.
pub(crate) fn save_mxcsr(m: &Machine<'_, '_>, region: &mut Region) {
    put(region, MXCSR, &m.cpu.fpu.mxcsr.to_le_bytes());
    put(region, MXCSR_MASK, &mxcsr_mask(m).to_le_bytes());
}

/// The MXCSR of a region.
pub(crate) fn mxcsr(region: &Region) -> u32 {
    u32::from_le_bytes(get(region, MXCSR))
}

/// Writes the first `count` XMM registers.
pub(crate) fn save_xmm(fpu: &Fpu, count: usize, region: &mut Region) {
    for (i, [low, high]) in fpu.xmm.iter().take(count).enumerate() {
        put(region, XMM + 16 * i, &low.to_le_bytes());
        put(region, XMM + 16 * i + 8, &high.to_le_bytes());
    }
}

/// Loads the first `count` XMM registers.
pub(crate) fn load_xmm(fpu: &mut Fpu, count: usize, region: &Region) {
    for (i, xmm) in fpu.xmm.iter_mut().take(count).enumerate() {
        let half = |at| u64::from_le_bytes(get(region, XMM + 16 * i + at));
        *xmm = [half(0), half(8)];
    }
}
