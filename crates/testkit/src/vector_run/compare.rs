//! What differs, and how it reads.

use std::fmt;

use realmode::Fault;
use realmode::arch::rflags;

use crate::moo::{Register, RegisterWidth};

/// How many differing bytes of memory a failure lists; a REP can spoil 64 KiB.
const MAX_LISTED_BYTES: usize = 16;

/// A register that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterDifference {
    /// Which.
    pub register: Register,
    /// The value the test started from.
    pub before: u32,
    /// The value it has to have.
    pub expected: u32,
    /// The value it has.
    pub found: u32,
    /// The bits that count.
    pub mask: u32,
}

/// A byte of memory that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDifference {
    /// Its physical address.
    pub address: u32,
    /// The value before.
    pub before: u8,
    /// The value it has to have.
    pub expected: u8,
    /// The value it has.
    pub found: u8,
    /// The bits that count: not all for the upper and lower byte of pushed FLAGS.
    pub mask: u8,
    /// Does the test list the byte at all, or should nobody have touched it?
    pub is_listed: bool,
}

/// How a run that should have ended in HLT ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// HLT executed.
    Halt,
    /// Something else, in words.
    Other(String),
}

/// A test that the emulator does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The test's number in its file.
    pub index: u32,
    /// Its disassembly.
    pub name: String,
    /// The instruction's bytes.
    pub bytes: Vec<u8>,
    /// The exception that the test expects.
    pub exception: Option<u8>,
    /// The first exceptions that were raised, and the instruction pointers they were raised at.
    pub faults: Vec<(u64, Fault)>,
    /// How the run ended.
    pub ending: Ending,
    /// How wide the registers are.
    pub width: RegisterWidth,
    /// The registers that differ.
    pub registers: Vec<RegisterDifference>,
    /// The first of the bytes that differ.
    pub memory: Vec<MemoryDifference>,
    /// How many bytes differ besides.
    pub more_memory: usize,
}

impl Failure {
    /// Does nothing differ after all?
    pub(super) fn is_empty(&self) -> bool {
        self.ending == Ending::Halt && self.registers.is_empty() && self.memory.is_empty()
    }

    /// Adds a byte, or counts it where enough are listed.
    pub(super) fn add_memory(&mut self, difference: MemoryDifference) {
        if self.memory.len() < MAX_LISTED_BYTES {
            self.memory.push(difference);
        } else {
            self.more_memory += 1;
        }
    }

    fn write_heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} (", self.index, self.name)?;
        for (i, byte) in self.bytes.iter().enumerate() {
            write!(f, "{}{byte:02X}", if i == 0 { "" } else { " " })?;
        }
        f.write_str(")")?;
        if let Some(vector) = self.exception {
            write!(f, ", which takes vector {vector}")?;
        }
        for (i, (ip, fault)) in self.faults.iter().enumerate() {
            let separator = if i == 0 { "\n    raised" } else { ", then" };
            write!(f, "{separator} {fault} at {ip:04x}")?;
        }
        if let Ending::Other(ending) = &self.ending {
            write!(f, "\n    did not end in HLT: {ending}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_heading(f)?;
        if self.registers.is_empty() && self.memory.is_empty() {
            return Ok(());
        }
        write!(f, "\n    {:8}  {:>8}  {:>8}  {:>8}", "", "before", "expected", "got")?;
        for difference in &self.registers {
            let name = difference.register.name(self.width);
            let digits = match self.width {
                RegisterWidth::Word => 4,
                RegisterWidth::Dword => 8,
            };
            write!(f, "\n    {name:8}")?;
            for value in [difference.before, difference.expected, difference.found] {
                write!(f, "  {:>8}", format!("{value:0digits$x}"))?;
            }
            if difference.register == Register::Eflags {
                write_flags(f, difference)?;
            }
        }
        for difference in &self.memory {
            let MemoryDifference { address, before, expected, found, .. } = difference;
            let note = if difference.is_listed { "" } else { "  stray store" };
            write!(
                f,
                "\n    [{address:06x}]  {:>8}  {:>8}  {:>8}{note}",
                format!("{before:02x}"),
                format!("{expected:02x}"),
                format!("{found:02x}"),
            )?;
        }
        if self.more_memory != 0 {
            write!(f, "\n    and {} more bytes of memory", self.more_memory)?;
        }
        Ok(())
    }
}

/// The flags that differ, by name: `CF 0 not 1` is a flag that should be clear and is set.
fn write_flags(f: &mut fmt::Formatter<'_>, difference: &RegisterDifference) -> fmt::Result {
    let (expected, found) = (u64::from(difference.expected), u64::from(difference.found));
    let mut left = (expected ^ found) & u64::from(difference.mask);
    let mut separator = "   ";
    for (mask, name) in rflags::NAMES {
        if left & mask != 0 {
            let low = mask.trailing_zeros();
            let (expected, found) = ((expected & mask) >> low, (found & mask) >> low);
            write!(f, "{separator}{name} {expected} not {found}")?;
            separator = ", ";
            left &= !mask;
        }
    }
    for bit in (0..u64::BITS).filter(|bit| left >> bit & 1 != 0) {
        let (expected, found) = (expected >> bit & 1, found >> bit & 1);
        write!(f, "{separator}bit {bit} {expected} not {found}")?;
        separator = ", ";
    }
    Ok(())
}
