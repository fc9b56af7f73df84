//! Single instructions and a few more in any state that a processor can be said to be in.

use arbitrary::{Arbitrary, Unstructured};
use realmode::arch::control::{CR0_PE, CR0_PG, EFER_LMA, EFER_LME};
use realmode::arch::rflags::VM;
use realmode::{
    Activity, Attributes, CacheLine, Cpu, Emulator, Error, PAGE_SIZE, Pending, Phys, Policy,
    Profile, SegReg, Segment, SplitLock, Stop,
};

use crate::Reached;
use crate::machine::{Machine, Memory, check_flags, is_end};

/// Calls of `run` of an input.
const MOST_CALLS: usize = 40;

/// What an input begins with.
#[derive(Arbitrary)]
struct Head {
    profile: u8,
    mode: u8,
    /// Bit 0: awake, with nothing waiting. Bits 1 and 2: the decode cache. Bit 3: a VMM that
    /// wants to see exceptions.
    flags: u8,
    code_len: u8,
    answers_len: u8,
    policy: u32,
}

/// Runs a processor of any state, with devices and a VMM that do anything. Nothing panics, the
/// budget holds, and memory of the host does too.
pub fn step(data: &[u8]) -> Reached {
    let mut input = Unstructured::new(data);
    state(&mut input).map_or_else(|_| Reached::default(), |case| case.run())
}

struct Case {
    profile: &'static Profile,
    cpu: Cpu,
    code: Vec<u8>,
    answers: Vec<u8>,
    lines: usize,
    policy: Policy,
}

fn state(input: &mut Unstructured<'_>) -> arbitrary::Result<Case> {
    let head = Head::arbitrary(input)?;
    let mut take = |len: u8| input.bytes(usize::from(len).min(input.len())).map(<[u8]>::to_vec);
    let (code, answers) = (take(head.code_len)?, take(head.answers_len)?);
    let profile = Profile::ALL[usize::from(head.profile) % Profile::ALL.len()];
    let mut cpu = Cpu::arbitrary(input)?;
    put_into_mode(&mut cpu, head.mode);
    if head.flags & 1 != 0 {
        (cpu.activity, cpu.pending, cpu.dr7) = (Activity::Running, Pending::default(), 0x400);
    }
    let mut policy = Policy::default();
    policy.split_lock =
        [SplitLock::Plain, SplitLock::Stop, SplitLock::AlignmentCheck][head.policy as usize % 3];
    if head.flags & 8 != 0 {
        policy.exceptions = head.policy;
    }
    let lines = [0, 1, 4, 16][usize::from(head.flags >> 1 & 3)];
    Ok(Case { profile, cpu, code, answers, lines, policy })
}

/// Changes as much of the state as a mode needs; without one it stays as it is.
fn put_into_mode(cpu: &mut Cpu, mode: u8) {
    let wide = Attributes::DB | Attributes::G;
    let flat = |attributes: u32| Segment {
        selector: 8,
        base: 0,
        limit: u32::MAX,
        attributes: Attributes(attributes),
    };
    match mode % 8 {
        0 | 1 => {
            (cpu.cr0, cpu.rflags) = (cpu.cr0 & !(CR0_PE | CR0_PG), cpu.rflags & !VM);
            cpu.msr.efer &= !EFER_LMA;
            for segment in &mut cpu.seg {
                let selector = segment.selector;
                let is_big = mode & 1 != 0;
                *segment =
                    if is_big { Segment::big_real(selector) } else { Segment::real(selector) };
            }
            cpu.rip &= 0xFFFF;
        }
        2 | 3 => {
            (cpu.cr0, cpu.rflags) = ((cpu.cr0 | CR0_PE) & !CR0_PG, cpu.rflags & !VM);
            cpu.msr.efer &= !EFER_LMA;
            let wide = if mode % 8 == 2 { wide } else { 0 };
            // Mostly the kernel.
            let level = if cpu.gpr[realmode::Reg::R15] & 3 == 3 { 0x60 } else { 0 };
            cpu.seg = [flat(0x93 | level | wide); 6];
            *cpu.segment_mut(SegReg::Cs) = flat(0x9B | level | wide);
            cpu.rip &= 0xFFFF_FFFF;
        }
        4 => {
            (cpu.cr0, cpu.rflags) = ((cpu.cr0 | CR0_PE) & !CR0_PG, cpu.rflags | VM);
            cpu.rip &= 0xFFFF;
        }
        5 => {
            cpu.cr0 |= CR0_PE;
            cpu.msr.efer |= EFER_LMA | EFER_LME;
            *cpu.segment_mut(SegReg::Cs) = flat(0x9B | Attributes::L);
        }
        _ => {}
    }
}

impl Case {
    fn run(self) -> Reached {
        let Case { profile, mut cpu, code, answers, lines, policy } = self;
        let memory = Memory::new();
        let at = place(&mut cpu, profile);
        memory.poke(at, &code);
        let rom = memory.rom();
        let mut machine = Machine::new(&memory, &answers);
        let mut lines = vec![CacheLine::EMPTY; lines];
        let mut emulator = Emulator::new(profile, &mut lines);
        *emulator.policy_mut() = policy;
        let mut reached = Reached::default();
        for _ in 0..MOST_CALLS {
            let (flags, spent) = (cpu.rflags, emulator.counters().spent);
            let budget = u64::from(machine.byte() & 7);
            machine.allow(budget);
            let stop = emulator.run(&mut cpu, &mut machine, budget);
            let used = emulator.counters().spent - spent;
            assert!(used <= budget, "used {used} of a budget of {budget}");
            check_flags(profile, flags, &cpu);
            match stop {
                Ok(stop) if is_end(stop) => break,
                Ok(stop) => reached.requests += answer(&mut emulator, &mut cpu, &mut machine, stop),
                Err(_) => {
                    reached.refused += 1;
                    break;
                }
            }
        }
        memory.check(&rom);
        reached.instructions = emulator.counters().instructions;
        reached.faults = emulator.counters().faults;
        reached.blocks_retired = emulator.counters().blocks_retired;
        reached
    }
}

/// Moves CS so that execution begins in RAM. Returns the physical address.
fn place(cpu: &mut Cpu, profile: &Profile) -> u64 {
    let rip = cpu.rip;
    let cs = cpu.segment_mut(SegReg::Cs);
    let is_long = cs.attributes.is_long();
    let page = cs.base.wrapping_add(rip) / PAGE_SIZE as u64;
    cs.base = cs.base.wrapping_sub(page % 8 * PAGE_SIZE as u64);
    let linear = cs.base.wrapping_add(rip);
    if is_long { linear } else { linear & profile.linear_mask }
}

/// What the VMM does after a stop. Returns 1 for a request that was answered.
fn answer(
    emulator: &mut Emulator<'_>,
    cpu: &mut Cpu,
    machine: &mut Machine<'_>,
    stop: Stop,
) -> u64 {
    let decision = machine.byte();
    if !matches!(stop, Stop::Mmio(_) | Stop::Port(_)) {
        match decision & 7 {
            0 => cpu.activity = Activity::Running,
            1 => emulator.flush(),
            2 => emulator.withdraw(Phys(0), u64::MAX),
            3 => assert_eq!(emulator.reply(0), Err(Error::NoRequest)),
            _ => {}
        }
        return 0;
    }
    let record = emulator.in_flight().expect("a request is in flight").clone();
    match decision & 15 {
        0 => emulator.cancel(),
        1 => emulator.finish(cpu, u64::from(decision) << 8),
        2 => {
            // Another processor, for which the emulator has to refuse, or the same by chance.
            cpu.rip ^= 1;
            emulator.cancel();
        }
        3 => {
            emulator.restore_in_flight(&record).expect("it is the emulator's own");
        }
        _ => {
            let value = u64::from(decision) * 0x0101_0101_0101_0101;
            emulator.reply(value).expect("a request waits");
            return 1;
        }
    }
    0
}
