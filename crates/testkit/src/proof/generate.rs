//! Cases from forms: the same for a seed and an index on every machine and in every run.
//!
//! [`VERSION`] counts the changes of meaning: recorded outcomes belong to one version.

mod aim;
mod code;
mod edge;
mod frame;
mod values;

use realmode::arch::rflags::{ARITH, DF, IF};
use realmode::encodings::Map;
use realmode::{Instruction, Profile, Segmentation, decode_one};

use super::case::{Case, Code, Mode, Poke};
use super::form::{Form, Setting};
use super::layout::{CODE, Kind, Layout};
use crate::prng::{Prng, mix};

use code::Draft;
pub(super) use values::value;

/// Of the generator: a seed and an index mean another case when this changes.
pub const VERSION: u32 = 1;

/// What the generator knows of a case on its way.
struct Plan<'p> {
    form: &'p Form,
    layout: Layout,
    random: Prng,
    draft: Draft,
    entry: u32,
    gpr: [u64; 16],
    segments: [Kind; 6],
    pokes: [Poke; 3],
}

/// One case of a form.
pub fn case(form: &Form, layout: Layout, profile: &Profile, seed: u64, index: u64) -> Case {
    let random = Prng::new(mix(mix(seed).wrapping_add(form.hash())).wrapping_add(mix(index)));
    choose(form, layout, profile, random, index)
}

/// One case of a form, with a fuzzer's choices.
pub(super) fn case_from_bytes(
    form: &Form,
    layout: Layout,
    profile: &Profile,
    bytes: &[u8],
) -> Case {
    let index = bytes.first().copied().unwrap_or(0);
    choose(form, layout, profile, Prng::from_bytes(bytes), index.into())
}

fn choose(form: &Form, layout: Layout, profile: &Profile, random: Prng, index: u64) -> Case {
    let mut plan = Plan {
        form,
        layout,
        random,
        draft: Draft::default(),
        entry: 0,
        gpr: [0; 16],
        segments: [Kind::Null; 6],
        pokes: [Poke::default(); 3],
    };
    plan.draft = Draft::new(form, &mut plan.random);
    let registers = if form.mode == Mode::Bits64 { 16 } else { 8 };
    for register in &mut plan.gpr[..registers] {
        *register = values::value(&mut plan.random);
    }
    plan.choose_segments();
    plan.draft.measure(form.mode, profile);
    plan.choose_entry();
    plan.aim();
    plan.frames();
    let paging = plan.choose_paging();
    let rflags = plan.flags(index);
    Case {
        mode: form.mode,
        layout,
        code: plan.draft.code,
        entry: plan.entry,
        gpr: plan.gpr,
        rflags,
        segments: plan.segments,
        pokes: plan.pokes,
        paging,
    }
}

/// The plainest bytes of a form, and how many of them are not operands.
pub(super) fn plain(form: &Form) -> ([u8; 16], usize) {
    let draft = Draft::plain(form);
    (draft.code.bytes, usize::from(draft.code.len))
}

/// What the bytes are, unless they are too short, too long or undefined.
pub(super) fn decoded(bytes: &[u8; 16], mode: Mode, profile: &Profile) -> Option<Instruction> {
    instruction(bytes, mode, profile).filter(|instruction| !instruction.is_undefined())
}

fn instruction(bytes: &[u8; 16], mode: Mode, profile: &Profile) -> Option<Instruction> {
    let segmentation = match mode {
        Mode::Real => Segmentation::Real,
        Mode::Bits16 | Mode::Bits32 | Mode::Bits64 => Segmentation::Protected,
    };
    decode_one(bytes, mode.code_size(), profile, segmentation).ok()
}

impl Plan<'_> {
    fn is_long(&self) -> bool {
        self.form.mode == Mode::Bits64
    }

    /// Mostly the usual ones, and every kind there is now and then.
    fn choose_segments(&mut self) {
        let random = &mut self.random;
        let mode = self.form.mode;
        let code = match mode {
            Mode::Real | Mode::Bits16 if random.one_in(32) => Kind::ExecuteOnly,
            Mode::Real | Mode::Bits16 => Kind::Code16,
            Mode::Bits32 | Mode::Bits64 => Kind::Code32,
        };
        let stack = match (mode, random.below(8)) {
            (Mode::Bits32, 1..) | (Mode::Bits16, 0) => Kind::Stack32,
            _ => Kind::Stack16,
        };
        self.segments = [Kind::Extra, code, stack, Kind::Data, Kind::Fs, Kind::Gs];
        if matches!(mode, Mode::Real | Mode::Bits64) {
            return;
        }
        const ODD: [Kind; 9] = [
            Kind::Short,
            Kind::Short,
            Kind::Short,
            Kind::Down,
            Kind::ReadOnly,
            Kind::Wide,
            Kind::Wide,
            Kind::Code16,
            Kind::Null,
        ];
        for i in [0, 3, 4, 5] {
            if random.one_in(16) {
                self.segments[i] = random.pick(&ODD);
            }
        }
        if random.one_in(64) {
            self.segments[2] = random.pick(&[Kind::Short, Kind::Down, Kind::Wide]);
        }
        self.choose_odd_segments();
    }

    /// Anywhere in the code segment, seldom so that the instruction ends with it.
    fn choose_entry(&mut self) {
        let len = u64::from(self.draft.code.len);
        if self.form.setting == Setting::Pages && self.random.one_in(16) {
            // So that it ends in the next page.
            self.entry = (0x1000 * (1 + self.random.below(14)) - self.random.below(len)) as u32;
            return;
        }
        self.entry = match self.random.below(64) {
            0 if !self.is_long() && !self.is_completed_by_linux() => {
                (0x1_0000 - len + self.random.below(2)).min(0xFFFF) as u32
            }
            1 => self.random.below(16) as u32,
            _ => 0x1000 + self.random.below(0xE000) as u32,
        };
    }

    /// Linux looks at the bytes of a #GP for SLDT and its like, past the limit too, and takes what
    /// is cut off for one.
    fn is_completed_by_linux(&self) -> bool {
        self.form.encoding.map() == Map::TwoByte && self.form.encoding.opcode() <= 1
    }

    /// The linear address of an offset in the code, as 64-bit code counts.
    fn code_base(&self) -> u64 {
        if self.is_long() { u64::from(self.layout.base + CODE) } else { 0 }
    }

    /// All flags clear, all set, and then any.
    fn flags(&mut self, index: u64) -> u64 {
        let arithmetic = match index % 4 {
            0 => 0,
            1 => ARITH,
            _ => self.random.next() & ARITH,
        };
        let is_string = self.form.family == "string";
        let down = self.random.one_in(if is_string { 3 } else { 16 });
        2 | IF | arithmetic | if down { DF } else { 0 }
    }

    /// Adds a poke, if there is room for one.
    fn poke(&mut self, at: u32, bytes: &[u8]) {
        let end = super::layout::ARENA_SIZE;
        let len = bytes.len().min(32).min(end.saturating_sub(at) as usize);
        if let Some(poke) = self.pokes.iter_mut().find(|poke| poke.len == 0)
            && len > 0
        {
            poke.at = at;
            poke.bytes[..len].copy_from_slice(&bytes[..len]);
            poke.len = len as u8;
        }
    }
}

impl Code {
    fn truncate(&mut self, len: usize) {
        self.len = len.min(self.bytes.len()) as u8;
        self.bytes[usize::from(self.len)..].fill(0);
    }
}
