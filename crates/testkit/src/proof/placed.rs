//! The bytes of a case's code in memory: the instruction, and the jump that leaves the case after
//! it. Whoever executes a case has both there, since the instruction may read or jump into them.

use super::case::{Case, Code, Mode, Poke};
use super::layout::{CODE, Layout, RETURN};

/// Selector of 64-bit code in Linux.
const CODE_64: u16 = 0x33;

/// The jump to [`RETURN`] that follows an instruction which ends at offset `end` of the code; in
/// real mode there is none. It reads no memory, which EFLAGS.AC could object to.
pub fn return_code(mode: Mode, layout: Layout, end: u32) -> Code {
    let mut code = Code::default();
    let far = (layout.base + RETURN).to_le_bytes().into_iter().chain(CODE_64.to_le_bytes());
    match mode {
        Mode::Real => {}
        Mode::Bits16 => [0x66, 0xEA].into_iter().chain(far).for_each(|byte| code.push(byte)),
        Mode::Bits32 => [0xEA].into_iter().chain(far).for_each(|byte| code.push(byte)),
        Mode::Bits64 => {
            let near = RETURN.wrapping_sub(CODE + end + 5).to_le_bytes();
            [0xE9].into_iter().chain(near).for_each(|byte| code.push(byte));
        }
    }
    code
}

/// What lies in memory at the entry of a case. What would lie past the limit of its code segment
/// is left out: it cannot be executed.
pub fn placed_code(case: &Case) -> Poke {
    let mut placed = Poke { at: CODE + case.entry, ..Poke::default() };
    let back = return_code(case.mode, case.layout, case.entry + u32::from(case.code.len));
    let room = match case.mode {
        Mode::Bits64 => placed.bytes.len(),
        _ => 0x1_0000_usize.saturating_sub(case.entry as usize),
    };
    let bytes = case.code.as_slice().iter().chain(back.as_slice());
    for (place, &byte) in placed.bytes.iter_mut().zip(bytes).take(room) {
        *place = byte;
        placed.len += 1;
    }
    placed
}
