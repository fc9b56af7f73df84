//! `--trace`: one line an instruction, as it is about to execute.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use realmode::{Cpu, Fault, Observer, Profile, Reg, SegReg};

use super::files::OutputFile;
use super::place;

/// The registers of a line, in the order of PUSHA.
const REGISTERS: [(&str, Reg); 8] = [
    ("eax", Reg::Rax),
    ("ecx", Reg::Rcx),
    ("edx", Reg::Rdx),
    ("ebx", Reg::Rbx),
    ("esp", Reg::Rsp),
    ("ebp", Reg::Rbp),
    ("esi", Reg::Rsi),
    ("edi", Reg::Rdi),
];
const SEGMENTS: [(&str, SegReg); 3] = [("ds", SegReg::Ds), ("es", SegReg::Es), ("ss", SegReg::Ss)];

/// Writes the trace. The first error ends it.
pub(super) struct Trace<'a> {
    out: BufWriter<&'a File>,
    output: &'a OutputFile,
    profile: Profile,
    lines: u64,
    /// Where the instruction lies that is under way: REP shows each iteration as the
    /// instruction anew, and one line is enough.
    under_way: Option<u64>,
    result: io::Result<()>,
}

impl<'a> Trace<'a> {
    /// Begins a trace in place of what the file held.
    pub(super) fn begin(output: &'a OutputFile, profile: &Profile) -> Result<Trace<'a>, String> {
        let out = BufWriter::new(output.replace()?);
        let profile = profile.clone();
        Ok(Trace { out, output, profile, lines: 0, under_way: None, result: Ok(()) })
    }

    /// Tells if anything went wrong so far.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if self.result.is_err() { self.flush() } else { Ok(()) }
    }

    /// Writes out what is buffered, and tells if anything went wrong so far.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        std::mem::replace(&mut self.result, Ok(()))
            .and_then(|()| self.out.flush())
            .map_err(|error| format!("cannot write {}: {error}", self.output.path().display()))
    }
}

impl Observer for Trace<'_> {
    fn decoded(&mut self, cpu: &Cpu, bytes: &[u8]) {
        let at = cpu.segment(SegReg::Cs).base.wrapping_add(cpu.rip);
        if self.under_way.replace(at) != Some(at) && self.result.is_ok() {
            self.lines += 1;
            let text = place::disassemble(&self.profile, cpu, cpu.rip, bytes);
            let text = text.map(|(_, text)| text).unwrap_or_default();
            self.result = line(&mut self.out, self.lines, cpu, bytes, &text);
        }
    }

    fn retired(&mut self, _cpu: &Cpu) {
        self.under_way = None;
    }

    fn fault(&mut self, _cpu: &Cpu, _fault: Fault) {
        self.under_way = None;
    }
}

/// `        12 0000:7C02 31 C0                xor ax, ax     eax=... ds=... flags=...`
fn line(out: &mut impl Write, number: u64, cpu: &Cpu, bytes: &[u8], text: &str) -> io::Result<()> {
    let cs = cpu.segment(SegReg::Cs).selector;
    write!(out, "{number:>10} {cs:04X}:{:04X} {:<24}", cpu.rip, place::hex(bytes))?;
    write!(out, " {text:<32}")?;
    for (name, reg) in REGISTERS {
        write!(out, " {name}={:08x}", cpu.gpr[reg] & 0xFFFF_FFFF)?;
    }
    for (name, reg) in SEGMENTS {
        write!(out, " {name}={:04x}", cpu.segment(reg).selector)?;
    }
    writeln!(out, " flags={:08x}", cpu.rflags & 0xFFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_number_place_bytes_and_registers() {
        let mut cpu = Cpu::reset();
        cpu.gpr[Reg::Rsi] = 0x1234;
        let mut text = Vec::new();
        line(&mut text, 7, &cpu, &[0x31, 0xC0], "xor ax, ax").expect("a Vec takes all");
        let text = String::from_utf8(text).expect("a line is ASCII");
        assert!(text.starts_with("         7 F000:FFF0 31 C0 "), "{text}");
        assert!(text.contains(" xor ax, ax "), "{text}");
        assert!(text.contains(" esi=00001234 ") && text.ends_with(" flags=00000002\n"), "{text}");
    }
}
