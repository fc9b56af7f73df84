//! MMX, SSE, AVX, AVX-512 and every other encoding with VEX, EVEX, XOP or a mandatory prefix that
//! is not an integer instruction. Moves and the state itself are executed; of the rest all have
//! their length, and what they need is checked before they stop as `Unimplemented`.
//!
//! A row is written as the manual writes it, less what its operands say anyway:
//!
//! - `"66.0F38 00"`, `"NP.0F AE /5"`, `"F3.0F.W1 AE /5"` (W1 is REX.W), `"F3.0F 01 E8"`;
//! - `"VEX.128-256.66.0F.WIG 58"`, `"VEX.LIG.F3.0F38.W0 F7"`, `"XOP.128.NP.MAP9.W0 81"`;
//! - `"EVEX.128-512.66.0F38.W1 98 {kz,b64,er}"`: masking (`k`; `k!` where k0 is #UD), zeroing
//!   (`z`), broadcast of 16, 32 or 64 bits (`b64`), rounding control (`er`) or just `sae`; and,
//!   VEX or EVEX, no register named twice (`uniq`);
//! - `"3DNOW 9E"`.
//!
//! Lengths joined by a dash share the row. One file a map, sorted by opcode, so that the files
//! can be held against the opcode maps of SDM vol. 2D and APM vol. 3.

pub(crate) mod available;
pub(super) mod avx_moves;
pub(super) mod evex_0f;
pub(super) mod evex_0f38;
pub(super) mod evex_0f3a;
pub(super) mod evex_fp16;
pub(super) mod fxsave;
mod legacy;
pub(super) mod mmx_moves;
pub(super) mod moves;
pub(super) mod now3d;
pub(super) mod sse_0f;
pub(super) mod sse_0f38;
pub(super) mod state;
pub(super) mod vex_0f;
pub(super) mod vex_0f38;
pub(super) mod vex_0f3a;
pub(super) mod xop;
pub(super) mod xsave;

use crate::arch::cpuid::Features;
use crate::bus::Access;
use crate::fault::Fault;
use crate::isa::operand::Operand;
use crate::isa::row::{Exec, Form, Map, Prefix, Row, Traits, Vector, VectorSet, row};
use crate::machine::{Leave, Machine};
use crate::mem::access;
use crate::op::Op;

/// Prepares a memory operand. One that is not on a boundary of `alignment` bytes is #GP, whatever
/// its segment: that is looked at before the limit, and before canonical addresses, as Zen 3 does.
fn aligned<'m>(
    m: &mut Machine<'_, 'm>,
    op: &Op,
    size: usize,
    alignment: u64,
    access: Access,
) -> Result<access::Operand<'m>, Leave> {
    let offset = m.offset(op);
    let base = match m.cpu.seg.get(usize::from(op.seg)) {
        Some(segment) if !m.cpu.is_64_bit_code() => segment.base,
        _ => m.flat_base(op.seg),
    };
    let linear = base.wrapping_add(offset);
    if linear & (alignment - 1) != 0 {
        return Err(Fault::GP.into());
    }
    m.prepare(op.seg, offset, size, access)
}

/// Begins a row from the manual's notation.
const fn encoding(text: &str, name: &'static str, operands: &[Operand], features: Features) -> Row {
    let mut row = row(Map::TwoByte, name, 0, operands).needs(features).prefix(Prefix::None);
    let text = text.as_bytes();
    let mut part = Part::Lead(Kind::Legacy);
    let mut token = 0;
    let mut i = 0;
    while i < text.len() {
        if matches!(text[i], b'.' | b' ' | b',' | b'{' | b'}') {
            part = take(&mut row, part, token, text[i]);
            token = 0;
        } else {
            token = token << 8 | text[i] as u64;
        }
        i += 1;
    }
    take(&mut row, part, token, b' ');
    if let Some(set) = row.vector_set() {
        row.traits.0 |= Traits::NOT_EXECUTED;
        row.exec = Exec::NotExecuted(set);
    }
    row
}

impl Row {
    /// The set that has to be available, by operands and prefix.
    const fn vector_set(&self) -> Option<VectorSet> {
        let (mut has_mmx, mut has_vector, mut has_mask) = (false, false, false);
        let mut i = 0;
        while i < self.operands.len() {
            let operand = self.operands[i];
            has_mmx |= operand.is_mmx();
            has_vector |= operand.is_xmm();
            has_mask |= operand.is_mask();
            i += 1;
        }
        match self.map {
            Map::Evex1 | Map::Evex2 | Map::Evex3 | Map::Evex5 | Map::Evex6 => {
                Some(VectorSet::Avx512)
            }
            _ if has_mask => Some(VectorSet::Avx512),
            Map::Vex1 | Map::Vex2 | Map::Vex3 if has_vector => Some(VectorSet::Avx),
            Map::Xop8 | Map::Xop9 | Map::XopA if has_vector => Some(VectorSet::Avx),
            _ if has_vector => Some(VectorSet::Sse),
            _ if has_mmx => Some(VectorSet::Mmx),
            _ => None,
        }
    }
}

/// What part of the notation a token belongs to.
#[derive(Clone, Copy)]
enum Part {
    Lead(Kind),
    Opcode,
    Rest,
}

/// What kind of prefix an encoding has.
#[derive(Clone, Copy)]
enum Kind {
    Legacy,
    Vex,
    Evex,
    Xop,
}

/// Takes the token that ends with `end`.
const fn take(row: &mut Row, part: Part, token: u64, end: u8) -> Part {
    match part {
        _ if token == 0 => part,
        Part::Lead(kind) => {
            let kind = take_lead(row, kind, token);
            if end == b' ' { Part::Opcode } else { Part::Lead(kind) }
        }
        Part::Opcode => {
            row.opcode = byte(token);
            Part::Rest
        }
        Part::Rest => {
            take_rest(row, token);
            Part::Rest
        }
    }
}

/// What stands before the opcode, between dots.
const fn take_lead(row: &mut Row, kind: Kind, token: u64) -> Kind {
    match token {
        VEX => return Kind::Vex,
        EVEX => return Kind::Evex,
        XOP => return Kind::Xop,
        NOW => (row.map, row.prefix) = (Map::Now3d, Prefix::Any),
        NP => row.prefix = Prefix::None,
        P66 => row.prefix = Prefix::P66,
        F3 => row.prefix = Prefix::F3,
        F2 => row.prefix = Prefix::F2,
        W0 => row.vector.w = 1,
        W1 => row.vector.w = 2,
        WIG => row.vector.w = 3,
        L128 => row.vector.lengths = 1,
        L256 => row.vector.lengths = 2,
        L512 => row.vector.lengths = 4,
        L128_256 => row.vector.lengths = 3,
        L256_512 => row.vector.lengths = 6,
        L128_512 | LIG => row.vector.lengths = 7,
        _ => row.map = map(kind, token),
    }
    kind
}

const fn map(kind: Kind, token: u64) -> Map {
    match (kind, token) {
        (Kind::Legacy, M0F) => Map::TwoByte,
        (Kind::Legacy, M0F38) => Map::M0F38,
        (Kind::Legacy, M0F3A) => Map::M0F3A,
        (Kind::Vex, M0F) => Map::Vex1,
        (Kind::Vex, M0F38) => Map::Vex2,
        (Kind::Vex, M0F3A) => Map::Vex3,
        (Kind::Vex, MAP7) => Map::Vex7,
        (Kind::Evex, M0F) => Map::Evex1,
        (Kind::Evex, M0F38) => Map::Evex2,
        (Kind::Evex, M0F3A) => Map::Evex3,
        (Kind::Evex, MAP5) => Map::Evex5,
        (Kind::Evex, MAP6) => Map::Evex6,
        (Kind::Xop, MAP8) => Map::Xop8,
        (Kind::Xop, MAP9) => Map::Xop9,
        (Kind::Xop, MAPA) => Map::XopA,
        _ => panic!("no such map or prefix"),
    }
}

/// What stands after the opcode: a digit, a whole ModRM byte, `{kz,b32,er}`.
const fn take_rest(row: &mut Row, token: u64) {
    row.vector.evex |= match token {
        K => Vector::MASK,
        KZ => Vector::MASK | Vector::ZEROING,
        K_REQUIRED => Vector::MASK | Vector::MASK_REQUIRED,
        B16 => Vector::BROADCAST_16,
        B32 => Vector::BROADCAST_32,
        B64 => Vector::BROADCAST_64,
        ER => Vector::ROUNDING,
        SAE => Vector::SAE,
        UNIQUE => Vector::DISTINCT,
        RM0 => {
            row.form = Form::RegisterZero;
            0
        }
        _ if token >> 8 == b'/' as u64 => {
            *row = row.digit(token as u8 - b'0');
            0
        }
        _ => {
            *row = row.modrm(byte(token));
            0
        }
    };
}

/// A byte in hexadecimal.
const fn byte(token: u64) -> u8 {
    const fn digit(letter: u8) -> u8 {
        match letter {
            b'0'..=b'9' => letter - b'0',
            b'A'..=b'F' => letter - b'A' + 10,
            _ => panic!("not a hexadecimal digit"),
        }
    }
    assert!(token >> 16 == 0, "an opcode has two hexadecimal digits");
    digit((token >> 8) as u8) << 4 | digit(token as u8)
}

/// A token of at most eight letters as a number: the compiler matches numbers fast, and it has to
/// for every row.
const fn word(token: &[u8]) -> u64 {
    let mut word = 0;
    let mut i = 0;
    while i < token.len() {
        word = word << 8 | token[i] as u64;
        i += 1;
    }
    word
}

const VEX: u64 = word(b"VEX");
const EVEX: u64 = word(b"EVEX");
const XOP: u64 = word(b"XOP");
const NOW: u64 = word(b"3DNOW");
const NP: u64 = word(b"NP");
const P66: u64 = word(b"66");
const F3: u64 = word(b"F3");
const F2: u64 = word(b"F2");
const W0: u64 = word(b"W0");
const W1: u64 = word(b"W1");
const WIG: u64 = word(b"WIG");
const L128: u64 = word(b"128");
const L256: u64 = word(b"256");
const L512: u64 = word(b"512");
const L128_256: u64 = word(b"128-256");
const L256_512: u64 = word(b"256-512");
const L128_512: u64 = word(b"128-512");
const LIG: u64 = word(b"LIG");
const M0F: u64 = word(b"0F");
const M0F38: u64 = word(b"0F38");
const M0F3A: u64 = word(b"0F3A");
const MAP7: u64 = word(b"MAP7");
const MAP5: u64 = word(b"MAP5");
const MAP6: u64 = word(b"MAP6");
const MAP8: u64 = word(b"MAP8");
const MAP9: u64 = word(b"MAP9");
const MAPA: u64 = word(b"MAPA");
const K: u64 = word(b"k");
const KZ: u64 = word(b"kz");
const K_REQUIRED: u64 = word(b"k!");
const B16: u64 = word(b"b16");
const B32: u64 = word(b"b32");
const B64: u64 = word(b"b64");
const ER: u64 = word(b"er");
const SAE: u64 = word(b"sae");
const UNIQUE: u64 = word(b"uniq");
const RM0: u64 = word(b"rm0");
