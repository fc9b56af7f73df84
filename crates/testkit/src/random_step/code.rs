//! Random instruction bytes, biased to encodings that exist: prefixes, an opcode, and operands of
//! about the right shape.

use super::tables::{Aim, IDT, select};
use crate::prng::Prng;

/// The operands of each one-byte opcode: `m` ModRM, `b` ModRM and a byte, `z` ModRM and a word of
/// operand size, `i` byte, `2` word, `w` word of operand size, `e` word and byte, `j` short
/// branch, `J` near branch, `f` far pointer, `o` offset, `p` prefix, `.` none.
const SHAPES: &[u8; 256] = b"\
mmmmiw..mmmmiw.p\
mmmmiw..mmmmiw..\
mmmmiwp.mmmmiwp.\
mmmmiwp.mmmmiwp.\
................\
................\
..mmppppwzib....\
jjjjjjjjjjjjjjjj\
bzbbmmmmmmmmmmmm\
..........f.....\
oooo....iw......\
iiiiiiiiwwwwwwww\
bb2.mmbze.2..i..\
mmmmii..mmmmmmmm\
jjjjiiiiJJfj....\
p.pp..bz......mm";

/// Second opcode bytes of the integer and system instructions.
const TWO_BYTE: &[u8] = &[
    0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x06, 0x08, 0x09, 0x0B, 0x0D, 0x18, 0x1E, 0x1F, 0x20, 0x21,
    0x22, 0x23, 0x30, 0x31, 0x32, 0x33, 0x40, 0x41, 0x42, 0x44, 0x47, 0x4C, 0x4F, 0x80, 0x82, 0x84,
    0x87, 0x8C, 0x8F, 0x90, 0x92, 0x94, 0x97, 0x9C, 0x9F, 0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA8,
    0xA9, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF, 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9,
    0xBA, 0xBA, 0xBB, 0xBC, 0xBD, 0xBE, 0xBF, 0xC0, 0xC1, 0xC3, 0xC7, 0xC7, 0xC8, 0xCC, 0xCF, 0xFF,
];

/// 0F 38 opcodes that real mode has.
const M0F38: &[u8] = &[0xF0, 0xF1, 0xF6, 0xF8, 0xF9, 0x00, 0xC8];

const PREFIXES: &[u8] =
    &[0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x66, 0x67, 0x67, 0xF0, 0xF2, 0xF3, 0xF3];

/// Bytes being written.
pub(crate) struct Code {
    pub(crate) bytes: Vec<u8>,
    /// Offsets that displacements like to point to.
    near: u64,
    /// 16, 32 or 64.
    bits: u8,
    /// The privilege level, in protected mode.
    level: Option<u8>,
}

impl Code {
    /// `near` is an offset that displacements like to hit; with a level there are instructions
    /// that use the tables.
    pub(crate) fn new(near: u64, bits: u8, level: Option<u8>) -> Code {
        Code { bytes: Vec::with_capacity(128), near, bits, level }
    }

    /// Appends instructions until there are `len` bytes.
    pub(crate) fn fill(&mut self, random: &mut Prng, len: usize) {
        while self.bytes.len() < len {
            self.instruction(random);
        }
    }

    /// Appends one instruction.
    pub(crate) fn instruction(&mut self, random: &mut Prng) {
        if let Some(level) = self.level
            && random.one_in(4)
        {
            return self.with_selector(random, level);
        }
        self.prefixes(random);
        match random.below(32) {
            0 => {
                // Nothing in particular.
                self.number(random.next(), 4);
            }
            1 => {
                self.bytes.extend([0x0F, 0x38, random.pick(M0F38)]);
                self.modrm(random);
            }
            2 => {
                self.bytes.extend([0x0F, 0x3A, random.byte()]);
                self.modrm(random);
                self.number(random.next(), 1);
            }
            3..10 => self.two_byte(random),
            _ => self.one_byte(random),
        }
    }

    fn prefixes(&mut self, random: &mut Prng) {
        let count = match random.below(256) {
            0 => random.below(18),
            1..8 => random.below(5),
            8..24 => 2,
            24..90 => 1,
            _ => 0,
        };
        for _ in 0..count {
            self.bytes.push(random.pick(PREFIXES));
        }
        if self.bits == 64 && random.one_in(2) {
            self.bytes.push(0x40 | random.below(16) as u8);
        }
    }

    fn one_byte(&mut self, random: &mut Prng) {
        let opcode = loop {
            let opcode = random.byte();
            // These end most runs: HLT, x87, a far jump to anywhere.
            let rare = matches!(opcode, 0xF4 | 0xD8..=0xDF | 0x9A | 0xEA | 0x9B | 0xCC | 0xF1);
            if !rare || random.one_in(8) {
                break opcode;
            }
        };
        self.bytes.push(opcode);
        match SHAPES[usize::from(opcode)] {
            b'm' => self.modrm(random),
            b'b' => {
                self.modrm(random);
                self.number(random.next(), 1);
            }
            b'z' => {
                self.modrm(random);
                self.immediate(random);
            }
            b'i' => self.number(random.next(), 1),
            b'2' => self.immediate(random),
            b'w' => self.immediate(random),
            b'e' => {
                self.immediate(random);
                self.number(random.below(40), 1);
            }
            b'j' => self.short(random),
            b'J' => {
                let distance = random.below(64).wrapping_sub(40);
                self.number(distance, self.word());
            }
            b'f' => {
                self.immediate(random);
                self.number(random.next(), 2);
            }
            b'o' => self.number(self.near, self.word()),
            _ => {}
        }
    }

    fn two_byte(&mut self, random: &mut Prng) {
        let opcode = if random.one_in(8) { random.byte() } else { random.pick(TWO_BYTE) };
        self.bytes.extend([0x0F, opcode]);
        match opcode {
            0x05..=0x0B | 0x30..=0x37 | 0xA0..=0xA2 | 0xA8..=0xAA | 0xC8..=0xCF => {}
            0x80..=0x8F => self.number(random.below(64).wrapping_sub(40), self.word()),
            0x70..=0x73 | 0xA4 | 0xAC | 0xBA | 0xC2 | 0xC4..=0xC6 => {
                self.modrm(random);
                self.number(random.next(), 1);
            }
            _ => self.modrm(random),
        }
    }

    fn modrm(&mut self, random: &mut Prng) {
        let modrm = random.byte();
        // A third of all operands are registers; more would hide the memory.
        let modrm = if modrm >= 0xC0 && random.one_in(4) { modrm & 0x3F } else { modrm };
        self.bytes.push(modrm);
        if self.bits != 16 {
            return self.wide_address(random, modrm);
        }
        match (modrm >> 6, modrm & 7) {
            (0, 6) => self.number(self.offset(random), 2),
            (1, _) => self.number(random.next(), 1),
            (2, _) => self.number(self.offset(random), 2),
            _ => {}
        }
    }

    /// SIB and displacement of a 32-bit address.
    fn wide_address(&mut self, random: &mut Prng, modrm: u8) {
        let form = (modrm >> 6, modrm & 7);
        let mut base = form.1;
        if form.0 != 3 && form.1 == 4 {
            let sib = random.byte();
            self.bytes.push(sib);
            base = sib & 7;
        }
        match form.0 {
            0 if base == 5 => self.number(self.offset(random), 4),
            1 => self.number(random.next(), 1),
            2 => self.number(self.offset(random), 4),
            _ => {}
        }
    }

    /// Bytes of a word of the default operand size.
    fn word(&self) -> usize {
        if self.bits == 16 { 2 } else { 4 }
    }

    /// An instruction that uses a selector, a gate or a frame, at a privilege level.
    pub(crate) fn with_selector(&mut self, random: &mut Prng, level: u8) {
        let register = random.below(8) as u8;
        let other = 0xC0 | (random.below(8) as u8) << 3 | register;
        match random.below(16) {
            0..4 => {
                let segment = random.pick(&[0, 0, 2, 3, 3, 4, 5, 1]);
                self.selector_into(random, register, level, Aim::Data);
                self.bytes.extend([0x8E, 0xC0 | segment << 3 | register]);
            }
            4 | 5 => {
                self.bytes.push(random.pick(&[0xEA, 0x9A]));
                self.number(self.near.wrapping_add(random.below(64)), self.word());
                self.number(select(random, level, Aim::Code).into(), 2);
            }
            6 | 7 => self.returning(random, level),
            8 => self.bytes.extend([0xCD, random.below(IDT + 1) as u8]),
            9 if level == 0 || random.one_in(4) => {
                let (aim, digit) = random.pick(&[(Aim::Ldt, 2), (Aim::Tss, 3)]);
                self.selector_into(random, register, level, aim);
                self.bytes.extend([0x0F, 0x00, 0xC0 | digit << 3 | register]);
            }
            9 | 10 => {
                self.selector_into(random, register, level, Aim::Any);
                let digit = random.pick(&[0, 1, 4, 5]);
                self.bytes.extend([0x0F, 0x00, 0xC0 | digit << 3 | register]);
            }
            11 => {
                self.selector_into(random, register, level, Aim::Any);
                self.bytes.extend([0x0F, random.pick(&[2, 3]), other]);
            }
            12 => self.bytes.extend([0x63, other]),
            13 => {
                self.push(select(random, level, Aim::Data).into());
                self.bytes.push(random.pick(&[0x07, 0x17, 0x1F]));
            }
            14 => self.bytes.push(random.pick(&[0xFA, 0xFB, 0x9C, 0x9D])),
            _ => self.bytes.push(random.pick(&[0xEC, 0xED, 0xEE, 0x6C, 0x6E])),
        }
    }

    /// MOV register, selector; now and then what the register holds has to do.
    fn selector_into(&mut self, random: &mut Prng, register: u8, level: u8, aim: Aim) {
        if random.one_in(8) {
            return;
        }
        if self.bits != 16 {
            self.bytes.push(0x66);
        }
        self.bytes.push(0xB8 | register);
        self.number(select(random, level, aim).into(), 2);
    }

    /// MOV of a byte to somewhere near.
    pub(crate) fn store_near(&mut self, random: &mut Prng) {
        let modrm: &[u8] = match self.bits {
            16 => &[0x06],
            32 => &[0x05],
            // RIP has no part in it.
            _ => &[0x04, 0x25],
        };
        self.bytes.push(0xC6);
        self.bytes.extend(modrm);
        self.number(self.near.wrapping_add(random.below(96)), self.word());
        self.bytes.push(random.byte());
    }

    /// PUSH of a word of the default size.
    fn push(&mut self, value: u64) {
        self.bytes.push(0x68);
        self.number(value, self.word());
    }

    /// Pushes a frame and returns to it.
    fn returning(&mut self, random: &mut Prng, level: u8) {
        let any = random.below(4) as u8;
        let target = if random.one_in(2) { level } else { level.max(any) };
        let is_interrupt = random.one_in(2);
        if target != level {
            self.push(select(random, target, Aim::Data).into());
            self.push(random.next() & 0xFFFE);
        }
        if is_interrupt {
            self.push(random.next() & 0x3ED7);
        }
        self.push(select(random, target, Aim::Return).into());
        self.push(self.near.wrapping_add(random.below(64)));
        self.bytes.push(if is_interrupt { 0xCF } else { 0xCB });
    }

    /// A displacement or an immediate that may be an address.
    fn offset(&self, random: &mut Prng) -> u64 {
        match random.below(4) {
            0 => self.near.wrapping_add(random.below(64)),
            1 => random.pick(&[0, 1, 0xFFFF, 0xFFFE, 0xFFFD, 0x0FFF, 0x0FFD, 0x7FFF, 0x8000]),
            2 => random.below(0x40),
            _ => random.next(),
        }
    }

    fn immediate(&mut self, random: &mut Prng) {
        let value = self.offset(random);
        let size = if random.one_in(4) { 6 - self.word() } else { self.word() };
        self.number(value, size);
    }

    fn short(&mut self, random: &mut Prng) {
        let byte = match random.below(4) {
            0 => random.next(),
            1 => random.below(8),
            _ => random.below(40).wrapping_sub(36),
        };
        self.number(byte, 1);
    }

    fn number(&mut self, value: u64, size: usize) {
        self.bytes.extend(&value.to_le_bytes()[..size]);
    }
}
