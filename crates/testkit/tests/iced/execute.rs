//! What iced calls an instruction never raises #UD when it is executed in a state that allows it,
//! and what it does not always does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;

use iced_x86::Code;
use realmode::arch::control::{
    CR0_ET, CR0_NE, CR0_PE, CR4_CET, CR4_FSGSBASE, CR4_MCE, CR4_OSFXSR, CR4_OSXMMEXCPT,
    CR4_OSXSAVE, CR4_PAE, CR4_PCE, CR4_PKE, CR4_SMXE, CR4_VMXE, EFER_LMA, EFER_LME, EFER_NXE,
    EFER_SCE, EFER_SVME,
};
use realmode::arch::vector;
use realmode::{
    Access, Attributes, Bus, CodeSize, Control, Cpu, DecodeError, Emulator, Phys, Prepared,
    Profile, SegReg, Segment, Segmentation, Stop, decode_one,
};

use crate::SIZES;
use crate::compare::{Difference, LONGEST, ours, profile, theirs};
use crate::differences::{is_known, raises_ud};
use crate::spaces;

const RAM: usize = 0x1_0000;
const CODE: usize = 0x8000;

/// Little memory: what is read elsewhere is all ones, what is written there vanishes.
struct Memory<'m>(&'m [AtomicU8]);

impl<'a, 'm: 'a> Bus<'a> for Memory<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        Prepared::in_ram(self.0, page)
    }
}

#[test]
fn what_is_an_instruction_executes_and_what_is_none_raises_ud() {
    let failed = thread::scope(|scope| {
        SIZES
            .map(|size| scope.spawn(move || execute(size)))
            .map(|size| size.join().expect("an execution does not panic"))
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    for line in failed.iter().take(200) {
        println!("{line}");
    }
    assert!(failed.is_empty(), "{} encodings end otherwise than iced says", failed.len());
}

/// What ended otherwise, one example an encoding.
fn execute(size: CodeSize) -> Vec<String> {
    let ram: Vec<AtomicU8> = (0..RAM).map(|_| AtomicU8::new(0)).collect();
    let mut executions = Executions {
        size,
        start: processor(size),
        emulator: emulator(),
        memory: Memory(&ram),
        counts: [0; 4],
        failed: BTreeMap::new(),
    };
    for (_, space) in spaces::SPACES {
        space(size, &mut |bytes| executions.check(bytes));
    }
    let [completed, faulted, undefined, unimplemented] = executions.counts;
    println!(
        "{}-bit: {completed} completed, {faulted} faulted, {undefined} undefined, \
         {unimplemented} not implemented",
        size.bits()
    );
    assert!(completed > 10_000 && undefined > 10_000, "the space is not what it was");
    executions.failed.into_values().collect()
}

struct Executions<'m> {
    size: CodeSize,
    start: Cpu,
    emulator: Emulator<'m>,
    memory: Memory<'m>,
    /// How they ended: complete, with a fault, with #UD, unimplemented.
    counts: [u64; 4],
    failed: BTreeMap<Code, String>,
}

impl Executions<'_> {
    fn check(&mut self, bytes: &[u8; LONGEST]) {
        let theirs = theirs(self.size, bytes);
        for (cell, byte) in self.memory.0[CODE..].iter().zip(bytes) {
            cell.store(*byte, Relaxed);
        }
        let mut cpu = self.start.clone();
        let stop = self.emulator.run(&mut cpu, &mut self.memory, 1).expect("the state fits");
        self.emulator.cancel();
        let ended = match stop {
            Stop::Exception(fault) if fault.vector == vector::UD => 2,
            Stop::Exception(_) => 1,
            Stop::Unimplemented(_) => 3,
            _ => 0,
        };
        self.counts[ended] += 1;
        let expected = if theirs.is_invalid() { ended >= 2 } else { ended != 2 };
        if expected || raises_ud(theirs.code(), self.size.bits()) {
            return;
        }
        let bits = self.size.bits();
        let profile = self.emulator.profile();
        let decoded = decode_one(bytes, self.size, profile, Segmentation::Protected);
        if theirs.is_invalid() && decoded.is_err_and(|why| why == DecodeError::TooLong) {
            return;
        }
        let ours = ours(self.size, bytes, profile);
        let difference = Difference::new(bits, &theirs, ours.as_ref());
        if !is_known(&difference) {
            self.failed
                .entry(theirs.code())
                .or_insert_with(|| format!("{bytes:02x?}: {difference:?}, ends as {stop:?}"));
        }
    }
}

fn emulator<'m>() -> Emulator<'m> {
    let mut emulator = Emulator::new(&profile(), &mut []);
    emulator.policy_mut().exceptions = u32::MAX;
    emulator
}

/// Protected mode or 64-bit code at CPL 0, with everything enabled that control registers enable.
fn processor(size: CodeSize) -> Cpu {
    let mut cpu = Cpu::reset_as(&Profile::INTEL);
    let flat = |attributes| Segment {
        selector: 8,
        base: 0,
        limit: u32::MAX,
        attributes: Attributes(attributes),
    };
    cpu.seg = [flat(0xC093); 6];
    cpu.seg[SegReg::Cs as usize] = flat(match size {
        CodeSize::Bits16 => 0x809B,
        CodeSize::Bits32 => 0xC09B,
        CodeSize::Bits64 => 0xA09B,
    });
    cpu.cr0 = CR0_PE | CR0_NE | CR0_ET;
    // Without CR4.DE, which takes DR4 and DR5 away.
    cpu.cr4 = CR4_PAE | CR4_MCE | CR4_PCE | CR4_OSFXSR | CR4_OSXMMEXCPT;
    cpu.cr4 |= CR4_VMXE | CR4_SMXE | CR4_FSGSBASE | CR4_OSXSAVE | CR4_PKE | CR4_CET;
    // All state components that there are.
    cpu.xcr0 = 0x600E7;
    if size == CodeSize::Bits64 {
        cpu.msr.efer = EFER_LMA | EFER_LME | EFER_SCE | EFER_NXE | EFER_SVME;
    }
    cpu.rip = CODE as u64;
    cpu
}
