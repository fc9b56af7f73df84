//! SSE moves: between XMM registers, general registers and memory, whole or in part. `Part` says
//! which bits of a register a move is about; the forms of AVX share it.

use crate::arch::cpuid::Features as F;
use crate::bus::Access;
use crate::isa::operand::Operand::{Ed, Ey, Md, Mdq, Mq, Udq, Vdq, Wd, Wdq, Wq};
use crate::isa::row::{Exec, Modes, Row};
use crate::isa::simd::available::{require_avx, require_sse};
use crate::isa::simd::{aligned, encoding};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::width::Width;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("NP.0F 10", "MOVUPS", &[Vdq, Wdq], F::SSE).exec(load::<All, Sse>()),
    encoding("66.0F 10", "MOVUPD", &[Vdq, Wdq], F::SSE2).exec(load::<All, Sse>()),
    encoding("F3.0F 10", "MOVSS", &[Vdq, Wd], F::SSE).exec(load::<Single, Sse>()),
    encoding("F2.0F 10", "MOVSD", &[Vdq, Wq], F::SSE2).exec(load::<Double, Sse>()),
    encoding("NP.0F 11", "MOVUPS", &[Wdq, Vdq], F::SSE).exec(store::<All, Sse>()),
    encoding("66.0F 11", "MOVUPD", &[Wdq, Vdq], F::SSE2).exec(store::<All, Sse>()),
    encoding("F3.0F 11", "MOVSS", &[Wd, Vdq], F::SSE).exec(store::<Single, Sse>()),
    encoding("F2.0F 11", "MOVSD", &[Wq, Vdq], F::SSE2).exec(store::<Double, Sse>()),
    encoding("NP.0F 12", "MOVLPS", &[Vdq, Mq], F::SSE).exec(load::<Low, Sse>()),
    encoding("NP.0F 12", "MOVHLPS", &[Vdq, Udq], F::SSE).exec(load::<Low, Sse>()),
    encoding("66.0F 12", "MOVLPD", &[Vdq, Mq], F::SSE2).exec(load::<Low, Sse>()),
    encoding("NP.0F 13", "MOVLPS", &[Mq, Vdq], F::SSE).exec(store::<Low, Sse>()),
    encoding("66.0F 13", "MOVLPD", &[Mq, Vdq], F::SSE2).exec(store::<Low, Sse>()),
    encoding("NP.0F 16", "MOVHPS", &[Vdq, Mq], F::SSE).exec(load::<High, Sse>()),
    encoding("NP.0F 16", "MOVLHPS", &[Vdq, Udq], F::SSE).exec(load::<High, Sse>()),
    encoding("66.0F 16", "MOVHPD", &[Vdq, Mq], F::SSE2).exec(load::<High, Sse>()),
    encoding("NP.0F 17", "MOVHPS", &[Mq, Vdq], F::SSE).exec(store::<High, Sse>()),
    encoding("66.0F 17", "MOVHPD", &[Mq, Vdq], F::SSE2).exec(store::<High, Sse>()),
    encoding("NP.0F 28", "MOVAPS", &[Vdq, Wdq], F::SSE).exec(load::<Even, Sse>()),
    encoding("66.0F 28", "MOVAPD", &[Vdq, Wdq], F::SSE2).exec(load::<Even, Sse>()),
    encoding("NP.0F 29", "MOVAPS", &[Wdq, Vdq], F::SSE).exec(store::<Even, Sse>()),
    encoding("66.0F 29", "MOVAPD", &[Wdq, Vdq], F::SSE2).exec(store::<Even, Sse>()),
    encoding("NP.0F 2B", "MOVNTPS", &[Mdq, Vdq], F::SSE).exec(store::<Even, Sse>()),
    encoding("66.0F 2B", "MOVNTPD", &[Mdq, Vdq], F::SSE2).exec(store::<Even, Sse>()),
    encoding("F3.0F 2B", "MOVNTSS", &[Md, Vdq], F::SSE4A).exec(store::<Single, Sse>()),
    encoding("F2.0F 2B", "MOVNTSD", &[Mq, Vdq], F::SSE4A).exec(store::<Double, Sse>()),
    encoding("66.0F.W1 6E", "MOVQ", &[Vdq, Ey], F::SSE2)
        .modes(Modes::Only64)
        .exec(from_general::<u64, Sse>()),
    encoding("66.0F 6E", "MOVD", &[Vdq, Ed], F::SSE2).exec(from_general::<u32, Sse>()),
    encoding("66.0F 6F", "MOVDQA", &[Vdq, Wdq], F::SSE2).exec(load::<Even, Sse>()),
    encoding("F3.0F 6F", "MOVDQU", &[Vdq, Wdq], F::SSE2).exec(load::<All, Sse>()),
    encoding("66.0F.W1 7E", "MOVQ", &[Ey, Vdq], F::SSE2)
        .modes(Modes::Only64)
        .exec(to_general::<u64, Sse>()),
    encoding("66.0F 7E", "MOVD", &[Ed, Vdq], F::SSE2).exec(to_general::<u32, Sse>()),
    encoding("F3.0F 7E", "MOVQ", &[Vdq, Wq], F::SSE2).exec(load::<Quad, Sse>()),
    encoding("66.0F 7F", "MOVDQA", &[Wdq, Vdq], F::SSE2).exec(store::<Even, Sse>()),
    encoding("F3.0F 7F", "MOVDQU", &[Wdq, Vdq], F::SSE2).exec(store::<All, Sse>()),
    encoding("66.0F D6", "MOVQ", &[Wq, Vdq], F::SSE2).exec(store::<Quad, Sse>()),
    encoding("66.0F E7", "MOVNTDQ", &[Mdq, Vdq], F::SSE2).exec(store::<Even, Sse>()),
    encoding("F2.0F F0", "LDDQU", &[Vdq, Mdq], F::SSE3).exec(load::<All, Sse>()),
    encoding("66.0F38 2A", "MOVNTDQA", &[Vdq, Mdq], F::SSE4_1).exec(load::<Even, Sse>()),
];

/// An XMM register.
pub(crate) type Xmm = [u64; 2];

/// Which bits a move is about.
pub(crate) trait Part {
    /// How many bytes of memory they are.
    const BYTES: usize;
    /// What they have to be aligned to.
    const ALIGNMENT: u64 = 1;
    /// What a register becomes that memory is loaded into.
    fn loaded(old: Xmm, memory: Xmm) -> Xmm;
    /// What a register becomes that another one is moved into.
    fn moved(old: Xmm, source: Xmm) -> Xmm;
    /// What is stored of a register.
    fn stored(source: Xmm) -> Xmm {
        source
    }
}

/// All of it.
pub(crate) struct All;
/// All of it, on an even boundary in memory.
pub(crate) struct Even;
/// The lowest 32 bits: a load clears the others.
pub(crate) struct Single;
/// The lower half: a load clears the other one.
pub(crate) struct Double;
/// The lower half; between registers it comes from the upper one.
pub(crate) struct Low;
/// The upper half; between registers it comes from the lower one.
pub(crate) struct High;
/// The lower half, with the other one cleared.
pub(crate) struct Quad;

impl Part for All {
    const BYTES: usize = 16;
    fn loaded(_: Xmm, memory: Xmm) -> Xmm {
        memory
    }
    fn moved(_: Xmm, source: Xmm) -> Xmm {
        source
    }
}

impl Part for Even {
    const BYTES: usize = 16;
    const ALIGNMENT: u64 = 16;
    fn loaded(_: Xmm, memory: Xmm) -> Xmm {
        memory
    }
    fn moved(_: Xmm, source: Xmm) -> Xmm {
        source
    }
}

impl Part for Single {
    const BYTES: usize = 4;
    fn loaded(_: Xmm, memory: Xmm) -> Xmm {
        memory
    }
    fn moved(old: Xmm, source: Xmm) -> Xmm {
        const MASK: u64 = 0xFFFF_FFFF;
        [old[0] & !MASK | source[0] & MASK, old[1]]
    }
}

impl Part for Double {
    const BYTES: usize = 8;
    fn loaded(_: Xmm, memory: Xmm) -> Xmm {
        memory
    }
    fn moved(old: Xmm, source: Xmm) -> Xmm {
        [source[0], old[1]]
    }
}

impl Part for Low {
    const BYTES: usize = 8;
    fn loaded(old: Xmm, memory: Xmm) -> Xmm {
        [memory[0], old[1]]
    }
    fn moved(old: Xmm, source: Xmm) -> Xmm {
        [source[1], old[1]]
    }
}

impl Part for High {
    const BYTES: usize = 8;
    fn loaded(old: Xmm, memory: Xmm) -> Xmm {
        [old[0], memory[0]]
    }
    fn moved(old: Xmm, source: Xmm) -> Xmm {
        [old[0], source[0]]
    }
    fn stored(source: Xmm) -> Xmm {
        [source[1], 0]
    }
}

impl Part for Quad {
    const BYTES: usize = 8;
    fn loaded(_: Xmm, memory: Xmm) -> Xmm {
        [memory[0], 0]
    }
    fn moved(_: Xmm, source: Xmm) -> Xmm {
        [source[0], 0]
    }
}

/// The instruction set of a form.
pub(crate) trait Class {
    /// #UD or #NM.
    fn require(m: &Machine<'_, '_>) -> Step;
    /// The register that the bits come from which are not moved.
    fn base(op: &Op, destination: u8) -> u8;
    /// What becomes of the upper half of the YMM register.
    fn finish(_: &mut Machine<'_, '_>, _: u8) {}
}

/// SSE changes the XMM register alone.
pub(crate) struct Sse;
/// AVX has a register of its own for the other bits, and clears what lies above 128.
pub(crate) struct Avx;

impl Class for Sse {
    fn require(m: &Machine<'_, '_>) -> Step {
        require_sse(m)
    }
    fn base(_: &Op, destination: u8) -> u8 {
        destination
    }
}

impl Class for Avx {
    fn require(m: &Machine<'_, '_>) -> Step {
        require_avx(m)
    }
    fn base(op: &Op, _: u8) -> u8 {
        op.vvvv()
    }
    fn finish(m: &mut Machine<'_, '_>, register: u8) {
        *m.ymm_high_mut(register) = [0; 2];
    }
}

impl Machine<'_, '_> {
    pub(crate) fn xmm(&self, register: u8) -> Xmm {
        self.cpu.fpu.xmm[usize::from(register & 15)]
    }

    pub(crate) fn xmm_mut(&mut self, register: u8) -> &mut Xmm {
        &mut self.cpu.fpu.xmm[usize::from(register & 15)]
    }

    pub(crate) fn ymm_high_mut(&mut self, register: u8) -> &mut Xmm {
        &mut self.cpu.fpu.ymm_high[usize::from(register & 15)]
    }
}

fn set<C: Class>(m: &mut Machine<'_, '_>, register: u8, value: Xmm) {
    *m.xmm_mut(register) = value;
    C::finish(m, register);
}

/// Reads `P`'s bytes of memory.
fn read<P: Part>(m: &mut Machine<'_, '_>, op: &Op) -> Result<Xmm, Leave> {
    let operand = aligned(m, op, P::BYTES, P::ALIGNMENT, Access::Read)?;
    let mut bytes = [0; 16];
    m.read_operand(&operand, &mut bytes[..P::BYTES])?;
    Ok(halves(bytes))
}

/// The two halves of 16 bytes.
pub(crate) fn halves(bytes: [u8; 16]) -> Xmm {
    let value = u128::from_le_bytes(bytes);
    [value as u64, (value >> 64) as u64]
}

/// The 16 bytes of two halves.
pub(crate) fn bytes([low, high]: Xmm) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

fn load_r<P: Part, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let old = m.xmm(C::base(op, op.reg));
    set::<C>(m, op.reg, P::moved(old, m.xmm(op.rm)));
    Ok(())
}

fn load_m<P: Part, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let memory = read::<P>(m, op)?;
    let old = m.xmm(C::base(op, op.reg));
    set::<C>(m, op.reg, P::loaded(old, memory));
    Ok(())
}

fn store_r<P: Part, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let old = m.xmm(C::base(op, op.rm));
    set::<C>(m, op.rm, P::moved(old, m.xmm(op.reg)));
    Ok(())
}

fn store_m<P: Part, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let operand = aligned(m, op, P::BYTES, P::ALIGNMENT, Access::Write)?;
    let bytes = bytes(P::stored(m.xmm(op.reg)));
    m.write_operand(&operand, &bytes[..P::BYTES])
}

/// A move into the register in reg.
pub(crate) const fn load<P: Part, C: Class>() -> Exec {
    Exec::Forms(const { &[load_r::<P, C> as Handler, load_m::<P, C> as Handler] })
}

/// A move out of the register in reg.
pub(crate) const fn store<P: Part, C: Class>() -> Exec {
    Exec::Forms(const { &[store_r::<P, C> as Handler, store_m::<P, C> as Handler] })
}

fn from_general_r<W: Width, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let value = W::read(&m.cpu.gpr, op.rm).to_u64();
    set::<C>(m, op.reg, [value, 0]);
    Ok(())
}

fn from_general_m<W: Width, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    let value = m.load::<W>(op)?.to_u64();
    set::<C>(m, op.reg, [value, 0]);
    Ok(())
}

fn to_general_r<W: Width, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    W::from_u64(m.xmm(op.reg)[0]).write(&mut m.cpu.gpr, op.rm);
    Ok(())
}

fn to_general_m<W: Width, C: Class>(m: &mut Machine<'_, '_>, op: &Op) -> Step {
    C::require(m)?;
    m.store(op, W::from_u64(m.xmm(op.reg)[0]))
}

/// MOVD and MOVQ from a general register or memory; the rest of the register is cleared.
pub(crate) const fn from_general<W: Width, C: Class>() -> Exec {
    Exec::Forms(const { &[from_general_r::<W, C> as Handler, from_general_m::<W, C> as Handler] })
}

/// MOVD and MOVQ to a general register or memory.
pub(crate) const fn to_general<W: Width, C: Class>() -> Exec {
    Exec::Forms(const { &[to_general_r::<W, C> as Handler, to_general_m::<W, C> as Handler] })
}
