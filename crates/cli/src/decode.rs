//! `realmode decode`.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::process::ExitCode;

use realmode::{CodeSize, DecodeError, Generation, Instruction, Profile, Segmentation, decode_one};
use serde_json::{Value, json};

use crate::processor;
use crate::stdout;

/// Decode instruction bytes.
///
/// One line an instruction: its address, its bytes, its text. Bytes are hexadecimal, together or
/// apart, with or without 0x, and come from the arguments or, for "-", from standard input. Bytes
/// that raise #UD are `undefined`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  realmode decode EA 5B E0 00 F0                 jmp 0xf000:0xe05b
  realmode decode 0x75fe --at 7C00               where the branch goes: jne 0x7c00
  realmode decode 4889C7 --bits 64               64-bit code
  realmode decode 0F02C0 --protected             what real mode does not have
  realmode decode 0FA2 --profile 386             what a 386 makes of CPUID
  xxd -p boot.bin | realmode decode - --json     from standard input, for programs

Exit code: 0, or 1 if the bytes end within an instruction, or 2 if an argument is bad.")]
pub(crate) struct Args {
    /// Bytes in hexadecimal; "-" reads them from standard input.
    #[arg(required = true, value_name = "HEX")]
    bytes: Vec<String>,

    /// The size of the code.
    #[arg(long, default_value = "16", value_parser = parse_bits, value_name = "16|32|64")]
    bits: CodeSize,

    /// Segments are real-mode ones. The default for 16-bit code.
    #[arg(long, conflicts_with = "protected")]
    real: bool,

    /// Segments are protected-mode ones. The default for 32- and 64-bit code.
    #[arg(long)]
    protected: bool,

    /// The processor: 8086, 286, 386, 486, intel or amd.
    #[arg(long, default_value = "intel", value_parser = processor::parse, value_name = "P")]
    profile: &'static Profile,

    /// The address of the first byte, in hexadecimal.
    #[arg(long, default_value = "0", value_parser = parse_address, value_name = "ADDR")]
    at: u64,

    /// Print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

fn parse_bits(text: &str) -> Result<CodeSize, String> {
    match text {
        "16" => Ok(CodeSize::Bits16),
        "32" => Ok(CodeSize::Bits32),
        "64" => Ok(CodeSize::Bits64),
        _ => Err("code has 16, 32 or 64 bits".into()),
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    // A sign would be accepted otherwise.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| is_hex)
        .ok_or_else(|| "an address is up to 16 hexadecimal digits".into())
}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let first = match args.bits {
        CodeSize::Bits16 => Generation::I8086,
        CodeSize::Bits32 => Generation::I80386,
        CodeSize::Bits64 => Generation::Modern,
    };
    if args.profile.generation < first {
        let (name, bits) = (args.profile.name, args.bits.bits());
        return Err(format!("profile {name} has no {bits}-bit code: change --bits or --profile"));
    }
    let bytes = parse_hex(&input(&args.bytes)?)?;
    let segmentation = match (args.real, args.protected, args.bits) {
        (true, _, CodeSize::Bits64) => {
            return Err("64-bit code has no real-mode segments: leave out --real".into());
        }
        (true, _, _) | (false, false, CodeSize::Bits16) => Segmentation::Real,
        _ => Segmentation::Protected,
    };
    let listing = decode(&bytes, args, segmentation);
    let text = if args.json { format!("{:#}\n", listing.json(args)) } else { listing.text(args) };
    stdout::print(&text)?;
    Ok(ExitCode::from(u8::from(listing.missing.is_some())))
}

/// The text to decode: the arguments, or standard input.
fn input(arguments: &[String]) -> Result<String, String> {
    if arguments != ["-"] {
        return Ok(arguments.join(" "));
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(|error| format!("standard input: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("standard input: byte {at} is not text; bytes are given in hexadecimal")
    })
}

/// Bytes from hexadecimal: pairs of digits, together or apart, with 0x or without.
fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut column = 0;
        for word in line.split([' ', '\t', ',']) {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
            let start = column + word.len() - digits.unwrap_or(word).len();
            parse_word(digits.unwrap_or(word), &mut bytes).map_err(|(offset, why)| {
                format!("line {}, column {}: {why}", number + 1, start + offset + 1)
            })?;
            column += word.len() + 1;
        }
    }
    if bytes.is_empty() {
        return Err("there are no bytes to decode".into());
    }
    Ok(bytes)
}

/// The bytes of a word, or what is wrong with it and where.
fn parse_word(digits: &str, bytes: &mut Vec<u8>) -> Result<(), (usize, String)> {
    if let Some((at, bad)) = digits.char_indices().find(|(_, digit)| !digit.is_ascii_hexdigit()) {
        return Err((at, format!("{bad:?} is not a hexadecimal digit")));
    }
    if !digits.len().is_multiple_of(2) {
        let last = digits.len() - 1;
        return Err((last, format!("\"{digits}\" has an odd number of digits")));
    }
    for pair in digits.as_bytes().chunks(2) {
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        bytes.push(value(pair[0]) << 4 | value(pair[1]));
    }
    Ok(())
}

/// What bytes decode to.
struct Listing<'b> {
    lines: Vec<Line<'b>>,
    /// How many bytes the last instruction lacks, and what there is of it.
    missing: Option<(usize, &'b [u8])>,
}

struct Line<'b> {
    address: u64,
    bytes: &'b [u8],
    /// `None` where prefixes leave no room for an instruction.
    instruction: Option<Instruction>,
}

fn decode<'b>(bytes: &'b [u8], args: &Args, segmentation: Segmentation) -> Listing<'b> {
    const LONGEST: usize = 15;
    let mut listing = Listing { lines: Vec::new(), missing: None };
    let mut rest = bytes;
    while !rest.is_empty() {
        let address = args.at.wrapping_add((bytes.len() - rest.len()) as u64);
        let (len, instruction) = match decode_one(rest, args.bits, args.profile, segmentation) {
            Ok(instruction) => (instruction.len(), Some(instruction.at(address))),
            Err(DecodeError::Short { missing }) => {
                listing.missing = Some((missing, rest));
                break;
            }
            Err(_) => (LONGEST, None),
        };
        let (taken, left) = rest.split_at(len.min(rest.len()));
        listing.lines.push(Line { address, bytes: taken, instruction });
        rest = left;
    }
    listing
}

impl Line<'_> {
    fn text(&self) -> String {
        self.instruction.map_or("too long: #GP".into(), |instruction| instruction.to_string())
    }
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

impl Listing<'_> {
    fn text(&self, args: &Args) -> String {
        let digits = usize::from(args.bits.bits() / 4);
        let mut text = String::new();
        let mut line = |address: u64, bytes: &[u8], what: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{address:0digits$x}  {:<24}  {what}", hex(bytes));
        };
        for each in &self.lines {
            line(each.address, each.bytes, &each.text());
        }
        if let Some((missing, bytes)) = self.missing {
            let before: usize = self.lines.iter().map(|line| line.bytes.len()).sum();
            let s = if missing == 1 { "" } else { "s" };
            let what = format!("(incomplete: at least {missing} more byte{s})");
            line(args.at.wrapping_add(before as u64), bytes, &what);
        }
        text
    }

    fn json(&self, args: &Args) -> Value {
        let lines = self.lines.iter().map(|line| {
            let instruction = line.instruction;
            json!({
                "address": line.address,
                "bytes": hex(line.bytes),
                "length": line.bytes.len(),
                "text": line.text(),
                "mnemonic": instruction.map(|one| one.mnemonic()),
                "undefined": instruction.is_none_or(|one| one.is_undefined()),
                "implemented": instruction.is_none_or(|one| one.is_implemented()),
            })
        });
        json!({
            "bits": args.bits.bits(),
            "profile": args.profile.name,
            "instructions": lines.collect::<Vec<Value>>(),
            "missing": self.missing.map(|(missing, bytes)| json!({
                "bytes": hex(bytes),
                "at_least": missing,
            })),
        })
    }
}
