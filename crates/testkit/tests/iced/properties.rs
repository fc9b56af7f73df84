//! What two decoders say of an instruction that both know by one name: its sizes, its prefixes and
//! each operand.

use iced_x86::{Instruction as Theirs, Mnemonic, OpCodeOperandKind as Kind, OpKind, Register};
use realmode::{CodeSize, Instruction as Ours, SegReg};

use super::compare::is_prefix;
use super::operands;

/// The first property that differs. The texts are ours, and a buffer for what was expected.
pub(crate) fn difference(
    theirs: &Theirs,
    ours: &Ours,
    size: CodeSize,
    (our_text, their_text): (&str, &mut String),
) -> Option<&'static str> {
    their_text.clear();
    let bits = size.bits();
    let (prefixes, rest) = split(our_text);
    let found = sizes(theirs, ours);
    if found.is_some() {
        return found;
    }
    if theirs.is_string_instruction() || theirs.mnemonic() == Mnemonic::Xlatb {
        // Its name says the rest.
        operands::write_string_prefixes(their_text, theirs, bits);
        return (prefixes != their_text).then_some("prefixes");
    }
    if bits == 64 && is_mpx(theirs.mnemonic()) && ours.address_size() == 4 {
        // SDM vol. 1, "Intel MPX Operating Environment": 67 has no effect; our text shows it.
        return None;
    }
    memory(theirs, ours, bits).or_else(|| {
        operands::write(their_text, theirs, bits);
        let (operands, rounding) = split_rounding(rest.find(' ').map_or("", |at| &rest[at..]));
        if rounding != operands::rounding(theirs) {
            return Some("rounding");
        }
        (operands != *their_text).then_some("operands")
    })
}

/// LOCK, and the sizes that the encoding has.
fn sizes(theirs: &Theirs, ours: &Ours) -> Option<&'static str> {
    let op_code = theirs.op_code();
    let operand_bits = u32::from(ours.operand_size()) * 8;
    let address_bits = u32::from(ours.address_size()) * 8;
    let same_operands = match op_code.operand_size() {
        0 => true,
        _ if operand_bits == 64 && ignores_rex_w(theirs.mnemonic()) => true,
        bits => bits == operand_bits,
    };
    if theirs.has_lock_prefix() != ours.is_locked() {
        Some("LOCK")
    } else if !same_operands {
        Some("operand size")
    } else if is_byte(theirs) != (operand_bits == 8) {
        Some("byte size")
    } else if op_code.address_size() != 0 && op_code.address_size() != address_bits {
        Some("address size")
    } else {
        None
    }
}

/// The form, address size and segment of the memory operand.
fn memory(theirs: &Theirs, ours: &Ours, bits: u8) -> Option<&'static str> {
    if theirs.op_kinds().any(|kind| kind == OpKind::Memory) != ours.is_memory() {
        Some("memory form")
    } else if !ours.is_memory() {
        None
    } else if operands::address_bits(theirs, bits) != usize::from(ours.address_size()) * 8 {
        Some("address size of memory")
    } else {
        (segment(theirs, bits) != ours.segment()).then_some("segment")
    }
}

/// Prefixes and the rest of a text.
fn split(text: &str) -> (&str, &str) {
    let mut at = 0;
    while let Some((word, _)) = text[at..].split_once(' ')
        && is_prefix(word)
    {
        at += word.len() + 1;
    }
    text.split_at(at)
}

/// A list of operands without `{rd-sae}` or `{sae}`, and that.
fn split_rounding(operands: &str) -> (String, String) {
    let Some((before, after)) = operands.split_once(", {") else {
        return (operands.to_string(), String::new());
    };
    let (rounding, after) = after.split_once('}').unwrap_or((after, ""));
    (format!("{before}{after}"), format!("{{{rounding}}}"))
}

/// Is a 64-bit operand size a 32-bit one? SDM vol. 2A, "IN", "INS", vol. 2B, "OUT", "OUTS": ports
/// have at most 32 bits; "FLDENV", "FNSAVE" and their like: the formats are those of 16 and 32
/// bits; vol. 2D, "XBEGIN": the displacement is.
fn ignores_rex_w(name: Mnemonic) -> bool {
    matches!(
        name,
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insd
            | Mnemonic::Outsd
            | Mnemonic::Fldenv
            | Mnemonic::Fnstenv
            | Mnemonic::Fnsave
            | Mnemonic::Frstor
            | Mnemonic::Xbegin
    )
}

fn is_mpx(name: Mnemonic) -> bool {
    matches!(
        name,
        Mnemonic::Bndcl
            | Mnemonic::Bndcn
            | Mnemonic::Bndcu
            | Mnemonic::Bndldx
            | Mnemonic::Bndmk
            | Mnemonic::Bndmov
            | Mnemonic::Bndstx
    )
}

/// Is it an instruction on bytes: is the first operand that has a size one of 8 bits?
fn is_byte(theirs: &Theirs) -> bool {
    let op_code = theirs.op_code();
    let decides = |kind: &Kind| !matches!(kind, Kind::dx | Kind::imm8 | Kind::None);
    let first = op_code.op_kinds().iter().copied().find(decides);
    matches!(first, Some(Kind::r8_or_mem | Kind::r8_reg | Kind::r8_opcode | Kind::al))
        || matches!(first, Some(Kind::mem_offs | Kind::seg_rSI | Kind::es_rDI))
            && theirs.memory_size().size() == 1
}

/// The segment of the memory operand.
fn segment(theirs: &Theirs, bits: u8) -> Option<SegReg> {
    let prefix = operands::segment_prefix(theirs, bits);
    let default = match theirs.memory_base() {
        Register::BP | Register::EBP | Register::ESP | Register::RBP | Register::RSP => {
            Register::SS
        }
        _ => Register::DS,
    };
    match prefix.unwrap_or(default) {
        Register::ES => Some(SegReg::Es),
        Register::CS => Some(SegReg::Cs),
        Register::SS => Some(SegReg::Ss),
        Register::DS => Some(SegReg::Ds),
        Register::FS => Some(SegReg::Fs),
        Register::GS => Some(SegReg::Gs),
        _ => None,
    }
}
