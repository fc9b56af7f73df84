//! The instruction set: one family a file, each with its rows and its handlers.
//!
//! Nothing outside a family names its instructions: decode finds rows through [`table`].

pub(crate) mod alu;
pub(crate) mod bcd;
pub(crate) mod bits;
pub(crate) mod branch;
pub(crate) mod condition;
pub(crate) mod control;
pub(crate) mod divide_286;
pub(crate) mod exchange;
pub(crate) mod far;
pub(crate) mod flag;
pub(crate) mod fpu;
pub(crate) mod hint;
pub(crate) mod mov;
pub(crate) mod msr;
pub(crate) mod muldiv;
pub(crate) mod operand;
pub(crate) mod port;
pub(crate) mod protected;
pub(crate) mod repeat;
pub(crate) mod row;
pub(crate) mod segment;
pub(crate) mod shift;
pub(crate) mod simd;
pub(crate) mod stack;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod table;
pub(crate) mod vmx;

use crate::isa::row::Row;

/// Every family. Within an opcode the first row that fits wins, so a family that refines another
/// one's encoding by a prefix comes first.
const FAMILIES: &[&[Row]] = &[
    simd::state::ROWS,
    simd::sse_0f::ROWS,
    simd::sse_0f38::ROWS,
    simd::vex_0f::ROWS,
    simd::vex_0f38::ROWS,
    simd::vex_0f3a::ROWS,
    simd::evex_0f::ROWS,
    simd::evex_0f38::ROWS,
    simd::evex_0f3a::ROWS,
    simd::evex_fp16::ROWS,
    simd::xop::ROWS,
    simd::now3d::ROWS,
    alu::ROWS,
    hint::ROWS,
    mov::ROWS,
    segment::ROWS,
    condition::ROWS,
    exchange::ROWS,
    stack::ROWS,
    branch::ROWS,
    far::ROWS,
    shift::ROWS,
    muldiv::ROWS,
    bits::ROWS,
    bcd::ROWS,
    string::ROWS,
    port::ROWS,
    flag::ROWS,
    system::ROWS,
    msr::ROWS,
    vmx::ROWS,
    control::ROWS,
    protected::ROWS,
    fpu::ROWS,
];
