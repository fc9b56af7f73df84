//! Our decoder against iced-x86, which models a modern Intel processor and knows most of AMD's:
//! the same bytes are an instruction for both or for neither, with the same length, name, sizes
//! and operands; and no encoding that iced knows is without a row.

#[path = "iced/compare.rs"]
mod compare;
#[path = "iced/differences.rs"]
mod differences;
#[path = "iced/execute.rs"]
mod execute;
#[path = "iced/operands.rs"]
mod operands;
#[path = "iced/properties.rs"]
mod properties;
#[path = "iced/spaces.rs"]
mod spaces;

use std::thread;

use iced_x86::{Code, DecoderOptions, Mnemonic};
use realmode::CodeSize;

use crate::compare::{Comparison, LONGEST};
use crate::spaces::Walk;

const SIZES: [CodeSize; 3] = [CodeSize::Bits16, CodeSize::Bits32, CodeSize::Bits64];

/// Compares spaces of bytes, each code size in a thread of its own.
#[test]
fn lengths_validity_names_and_operands_agree_and_every_encoding_has_a_row() {
    let comparisons = thread::scope(|scope| {
        let sizes = SIZES.map(|size| scope.spawn(move || compare(size)));
        sizes.map(|size| size.join().expect("a comparison does not panic"))
    });
    let mut all = Comparison::new();
    comparisons.into_iter().for_each(|comparison| all.add(comparison));
    all.assert_equal();
    let missed: Vec<Code> =
        Code::values().filter(|code| is_defined(*code) && !all.codes.contains(code)).collect();
    assert!(missed.is_empty(), "encodings that no bytes here have: {missed:?}");
}

fn compare(size: CodeSize) -> Comparison {
    let mut comparison = Comparison::new();
    let mut total = 0;
    let mut space = |name: &str, walk: &dyn Fn(&mut dyn FnMut(&[u8; LONGEST]))| {
        walk(&mut |bytes| comparison.check(size, bytes));
        println!("{}-bit {name}: {} instructions", size.bits(), comparison.checked - total);
        total = comparison.checked;
    };
    space("opcodes", &|check| spaces::opcodes(size, check));
    space("prefixes", &|check| spaces::legacy(size, Walk::new(check)));
    space("VEX", &|check| spaces::vex(Walk::new(check)));
    space("XOP", &|check| spaces::xop(Walk::new(check)));
    space("random bytes", &|check| spaces::random(Walk::new(check)));
    space("EVEX", &|check| spaces::evex(Walk::new(check)));
    if size == CodeSize::Bits64 {
        space("vector opcodes", &|check| spaces::vector_opcodes(check));
    }
    comparison
}

/// Does a manual in force define it? iced also knows what Cyrix, VIA and prototypes had.
fn is_defined(code: Code) -> bool {
    let op_code = code.op_code();
    let option = op_code.decoder_option();
    op_code.is_instruction()
        && code.mnemonic() != Mnemonic::INVALID
        // FSTSW and its like are FWAIT and another instruction.
        && !op_code.fwait()
        && (option == DecoderOptions::NONE || option == DecoderOptions::MPX)
        // AMD's decoder alone, or the 8086's: our profile is a modern Intel one.
        && (op_code.intel_decoder32() || op_code.intel_decoder64())
        && code != Code::Popw_CS
        && !differences::is_via(code.mnemonic())
}
