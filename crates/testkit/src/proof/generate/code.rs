//! The bytes of a case, and what the generator has to know of them afterwards.

use realmode::encodings::{Encoding, Form as ModForm, Map, Operand as O, Prefix};
use realmode::{CodeSize, Profile, SegReg};

use super::values::value;
use crate::prng::Prng;
use crate::proof::case::{Code, Mode};
use crate::proof::form::{Form, Operand, Size};

/// A displacement in the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Displacement {
    pub(super) at: usize,
    /// 1, 2, 4 or 8 bytes.
    pub(super) len: usize,
}

/// An instruction with what its ModRM byte says.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) code: Code,
    /// The memory operand that ModRM names or the instruction holds the offset of.
    pub(super) is_memory: bool,
    pub(super) base: Option<u8>,
    pub(super) index: Option<(u8, u32)>,
    pub(super) displacement: Option<Displacement>,
    pub(super) is_rip_relative: bool,
    is_long: bool,
    /// Address size in bytes.
    pub(super) address: u32,
    /// Operand size in bytes, as if it were not a byte instruction.
    pub(super) operand: u32,
    pub(super) segment: Option<SegReg>,
    pub(super) has_repeat: bool,
    /// Register numbers of ModRM.reg and ModRM.rm.
    pub(super) reg: u8,
    pub(super) rm: u8,
    /// Where the immediate is, if there is one.
    pub(super) tail: usize,
}

impl Draft {
    /// The shortest bytes with the prefixes of the form alone.
    pub(super) fn plain(form: &Form) -> Draft {
        let mut draft = Draft::default();
        let rex = if form.size == Size::Wide { 0x48 } else { 0 };
        draft.sizes(form, false);
        draft.mandatory(form);
        draft.opcode(&form.encoding, form, rex, 0, 0);
        if form.encoding.has_modrm() {
            let mode = if form.operand == Operand::Register { 3 } else { 0 };
            let byte = modrm(&form.encoding, mode, 0, 0);
            draft.code.push(byte);
        }
        draft.tail = usize::from(draft.code.len);
        draft
    }

    /// Random bytes of the form.
    pub(super) fn new(form: &Form, random: &mut Prng) -> Draft {
        let mut draft = Draft::default();
        let encoding = &form.encoding;
        let has_memory = form.operand == Operand::Memory
            || form.family == "string"
            || encoding.operands().any(|o| matches!(o, O::Ob | O::Ov));
        let has_67 = random.one_in(if has_memory { 6 } else { 32 });
        draft.sizes(form, has_67);
        draft.prefixes(form, has_67, has_memory, random);
        let is_long = form.mode == Mode::Bits64;
        let wide = u8::from(form.size == Size::Wide) << 3;
        let rex = match random.below(4) {
            _ if !is_long => 0,
            0 if wide == 0 => 0,
            _ => 0x40 | wide | random.below(8) as u8,
        };
        // PAUSE and the like are other instructions with REX.B.
        let rex = if encoding.prefix() == Prefix::F3WithoutB { rex & !1 } else { rex };
        let offset = random.below(u64::from(encoding.opcodes())) as u8;
        draft.opcode(encoding, form, rex, offset, random.next() as u8);
        if encoding.has_modrm() {
            draft.modrm(form, rex, random);
        } else if encoding.operands().any(|o| matches!(o, O::Ob | O::Ov)) {
            let at = usize::from(draft.code.len);
            draft.is_memory = true;
            draft.displacement = Some(Displacement { at, len: draft.address as usize });
            draft.push_number(0, draft.address as usize);
        } else {
            draft.reg = (rex & 1) << 3 | offset;
        }
        draft.tail = usize::from(draft.code.len);
        draft.push_number(value(random), 8);
        draft.push_number(value(random), 4);
        draft
    }

    /// Finds out where the instruction ends; what was past its end is gone.
    pub(super) fn measure(&mut self, mode: Mode, profile: &Profile) {
        if let Some(instruction) = super::instruction(&self.code.bytes, mode, profile) {
            self.code.truncate(instruction.len());
            // Which of two sizes a prefix asks for depends on the maker.
            if instruction.operand_size() > 1 {
                self.operand = instruction.operand_size().into();
            }
        } else {
            self.code.len = 16;
        }
    }

    fn sizes(&mut self, form: &Form, has_67: bool) {
        let size = form.mode.code_size();
        self.is_long = size == CodeSize::Bits64;
        self.address = match (size, has_67) {
            (CodeSize::Bits16, false) | (CodeSize::Bits32, true) => 2,
            (CodeSize::Bits16, true) | (CodeSize::Bits32, false) | (CodeSize::Bits64, true) => 4,
            (CodeSize::Bits64, false) => 8,
        };
        self.operand = match (size, form.size) {
            (_, Size::Wide) => 8,
            (CodeSize::Bits16, Size::Default)
            | (CodeSize::Bits32 | CodeSize::Bits64, Size::Prefixed) => 2,
            _ => 4,
        };
    }

    /// The prefixes without which it would be another form.
    fn mandatory(&mut self, form: &Form) {
        if is_vex(&form.encoding) {
            return;
        }
        if form.size == Size::Prefixed || form.encoding.prefix() == Prefix::P66 {
            self.code.push(0x66);
        }
        match form.encoding.prefix() {
            Prefix::F3 | Prefix::F3WithoutB | Prefix::OnlyF3 => self.code.push(0xF3),
            Prefix::F2 => self.code.push(0xF2),
            Prefix::Any | Prefix::None | Prefix::P66 | Prefix::NotRepeat => {}
        }
    }

    fn prefixes(&mut self, form: &Form, has_67: bool, has_memory: bool, random: &mut Prng) {
        const SEGMENTS: [(u8, SegReg); 6] = [
            (0x26, SegReg::Es),
            (0x2E, SegReg::Cs),
            (0x36, SegReg::Ss),
            (0x3E, SegReg::Ds),
            (0x64, SegReg::Fs),
            (0x65, SegReg::Gs),
        ];
        let encoding = &form.encoding;
        if random.one_in(if has_memory { 5 } else { 64 }) {
            let (byte, segment) = random.pick(&SEGMENTS);
            let counts = form.mode != Mode::Bits64 || matches!(segment, SegReg::Fs | SegReg::Gs);
            self.segment = counts.then_some(segment);
            // Some are too many for one instruction.
            let count = if random.one_in(32) { 1 + random.below(12) } else { 1 };
            (0..count).for_each(|_| self.code.push(byte));
        }
        if has_67 {
            self.code.push(0x67);
        }
        let takes_lock = encoding.is_lockable() && form.operand == Operand::Memory;
        if random.one_in(if takes_lock { 4 } else { 256 }) {
            self.code.push(0xF0);
        }
        let is_string = form.family == "string";
        if encoding.prefix() == Prefix::Any && random.one_in(if is_string { 2 } else { 64 }) {
            self.has_repeat = true;
            self.code.push(random.pick(&[0xF2, 0xF3]));
        }
        self.mandatory(form);
    }

    /// REX or VEX, the escape bytes and the opcode.
    fn opcode(&mut self, encoding: &Encoding, form: &Form, rex: u8, offset: u8, random: u8) {
        let opcode = encoding.opcode() + offset;
        if is_vex(encoding) {
            return self.vex(encoding, form, rex, random, opcode);
        }
        if rex != 0 {
            self.code.push(rex);
        }
        match encoding.map() {
            Map::TwoByte => self.code.push(0x0F),
            Map::M0F38 => [0x0F, 0x38].into_iter().for_each(|byte| self.code.push(byte)),
            Map::M0F3A => [0x0F, 0x3A].into_iter().for_each(|byte| self.code.push(byte)),
            _ => {}
        }
        self.code.push(opcode);
    }

    /// The three bytes of VEX. `random` says what no one else does: vvvv and L.
    fn vex(&mut self, encoding: &Encoding, form: &Form, rex: u8, random: u8, opcode: u8) {
        let map = match encoding.map() {
            Map::Vex1 => 1,
            Map::Vex2 => 2,
            Map::Vex3 => 3,
            _ => 7,
        };
        let pp = match encoding.prefix() {
            Prefix::P66 => 1,
            Prefix::F3 | Prefix::F3WithoutB | Prefix::OnlyF3 => 2,
            Prefix::F2 => 3,
            Prefix::Any | Prefix::None | Prefix::NotRepeat => 0,
        };
        let has_vvvv = encoding.operands().any(|o| matches!(o, O::By | O::H | O::Hdq | O::Kv));
        let registers = if form.mode == Mode::Bits64 { 15 } else { 7 };
        let vvvv = if has_vvvv { random & registers } else { 0 };
        let length = encoding.vector_lengths().trailing_zeros() as u8 & 1;
        let w = u8::from(form.size == Size::Wide || encoding.w() == 2);
        self.code.push(0xC4);
        self.code.push(!(rex << 5) & 0xE0 | map);
        self.code.push(w << 7 | (!vvvv & 15) << 3 | length << 2 | pp);
        self.code.push(opcode);
    }

    fn modrm(&mut self, form: &Form, rex: u8, random: &mut Prng) {
        let encoding = &form.encoding;
        let mode = if form.operand == Operand::Register { 3 } else { random.below(3) as u8 };
        let byte = modrm(encoding, mode, random.below(8) as u8, random.below(8) as u8);
        self.code.push(byte);
        let (mode, rm) = (byte >> 6, byte & 7);
        self.reg = byte >> 3 & 7 | (rex & 4) << 1;
        self.rm = rm | (rex & 1) << 3;
        if mode == 3 {
            return;
        }
        self.is_memory = true;
        if self.address == 2 {
            self.place_16(mode, rm);
        } else {
            self.place_32(mode, rm, rex, random);
        }
    }

    fn place_16(&mut self, mode: u8, rm: u8) {
        const PAIRS: [(u8, Option<u8>); 8] = [
            (3, Some(6)),
            (3, Some(7)),
            (5, Some(6)),
            (5, Some(7)),
            (6, None),
            (7, None),
            (5, None),
            (3, None),
        ];
        if mode == 0 && rm == 6 {
            return self.displacement(2);
        }
        let (base, index) = PAIRS[usize::from(rm)];
        self.base = Some(base);
        self.index = index.map(|index| (index, 0));
        self.displacement([0, 1, 2][usize::from(mode)]);
    }

    fn place_32(&mut self, mode: u8, rm: u8, rex: u8, random: &mut Prng) {
        let mut base = Some(rm | (rex & 1) << 3);
        let mut len = [0, 1, 4][usize::from(mode)];
        if rm == 4 {
            let sib = random.next() as u8;
            self.code.push(sib);
            let index = sib >> 3 & 7 | (rex & 2) << 2;
            base = Some(sib & 7 | (rex & 1) << 3);
            self.index = (index != 4).then_some((index, u32::from(sib >> 6)));
            if sib & 7 == 5 && mode == 0 {
                (base, len) = (None, 4);
            }
        } else if rm == 5 && mode == 0 {
            (base, len) = (None, 4);
            self.is_rip_relative = self.is_long;
        }
        self.base = base;
        self.displacement(len);
    }

    fn displacement(&mut self, len: usize) {
        if len > 0 {
            self.displacement = Some(Displacement { at: usize::from(self.code.len), len });
            self.push_number(0, len);
        }
    }

    fn push_number(&mut self, value: u64, len: usize) {
        for byte in &value.to_le_bytes()[..len] {
            self.code.push(*byte);
        }
    }

    /// Writes the displacement.
    pub(super) fn set_displacement(&mut self, value: u64) {
        if let Some(Displacement { at, len }) = self.displacement
            && at + len <= usize::from(self.code.len)
        {
            self.code.bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
    }

    /// Replaces the first `len` bytes of the immediate.
    pub(super) fn set_immediate(&mut self, value: u64, len: usize) {
        let end = (self.tail + len).min(usize::from(self.code.len));
        if self.tail < end {
            let bytes = value.to_le_bytes();
            self.code.bytes[self.tail..end].copy_from_slice(&bytes[..end - self.tail]);
        }
    }
}

/// A ModRM byte that the encoding admits.
fn modrm(encoding: &Encoding, mode: u8, reg: u8, rm: u8) -> u8 {
    let reg = encoding.digit().unwrap_or(reg);
    match encoding.form() {
        ModForm::Exact(byte) => byte,
        ModForm::RegisterZero => 0xC0 | reg << 3,
        ModForm::Any | ModForm::Memory | ModForm::Register => mode << 6 | reg << 3 | rm,
    }
}

fn is_vex(encoding: &Encoding) -> bool {
    matches!(encoding.map(), Map::Vex1 | Map::Vex2 | Map::Vex3 | Map::Vex7)
}
