//! A test: every instruction changes the flags that its row states, and no other.

#[cfg(not(feature = "std"))]
extern crate std;

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::collections::BTreeMap;
use std::vec::Vec;

use crate::arch::control::{CR0_PE, EFER_LMA};
use crate::arch::cpuid::Features;
use crate::arch::descriptor::{Attributes, Segment};
use crate::arch::registers::SegReg;
use crate::arch::rflags::ARITH;
use crate::bus::{Access, Bus, Control, Phys, Prepared};
use crate::decode::{CodeSize, Context, decode};
use crate::isa::table::Entry;
use crate::profile::Profile;
use crate::state::Cpu;
use crate::stop::Stop;

use super::Emulator;

pub(super) const RAM: usize = 0x2_0000;
pub(super) const CODE: usize = 0x8000;
/// How often an instruction has to be executed before a flag that it never changed counts as
/// one that it does not change.
const OFTEN: u64 = 400;

/// 128 KiB and nothing else. RDRAND finds a number every other time.
pub(super) struct Memory<'m>(pub(super) &'m [AtomicU8]);

impl<'a, 'm: 'a> Bus<'a> for Memory<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        Prepared::in_ram(self.0, page)
    }

    fn random(&mut self, control: &mut Control) -> Option<u64> {
        control.retired().is_multiple_of(2).then_some(1)
    }
}

/// Random numbers; xorshift, so that a failure repeats.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers and single bits are as frequent as numbers of 64 bits.
    fn operand(&mut self) -> u64 {
        match self.word() % 4 {
            0 => self.word() % 4,
            1 => (self.word() as i8) as u64,
            2 => 1 << (self.word() % 64),
            _ => self.word(),
        }
    }
}

/// A processor with random operands before the code, in real mode or in flat 64-bit code.
pub(super) fn processor(random: &mut Random, profile: &Profile, size: CodeSize) -> Cpu {
    let mut cpu = Cpu::reset_as(profile);
    cpu.seg = [Segment::real(0); 6];
    if size == CodeSize::Bits64 {
        cpu.msr.efer |= EFER_LMA;
        // Real mode has no VEX.
        cpu.cr0 |= CR0_PE;
        cpu.seg[SegReg::Cs as usize].attributes = Attributes(0x9B | Attributes::L);
    }
    for slot in 0..16 {
        *cpu.gpr.slot_mut(slot) = random.operand();
    }
    cpu.rip = CODE as u64;
    cpu.rflags = profile.canonical_flags(random.word() & ARITH);
    cpu
}

/// A random instruction: a prefix or two, an opcode of the first two maps or of 0F 38.
fn instruction(random: &mut Random, size: CodeSize) -> [u8; 15] {
    let mut bytes = [0; 15];
    bytes.iter_mut().for_each(|byte| *byte = random.word() as u8);
    let mut at = 0;
    let mut put = |byte| {
        bytes[at] = byte;
        at += 1;
    };
    if random.word().is_multiple_of(3) {
        put([0x66, 0xF2, 0xF3, 0xF0][random.word() as usize % 4]);
    }
    if size == CodeSize::Bits64 && random.word().is_multiple_of(2) {
        put(0x40 | random.word() as u8 & 0xF);
    }
    match random.word() % 6 {
        0..3 => {}
        3 | 4 => put(0x0F),
        _ => {
            put(0x0F);
            put(0x38);
        }
    }
    bytes
}

#[test]
fn handlers_change_the_flags_that_their_rows_state() {
    let ram: Vec<AtomicU8> = (0..RAM).map(|_| AtomicU8::new(0)).collect();
    let mut memory = Memory(&ram);
    let mut random = Random(0x0123_4567_89AB_CDEF);
    // By row: how often it was executed, and the flags that it has changed.
    let mut seen: BTreeMap<usize, (&Entry, u64, u64)> = BTreeMap::new();
    for profile in Profile::ALL {
        let mut emulator = Emulator::new(profile, &mut []);
        let modern = profile.features.contains(Features::LM);
        for round in 0..100_000 {
            let long = modern && round % 2 == 0;
            let size = if long { CodeSize::Bits64 } else { CodeSize::Bits16 };
            let bytes = instruction(&mut random, size);
            let context = Context { size, real: !long, profile };
            let Ok((_, details)) = decode(&bytes, context) else { continue };
            let Some(row) = details.row else { continue };
            for (cell, byte) in ram[CODE..].iter().zip(bytes) {
                cell.store(byte, Relaxed);
            }
            let mut cpu = processor(&mut random, profile, size);
            let before = cpu.rflags;
            let faults = emulator.counters().faults;
            let stop = emulator.run(&mut cpu, &mut memory, 1);
            // A REP MOVS over its own code goes on with other code.
            let code_is_there = ram[CODE..].iter().zip(bytes).all(|(c, b)| c.load(Relaxed) == b);
            let faulted = emulator.counters().faults != faults;
            if stop != Ok(Stop::Budget) || faulted || !code_is_there {
                continue;
            }
            let changed = (before ^ cpu.rflags) & ARITH;
            let effect = row.effect();
            let stated = effect.changes | effect.undefined;
            assert_eq!(changed & !stated, 0, "{row:?} {bytes:02X?} on {}", profile.name);
            let number = core::ptr::from_ref(row) as usize;
            let (_, count, flags) = seen.entry(number).or_insert((row, 0, 0));
            *count += 1;
            *flags |= changed;
        }
    }
    for (row, count, flags) in seen.values() {
        let missing = row.effect().changes & !flags;
        assert!(*count < OFTEN || missing == 0, "{row:?} never changed {missing:#x}");
    }
    assert!(seen.len() > 300, "only {} rows were executed", seen.len());
}
