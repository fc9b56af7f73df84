//! Our decoder against iced-x86, with the comparison and the known differences of the tests.

#[allow(dead_code)] // reports of whole spaces are the tests'
#[path = "../../crates/testkit/tests/iced/compare.rs"]
mod compare;
#[allow(dead_code)] // VIA's instructions by name are the tests'
#[path = "../../crates/testkit/tests/iced/differences.rs"]
mod differences;
#[path = "../../crates/testkit/tests/iced/operands.rs"]
mod operands;
#[path = "../../crates/testkit/tests/iced/properties.rs"]
mod properties;

use realmode::CodeSize;

use crate::Reached;
use compare::{Comparison, LONGEST};

/// The bytes behind the first are an instruction for both decoders or for neither, with the same
/// length, name and operands. The first is the size of the code.
pub fn decode_vs_iced(data: &[u8]) -> Reached {
    let Some((size, data)) = data.split_first() else { return Reached::default() };
    let size = [CodeSize::Bits16, CodeSize::Bits32, CodeSize::Bits64][usize::from(size % 3)];
    let mut bytes = [0; LONGEST];
    for (place, byte) in bytes.iter_mut().zip(data) {
        *place = *byte;
    }
    let mut comparison = Comparison::new();
    comparison.check(size, &bytes);
    comparison.assert_equal();
    Reached { instructions: comparison.checked, ..Reached::default() }
}
