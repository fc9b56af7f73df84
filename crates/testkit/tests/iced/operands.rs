//! Operands of an instruction as iced has them, in our spelling: registers, memory with its size,
//! segment, base, index, scale and displacement, immediates, branch targets, masks, rounding.

use std::fmt::Write;
use std::sync::LazyLock;

use iced_x86::{
    Instruction, MemorySize, Mnemonic, OpCodeOperandKind, OpKind, Register, RoundingControl,
};

/// Where the instructions are said to be.
pub(crate) const IP: u64 = 0x1000;

/// Writes the operands, separated as ours are.
pub(crate) fn write(out: &mut String, theirs: &Instruction, bits: u8) {
    let is_stack_register = theirs.op0_kind() == OpKind::Register;
    let mut separator = " ";
    if theirs.mnemonic() == Mnemonic::Fld && is_stack_register {
        out.push_str(" st0");
        separator = ", ";
    }
    for i in (0..theirs.op_count()).filter(|i| is_named(theirs, *i)) {
        out.push_str(separator);
        write_operand(out, theirs, i, bits);
        let kind = theirs.op_code().op_kind(i);
        if matches!(kind, OpCodeOperandKind::xmmp3_vvvv | OpCodeOperandKind::zmmp3_vvvv) {
            out.push_str("+3");
        }
        if i == 0 {
            write_mask(out, theirs);
        }
        separator = ", ";
    }
    let is_fst = matches!(theirs.mnemonic(), Mnemonic::Fst | Mnemonic::Fstp | Mnemonic::Fstpnce);
    if is_fst && is_stack_register {
        out.push_str(", st0");
    }
    // LOOP names its counter if it is not the usual one.
    let counter = theirs.op_code().address_size();
    if theirs.is_loop() || theirs.is_loopcc() {
        out.push_str(match counter {
            _ if counter == u32::from(bits) => "",
            16 => ", cx",
            32 => ", ecx",
            _ => ", rcx",
        });
    }
}

/// Do we name the operand, too?
fn is_named(theirs: &Instruction, i: u32) -> bool {
    match theirs.op_kind(i) {
        // MASKMOVQ, MASKMOVDQU: the destination is always at rDI.
        OpKind::MemorySegDI | OpKind::MemorySegEDI | OpKind::MemorySegRDI => false,
        // The manual calls reserved NOPs NOP Ev.
        _ => theirs.mnemonic() != Mnemonic::Reservednop || i == 0,
    }
}

fn write_operand(out: &mut String, theirs: &Instruction, i: u32, bits: u8) {
    let immediate = |out: &mut String, mask: u64| {
        let _ = write!(out, "{:#x}", theirs.immediate(i) & mask);
    };
    match theirs.op_kind(i) {
        OpKind::Register => out.push_str(register(spelt(theirs, i))),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            let _ = write!(out, "{:#x}", theirs.near_branch_target());
        }
        OpKind::FarBranch16 => {
            let (selector, offset) = (theirs.far_branch_selector(), theirs.far_branch16());
            let _ = write!(out, "{selector:#x}:{offset:#x}");
        }
        OpKind::FarBranch32 => {
            let (selector, offset) = (theirs.far_branch_selector(), theirs.far_branch32());
            let _ = write!(out, "{selector:#x}:{offset:#x}");
        }
        OpKind::Immediate8to16 => immediate(out, 0xFFFF),
        OpKind::Immediate8to32 => immediate(out, 0xFFFF_FFFF),
        OpKind::Memory => write_memory(out, theirs, bits),
        // Strings: the name says it all.
        OpKind::Immediate8
        | OpKind::Immediate8_2nd
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => immediate(out, u64::MAX),
        _ => out.push_str("string"),
    }
}

/// Writes what stands before a string instruction, whose name says the rest.
pub(crate) fn write_string_prefixes(out: &mut String, theirs: &Instruction, bits: u8) {
    let is_compare = matches!(
        theirs.mnemonic(),
        Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
            | Mnemonic::Scasb
            | Mnemonic::Scasw
            | Mnemonic::Scasd
            | Mnemonic::Scasq
    );
    out.push_str(match (theirs.has_rep_prefix(), theirs.has_repne_prefix()) {
        // A repeat before XLATB means nothing.
        _ if theirs.mnemonic() == Mnemonic::Xlatb => "",
        (true, _) if is_compare => "repe ",
        (true, _) => "rep ",
        (_, true) => "repne ",
        _ => "",
    });
    if let Some(segment) = segment_prefix(theirs, bits) {
        out.push_str(register(segment));
        out.push(' ');
    }
    let address = theirs.op_kinds().find_map(string_address);
    let address = address.unwrap_or_else(|| address_bits(theirs, bits) as u8);
    if address != bits {
        let _ = write!(out, "a{address} ");
    }
}

/// The address size of a string operand.
fn string_address(kind: OpKind) -> Option<u8> {
    match kind {
        OpKind::MemorySegSI | OpKind::MemorySegDI | OpKind::MemoryESDI => Some(16),
        OpKind::MemorySegESI | OpKind::MemorySegEDI | OpKind::MemoryESEDI => Some(32),
        OpKind::MemorySegRSI | OpKind::MemorySegRDI | OpKind::MemoryESRDI => Some(64),
        _ => None,
    }
}

/// A register as the manual's row names it. iced names it by operand size and REX.W, which have no
/// say in these.
fn spelt(theirs: &Instruction, i: u32) -> Register {
    let register = theirs.op_register(i);
    let is_source = i + 1 == theirs.op_count();
    let kind = theirs.op_code().op_kind(i);
    let is_word = match theirs.mnemonic() {
        // SDM vol. 2A and 2B, "LAR", "LLDT", "LMSW", "LSL", "LTR", "MOV", vol. 2D "VERR/VERW": a
        // selector or status word of a register is its low 16 bits; "ARPL": both are.
        Mnemonic::Lldt | Mnemonic::Lmsw | Mnemonic::Ltr | Mnemonic::Verr | Mnemonic::Verw => true,
        Mnemonic::Lar | Mnemonic::Lsl => is_source,
        Mnemonic::Mov => is_source && theirs.op0_register().is_segment_register(),
        Mnemonic::Arpl | Mnemonic::Lkgs => true,
        _ => false,
    };
    if is_word {
        return named(Register::AX, register);
    }
    // SDM vol. 2B, "PEXTRB", "PINSRB", "PINSRW", vol. 2A, "EXTRACTPS", "VMOVW": the row says r32.
    let is_vector =
        |i| (theirs.op_register(i)).is_vector_register() || theirs.op_register(i).is_mm();
    let is_part = theirs.memory_size().size() < 8 && (0..theirs.op_count()).any(is_vector);
    if kind == OpCodeOperandKind::r64_or_mem && is_part {
        return named(Register::EAX, register);
    }
    register
}

/// The register with the number of `register` among those that begin with `first`.
fn named(first: Register, register: Register) -> Register {
    first + register.number() as u32
}

/// Do we say the size of its memory operand?
fn has_size(theirs: &Instruction) -> bool {
    match theirs.mnemonic() {
        // The registers say it.
        Mnemonic::Lds | Mnemonic::Les | Mnemonic::Lfs | Mnemonic::Lgs | Mnemonic::Lss => false,
        Mnemonic::Bound | Mnemonic::Bndmov | Mnemonic::Bndmk => false,
        // A pseudo-descriptor has a size of its own.
        Mnemonic::Lgdt | Mnemonic::Lidt | Mnemonic::Sgdt | Mnemonic::Sidt => false,
        // An element's size says nothing about a vector of addresses.
        _ => !theirs.is_vsib(),
    }
}

fn write_mask(out: &mut String, theirs: &Instruction) {
    if theirs.has_op_mask() {
        let _ = write!(out, "{{{}}}", register(theirs.op_mask()));
    }
    if theirs.zeroing_masking() {
        out.push_str("{z}");
    }
}

/// `{rd-sae}`, `{sae}` or nothing.
pub(crate) fn rounding(theirs: &Instruction) -> &'static str {
    match theirs.rounding_control() {
        RoundingControl::RoundToNearest => "{rn-sae}",
        RoundingControl::RoundDown => "{rd-sae}",
        RoundingControl::RoundUp => "{ru-sae}",
        RoundingControl::RoundTowardZero => "{rz-sae}",
        RoundingControl::None if theirs.suppress_all_exceptions() => "{sae}",
        RoundingControl::None => "",
    }
}

fn write_memory(out: &mut String, theirs: &Instruction, bits: u8) {
    let size = theirs.memory_size();
    if theirs.mnemonic() == Mnemonic::Invlpg {
        // SDM vol. 2D, "Opcode Extensions for One- and Two-byte Opcodes": INVLPG Mb.
        out.push_str("byte ");
    } else if has_size(theirs) {
        out.push_str(size_word(size));
    }
    out.push('[');
    if let Some(segment) = segment_prefix(theirs, bits) {
        out.push_str(register(segment));
        out.push(':');
    }
    write_address(out, theirs, bits);
    out.push(']');
    if theirs.is_broadcast() {
        let _ = write!(out, "{{1to{}}}", broadcast_bits(size) / 8 / size.size());
    }
}

/// The segment prefix, if it counts.
pub(crate) fn segment_prefix(theirs: &Instruction, bits: u8) -> Option<Register> {
    let segment = theirs.segment_prefix();
    let counts = bits != 64 || matches!(segment, Register::FS | Register::GS);
    (theirs.has_segment_prefix() && counts).then_some(segment)
}

fn write_address(out: &mut String, theirs: &Instruction, bits: u8) {
    let (base, index) = (theirs.memory_base(), theirs.memory_index());
    let displacement = theirs.memory_displacement64();
    if theirs.is_ip_rel_memory_operand() {
        let _ = write!(out, "rel {displacement:#x}");
        return;
    }
    if base != Register::None {
        out.push_str(register(base));
    }
    if index != Register::None {
        out.push_str(if base == Register::None { "" } else { "+" });
        out.push_str(register(index));
        if theirs.memory_index_scale() != 1 {
            let _ = write!(out, "*{}", theirs.memory_index_scale());
        }
    }
    let signed = match address_bits(theirs, bits) {
        16 => i64::from(displacement as i16),
        32 => i64::from(displacement as i32),
        _ => displacement as i64,
    };
    let _ = match signed {
        _ if base == Register::None && index == Register::None => {
            write!(out, "{displacement:#x}")
        }
        0 => Ok(()),
        1.. => write!(out, "+{signed:#x}"),
        _ => write!(out, "-{:#x}", signed.unsigned_abs()),
    };
}

/// The address size of the memory operand.
pub(crate) fn address_bits(theirs: &Instruction, bits: u8) -> usize {
    let registers = [theirs.memory_base(), theirs.memory_index()];
    match registers.into_iter().find(|r| r.is_gpr() || r.is_ip()) {
        Some(register) => register.size() * 8,
        None if theirs.memory_displ_size() > 1 => theirs.memory_displ_size() as usize * 8,
        None => usize::from(bits),
    }
}

/// Bits of the vector that a broadcast fills; iced's name for it begins with them.
fn broadcast_bits(size: MemorySize) -> usize {
    let name = format!("{size:?}");
    let digits = name.strip_prefix("Broadcast").and_then(|rest| rest.split('_').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn size_word(size: MemorySize) -> &'static str {
    match size {
        // Far pointers and pairs are named by one of their parts.
        MemorySize::SegPtr16 => "far word ",
        MemorySize::SegPtr32 => "far dword ",
        MemorySize::SegPtr64 => "far qword ",
        _ => match size.size() {
            1 => "byte ",
            2 => "word ",
            4 => "dword ",
            8 => "qword ",
            10 => "tword ",
            16 => "xmmword ",
            32 => "ymmword ",
            64 => "zmmword ",
            _ => "",
        },
    }
}

/// A register's name in small letters.
fn register(register: Register) -> &'static str {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| Register::values().map(name).collect());
    NAMES[register as usize].as_str()
}

fn name(register: Register) -> String {
    let name = format!("{register:?}").to_ascii_lowercase();
    // The manual's R8L is R8B for assemblers.
    match name.strip_suffix('l') {
        Some(rest) if rest.starts_with('r') => format!("{rest}b"),
        _ => name,
    }
}
