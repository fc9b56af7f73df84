//! Text against iced's, in NASM's spelling, over the same spaces.

use iced_x86::{Code, Decoder, DecoderOptions, Formatter, MemorySizeOptions, NasmFormatter};
use realmode::{CodeSize, Profile, Segmentation, decode_one};

use crate::compare::{LONGEST, profile};
use crate::spaces;

/// Where the instruction is said to be.
const IP: u64 = 0x1000;
/// One text of so many is compared; a prime, so that no column of a table is left out.
const EVERY: u64 = 7;

#[test]
fn operands_are_the_same_in_16_bit_code() {
    compare(CodeSize::Bits16);
}

#[test]
fn operands_are_the_same_in_32_bit_code() {
    compare(CodeSize::Bits32);
}

#[test]
fn operands_are_the_same_in_64_bit_code() {
    compare(CodeSize::Bits64);
}

fn compare(size: CodeSize) {
    let mut texts =
        Texts { profile: profile(), formatter: formatter(), seen: 0, failed: Vec::new() };
    spaces::legacy(size, &spaces::few_modrm(), &mut |bytes| texts.check(size, bytes));
    spaces::vex(&mut |bytes| texts.check(size, bytes));
    spaces::xop(&mut |bytes| texts.check(size, bytes));
    spaces::evex(&mut |bytes| texts.check(size, bytes));
    for failed in texts.failed.iter().take(40) {
        println!("{failed}");
    }
    assert!(texts.failed.is_empty(), "{} texts differ", texts.failed.len());
}

struct Texts {
    profile: Profile,
    formatter: NasmFormatter,
    seen: u64,
    failed: Vec<String>,
}

impl Texts {
    fn check(&mut self, size: CodeSize, bytes: &[u8; LONGEST]) {
        self.seen += 1;
        if !self.seen.is_multiple_of(EVERY) {
            return;
        }
        let options = DecoderOptions::MPX;
        let theirs = Decoder::with_ip(u32::from(size.bits()), bytes, IP, options).decode();
        let Ok(ours) = decode_one(bytes, size, &self.profile, Segmentation::Protected) else {
            return;
        };
        if theirs.is_invalid() || ours.is_undefined() || is_spelt_otherwise(ours.mnemonic()) {
            return;
        }
        let ours = ours.at(IP).to_string();
        let mut text = String::new();
        self.formatter.format(&theirs, &mut text);
        // A selector has 16 bits, whatever register it comes from.
        let loads_segment = matches!(theirs.code(), Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16);
        if !loads_segment && plain(&text, &text) != plain(&ours, &text) {
            self.failed.push(format!("{bytes:02x?}: iced {text}, ours {ours}"));
        }
    }
}

/// NASM's spelling with as much said as we say.
fn formatter() -> NasmFormatter {
    let mut formatter = NasmFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_use_pseudo_ops(false);
    options.set_signed_memory_displacements(true);
    formatter
}

/// Instructions whose operands NASM and the manual write in ways of their own.
fn is_spelt_otherwise(name: &str) -> bool {
    const NAMES: [&str; 32] = [
        // A string instruction has no operands, and its prefixes stand in our order.
        "MOVS",
        "CMPS",
        "STOS",
        "LODS",
        "SCAS",
        "INS",
        "OUTS",
        "XLATB",
        // NASM shows operands of the reserved NOPs, and of prefetches that we call NOPs.
        "NOP",
        "XCHG",
        "SHL",
        "XBEGIN",
        "LAR",
        "LSL",
        // NASM's names without a size mean the code's.
        "RET",
        "RETF",
        "IRET",
        "PUSHF",
        "POPF",
        "PUSHA",
        "POPA",
        "SYSRET",
        "SYSEXIT",
        // REX.W changes nothing, and the two show it differently.
        "PEXTRB",
        "PEXTRW",
        "PINSRB",
        "PINSRW",
        "PMOVMSKB",
        "EXTRACTPS",
        "TPAUSE",
        "UMWAIT",
        // Another choice among the names of a condition.
        "CMPccXADD",
    ];
    // The manual's ST(0) is NASM's default; 4FMAPS name four registers; bounds ignore scale and
    // address size.
    NAMES.contains(&name.trim_start_matches('V'))
        || ["F", "V4F", "VP4D", "BND", "MOVMSK"].iter().any(|start| name.starts_with(start))
}

/// Text without what the two spell differently. `theirs` decides what was said at all.
fn plain(text: &str, theirs: &str) -> String {
    let mut plain = text.to_string();
    let spellings = [
        ("oword", "xmmword"),
        ("yword", "ymmword"),
        ("zword", "zmmword"),
        ("mem384 ", ""),
        // An index without base: a scale of one is not told apart from a base.
        ("*1]", "]"),
        ("*1+", "+"),
        ("*1-", "-"),
        ("dword far", "far dword"),
        ("qword far", "far qword"),
        (" word far", " far word"),
        ("[dword rel ", "[rel "),
        ("[word ", "["),
        ("[dword ", "["),
        ("[qword ", "["),
        // Hints that we leave out.
        ("xacquire ", ""),
        ("xrelease ", ""),
        ("bnd ", ""),
        ("notrack ", ""),
        ("vmgexit", "vmmcall"),
        ("pcmpestri64", "pcmpestri"),
        ("pcmpestrm64", "pcmpestrm"),
        ("pmulhrwa", "pmulhrw"),
        // Implicit operands.
        (", xmm0", ""),
        (", {sae}", ""),
    ];
    for (from, to) in spellings {
        plain = plain.replace(from, to);
    }
    for mode in ["rn", "rd", "ru", "rz"] {
        plain = plain.replace(&format!(", {{{mode}-sae}}"), "");
    }
    // iced leaves out a segment that is the default, and a size that is no choice.
    let segments = ["es:", "cs:", "ss:", "ds:", "fs:", "gs:"];
    for segment in segments.iter().filter(|_| !theirs.contains(':')) {
        plain = plain.replace(segment, "");
    }
    for segment in segments {
        plain = plain.replace(&format!("{segment}rel "), &format!("rel {segment}"));
    }
    let has_size =
        ["byte [", "word [", "byte far", "word far"].iter().any(|size| theirs.contains(size));
    for prefix in ["xmm", "ymm", "zmm", "q", "d", ""].iter().filter(|_| !has_size) {
        plain = plain.replace(&format!("{prefix}word "), "");
    }
    if !has_size {
        plain = plain.replace("byte ", "");
    }
    // An element's size says nothing about a vector of addresses.
    if plain.contains("gather") || plain.contains("scatter") {
        plain = plain.replace("dword [", "[").replace("qword [", "[");
    }
    // Prefixes in front: without effect, or told by the operands.
    let dropped =
        ["es ", "cs ", "ss ", "ds ", "fs ", "gs ", "a16 ", "a32 ", "o16 ", "o32 ", "o64 "];
    while let Some(rest) = dropped.iter().find_map(|prefix| plain.strip_prefix(prefix)) {
        plain = rest.to_string();
    }
    plain
}
