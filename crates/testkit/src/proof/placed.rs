//! The bytes of a case's code in memory: the instruction, and the jump that leaves the case after
//! it. Whoever executes a case has both there, since the instruction may read or jump into them.

use super::case::{Case, Code, Mode, Poke};
use super::layout::{CODE, Layout, RETURN};

/// Selector of 64-bit code in Linux.
const CODE_64: u8 = 0x33;

/// How long the jump back is.
pub const fn back_len(mode: Mode) -> u8 {
    match mode {
        Mode::Real => 0,
        Mode::Bits16 => 8,
        Mode::Bits32 => 7,
        Mode::Bits64 => 5,
    }
}

/// The jump to [`RETURN`] that follows an instruction which ends at offset `end` of the code; in
/// real mode there is none. It reads no memory, which EFLAGS.AC could object to.
pub fn return_code(mode: Mode, layout: Layout, end: u32) -> Code {
    let mut code = Code { len: back_len(mode), ..Code::default() };
    let [a, b, c, d] = match mode {
        Mode::Bits64 => RETURN.wrapping_sub(CODE + end + 5).to_le_bytes(),
        _ => (layout.base + RETURN).to_le_bytes(),
    };
    match mode {
        Mode::Real => {}
        Mode::Bits16 => code.bytes[..8].copy_from_slice(&[0x66, 0xEA, a, b, c, d, CODE_64, 0]),
        Mode::Bits32 => code.bytes[..7].copy_from_slice(&[0xEA, a, b, c, d, CODE_64, 0]),
        Mode::Bits64 => code.bytes[..5].copy_from_slice(&[0xE9, a, b, c, d]),
    }
    code
}

/// What lies in memory at the entry of a case. What would lie past the limit of its code segment
/// is left out: it cannot be executed.
pub fn placed_code(case: &Case) -> Poke {
    let mut placed = Poke { at: CODE + case.entry, ..Poke::default() };
    let back = return_code(case.mode, case.layout, case.entry + u32::from(case.code.len));
    let middle = usize::from(case.code.len);
    let end = middle + usize::from(back.len);
    placed.bytes[..middle].copy_from_slice(case.code.as_slice());
    placed.bytes[middle..end].copy_from_slice(back.as_slice());
    let room = match case.mode {
        Mode::Bits64 => end,
        _ => end.min(0x1_0000_usize.saturating_sub(case.entry as usize)),
    };
    placed.bytes[room..].fill(0);
    placed.len = room as u8;
    placed
}
