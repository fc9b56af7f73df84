//! What two executions of a case have to agree in.

use core::fmt;

use realmode::arch::rflags;

use super::case::Mode;
use super::outcome::{End, Outcome};

/// Where an emulator and an oracle differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// What ended the case.
    End {
        /// The emulator's.
        ours: End,
        /// The oracle's.
        theirs: End,
    },
    /// A general register.
    Register {
        /// Its number.
        number: u8,
        /// The emulator's.
        ours: u64,
        /// The oracle's.
        theirs: u64,
    },
    /// The flags.
    Flags {
        /// The emulator's.
        ours: u64,
        /// The oracle's.
        theirs: u64,
    },
    /// A segment register.
    Selector {
        /// Its number: ES, CS, SS, DS, FS, GS.
        number: u8,
        /// The emulator's.
        ours: u16,
        /// The oracle's.
        theirs: u16,
    },
    /// CR2.
    Cr2 {
        /// The emulator's.
        ours: u64,
        /// The oracle's.
        theirs: u64,
    },
    /// Eight bytes of memory.
    Memory {
        /// Their offset in the arena.
        at: u32,
        /// The emulator's.
        ours: u64,
        /// The oracle's.
        theirs: u64,
    },
    /// The x87, MMX and SSE registers, as FXSAVE writes them.
    Fpu {
        /// Offset in the image.
        at: u32,
        /// The emulator's.
        ours: u8,
        /// The oracle's.
        theirs: u8,
    },
}

/// Registers and what ended the case; memory is compared by whoever has it.
pub fn compare(ours: &Outcome, theirs: &Outcome) -> Result<(), Difference> {
    if ours.end != theirs.end {
        return Err(Difference::End { ours: ours.end, theirs: theirs.end });
    }
    for (number, (ours, theirs)) in (0..).zip(ours.gpr.into_iter().zip(theirs.gpr)) {
        if ours != theirs {
            return Err(Difference::Register { number, ours, theirs });
        }
    }
    if ours.rflags != theirs.rflags {
        return Err(Difference::Flags { ours: ours.rflags, theirs: theirs.rflags });
    }
    for (number, (ours, theirs)) in (0..).zip(ours.selectors.into_iter().zip(theirs.selectors)) {
        if ours != theirs {
            return Err(Difference::Selector { number, ours, theirs });
        }
    }
    if ours.cr2 != theirs.cr2 {
        return Err(Difference::Cr2 { ours: ours.cr2, theirs: theirs.cr2 });
    }
    Ok(())
}

/// How many bits a comparison of registers compares: the registers, the flags that exist,
/// selectors, instruction pointer, vector and error code.
pub const fn bits(mode: Mode) -> u64 {
    let (registers, width) = if matches!(mode, Mode::Bits64) { (17, 64) } else { (9, 32) };
    registers * width + 22 + 6 * 16 + 8 + 32
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SEGMENTS: [&str; 6] = ["es", "cs", "ss", "ds", "fs", "gs"];
        match *self {
            Difference::End { ours, theirs } => write!(f, "we {ours}, it {theirs}"),
            Difference::Register { number, ours, theirs } => {
                let name = NAMES[usize::from(number)];
                write!(f, "{name}: we {ours:x}, it {theirs:x}")
            }
            Difference::Flags { ours, theirs } => {
                write!(f, "flags: we {}, it {}", Flags(ours), Flags(theirs))
            }
            Difference::Selector { number, ours, theirs } => {
                write!(f, "{}: we {ours:x}, it {theirs:x}", SEGMENTS[usize::from(number)])
            }
            Difference::Cr2 { ours, theirs } => write!(f, "cr2: we {ours:x}, it {theirs:x}"),
            Difference::Memory { at, ours, theirs } => {
                write!(f, "memory at {at:05x}: we {ours:016x}, it {theirs:016x}")
            }
            Difference::Fpu { at, ours, theirs } => {
                write!(f, "fxsave byte {at}: we {ours:02x}, it {theirs:02x}")
            }
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Returned => f.write_str("completes"),
            End::Hung => f.write_str("hangs"),
            End::Exception { vector, error, rip } => {
                match realmode::arch::vector::name(vector) {
                    Some(name) => write!(f, "raises {name}")?,
                    None => write!(f, "raises vector {vector:#04x}")?,
                }
                if realmode::arch::vector::has_error_code(vector) {
                    write!(f, "({error:x})")?;
                }
                write!(f, " at {rip:x}")
            }
        }
    }
}

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// General registers by name, but for those past the eighth that are zero.
pub struct Registers<'r>(pub &'r [u64; 16]);

impl fmt::Display for Registers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = |(i, value): &(usize, (&u64, &&str))| *i < 8 || *value.0 != 0;
        for (i, (value, name)) in self.0.iter().zip(&NAMES).enumerate().filter(seen) {
            write!(f, "{}{name} {value:x}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.end)?;
        writeln!(f, "  {}", Registers(&self.gpr))?;
        write!(f, "  flags {}, es cs ss ds fs gs {:x?}", Flags(self.rflags), self.selectors)?;
        if self.cr2 != 0 { write!(f, ", cr2 {:x}", self.cr2) } else { Ok(()) }
    }
}

/// Flags by name.
pub struct Flags(pub u64);

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u64, &str); 11] = [
            (rflags::CF, "cf"),
            (rflags::PF, "pf"),
            (rflags::AF, "af"),
            (rflags::ZF, "zf"),
            (rflags::SF, "sf"),
            (rflags::TF, "tf"),
            (rflags::IF, "if"),
            (rflags::DF, "df"),
            (rflags::OF, "of"),
            (rflags::NT, "nt"),
            (rflags::AC, "ac"),
        ];
        write!(f, "{:x}", self.0)?;
        let mut before = " (";
        for (_, name) in NAMES.iter().filter(|(mask, _)| self.0 & mask != 0) {
            write!(f, "{before}{name}")?;
            before = " ";
        }
        if before == " " { f.write_str(")") } else { Ok(()) }
    }
}
