//! Differences between this emulator and silicon that are not errors: each with what the manual
//! says, and as narrow as it can be said.

use realmode::arch::rflags::{ARITH, ZF};
use realmode::arch::vector;

use super::case::{Case, Mode};
use super::compare::{Difference, bits};
use super::form::Form;
use super::outcome::{End, Outcome};

/// A difference that is tolerated.
pub struct Tolerated {
    /// A name for reports.
    pub name: &'static str,
    /// What happens.
    pub what: &'static str,
    /// The manual's section.
    pub section: &'static str,
    masks: Masks,
    applies: fn(&Seen<'_>) -> bool,
}

/// What an entry takes out of a comparison.
enum Masks {
    /// So many bits.
    Bits(u64),
    /// Everything.
    All,
}

impl Tolerated {
    /// How many bits of a case it leaves out.
    pub fn masked(&self, mode: Mode) -> u64 {
        match self.masks {
            Masks::Bits(count) => count,
            Masks::All => bits(mode),
        }
    }
}

/// A difference with all that led to it.
pub struct Seen<'c> {
    /// The form.
    pub form: &'c Form,
    /// The case.
    pub case: &'c Case,
    /// What the emulator left.
    pub ours: &'c Outcome,
    /// What the oracle left.
    pub theirs: &'c Outcome,
    /// The first difference.
    pub difference: Difference,
}

/// The entry that explains a difference.
pub fn find(seen: &Seen<'_>) -> Option<&'static Tolerated> {
    TOLERATED.iter().find(|entry| (entry.applies)(seen))
}

/// All of them.
pub const TOLERATED: &[Tolerated] = &[
    Tolerated {
        name: "null selector",
        what: "Linux may load a null selector anew as 0 when it switches to another program",
        section: "none: the processor keeps RPL, SDM vol. 3A, \"Segment Selectors\"",
        masks: Masks::Bits(2),
        applies: |seen| {
            matches!(seen.difference, Difference::Selector { ours: 1..4, theirs: 0, .. })
        },
    },
    Tolerated {
        name: "part of the stack",
        what: "an instruction that moves several words has moved some when one of them faults",
        section: "SDM vol. 2, \"PUSHA/PUSHAD\", \"POPA/POPAD\", \"ENTER\", \"CALL\": silent on it",
        masks: Masks::All,
        applies: |seen| {
            let moves = matches!(seen.form.name, "PUSHA" | "POPA" | "ENTER" | "CALL");
            let is_partial =
                matches!(seen.difference, Difference::Memory { .. } | Difference::Register { .. });
            moves && is_partial && seen.ours.end != End::Returned
        },
    },
    Tolerated {
        name: "stack fault first",
        what: "of two faults, Zen raises that of the stack before that of the target",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": up to the processor",
        masks: Masks::All,
        applies: |seen| {
            let ss =
                End::Exception { vector: vector::SS, error: 0, rip: u64::from(seen.case.entry) };
            let is_gp =
                matches!(seen.ours.end, End::Exception { vector: vector::GP | vector::NP, .. });
            matches!(seen.form.name, "CALL" | "RETF" | "IRET") && is_gp && seen.theirs.end == ss
        },
    },
    Tolerated {
        name: "undefined at the limit",
        what: "an undefined instruction with VEX is fetched whole before it is #UD",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": how much it fetches",
        masks: Masks::All,
        applies: |seen| {
            let code = seen.case.code.as_slice();
            let near_the_end = seen.case.entry > 0xFFF0 && seen.form.mode != Mode::Bits64;
            let is_longest = code.len() >= 15;
            let vector = |end| match end {
                End::Exception { vector, .. } => vector,
                End::Returned | End::Hung => 0,
            };
            let ends = (vector(seen.ours.end), vector(seen.theirs.end));
            (near_the_end || is_longest)
                && ends == (vector::UD, vector::GP)
                && code.iter().any(|byte| matches!(byte, 0xC4 | 0xC5))
        },
    },
    Tolerated {
        name: "FXSAVE at the end of a segment",
        what: "FXSAVE and FXRSTOR across the end of a segment: which exception comes first, if any",
        section: "SDM vol. 2A, \"FXSAVE\": silent on the order; seen on Zen 3",
        masks: Masks::All,
        applies: |seen| {
            let is_fault = |end| {
                matches!(end, End::Exception { vector: vector::GP | vector::SS, error: 0, .. })
            };
            let is_image = matches!(seen.form.name, "FXSAVE" | "FXRSTOR");
            is_image && seen.form.mode != Mode::Bits64 && is_fault(seen.theirs.end)
        },
    },
    Tolerated {
        name: "flags of a scan",
        what: "Zen 3 keeps the flags of BSF and BSR but for ZF; a profile of AMD has Zen 4's",
        section: "APM vol. 3, \"BSF\", \"BSR\": undefined",
        masks: Masks::Bits(5),
        applies: |seen| {
            let undefined = ARITH & !ZF;
            let Difference::Flags { ours, theirs } = seen.difference else { return false };
            matches!(seen.form.name, "BSF" | "BSR")
                && (ours ^ theirs) & !undefined == 0
                && (theirs ^ seen.case.rflags) & undefined == 0
        },
    },
    Tolerated {
        name: "LOCK VERW",
        what: "Zen executes VERW of memory with LOCK",
        section: "APM vol. 3, \"Lock Prefix\": #UD",
        masks: Masks::All,
        applies: |seen| {
            let ud = matches!(seen.ours.end, End::Exception { vector: vector::UD, .. });
            seen.form.name == "VERW" && ud && seen.case.code.as_slice().contains(&0xF0)
        },
    },
    Tolerated {
        name: "CALL to compatibility mode",
        what: "a far CALL out of 64-bit code pushes at an address of 32 bits",
        section: "SDM vol. 2A, \"CALL\": silent on the size; only a stack above 4 GiB shows it",
        masks: Masks::All,
        applies: |seen| {
            let vector = |end| match end {
                End::Exception { vector, .. } => vector,
                End::Returned | End::Hung => 0,
            };
            let ends = (vector(seen.ours.end), vector(seen.theirs.end));
            seen.form.mode == Mode::Bits64
                && seen.form.name == "CALL"
                && ends == (vector::SS, vector::PF)
        },
    },
    Tolerated {
        name: "upper halves",
        what: "what leaves 64-bit code loses the upper halves of the registers, sooner or later",
        section: "SDM vol. 1, \"General-Purpose Registers in 64-Bit Mode\": undefined",
        masks: Masks::Bits(16 * 32),
        applies: |seen| {
            let has_left = seen.form.mode == Mode::Bits64 && seen.ours.selectors[1] != 0x33;
            let is_upper = matches!(
                seen.difference,
                Difference::Register { ours, theirs, .. } if ours as u32 == theirs as u32
            );
            has_left && is_upper
        },
    },
];
