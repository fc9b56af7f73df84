//! Rows: one encoding each, as const data in the manual's words.

use crate::arch::cpuid::Features;
use crate::arch::rflags;
use crate::isa::operand::{Operand, Plan};
use crate::isa::undefined::{FlagRule, UndefinedRules};
use crate::op::Handler;
use crate::profile::{Generation, UndefinedFlags, Vendor};

/// An opcode map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Map {
    /// One-byte opcodes.
    One = 0,
    /// 0F.
    TwoByte = 1,
    /// 0F 38.
    M0F38 = 2,
    /// 0F 3A.
    M0F3A = 3,
    /// VEX map 1 (0F).
    Vex1 = 4,
    /// VEX map 2 (0F 38).
    Vex2 = 5,
    /// VEX map 3 (0F 3A).
    Vex3 = 6,
    /// EVEX map 1.
    Evex1 = 7,
    /// EVEX map 2.
    Evex2 = 8,
    /// EVEX map 3.
    Evex3 = 9,
    /// EVEX map 5 (FP16).
    Evex5 = 10,
    /// EVEX map 6 (FP16).
    Evex6 = 11,
    /// XOP map 8.
    Xop8 = 12,
    /// XOP map 9.
    Xop9 = 13,
    /// XOP map A.
    XopA = 14,
    /// 0F 0F: 3DNow!, whose opcode is the byte after the operands.
    Now3d = 15,
    /// VEX map 7 (MSR immediates).
    Vex7 = 16,
}

/// How many maps there are.
pub(crate) const MAPS: usize = 17;

/// What ModRM.mod must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Register or memory.
    Any,
    /// Memory: mod is not 3.
    Memory,
    /// Register: mod is 3.
    Register,
    /// The whole ModRM byte is part of the opcode.
    Exact(u8),
    /// Register, and rm is 0 (TILEZERO).
    RegisterZero,
}

/// The mandatory prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// None is mandatory; 66 is the operand size, F2 and F3 are ignored or repeat.
    Any,
    /// No 66, F2 or F3.
    None,
    /// 66, and neither F2 nor F3.
    P66,
    /// F3 (the last of F2 and F3).
    F3,
    /// F3 without 66.
    OnlyF3,
    /// F3 without REX.B: PAUSE, where F3 41 90 exchanges R8.
    F3WithoutB,
    /// F2.
    F2,
    /// Neither F2 nor F3; 66 is the operand size.
    NotRepeat,
}

/// Modes in which a row exists; elsewhere it is #UD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// Everywhere.
    All,
    /// Not in 64-bit code.
    Not64,
    /// Only in 64-bit code.
    Only64,
    /// Only in protected mode outside virtual-8086 mode, long mode included.
    Protected,
    /// Protected, but not in 64-bit code.
    Protected32,
}

/// How the operand size is found in 64-bit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size64 {
    /// 32 bits, 64 with REX.W.
    Normal,
    /// 64 bits, 16 with 66 (PUSH, POP).
    Default64,
    /// Always 64 bits (MOV CR).
    Force64,
    /// Near branches: always 64 bits on Intel, 16 with 66 on AMD.
    Near,
    /// Far pointers in memory: AMD has none of 64 bits, and ignores REX.W.
    Far,
}

/// What a row does to the arithmetic flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// Flags it defines, as an RFLAGS mask.
    pub changes: u64,
    /// Flags it leaves undefined.
    pub undefined: u64,
    /// What becomes of those.
    pub rules: UndefinedRules,
}

/// No flag changes.
pub(crate) const KEEPS: Effect = Effect { changes: 0, undefined: 0, rules: UndefinedRules::KEPT };

/// Traits of a row that the dispatcher or the proofs ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits(pub(crate) u8);

impl Traits {
    /// The block ends after it: control transfers, mode changes, ports, anything rare.
    pub(crate) const ENDS_BLOCK: u8 = 1;
    /// It may change whether hardware could enter the state.
    pub(crate) const VALIDITY: u8 = 2;
    /// It serialises: blocks are compared with memory again.
    pub(crate) const SERIALISES: u8 = 4;
    /// Its handler makes the checks that come first, and stops as `Unimplemented`.
    pub(crate) const NOT_EXECUTED: u8 = 8;
    /// #UD if there is a coprocessor, which does not define it.
    pub(crate) const NO_COPROCESSOR: u8 = 16;
    /// Only Intel's processors have it.
    pub(crate) const INTEL: u8 = 32;
    /// Only AMD's processors have it.
    pub(crate) const AMD: u8 = 64;
}

/// Whose registers a vector instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum VectorSet {
    Mmx,
    Sse,
    Avx,
    Avx512,
}

impl VectorSet {
    /// All of them, in order.
    pub(crate) const ALL: [VectorSet; 4] =
        [VectorSet::Mmx, VectorSet::Sse, VectorSet::Avx, VectorSet::Avx512];
}

/// The handlers of a row.
#[derive(Clone, Copy)]
pub(crate) enum Exec {
    /// Recognised, not executed: stops as `Unimplemented`.
    Unimplemented,
    /// The same where the registers that it works on are available.
    NotExecuted(VectorSet),
    /// One handler for every form.
    One(Handler),
    /// Register form, memory form.
    Forms(&'static [Handler; 2]),
    /// By operand size: 16, 32, 64.
    Sizes(&'static [Handler; 3]),
    /// Register form by operand size, memory form by operand size.
    FormSizes(&'static [[Handler; 3]; 2]),
    /// By condition code, the low four bits of the opcode.
    Conditions(&'static [Handler; 16]),
    /// By repeat prefix (none, F3, F2), then by operand size (8, 16, 32, 64).
    Repeats(&'static [[Handler; 4]; 3]),
}

/// One encoding.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) map: Map,
    pub(crate) opcode: u8,
    /// Consecutive opcodes that share the row: 8 for a register, 16 for a condition.
    pub(crate) span: u8,
    /// ModRM.reg, or `NO_DIGIT`.
    pub(crate) digit: u8,
    pub(crate) form: Form,
    pub(crate) prefix: Prefix,
    pub(crate) modes: Modes,
    pub(crate) size64: Size64,
    /// VEX.L or EVEX.L'L, or VEX.W, that the row requires: see `vector`.
    pub(crate) vector: Vector,
    pub(crate) since: Generation,
    pub(crate) until: Generation,
    pub(crate) features: Features,
    pub(crate) name: &'static str,
    pub(crate) operands: [Operand; 4],
    pub(crate) plan: Plan,
    pub(crate) effect: Effect,
    pub(crate) traits: Traits,
    /// The LOCK form, where LOCK is legal. Its operand is memory.
    pub(crate) locked: Option<Handler>,
    pub(crate) exec: Exec,
}

/// What a row requires of VEX, EVEX or XOP: L, W and what EVEX adds. Of the rest only W counts: it
/// is REX.W.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector {
    /// Bit i: length 128 << i is defined.
    pub lengths: u8,
    /// Bit 0: W = 0 is defined; bit 1: W = 1.
    pub w: u8,
    /// What EVEX may say, of the constants here.
    pub evex: u8,
}

impl Vector {
    /// Any length, any W.
    pub(crate) const ANY: Vector = Vector { lengths: 7, w: 3, evex: 0 };
    /// A mask other than k0: `{k1}`.
    pub(crate) const MASK: u8 = 1;
    /// Zeroing: `{z}`.
    pub(crate) const ZEROING: u8 = 2;
    /// A mask other than k0, always (gathers).
    pub(crate) const MASK_REQUIRED: u8 = 4;
    /// Register form: b suppresses exceptions, `{sae}`.
    pub(crate) const SAE: u8 = 8;
    /// Register form: b makes L the rounding mode, `{er}`.
    pub(crate) const ROUNDING: u8 = 16;
    /// Memory form: b broadcasts an element of 16, 32 or 64 bits.
    pub(crate) const BROADCAST: u8 = 3 << 5;
    /// The element is 16 bits.
    pub(crate) const BROADCAST_16: u8 = 1 << 5;
    /// The element is 32 bits.
    pub(crate) const BROADCAST_32: u8 = 2 << 5;
    /// The element is 64 bits.
    pub(crate) const BROADCAST_64: u8 = 3 << 5;
    /// No register may be named twice: gathers, tiles; the destination of complex products.
    pub(crate) const DISTINCT: u8 = 1 << 7;
}

/// No ModRM.reg digit.
pub(crate) const NO_DIGIT: u8 = 0xFF;

/// Begins a row of the one-byte map.
pub(crate) const fn one(name: &'static str, opcode: u8, operands: &[Operand]) -> Row {
    row(Map::One, name, opcode, operands)
}

/// Begins a row of the 0F map; those came with the 80386 unless the row says otherwise.
pub(crate) const fn two(name: &'static str, opcode: u8, operands: &[Operand]) -> Row {
    row(Map::TwoByte, name, opcode, operands).since(Generation::I80386)
}

/// Begins a row of any map.
pub(crate) const fn row(map: Map, name: &'static str, opcode: u8, operands: &[Operand]) -> Row {
    let mut list = [Operand::None; 4];
    let mut i = 0;
    let mut form = Form::Any;
    while i < operands.len() {
        list[i] = operands[i];
        if operands[i].is_memory_only() {
            form = Form::Memory;
        } else if operands[i].is_register_only() {
            form = Form::Register;
        }
        i += 1;
    }
    Row {
        map,
        opcode,
        span: 1,
        digit: NO_DIGIT,
        form,
        prefix: Prefix::Any,
        modes: Modes::All,
        size64: Size64::Normal,
        vector: Vector::ANY,
        since: Generation::I8086,
        until: Generation::Modern,
        features: Features::empty(),
        name,
        operands: list,
        plan: Plan::of(operands),
        effect: KEEPS,
        traits: Traits(0),
        locked: None,
        exec: Exec::Unimplemented,
    }
}

impl Row {
    /// Covers `span` consecutive opcodes.
    pub(crate) const fn span(mut self, span: u8) -> Row {
        self.span = span;
        self
    }
    /// ModRM.reg is part of the opcode: `/digit`.
    pub(crate) const fn digit(mut self, digit: u8) -> Row {
        self.digit = digit;
        self.plan = self.plan.with(Plan::MODRM);
        self
    }
    /// Only the memory form exists.
    pub(crate) const fn memory(mut self) -> Row {
        self.form = Form::Memory;
        self.plan = self.plan.with(Plan::MODRM);
        self
    }
    /// Only the register form exists.
    pub(crate) const fn register(mut self) -> Row {
        self.form = Form::Register;
        self.plan = self.plan.with(Plan::MODRM);
        self
    }
    /// The whole ModRM byte is part of the opcode.
    pub(crate) const fn modrm(mut self, byte: u8) -> Row {
        self.form = Form::Exact(byte);
        self.plan = self.plan.with(Plan::MODRM);
        self
    }
    /// The mandatory prefix.
    pub(crate) const fn prefix(mut self, prefix: Prefix) -> Row {
        self.prefix = prefix;
        self
    }
    /// Where it exists.
    pub(crate) const fn modes(mut self, modes: Modes) -> Row {
        self.modes = modes;
        self
    }
    /// How 64-bit code sizes it.
    pub(crate) const fn size64(mut self, size64: Size64) -> Row {
        self.size64 = size64;
        self
    }
    /// What VEX, EVEX or XOP have to say.
    pub(crate) const fn vector(mut self, vector: Vector) -> Row {
        self.vector = vector;
        self
    }
    /// The first generation that has it.
    pub(crate) const fn since(mut self, generation: Generation) -> Row {
        self.since = generation;
        self
    }
    /// The last generation that has it.
    pub(crate) const fn until(mut self, generation: Generation) -> Row {
        self.until = generation;
        self
    }
    /// The CPUID features it needs, all of them.
    pub(crate) const fn needs(mut self, features: Features) -> Row {
        self.features = features;
        self.since = Generation::Modern;
        self
    }
    /// Flags it defines.
    pub(crate) const fn changes(mut self, flags: u64) -> Row {
        self.effect.changes = flags;
        self
    }
    /// Flags that the manual leaves undefined, and what becomes of them.
    pub(crate) const fn undefined(mut self, flags: u64, rule: FlagRule) -> Row {
        self.effect.undefined |= flags;
        self.effect.changes &= !flags;
        self.on(UndefinedFlags::Early, flags, rule).on(UndefinedFlags::Intel, flags, rule).on(
            UndefinedFlags::Amd,
            flags,
            rule,
        )
    }
    /// What becomes of undefined flags on one kind of silicon, where it differs.
    pub(crate) const fn on(mut self, silicon: UndefinedFlags, flags: u64, rule: FlagRule) -> Row {
        self.effect.rules = self.effect.rules.with(silicon, flags, rule);
        self
    }
    /// All six arithmetic flags, by the result.
    pub(crate) const fn arithmetic(self) -> Row {
        self.changes(rflags::ARITH)
    }
    /// LOCK is legal before its memory form, and this executes it.
    pub(crate) const fn lockable(mut self, handler: Handler) -> Row {
        self.locked = Some(handler);
        self
    }
    /// The block ends after it.
    pub(crate) const fn ends_block(mut self) -> Row {
        self.traits.0 |= Traits::ENDS_BLOCK;
        self
    }
    /// It may change whether hardware could enter; the block ends after it.
    pub(crate) const fn changes_validity(mut self) -> Row {
        self.traits.0 |= Traits::VALIDITY | Traits::ENDS_BLOCK;
        self
    }
    /// It serialises; the block ends after it.
    pub(crate) const fn serialises(mut self) -> Row {
        self.traits.0 |= Traits::SERIALISES | Traits::ENDS_BLOCK;
        self
    }
    /// What executes it.
    pub(crate) const fn exec(mut self, exec: Exec) -> Row {
        self.traits.0 &= !Traits::NOT_EXECUTED;
        self.exec = exec;
        self
    }
    /// One handler for every form.
    pub(crate) const fn handler(self, handler: Handler) -> Row {
        self.exec(Exec::One(handler))
    }

    /// Recognised and checked, not executed.
    pub(crate) const fn not_executed(mut self, handler: Handler) -> Row {
        self.traits.0 |= Traits::NOT_EXECUTED;
        self.exec = Exec::One(handler);
        self
    }

    /// Only the processors of one maker have it.
    pub(crate) const fn only(mut self, vendor: Vendor) -> Row {
        self.traits.0 |= match vendor {
            Vendor::Intel => Traits::INTEL,
            Vendor::Amd => Traits::AMD,
        };
        self
    }

    /// Exists where there is no coprocessor.
    pub(crate) const fn without_coprocessor(mut self) -> Row {
        self.traits.0 |= Traits::NO_COPROCESSOR;
        self
    }
}

/// Instantiates a handler, generic over its width in the last place, for 16, 32 and 64 bits.
macro_rules! sized {
    ($($path:ident)::+ $(, $t:ty)*) => {
        [
            $($path)::+::<$($t,)* u16> as $crate::op::Handler,
            $($path)::+::<$($t,)* u32> as $crate::op::Handler,
            $($path)::+::<$($t,)* u64> as $crate::op::Handler,
        ]
    };
}
pub(crate) use sized;

/// Picks the instance of a handler for the width of the op.
macro_rules! by_width {
    ($go:ident $(, $t:ty)*) => {
        |m: &mut $crate::machine::Machine<'_, '_>, op: &$crate::op::Op| match op.width {
            1 => $go::<$($t,)* u8>(m, op),
            2 => $go::<$($t,)* u16>(m, op),
            4 => $go::<$($t,)* u32>(m, op),
            _ => $go::<$($t,)* u64>(m, op),
        }
    };
}
pub(crate) use by_width;
