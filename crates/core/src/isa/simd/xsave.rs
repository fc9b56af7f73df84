//! XSAVE, XSAVEOPT, XSAVEC, XSAVES, XRSTOR, XRSTORS, in standard and compacted form (SDM vol. 1,
//! "Managing State Using the XSAVE Feature Set"). The components are x87, SSE and AVX; an image
//! with another one stops as `Unimplemented`.

use crate::arch::control::{CR0_TS, CR4_OSXSAVE};
use crate::arch::cpuid::Features as F;
use crate::arch::registers::Reg;
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand::M;
use crate::isa::row::{Modes, Row};
use crate::isa::simd::legacy::{self, Pointers, Region, SIZE, XMM, xmm_count};
use crate::isa::simd::{aligned, encoding};
use crate::machine::{Leave, Machine, Step};
use crate::op::Op;
use crate::state::Fpu;
use crate::stop::UnimplementedReason;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("NP.0F.W1 AE /4", "XSAVE64", &[M], F::XSAVE).modes(Modes::Only64).handler(xsave),
    encoding("NP.0F AE /4", "XSAVE", &[M], F::XSAVE).handler(xsave),
    encoding("NP.0F.W1 AE /5", "XRSTOR64", &[M], F::XSAVE).modes(Modes::Only64).handler(xrstor),
    encoding("NP.0F AE /5", "XRSTOR", &[M], F::XSAVE).handler(xrstor),
    encoding("NP.0F.W1 AE /6", "XSAVEOPT64", &[M], F::XSAVEOPT)
        .modes(Modes::Only64)
        .handler(xsaveopt),
    encoding("NP.0F AE /6", "XSAVEOPT", &[M], F::XSAVEOPT).handler(xsaveopt),
    encoding("NP.0F.W1 C7 /3", "XRSTORS64", &[M], F::XSAVES).modes(Modes::Only64).handler(xrstors),
    encoding("NP.0F C7 /3", "XRSTORS", &[M], F::XSAVES).handler(xrstors),
    encoding("NP.0F.W1 C7 /4", "XSAVEC64", &[M], F::XSAVEC).modes(Modes::Only64).handler(xsavec),
    encoding("NP.0F C7 /4", "XSAVEC", &[M], F::XSAVEC).handler(xsavec),
    encoding("NP.0F.W1 C7 /5", "XSAVES64", &[M], F::XSAVES).modes(Modes::Only64).handler(xsaves),
    encoding("NP.0F C7 /5", "XSAVES", &[M], F::XSAVES).handler(xsaves),
];

/// Components by their bits in XCR0.
const X87: u64 = 1 << 0;
const SSE: u64 = 1 << 1;
const AVX: u64 = 1 << 2;
const KNOWN: u64 = X87 | SSE | AVX;
/// Bit 63 of XCOMP_BV: the image is compacted.
const COMPACTED: u64 = 1 << 63;
/// The header behind the legacy region: XSTATE_BV, XCOMP_BV, and 48 bytes of zero.
const HEADER: u64 = SIZE as u64;
const HEADER_LEN: usize = 64;
/// Where the upper halves of the YMM registers lie. AVX is the first component behind the header,
/// so both forms have it here.
const UPPER: u64 = HEADER + HEADER_LEN as u64;
const UPPER_LEN: usize = 256;
/// MXCSR after reset.
const MXCSR_INITIAL: u32 = 0x1F80;
/// What FNINIT leaves in FCW.
const FCW_INITIAL: u16 = 0x37F;

/// How an image is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// All that is asked for.
    Standard,
    /// The same, without what is in its initial configuration.
    Optimised,
    /// That, compacted.
    Compacted,
}

/// #UD before the operating system has turned the feature set on, then #NM.
fn require_available(m: &Machine<'_, '_>) -> Step {
    if m.cpu.cr4 & CR4_OSXSAVE == 0 {
        return Err(Fault::UD.into());
    }
    if m.cpu.cr0 & CR0_TS != 0 { Err(Fault::NM.into()) } else { Ok(()) }
}

/// The components that EDX:EAX asks for, of those that are enabled.
fn requested(m: &Machine<'_, '_>, enabled: u64) -> Result<u64, Leave> {
    let mask = m.cpu.gpr[Reg::Rdx] << 32 | m.cpu.gpr[Reg::Rax] & 0xFFFF_FFFF;
    let requested = mask & enabled;
    if requested & !KNOWN != 0 {
        return Err(Leave::Unimplemented(UnimplementedReason::Instruction));
    }
    Ok(requested)
}

/// The bytes of an image with these components.
fn size(components: u64) -> usize {
    let header = SIZE + HEADER_LEN;
    if components & AVX != 0 { header + UPPER_LEN } else { header }
}

/// The components that are not in their initial configuration: XINUSE.
fn in_use(fpu: &Fpu) -> u64 {
    let pointers = fpu.instruction_pointer | fpu.data_pointer | u64::from(fpu.opcode);
    let is_x87 = fpu.control != FCW_INITIAL
        || fpu.status != 0
        || fpu.tags != 0
        || pointers != 0
        || fpu.st.as_flattened().iter().any(|byte| *byte != 0);
    let is_any =
        |registers: &[[u64; 2]; 16]| registers.as_flattened().iter().any(|half| *half != 0);
    (if is_x87 { X87 } else { 0 })
        | if is_any(&fpu.xmm) { SSE } else { 0 }
        | if is_any(&fpu.ymm_high) { AVX } else { 0 }
}

/// Writes a piece of the image, which has been prepared as a whole.
fn write(m: &mut Machine<'_, '_>, op: &Op, at: u64, bytes: &[u8]) -> Step {
    let offset = m.offset(op).wrapping_add(at);
    let operand = m.prepare(op.seg, offset, bytes.len(), Access::Write)?;
    m.write_operand(&operand, bytes)
}

fn read(m: &mut Machine<'_, '_>, op: &Op, at: u64, bytes: &mut [u8]) -> Step {
    let offset = m.offset(op).wrapping_add(at);
    let operand = m.prepare(op.seg, offset, bytes.len(), Access::Read)?;
    m.read_operand(&operand, bytes)
}

/// Writes what lies between two places of the legacy region.
fn write_legacy(m: &mut Machine<'_, '_>, op: &Op, from: &Region, first: usize, end: usize) -> Step {
    write(m, op, first as u64, from.get(first..end).unwrap_or_default())
}

fn save(m: &mut Machine<'_, '_>, op: &Op, way: Way, enabled: u64) -> Step {
    let requested = requested(m, enabled)?;
    aligned(m, op, size(requested), 64, Access::Write)?;
    let mut used = in_use(&m.cpu.fpu);
    if way == Way::Compacted && m.cpu.fpu.mxcsr != MXCSR_INITIAL {
        // There MXCSR belongs to SSE.
        used |= SSE;
    }
    let mut state = [0; 8];
    if way != Way::Compacted {
        read(m, op, HEADER, &mut state)?;
    }
    let kept = u64::from_le_bytes(state) & !requested;
    let written = if way == Way::Standard { requested } else { requested & used };
    let mut region: Region = [0; SIZE];
    legacy::save_x87(m, Pointers::of(op.width), &mut region);
    legacy::save_mxcsr(m, &mut region);
    let count = xmm_count(m);
    legacy::save_xmm(&m.cpu.fpu, count, &mut region);
    if written & X87 != 0 {
        write_legacy(m, op, &region, 0, legacy::MXCSR)?;
        write_legacy(m, op, &region, legacy::MXCSR + 8, XMM)?;
    }
    let has_mxcsr = if way == Way::Compacted { written & SSE } else { requested & (SSE | AVX) };
    if has_mxcsr != 0 {
        write_legacy(m, op, &region, legacy::MXCSR, legacy::MXCSR + 8)?;
    }
    if written & SSE != 0 {
        write_legacy(m, op, &region, XMM, XMM + 16 * count)?;
    }
    if written & AVX != 0 {
        let mut bytes = [0; UPPER_LEN];
        let halves = m.cpu.fpu.ymm_high.as_flattened();
        for (place, half) in bytes.chunks_exact_mut(8).zip(halves).take(2 * count) {
            place.copy_from_slice(&half.to_le_bytes());
        }
        write(m, op, UPPER, bytes.get(..16 * count).unwrap_or_default())?;
    }
    write(m, op, HEADER, &(kept | requested & used).to_le_bytes())?;
    if way == Way::Compacted {
        write(m, op, HEADER + 8, &(COMPACTED | requested).to_le_bytes())?;
    }
    Ok(())
}

fn xsave(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    save(m, op, Way::Standard, m.cpu.xcr0)
}

fn xsaveopt(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    save(m, op, Way::Optimised, m.cpu.xcr0)
}

fn xsavec(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    save(m, op, Way::Compacted, m.cpu.xcr0)
}

fn xsaves(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    m.require_cpl(0)?;
    save(m, op, Way::Compacted, m.cpu.xcr0 | m.cpu.msr.xss)
}

/// XSTATE_BV and XCOMP_BV of a header that can be loaded with these components enabled.
fn checked_header(
    m: &Machine<'_, '_>,
    header: &[u8; HEADER_LEN],
    enabled: u64,
    must_be_compacted: bool,
) -> Result<(u64, u64), Leave> {
    let word = |i: usize| {
        let bytes = header.get(8 * i..).and_then(|bytes| bytes.first_chunk::<8>());
        u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
    };
    let (state, form) = (word(0), word(1));
    let is_sound = if form & COMPACTED != 0 {
        let components = form & !COMPACTED;
        m.profile.has(F::XSAVEC)
            && components & !enabled == 0
            && state & !components == 0
            && (2..8).all(|i| word(i) == 0)
    } else {
        !must_be_compacted && state & !enabled == 0 && form == 0 && word(2) == 0
    };
    if is_sound { Ok((state, form)) } else { Err(Fault::GP.into()) }
}

fn restore(m: &mut Machine<'_, '_>, op: &Op, enabled: u64, must_be_compacted: bool) -> Step {
    let requested = requested(m, enabled)?;
    aligned(m, op, SIZE + HEADER_LEN, 64, Access::Read)?;
    let mut header = [0; HEADER_LEN];
    read(m, op, HEADER, &mut header)?;
    let (state, form) = checked_header(m, &header, enabled, must_be_compacted)?;
    let mut region: Region = [0; SIZE];
    read(m, op, 0, &mut region)?;
    let loaded = requested & state;
    let mut upper = [0; UPPER_LEN];
    let count = xmm_count(m);
    if loaded & AVX != 0 {
        read(m, op, UPPER, upper.get_mut(..16 * count).unwrap_or_default())?;
    }
    let reads_mxcsr = if form & COMPACTED != 0 { loaded & SSE } else { requested & (SSE | AVX) };
    let mxcsr = legacy::mxcsr(&region);
    if reads_mxcsr != 0 && mxcsr & !legacy::mxcsr_mask(m) != 0 {
        return Err(Fault::GP.into());
    }
    let fpu = &mut m.cpu.fpu;
    if loaded & X87 != 0 {
        legacy::load_x87(fpu, Pointers::of(op.width), &region);
    } else if requested & X87 != 0 {
        let initial = Fpu { control: FCW_INITIAL, tags: 0, ..Fpu::RESET };
        let (mxcsr, xmm, ymm_high) = (fpu.mxcsr, fpu.xmm, fpu.ymm_high);
        *fpu = Fpu { mxcsr, xmm, ymm_high, ..initial };
    }
    if requested & SSE != 0 {
        let empty = [0; SIZE];
        legacy::load_xmm(fpu, count, if loaded & SSE != 0 { &region } else { &empty });
    }
    if reads_mxcsr != 0 {
        fpu.mxcsr = mxcsr;
    } else if requested & SSE != 0 {
        fpu.mxcsr = MXCSR_INITIAL;
    }
    if requested & AVX != 0 {
        // Zero where the image has none.
        let halves = fpu.ymm_high.as_flattened_mut().iter_mut().take(2 * count);
        for (half, bytes) in halves.zip(upper.as_chunks::<8>().0) {
            *half = u64::from_le_bytes(*bytes);
        }
    }
    Ok(())
}

fn xrstor(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    restore(m, op, m.cpu.xcr0, false)
}

fn xrstors(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    require_available(m)?;
    m.require_cpl(0)?;
    restore(m, op, m.cpu.xcr0 | m.cpu.msr.xss, true)
}
