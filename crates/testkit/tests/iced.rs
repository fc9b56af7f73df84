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

use crate::compare::Comparison;

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
    println!("{} comparisons", all.checked);
    all.assert_equal();
    let missed: Vec<Code> =
        Code::values().filter(|code| is_defined(*code) && !all.codes.contains(code)).collect();
    assert!(missed.is_empty(), "encodings that no bytes here have: {missed:?}");
}

fn compare(size: CodeSize) -> Comparison {
    let mut comparison = Comparison::new();
    for (name, space) in spaces::SPACES {
        let before = comparison.checked;
        space(size, &mut |bytes| comparison.check(size, bytes));
        println!("{}-bit {name}: {} instructions", size.bits(), comparison.checked - before);
    }
    if size == CodeSize::Bits64 {
        spaces::vector_opcodes(&mut |bytes| comparison.check(size, bytes));
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
