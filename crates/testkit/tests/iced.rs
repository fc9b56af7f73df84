//! Our decoder against iced-x86, which models a modern Intel processor and knows most of AMD's:
//! the same bytes are an instruction for both or for neither, with the same length, name and
//! operands; and no encoding that iced knows is without a row.

#[path = "iced/compare.rs"]
mod compare;
#[path = "iced/differences.rs"]
mod differences;
#[path = "iced/spaces.rs"]
mod spaces;
#[path = "iced/text.rs"]
mod text;

use std::thread;

use iced_x86::{Code, DecoderOptions, Mnemonic};
use realmode::CodeSize;

use crate::compare::Comparison;

/// Compares whole spaces of bytes, each in a thread of its own.
#[test]
fn lengths_validity_and_names_agree_and_every_encoding_has_a_row() {
    let comparisons = thread::scope(|scope| {
        let spaces = [
            scope.spawn(|| legacy(CodeSize::Bits16)),
            scope.spawn(|| legacy(CodeSize::Bits32)),
            scope.spawn(|| legacy(CodeSize::Bits64)),
            scope.spawn(vex_and_xop),
            scope.spawn(evex),
        ];
        spaces.map(|space| space.join().expect("a comparison does not panic"))
    });
    let mut all = Comparison::new();
    comparisons.into_iter().for_each(|comparison| all.add(comparison));
    println!("{} comparisons", all.checked);
    all.assert_equal();
    let missed: Vec<Code> =
        Code::values().filter(|code| is_defined(*code) && !all.codes.contains(code)).collect();
    assert!(missed.is_empty(), "encodings that no bytes here have: {missed:?}");
}

fn legacy(size: CodeSize) -> Comparison {
    let mut comparison = Comparison::new();
    spaces::legacy(size, &(0..=255), &mut |bytes| comparison.check(size, bytes));
    comparison
}

fn vex_and_xop() -> Comparison {
    let mut comparison = Comparison::new();
    for size in [CodeSize::Bits32, CodeSize::Bits64] {
        spaces::vex(&mut |bytes| comparison.check(size, bytes));
        spaces::xop(&mut |bytes| comparison.check(size, bytes));
    }
    comparison
}

fn evex() -> Comparison {
    let mut comparison = Comparison::new();
    for size in [CodeSize::Bits32, CodeSize::Bits64] {
        spaces::evex(&mut |bytes| comparison.check(size, bytes));
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
