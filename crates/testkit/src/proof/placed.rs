//! The bytes of a case's code in memory: the instruction, and the jump that leaves the case after
//! it. Whoever executes a case has both there, since the instruction may read or jump into them.

use super::case::{Case, Code, Mode, Poke};
use super::layout::{CODE, Layout, RETURN};

/// Selector of 64-bit code in Linux.
const CODE_64: u16 = 0x33;

/// The jump to [`RETURN`] that follows the instruction; in real mode there is none.
pub fn return_code(mode: Mode, layout: Layout) -> Code {
    let mut code = Code::default();
    let target = layout.base + RETURN;
    let far = target.to_le_bytes().into_iter().chain(CODE_64.to_le_bytes());
    match mode {
        Mode::Real => {}
        Mode::Bits16 => [0x66, 0xEA].into_iter().chain(far).for_each(|byte| code.push(byte)),
        Mode::Bits32 => [0xEA].into_iter().chain(far).for_each(|byte| code.push(byte)),
        Mode::Bits64 => [0xFF, 0x25, 0, 0, 0, 0]
            .into_iter()
            .chain(u64::from(target).to_le_bytes())
            .for_each(|byte| code.push(byte)),
    }
    code
}

/// What lies in memory at the entry of a case. What would lie past the limit of its code segment
/// is left out: it cannot be executed.
pub fn placed_code(case: &Case) -> Poke {
    let mut placed = Poke { at: CODE + case.entry, ..Poke::default() };
    let back = return_code(case.mode, case.layout);
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
