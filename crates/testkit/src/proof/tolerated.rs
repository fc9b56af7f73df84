//! Differences between this emulator and silicon that are not errors: each with what the manual
//! says, and as narrow as it can be said.

use realmode::arch::rflags::{ARITH, ZF};
use realmode::arch::vector;

use super::case::{Case, Mode};
use super::compare::{Difference, bits};
use super::form::{Form, Operand};
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

/// Vector and error code of both sides, if both raised an exception for the same instruction; else
/// nothing that an entry could take for one.
fn vectors(seen: &Seen<'_>) -> ((u8, u32), (u8, u32)) {
    match (seen.ours.end, seen.theirs.end) {
        (
            End::Exception { vector: ours, error: our_error, rip: our_rip },
            End::Exception { vector: theirs, error: their_error, rip },
        ) if our_rip == rip => ((ours, our_error), (theirs, their_error)),
        _ => ((u8::MAX, 0), (u8::MAX, 0)),
    }
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
        name: "another arena's segment",
        what: "a selector that LAR, LSL, VERR or VERW finds by chance may be another thread's",
        section: "none: a process has one local table",
        masks: Masks::All,
        applies: |seen| {
            let asks = matches!(seen.form.name, "LAR" | "LSL" | "VERR" | "VERW");
            let is_unknown = seen.ours.rflags & ZF == 0 && seen.theirs.rflags & ZF != 0;
            asks && is_unknown && seen.form.operand == Operand::Memory
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
            let (ours, theirs) = vectors(seen);
            let is_stack = matches!(theirs, (vector::SS, 0) | (vector::PF, _));
            let is_target = matches!(ours.0, vector::GP | vector::NP);
            matches!(seen.form.name, "CALL" | "RETF" | "IRET") && is_target && is_stack
        },
    },
    Tolerated {
        name: "order of a frame",
        what: "of the words of ENTER and a far CALL, RET or IRET, Zen accesses another one first: \
               where the stack is at fault, exception, error code and address are that word's",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": up to the processor",
        masks: Masks::Bits(64 + 8 + 32),
        applies: |seen| {
            let (ours, theirs) = vectors(seen);
            let is_of_stack = |end| matches!(end, (vector::SS, 0) | (vector::PF, _));
            let distance = seen.ours.cr2.abs_diff(seen.theirs.cr2);
            // The words that ENTER reads lie at EBP, wherever that is.
            let reach = if seen.form.name == "ENTER" { u64::MAX } else { 5 * 8 };
            matches!(seen.form.name, "CALL" | "RETF" | "IRET" | "ENTER")
                && is_of_stack(ours)
                && is_of_stack(theirs)
                && (ours.0 != theirs.0 || distance <= reach)
        },
    },
    Tolerated {
        name: "target before its stack",
        what: "Zen looks at the offset that IRET returns to before the stack segment it pops",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": up to the processor",
        masks: Masks::Bits(8 + 32),
        applies: |seen| {
            let (ours, theirs) = vectors(seen);
            let is_segment = matches!(ours, (vector::GP | vector::SS | vector::NP, 1..));
            seen.form.name == "IRET" && is_segment && theirs == (vector::GP, 0)
        },
    },
    Tolerated {
        name: "a region that is not aligned",
        what: "of two faults of FXSAVE, Zen raises that of the limit or that of the alignment",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": up to the processor",
        masks: Masks::Bits(8),
        applies: |seen| {
            let ends = vectors(seen);
            let is_region = matches!(seen.form.family, "fxsave" | "xsave");
            is_region && ends == ((vector::GP, 0), (vector::SS, 0))
        },
    },
    Tolerated {
        name: "x87 pointers",
        what: "of the x87 pointers of FXRSTOR, Zen keeps 48 bits, extended, and no selectors",
        section: "APM vol. 2, \"FXSAVE and FXRSTOR Instructions\": silent on it",
        masks: Masks::Bits(2 * 32),
        applies: |seen| {
            let is_upper = matches!(seen.difference, Difference::Fpu { at: 12..16 | 20..24, .. });
            seen.form.name.starts_with("FXRSTOR") && is_upper
        },
    },
    Tolerated {
        name: "VEX after LOCK",
        what: "of VEX with a prefix that it forbids, Zen fetches ModRM before it is #UD",
        section: "SDM vol. 3A, \"Priority Among Concurrent Events\": silent on what is fetched",
        masks: Masks::Bits(8 + 32),
        applies: |seen| {
            let (ours, theirs) = vectors(seen);
            let is_fetch = matches!(theirs, (vector::GP, 0) | (vector::PF, 0x14));
            seen.form.is_vex() && ours.0 == vector::UD && is_fetch
        },
    },
    Tolerated {
        name: "end of a region",
        what: "Zen probes the 512 bytes of FXSAVE and FXRSTOR from their end: CR2 is in them",
        section: "SDM vol. 3A, \"Page-Fault Exception (#PF)\": an address that caused the fault",
        masks: Masks::Bits(12),
        applies: |seen| {
            let is_region = matches!(seen.form.family, "fxsave" | "xsave");
            let Difference::Cr2 { ours, theirs } = seen.difference else { return false };
            is_region && theirs.wrapping_sub(ours) < 4096
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
            let (ours, theirs) = vectors(seen);
            seen.form.mode == Mode::Bits64
                && seen.form.name == "CALL"
                && (ours.0, theirs.0) == (vector::SS, vector::PF)
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
