//! What the cases were about: in which states their instructions ran, and what became of those
//! that protected mode treats in its own way.

use realmode::arch::control::{CR0_PG, EFER_LMA};
use realmode::{Cpu, SegReg};

/// Families of instructions that work on descriptors or ask for privilege, and the rest.
const KINDS: [&str; 11] = [
    "segment loads",
    "far JMP",
    "far CALL",
    "RETF",
    "IRET",
    "INT",
    "LLDT LTR",
    "LAR LSL VERR VERW ARPL",
    "CLI STI POPF",
    "IN OUT",
    "others",
];
const OTHERS: usize = KINDS.len() - 1;

/// States of the processor.
const STATES: [&str; 16] = [
    "PE=0 16-bit",
    "PE=0 32-bit",
    "CPL 0 16-bit",
    "CPL 0 32-bit",
    "CPL 1 16-bit",
    "CPL 1 32-bit",
    "CPL 2 16-bit",
    "CPL 2 32-bit",
    "CPL 3 16-bit",
    "CPL 3 32-bit",
    "vm86",
    "paged",
    "compatibility mode",
    "64-bit",
    "A20 off",
    "PE=1 on an expand-down stack",
];
/// The first states exclude each other; the last two come on top.
const EXCLUSIVE: usize = 14;
/// Of these, the last are neither real nor plain protected mode.
const OTHER_MODES: usize = 4;

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed = 0,
    Faulted = 1,
    Unimplemented = 2,
}

/// A count of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    states: [u64; STATES.len()],
    /// Ends of the instructions of unpaged protected mode, by kind.
    kinds: [[u64; 3]; KINDS.len()],
    /// The kind of the instruction that has begun.
    begun: Option<usize>,
}

impl Census {
    /// Adds another count.
    pub fn add(&mut self, other: &Census) {
        let pairs = self.states.iter_mut().zip(other.states);
        let ends = self.kinds.iter_mut().flatten().zip(other.kinds.into_iter().flatten());
        for (mine, theirs) in pairs.chain(ends) {
            *mine += theirs;
        }
    }

    /// Instructions with PE set, without paging, virtual-8086 or long mode.
    pub fn protected(&self) -> u64 {
        self.states[2..EXCLUSIVE - OTHER_MODES].iter().sum()
    }

    /// Instructions that completed, in the families that protected mode treats in its own way.
    pub fn completed(&self) -> u64 {
        self.kinds[..OTHERS].iter().map(|ends| ends[End::Completed as usize]).sum()
    }

    /// An instruction begins.
    pub(crate) fn begin(&mut self, cpu: &Cpu, bytes: &[u8]) {
        let state = state(cpu);
        self.states[state] += 1;
        self.states[EXCLUSIVE] += u64::from(!cpu.a20);
        let protected = (2..EXCLUSIVE - OTHER_MODES).contains(&state);
        let down = cpu.segment(SegReg::Ss).attributes.is_expand_down();
        self.states[EXCLUSIVE + 1] += u64::from(protected && down);
        self.begun = protected.then(|| kind(bytes));
    }

    /// The instruction that has begun ends.
    pub(crate) fn end(&mut self, end: End) {
        if let Some(kind) = self.begun.take() {
            self.kinds[kind][end as usize] += 1;
        }
    }

    /// Two lines for people: the states, and the ends of each kind.
    pub fn lines(&self) -> [String; 2] {
        let all: u64 = self.states[..EXCLUSIVE].iter().sum();
        let share = |n: u64, of: u64| 100.0 * n as f64 / of.max(1) as f64;
        let states: Vec<_> = STATES
            .iter()
            .zip(self.states)
            .map(|(name, n)| format!("{name} {:.1}", share(n, all)))
            .collect();
        let kinds: Vec<_> = KINDS
            .iter()
            .zip(self.kinds)
            .map(|(name, ends)| {
                let sum = ends.iter().sum();
                let [done, faulted, not] = ends.map(|n| share(n, sum));
                format!("{name} {done:.0}/{faulted:.0}/{not:.0} of {sum}")
            })
            .collect();
        [
            format!("% of instructions: {}", states.join(", ")),
            format!("protected mode, % completed/faulted/not implemented: {}", kinds.join(", ")),
        ]
    }
}

fn state(cpu: &Cpu) -> usize {
    let attributes = cpu.segment(SegReg::Cs).attributes;
    let wide = usize::from(attributes.is_big());
    let other = EXCLUSIVE - OTHER_MODES;
    if cpu.is_64_bit_code() {
        other + 3
    } else if cpu.msr.efer & EFER_LMA != 0 {
        other + 2
    } else if cpu.is_virtual_8086() {
        other
    } else if cpu.cr0 & CR0_PG != 0 {
        other + 1
    } else if cpu.is_real_mode() {
        wide
    } else {
        2 + 2 * usize::from(cpu.cpl()) + wide
    }
}

/// The family of an instruction.
fn kind(bytes: &[u8]) -> usize {
    let is_prefix =
        |byte: &&u8| matches!(**byte, 0x26 | 0x2E | 0x36 | 0x3E | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3);
    let start = bytes.iter().take_while(is_prefix).count();
    let at = |i: usize| bytes.get(start + i).copied().unwrap_or(0);
    let digit = |i: usize| at(i) >> 3 & 7;
    match (at(0), at(1)) {
        (0x8E | 0xC4 | 0xC5 | 0x07 | 0x17 | 0x1F, _) => 0,
        (0x0F, 0xA1 | 0xA9 | 0xB2 | 0xB4 | 0xB5) => 0,
        (0xEA, _) => 1,
        (0xFF, _) if digit(1) == 5 => 1,
        (0x9A, _) => 2,
        (0xFF, _) if digit(1) == 3 => 2,
        (0xCA | 0xCB, _) => 3,
        (0xCF, _) => 4,
        (0xCC..=0xCE | 0xF1, _) => 5,
        (0x0F, 0) if matches!(digit(2), 2 | 3) => 6,
        (0x0F, 0) if matches!(digit(2), 4 | 5) => 7,
        (0x0F, 2 | 3) | (0x63, _) => 7,
        (0xFA | 0xFB | 0x9D, _) => 8,
        (0xE4..=0xE7 | 0xEC..=0xEF | 0x6C..=0x6F, _) => 9,
        _ => OTHERS,
    }
}
