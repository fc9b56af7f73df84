//! A test: every handler leaves the flags that the manuals leave undefined as its row says, on
//! every profile.

#[cfg(not(feature = "std"))]
extern crate std;

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::vec::Vec;

use crate::arch::cpuid::Features;
use crate::arch::registers::Reg;
use crate::arch::rflags::{AF, CF, OF, PF, SF, ZF};
use crate::decode::{CodeSize, Context, Details, decode};
use crate::encodings::{self, Encoding, FlagRule, Map, Modes, Prefix};
use crate::isa::operand::Operand;
use crate::op::Op;
use crate::profile::{Generation, Profile};
use crate::state::Cpu;
use crate::stop::Stop;

use super::Emulator;
use super::flag_effects::{CODE, Memory, RAM, Random, processor};

const FLAGS: [u64; 6] = [CF, PF, AF, ZF, SF, OF];
/// Executions of each row on each profile.
const ROUNDS: u32 = 1_200;

/// Random bytes with this encoding, as likely as not with 66 or REX in front. Half of the
/// immediates are small, so that shifts by 1 and 2 are among them.
fn instruction(random: &mut Random, encoding: &Encoding, size: CodeSize) -> [u8; 15] {
    let mut bytes = [0; 15];
    let mask = if random.word().is_multiple_of(2) { 3 } else { 0xFF };
    bytes.iter_mut().for_each(|byte| *byte = random.word() as u8 & mask);
    let mut at = 0;
    let mut put = |byte| {
        bytes[at] = byte;
        at += 1;
    };
    if encoding.map() == Map::Vex2 {
        // Any W and vvvv; none of these rows has a mandatory prefix.
        for byte in [0xC4, 0xE2, random.word() as u8 & 0xF8] {
            put(byte);
        }
    } else {
        if encoding.prefix() == Prefix::F3 {
            put(0xF3);
        }
        if random.word().is_multiple_of(2) {
            put(if size == CodeSize::Bits64 { 0x48 } else { 0x66 });
        }
        if encoding.map() == Map::TwoByte {
            put(0x0F);
        }
    }
    put(encoding.opcode());
    if encoding.has_modrm() {
        let digit = encoding.digit().unwrap_or(random.word() as u8 & 7);
        put(random.word() as u8 & 0xC7 | digit << 3);
    }
    bytes
}

/// One execution: what decode made of it, and the processor before and after.
struct Execution<'e> {
    op: &'e Op,
    details: &'e Details,
    generation: Generation,
    count: u64,
    before: &'e Cpu,
    after: &'e Cpu,
}

impl Execution<'_> {
    /// What the rule demands of a flag, if it is no more than a function of the processor's state
    /// before and after.
    fn expected(&self, flag: u64, rule: FlagRule) -> Option<bool> {
        let is_kept = self.before.rflags & flag != 0;
        match rule {
            FlagRule::Kept => Some(is_kept),
            FlagRule::ByDivision if self.generation != Generation::I80286 => Some(is_kept),
            FlagRule::ByDivision if flag == AF => Some(true),
            FlagRule::FirstStepInMemory if !self.details.is_memory && self.count != 1 => {
                Some(is_kept)
            }
            FlagRule::Cleared => Some(false),
            FlagRule::Set => Some(true),
            FlagRule::LikeCarry => Some(self.after.rflags & CF != 0),
            FlagRule::ByResult => Some(flag_of(flag, self.result(), self.width())),
            FlagRule::ByHighHalf if self.destination() != Operand::Gv => {
                Some(flag_of(flag, self.high_half(), self.width()))
            }
            FlagRule::FirstStep | FlagRule::FirstStepInMemory => {
                self.shifted(1).map(|s| s.of(flag))
            }
            FlagRule::LastStep => self.shifted(self.count).map(|s| s.of(flag)),
            _ => None,
        }
    }

    /// What so many steps make of a register. Not of a memory operand, which is gone, nor of a
    /// double shift by its width or more.
    fn shifted(&self, steps: u64) -> Option<Shift> {
        let row = self.details.row.filter(|_| !self.details.is_memory)?;
        let bits = u32::from(self.op.width) * 8;
        let is_double = row.operands[1] == Operand::Gv;
        if is_double && self.count >= u64::from(bits) {
            return None;
        }
        let all = self.count.is_multiple_of(u64::from(bits) + 1);
        let is_none = matches!(row.name(), "RCL" | "RCR") && all && steps == 1;
        // Intel keeps the flags where CF and the operand turn once around.
        (!is_none).then(|| self.steps(row.name(), bits, steps))
    }

    fn steps(&self, name: &str, bits: u32, steps: u64) -> Shift {
        let register = |number: u8| match (number, bits) {
            (16.., 8) => self.before.gpr.slot(number & 3) >> 8,
            _ => self.before.gpr.slot(number),
        };
        let mask = u64::MAX >> (64 - bits);
        let (a, b) = (register(self.op.rm) & mask, register(self.op.reg) & mask);
        let mut shift = Shift { a, b, bits, cf: self.before.rflags & CF, of: 0 };
        (0..steps).for_each(|_| shift.step(name));
        shift
    }

    fn destination(&self) -> Operand {
        self.details.row.map_or(Operand::None, |row| row.operands[0])
    }

    /// Bytes of the result.
    fn width(&self) -> u32 {
        // AAA and AAS leave the flags of AL without naming it.
        if self.destination() == Operand::None { 1 } else { self.op.width.into() }
    }

    fn result(&self) -> u64 {
        let scans = self.details.row.is_some_and(|row| matches!(row.name(), "BSF" | "BSR"));
        if scans && self.after.rflags & ZF != 0 {
            return 0;
        }
        match self.destination() {
            Operand::By => self.after.gpr.slot(self.op.vvvv()),
            Operand::Gv | Operand::Gy if self.details.is_memory => self.after.gpr.slot(self.op.reg),
            Operand::Gv | Operand::Gy => self.after.gpr.slot(self.op.rm),
            _ => self.after.gpr[Reg::Rax],
        }
    }

    /// AH, or rDX.
    fn high_half(&self) -> u64 {
        if self.op.width == 1 { self.after.gpr[Reg::Rax] >> 8 } else { self.after.gpr[Reg::Rdx] }
    }
}

/// A shift or rotation by one bit at a time (SDM vol. 2B, "RCL/RCR/ROL/ROR", "SAL/SAR/SHL/SHR",
/// "SHLD", "SHRD", for a count of 1).
struct Shift {
    a: u64,
    /// What a double shift shifts into it.
    b: u64,
    bits: u32,
    cf: u64,
    of: u64,
}

impl Shift {
    fn step(&mut self, name: &str) {
        let top = self.bits - 1;
        let (low, high) = (self.a & 1, self.a >> top);
        let comes = match name {
            "ROL" | "SAR" => high,
            "ROR" => low,
            "RCL" | "RCR" => self.cf,
            "SHLD" => self.b >> top,
            "SHRD" => self.b & 1,
            _ => 0,
        };
        if matches!(name, "ROL" | "RCL" | "SHL" | "SHLD") {
            let mask = u64::MAX >> (64 - self.bits);
            (self.a, self.b) = ((self.a << 1 | comes) & mask, self.b << 1 & mask);
            self.cf = high;
            self.of = high ^ self.a >> top;
        } else {
            (self.a, self.b) = (self.a >> 1 | comes << top, self.b >> 1);
            self.cf = low;
            self.of = (self.a >> top ^ self.a >> (top - 1)) & 1;
        }
    }

    /// OF, or the AF of a doubling.
    fn of(&self, flag: u64) -> bool {
        if flag == OF { self.of != 0 } else { self.a >> 4 & 1 != 0 }
    }
}

/// ZF, SF or PF of a value.
fn flag_of(flag: u64, value: u64, bytes: u32) -> bool {
    let value = value << (64 - bytes * 8);
    match flag {
        ZF => value == 0,
        SF => value >> 63 != 0,
        PF => ((value >> (64 - bytes * 8)) as u8).count_ones().is_multiple_of(2),
        _ => panic!("no value decides flag {flag:#x}"),
    }
}

#[test]
fn handlers_leave_undefined_flags_as_their_rows_say() {
    let ram: Vec<AtomicU8> = (0..RAM).map(|_| AtomicU8::new(0)).collect();
    let mut random = Random(0xFEDC_BA98_7654_3210);
    let mut rows = 0;
    for profile in Profile::ALL {
        let exists = |e: &Encoding| {
            e.generations().contains(&profile.generation) && profile.has(e.features())
        };
        for encoding in encodings::all().filter(|e| e.undefined() != 0 && exists(e)) {
            rows += 1;
            check_row(&encoding, profile, &ram, &mut random);
        }
    }
    assert!(rows > 600, "only {rows} rows and profiles");
}

fn check_row(encoding: &Encoding, profile: &Profile, ram: &[AtomicU8], random: &mut Random) {
    let modern = profile.has(Features::LM) && encoding.modes() != Modes::Not64;
    let mut emulator = Emulator::new(profile, &mut []);
    let mut executed = 0;
    // By flag: was it 0, was it 1.
    let mut seen = [[false; 2]; FLAGS.len()];
    for round in 0..ROUNDS {
        let long = modern && round % 2 == 0;
        let size = if long { CodeSize::Bits64 } else { CodeSize::Bits16 };
        let bytes = instruction(random, encoding, size);
        let context = Context { size, real: !long, profile };
        let Ok((op, details)) = decode(&bytes, context) else { continue };
        if usize::from(op.row) != encoding.number() {
            continue;
        }
        for (cell, byte) in ram[CODE..].iter().zip(bytes) {
            cell.store(byte, Relaxed);
        }
        let mut before = processor(random, profile, size);
        if round % 4 < 2 {
            // A small count in CL.
            before.gpr[Reg::Rcx] &= 3;
        }
        let mut after = before.clone();
        let faults = emulator.counters().faults;
        let stop = emulator.run(&mut after, &mut Memory(ram), 1);
        if stop != Ok(Stop::Budget) || emulator.counters().faults != faults {
            continue;
        }
        let generation = profile.generation;
        let count = count(&op, &details, &before, generation);
        if encoding.family() == "shift" && count == 0 {
            assert_eq!(before.rflags, after.rflags, "{encoding} on {}", profile.name);
            continue;
        }
        executed += 1;
        let (op, details, before, after) = (&op, &details, &before, &after);
        let execution = Execution { op, details, generation, count, before, after };
        for (flag, seen) in FLAGS.into_iter().zip(&mut seen) {
            let Some(rule) = encoding.undefined_flag(flag, profile.undefined_flags) else {
                continue;
            };
            let is_set = after.rflags & flag != 0;
            seen[usize::from(is_set)] = true;
            if let Some(expected) = execution.expected(flag, rule) {
                assert_eq!(
                    is_set, expected,
                    "{encoding} on {}: flag {flag:#x} is {rule:?}, {bytes:02X?}",
                    profile.name
                );
            }
        }
    }
    assert!(executed > 20, "{encoding} was executed {executed} times on {}", profile.name);
    for (flag, seen) in FLAGS.into_iter().zip(seen) {
        let rule = encoding.undefined_flag(flag, profile.undefined_flags);
        let is_function = match rule {
            None | Some(FlagRule::Cleared | FlagRule::Set) => false,
            Some(FlagRule::ByDivision) => flag != AF || profile.generation != Generation::I80286,
            Some(_) => true,
        };
        assert!(
            !is_function || seen == [true; 2],
            "{encoding} on {}: flag {flag:#x} is {rule:?}, but never changes",
            profile.name
        );
    }
}

/// By how many bits a shift shifts.
fn count(op: &Op, details: &Details, before: &Cpu, generation: Generation) -> u64 {
    let by_cl = details.row.is_some_and(|row| row.operands.contains(&Operand::Cl));
    let mask = match op.width {
        8 => 63,
        _ if by_cl && generation == Generation::I8086 => 255,
        _ => 31,
    };
    mask & if by_cl { before.gpr[Reg::Rcx] } else { op.imm }
}
