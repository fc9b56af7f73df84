//! Decode: bytes to an [`Op`]. Settles size, address form, segment, LOCK legality and the choice
//! of register or memory form, once, so that handlers test none of them.

pub(crate) mod vector;

use crate::arch::registers::{RIP_SLOT, SegReg, ZERO_SLOT};
use crate::isa::operand::{Imm, Plan};
use crate::isa::row::{Exec, Form, Map, Modes, NO_DIGIT, Prefix, Size64, Traits};
use crate::isa::simd::available;
use crate::isa::table::{self, Entry};
use crate::machine::{Leave, Machine, Step};
use crate::op::{Handler, Op};
use crate::profile::{Generation, Profile, Vendor};
use crate::stop::UnimplementedReason;

/// The size of code, which CS.L and CS.D decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CodeSize {
    /// 16-bit code.
    Bits16 = 0,
    /// 32-bit code.
    Bits32 = 1,
    /// 64-bit code.
    Bits64 = 2,
}

impl CodeSize {
    /// 16, 32 or 64.
    pub const fn bits(self) -> u8 {
        16 << self as u8
    }
}

/// What decode has to know besides the bytes.
#[derive(Clone, Copy)]
pub(crate) struct Context<'p> {
    pub(crate) size: CodeSize,
    /// Real-mode segmentation: no VEX, no protected-mode instructions.
    pub(crate) real: bool,
    pub(crate) profile: &'p Profile,
}

/// Why there is no `Op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// The bytes end before the instruction does.
    Short,
    /// The instruction is longer than the processor takes.
    TooLong,
}

/// What decode learned that an `Op` does not keep: for disassembly and the restart record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details {
    pub(crate) opcode: u8,
    /// The row, unless the bytes are #UD.
    pub(crate) row: Option<&'static Entry>,
    pub(crate) is_memory: bool,
    pub(crate) lock: bool,
    /// The last of F2 and F3, or 0.
    pub(crate) repeat: u8,
    /// Operand size in bytes, of a non-byte instruction.
    pub(crate) operand_size: u8,
    /// Address size in bytes.
    pub(crate) address_size: u8,
    /// A segment override, if one counts.
    pub(crate) segment: Option<SegReg>,
    pub(crate) rex: u8,
    /// VEX.vvvv, not inverted.
    pub(crate) vvvv: u8,
    /// Vector length: 128 << this.
    pub(crate) vector_length: u8,
    pub(crate) is_evex: bool,
    /// EVEX's third byte, or 0.
    pub(crate) evex: u8,
    /// EVEX.R'.
    pub(crate) high_reg: bool,
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes not yet decoded.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    max: usize,
}

impl Cursor<'_> {
    #[inline(always)]
    fn take(&mut self) -> Result<u8, Incomplete> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn peek(&self) -> Result<u8, Incomplete> {
        if self.at >= self.max {
            return Err(Incomplete::TooLong);
        }
        self.bytes.get(self.at).copied().ok_or(Incomplete::Short)
    }

    /// Takes `n` (at most 8) bytes as a little-endian number.
    #[inline(always)]
    fn number(&mut self, n: usize) -> Result<u64, Incomplete> {
        if self.at + n > self.max {
            return Err(if self.bytes.len() < self.max {
                Incomplete::Short
            } else {
                Incomplete::TooLong
            });
        }
        let bytes = self.bytes.get(self.at..self.at + n).ok_or(Incomplete::Short)?;
        self.at += n;
        let mut word = [0; 8];
        word[..n].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    #[inline(always)]
    fn signed(&mut self, n: usize) -> Result<u64, Incomplete> {
        let value = self.number(n)?;
        let shift = 64 - 8 * n as u32;
        Ok(((value << shift) as i64 >> shift) as u64)
    }
}

/// Prefixes, and what VEX, EVEX or XOP say instead of them.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    operand_size: bool,
    address_size: bool,
    lock: bool,
    repeat: u8,
    segment: Option<SegReg>,
    rex: u8,
    /// 66, F3 or F2 came with VEX: only the mandatory prefix, no operand size.
    is_vector: bool,
    is_evex: bool,
    /// EVEX's third byte.
    evex: u8,
    /// EVEX.R': bit 4 of ModRM.reg.
    high_reg: bool,
    /// Not inverted.
    vvvv: u8,
    length: u8,
    /// W of whatever prefix has it.
    wide: bool,
    /// EVEX or VEX fields that have to have a fixed value do not.
    malformed: bool,
}

const REX_W: u8 = 8;
const REX_R: u8 = 4;
const REX_X: u8 = 2;
const REX_B: u8 = 1;

/// Decodes one instruction. Bytes that no processor of the profile executes decode to an op that
/// raises #UD.
pub(crate) fn decode(bytes: &[u8], context: Context<'_>) -> Result<(Op, Details), Incomplete> {
    let max = match context.profile.max_length {
        0 => 15,
        max => usize::from(max),
    };
    let mut cursor = Cursor { bytes, at: 0, max };
    let mut prefixes = Prefixes::default();
    let opcode = take_prefixes(&mut cursor, &mut prefixes, context)?;
    prefixes.wide = prefixes.rex & REX_W != 0;
    let (map, opcode) = take_map(&mut cursor, &mut prefixes, opcode, context)?;
    let decoder = Decoder { context, prefixes, map, opcode };
    decoder.finish(&mut cursor)
}

fn take_prefixes(
    cursor: &mut Cursor<'_>,
    prefixes: &mut Prefixes,
    context: Context<'_>,
) -> Result<u8, Incomplete> {
    let has_32 = context.profile.generation >= Generation::I80386;
    let long = context.size == CodeSize::Bits64;
    loop {
        let byte = cursor.take()?;
        let segment = match byte {
            0x26 => SegReg::Es,
            0x2E => SegReg::Cs,
            0x36 => SegReg::Ss,
            0x3E => SegReg::Ds,
            0x64 if has_32 => SegReg::Fs,
            0x65 if has_32 => SegReg::Gs,
            0x66 if has_32 => {
                prefixes.operand_size = true;
                prefixes.rex = 0;
                continue;
            }
            0x67 if has_32 => {
                prefixes.address_size = true;
                prefixes.rex = 0;
                continue;
            }
            0xF0 => {
                prefixes.lock = true;
                prefixes.rex = 0;
                continue;
            }
            // 8086: F1 is F0 again; a 286 takes it for a prefix too. INT1 came with the 386.
            0xF1 if !has_32 => {
                prefixes.lock = true;
                continue;
            }
            0xF2 | 0xF3 => {
                prefixes.repeat = byte;
                prefixes.rex = 0;
                continue;
            }
            0x40..=0x4F if long => {
                prefixes.rex = byte;
                continue;
            }
            _ => return Ok(byte),
        };
        prefixes.rex = 0;
        // 64-bit code ignores the other four, and they do not cancel an FS or GS.
        if !long || matches!(segment, SegReg::Fs | SegReg::Gs) {
            prefixes.segment = Some(segment);
        }
    }
}

/// The opcode map, and the opcode in it.
fn take_map(
    cursor: &mut Cursor<'_>,
    prefixes: &mut Prefixes,
    opcode: u8,
    context: Context<'_>,
) -> Result<(Map, u8), Incomplete> {
    let long = context.size == CodeSize::Bits64;
    match opcode {
        0x0F if context.profile.generation >= Generation::I80286 => match cursor.take()? {
            0x38 => Ok((Map::M0F38, cursor.take()?)),
            0x3A => Ok((Map::M0F3A, cursor.take()?)),
            // 3DNow!: the opcode follows the operands.
            0x0F => Ok((Map::Now3d, 0)),
            second => Ok((Map::TwoByte, second)),
        },
        // Outside 64-bit code these are LES, LDS, BOUND unless the next byte looks like mod = 3;
        // in real and virtual-8086 mode they are never VEX.
        0xC4 | 0xC5 | 0x62 if !context.real && (long || cursor.peek()? >= 0xC0) => {
            vector::take_vector(cursor, prefixes, opcode, long)
        }
        0x8F if !context.real && cursor.peek()? & 0x1F >= 8 => {
            vector::take_vector(cursor, prefixes, opcode, long)
        }
        _ => Ok((Map::One, opcode)),
    }
}

struct Decoder<'p> {
    context: Context<'p>,
    prefixes: Prefixes,
    map: Map,
    opcode: u8,
}

/// A memory or register operand from ModRM.
struct Place {
    is_memory: bool,
    rm: u8,
    index: u8,
    scale: u8,
    disp: i32,
    segment: SegReg,
}

impl Decoder<'_> {
    fn is_long(&self) -> bool {
        self.context.size == CodeSize::Bits64
    }

    fn is_amd(&self) -> bool {
        self.context.profile.vendor == Vendor::Amd
    }

    /// Address size in bytes.
    fn address_size(&self) -> u8 {
        match (self.context.size, self.prefixes.address_size) {
            (CodeSize::Bits16, false) | (CodeSize::Bits32, true) => 2,
            (CodeSize::Bits16, true) | (CodeSize::Bits32, false) | (CodeSize::Bits64, true) => 4,
            (CodeSize::Bits64, false) => 8,
        }
    }

    /// Operand size in bytes of an instruction that is not a byte one.
    fn operand_size(&self, row: &Entry) -> u8 {
        if self.prefixes.is_vector {
            return if self.is_long() && self.prefixes.wide { 8 } else { 4 };
        }
        let no_word = row.plan.has(Plan::SIZE_Y);
        let has_66 = self.prefixes.operand_size;
        let small = has_66 && row.prefix != Prefix::P66 && !no_word;
        match self.context.size {
            CodeSize::Bits16 if has_66 || no_word => 4,
            CodeSize::Bits16 => 2,
            CodeSize::Bits32 if small => 2,
            CodeSize::Bits32 => 4,
            CodeSize::Bits64 => match row.size64 {
                Size64::Force64 => 8,
                Size64::Near if !self.is_amd() => 8,
                Size64::Far if self.is_amd() => {
                    if small {
                        2
                    } else {
                        4
                    }
                }
                _ if self.prefixes.wide => 8,
                _ if small => 2,
                Size64::Default64 | Size64::Near => 8,
                Size64::Normal | Size64::Far => 4,
            },
        }
    }

    /// Finds the row and fills in the op.
    fn finish(mut self, cursor: &mut Cursor<'_>) -> Result<(Op, Details), Incomplete> {
        let modrm_at = cursor.at;
        let next = cursor.peek();
        let mut now3d_place = None;
        if self.map == Map::Now3d {
            let modrm = cursor.take()?;
            now3d_place = Some((modrm, self.place(modrm, cursor)?));
            self.opcode = cursor.take()?;
        }
        let Some((number, row)) = self.find(next)? else {
            // The ModRM byte that made it undefined belongs to it: another one may be defined.
            let seen = if self.depends_on_modrm() { next.map(|_| modrm_at + 1)? } else { 0 };
            return Ok(self.undefined(cursor.at.max(seen)));
        };
        let plan = row.plan;
        let address_size = self.address_size();
        let mut op = Op {
            row: number,
            width: if plan.has(Plan::BYTE) { 1 } else { self.operand_size(row) },
            address_shift: 64 - 8 * address_size,
            // Rows without ModRM keep the address size here: LOOP, JCXZ.
            scale: address_size.ilog2() as u8,
            rm: ZERO_SLOT,
            index: ZERO_SLOT,
            seg: self.prefixes.segment.unwrap_or(SegReg::Ds) as u8,
            ..Op::EMPTY
        };
        let mut is_memory = plan.has(Plan::MOFFS);
        let mut is_defined = true;
        if plan.has(Plan::MODRM) {
            let (modrm, mut place) = match now3d_place {
                Some(both) => both,
                None if plan.has(Plan::REGISTER_ONLY) => {
                    let modrm = cursor.take()?;
                    (modrm, self.place(modrm | 0xC0, cursor)?)
                }
                None => {
                    let modrm = cursor.take()?;
                    (modrm, self.place(modrm, cursor)?)
                }
            };
            is_memory = place.is_memory;
            if self.prefixes.is_vector {
                is_defined = self.vector_is_defined(row, modrm, &place);
                place.disp *= self.displacement_unit(row, modrm);
            }
            self.set_operands(&mut op, row, modrm, &place);
        } else if plan.has(Plan::OPCODE_REG) {
            let extended = (self.prefixes.rex & REX_B) << 3 | self.opcode & 7;
            op.reg = self.register(extended, plan.has(Plan::BYTE_REG));
        } else if self.prefixes.is_vector {
            is_defined = self.prefixes.vvvv == 0;
        }
        if !is_defined {
            return Ok(self.undefined(cursor.at));
        }
        if row.span == 16 {
            op.reg = if is_memory || plan.has(Plan::MODRM) { op.reg } else { self.opcode & 15 };
        }
        self.take_immediate(&mut op, row, cursor)?;
        op.len = cursor.at as u8;
        op.handler = Some(self.handler(row, &op, is_memory));
        debug_assert!(cursor.at > modrm_at - 1);
        let details = self.details(Some(row), is_memory, self.operand_size(row));
        Ok((op, details))
    }

    /// The first row of the opcode that the prefixes, ModRM, mode and profile admit.
    fn find(
        &self,
        next: Result<u8, Incomplete>,
    ) -> Result<Option<(u16, &'static Entry)>, Incomplete> {
        if self.prefixes.malformed {
            return Ok(None);
        }
        let digit = next.map_or(0, |byte| byte >> 3 & 7);
        let is_register = next.is_ok_and(|byte| byte >= 0xC0);
        for (number, row) in table::candidates(self.map as usize, self.opcode, digit) {
            if !self.admits(row, is_register) {
                continue;
            }
            if row.plan.has(Plan::MODRM) && !form_fits(row, next?) {
                continue;
            }
            return Ok(Some((number, row)));
        }
        Ok(None)
    }

    /// Are there rows of this opcode that some ModRM byte selects?
    fn depends_on_modrm(&self) -> bool {
        let selects = |digit| {
            table::candidates(self.map as usize, self.opcode, digit).any(|(_, row)| {
                let admits = self.admits(row, false) || self.admits(row, true);
                row.plan.has(Plan::MODRM) && admits
            })
        };
        !self.prefixes.malformed && (0..8).any(selects)
    }

    fn admits(&self, row: &Entry, is_register: bool) -> bool {
        let profile = self.context.profile;
        let (long, real) = (self.is_long(), self.context.real);
        let repeat = self.prefixes.repeat;
        let prefix = match row.prefix {
            Prefix::Any => true,
            Prefix::None => repeat == 0 && !self.prefixes.operand_size,
            Prefix::P66 => repeat == 0 && self.prefixes.operand_size,
            Prefix::F3 => repeat == 0xF3,
            Prefix::F3WithoutB => repeat == 0xF3 && self.prefixes.rex & REX_B == 0,
            Prefix::OnlyF3 => repeat == 0xF3 && !self.prefixes.operand_size,
            Prefix::F2 => repeat == 0xF2,
            Prefix::NotRepeat => repeat == 0,
        };
        let mode = match row.modes {
            Modes::All => true,
            Modes::Not64 => !long,
            Modes::Only64 => long,
            Modes::Protected => !real,
            Modes::Protected32 => !real && !long,
        };
        let other_maker = if self.is_amd() { Traits::INTEL } else { Traits::AMD };
        let wide = row.vector.w >> u8::from(self.prefixes.wide) & 1 != 0;
        let vector = !self.prefixes.is_vector || self.vector_fits(row, is_register);
        prefix
            && mode
            && wide
            && vector
            && !row.has(other_maker)
            && (row.since..=row.until).contains(&profile.generation)
            && profile.has(row.features())
    }

    /// Decodes a ModRM byte with its SIB and displacement.
    fn place(&self, modrm: u8, cursor: &mut Cursor<'_>) -> Result<Place, Incomplete> {
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let mut place = Place {
            is_memory: mode != 3,
            rm: ZERO_SLOT,
            index: ZERO_SLOT,
            scale: 0,
            disp: 0,
            // Counts in the register form too: CLZERO and UMONITOR address through a register.
            segment: self.prefixes.segment.unwrap_or(SegReg::Ds),
        };
        if mode == 3 {
            place.rm = rm | (self.prefixes.rex & REX_B) << 3;
            return Ok(place);
        }
        if self.address_size() == 2 {
            self.place_16(mode, rm, &mut place, cursor)?;
        } else {
            self.place_32(mode, rm, &mut place, cursor)?;
        }
        if let Some(segment) = self.prefixes.segment {
            place.segment = segment;
        }
        Ok(place)
    }

    fn place_16(
        &self,
        mode: u8,
        rm: u8,
        place: &mut Place,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Incomplete> {
        const BX: u8 = 3;
        const BP: u8 = 5;
        const SI: u8 = 6;
        const DI: u8 = 7;
        const PAIRS: [(u8, u8); 8] = [
            (BX, SI),
            (BX, DI),
            (BP, SI),
            (BP, DI),
            (SI, ZERO_SLOT),
            (DI, ZERO_SLOT),
            (BP, ZERO_SLOT),
            (BX, ZERO_SLOT),
        ];
        if mode == 0 && rm == 6 {
            place.disp = cursor.number(2)? as i32;
            return Ok(());
        }
        (place.rm, place.index) = PAIRS[usize::from(rm)];
        if place.rm == BP {
            place.segment = SegReg::Ss;
        }
        place.disp = match mode {
            1 => cursor.signed(1)? as i32,
            2 => cursor.number(2)? as i32,
            _ => 0,
        };
        Ok(())
    }

    fn place_32(
        &self,
        mode: u8,
        rm: u8,
        place: &mut Place,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Incomplete> {
        const SP: u8 = 4;
        const BP: u8 = 5;
        let rex = self.prefixes.rex;
        let mut base = rm;
        if rm == 4 {
            let sib = cursor.take()?;
            base = sib & 7;
            let index = sib >> 3 & 7 | (rex & REX_X) << 2;
            place.scale = sib >> 6;
            if index != 4 {
                place.index = index;
            }
        }
        if mode == 0 && base == 5 {
            place.disp = cursor.number(4)? as i32;
            if rm == 5 && self.is_long() {
                place.rm = RIP_SLOT;
            }
            return Ok(());
        }
        place.rm = base | (rex & REX_B) << 3;
        if matches!(place.rm, SP | BP) {
            place.segment = SegReg::Ss;
        }
        place.disp = match mode {
            1 => cursor.signed(1)? as i32,
            2 => cursor.number(4)? as i32,
            _ => 0,
        };
        Ok(())
    }

    /// The number an op keeps for a register.
    fn register(&self, number: u8, byte: bool) -> u8 {
        if byte && self.prefixes.rex == 0 && number & 4 != 0 {
            // AH, CH, DH, BH.
            number & 3 | 16
        } else {
            number
        }
    }

    fn set_operands(&self, op: &mut Op, row: &Entry, modrm: u8, place: &Place) {
        let plan = row.plan;
        let extension =
            if plan.has(Plan::SMALL_REG) { 0 } else { (self.prefixes.rex & REX_R) << 1 };
        op.reg = self.register(modrm >> 3 & 7 | extension, plan.has(Plan::BYTE_REG));
        op.index = place.index;
        op.scale = place.scale;
        op.disp = place.disp;
        op.seg = place.segment as u8;
        op.rm = place.rm;
        if !place.is_memory {
            op.rm = self.register(place.rm, plan.has(Plan::BYTE_RM));
            if plan.has(Plan::REVERSED) {
                (op.reg, op.rm) = (op.rm, op.reg);
            }
        }
    }

    fn take_immediate(
        &self,
        op: &mut Op,
        row: &Entry,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Incomplete> {
        let size = self.operand_size(row);
        let z = usize::from(size.min(4));
        op.imm = match row.plan.imm {
            Imm::None if row.plan.has(Plan::MOFFS) => {
                cursor.number(usize::from(self.address_size()))?
            }
            Imm::None if self.prefixes.is_vector => self.vector_fields(),
            Imm::None => 0,
            Imm::Byte => cursor.number(1)?,
            Imm::ByteSigned | Imm::Rel8 => cursor.signed(1)?,
            Imm::Word => cursor.number(2)?,
            Imm::Dword => cursor.number(4)?,
            Imm::Z | Imm::RelZ => cursor.signed(z)?,
            Imm::V => cursor.number(usize::from(size))?,
            Imm::WordByte => cursor.number(3)?,
            Imm::ByteByte => cursor.number(2)?,
            Imm::Far => cursor.number(z + 2)?,
            Imm::One => 1,
        };
        if matches!(row.plan.imm, Imm::Rel8 | Imm::RelZ) {
            op.address_shift = 64 - 8 * size;
        }
        Ok(())
    }

    /// The handler for a row, by size and form.
    fn handler(&self, row: &'static Entry, op: &Op, is_memory: bool) -> Handler {
        if self.prefixes.lock && !self.prefixes.is_vector {
            return match row.locked() {
                Some(handler) if row.takes_lock(is_memory) => handler,
                _ if self.context.profile.generation < Generation::I80386 => {
                    self.plain_handler(row, op, is_memory)
                }
                _ => undefined,
            };
        }
        self.plain_handler(row, op, is_memory)
    }

    fn plain_handler(&self, row: &'static Entry, op: &Op, is_memory: bool) -> Handler {
        let size = match op.width {
            4 => 1,
            8 => 2,
            _ => 0,
        };
        match row.exec() {
            Exec::Unimplemented => unimplemented,
            Exec::NotExecuted(set) => available::not_executed(set),
            Exec::One(handler) => handler,
            Exec::Forms(forms) => forms[usize::from(is_memory)],
            Exec::Sizes(sizes) => sizes[size],
            Exec::FormSizes(forms) => forms[usize::from(is_memory)][size],
            Exec::Conditions(handlers) => handlers[usize::from(self.opcode & 15)],
            Exec::Repeats(repeats) => {
                let repeat = match self.prefixes.repeat {
                    0 => 0,
                    0xF3 => 1,
                    _ => 2,
                };
                repeats[repeat][op.width.max(1).ilog2() as usize & 3]
            }
        }
    }

    fn details(&self, row: Option<&'static Entry>, is_memory: bool, operand_size: u8) -> Details {
        Details {
            opcode: self.opcode,
            row,
            is_memory,
            lock: self.prefixes.lock,
            repeat: self.prefixes.repeat,
            operand_size,
            address_size: self.address_size(),
            segment: self.prefixes.segment,
            rex: self.prefixes.rex,
            vvvv: self.prefixes.vvvv,
            vector_length: self.prefixes.length,
            is_evex: self.prefixes.is_evex,
            evex: self.prefixes.evex,
            high_reg: self.prefixes.high_reg,
        }
    }

    /// An op that raises #UD. It ends its block.
    fn undefined(&self, len: usize) -> (Op, Details) {
        let op = Op {
            handler: Some(undefined),
            len: len.clamp(1, 15) as u8,
            row: u16::MAX,
            width: 1,
            ..Op::EMPTY
        };
        (op, self.details(None, false, 0))
    }
}

fn form_fits(row: &Entry, modrm: u8) -> bool {
    let digit = row.digit == NO_DIGIT || row.digit == modrm >> 3 & 7;
    let form = match row.form {
        Form::Any => true,
        Form::Memory => modrm < 0xC0,
        Form::Register => modrm >= 0xC0,
        Form::Exact(byte) => modrm == byte,
        Form::RegisterZero => modrm & 0xC7 == 0xC0,
    };
    digit && form
}

/// Raises #UD.
pub(crate) fn undefined(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    Err(crate::fault::Fault::UD.into())
}

/// Stops: the row has no handler.
pub(crate) fn unimplemented(_: &mut Machine<'_, '_>, _: &Op) -> Step {
    Err(Leave::Unimplemented(UnimplementedReason::Instruction))
}
