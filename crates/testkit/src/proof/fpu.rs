//! The x87 and SSE registers in the shape in which silicon shows them.

use realmode::{Fpu, Vendor};

use super::native::FpuImage;

/// What FXSAVE64 would write (SDM vol. 1, "FXSAVE Area"), but for the mask of MXCSR and what it
/// leaves alone. AMD's show no pointers without an exception (APM vol. 2, "FXSAVE and FXRSTOR
/// Instructions").
pub(super) fn image(fpu: &Fpu, vendor: Vendor) -> FpuImage {
    const SUMMARY: u16 = 0x80;
    let mut bytes = [0; 512];
    bytes[0..2].copy_from_slice(&fpu.control.to_le_bytes());
    bytes[2..4].copy_from_slice(&fpu.status.to_le_bytes());
    bytes[4] = fpu.tags;
    if vendor == Vendor::Intel || fpu.status & SUMMARY != 0 {
        bytes[6..8].copy_from_slice(&fpu.opcode.to_le_bytes());
        bytes[8..16].copy_from_slice(&fpu.instruction_pointer.to_le_bytes());
        bytes[16..24].copy_from_slice(&fpu.data_pointer.to_le_bytes());
    }
    bytes[24..28].copy_from_slice(&fpu.mxcsr.to_le_bytes());
    for (place, st) in bytes[32..160].chunks_mut(16).zip(fpu.st) {
        place[..10].copy_from_slice(&st);
    }
    for (place, xmm) in bytes[160..416].chunks_mut(16).zip(fpu.xmm) {
        place[..8].copy_from_slice(&xmm[0].to_le_bytes());
        place[8..].copy_from_slice(&xmm[1].to_le_bytes());
    }
    FpuImage(bytes)
}

/// The first byte in which two images differ, but for the mask of MXCSR, which is no state, and for
/// the pointers that AMD's parts show only with an exception. What their upper halves are after a
/// restore in the other form is up to the processor.
pub(super) fn difference(ours: &FpuImage, theirs: &FpuImage) -> Option<(u32, u8, u8)> {
    let shows_none = theirs.0[2] & 0x80 == 0 && theirs.0[6..24].iter().all(|byte| *byte == 0);
    let is_pointer = |at: u32| shows_none && (6..24).contains(&at);
    let is_upper = |at: u32| matches!(at, 12..16 | 20..24);
    let pairs = (0..).zip(ours.0.into_iter().zip(theirs.0));
    pairs
        .filter(|(at, _)| !(28..32).contains(at) && *at < 416 && !is_pointer(*at) && !is_upper(*at))
        .find_map(|(at, (ours, theirs))| (ours != theirs).then_some((at, ours, theirs)))
}
