//! Snapshots from outside: bytes that were tampered with are refused, or the machine goes on.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use realmode::{Activity, CacheLine, Cpu, Emulator, InFlight, Profile, Stop};
use realmode_pc::{Error, Pc, State};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Reached;
use crate::machine::{Machine, Memory, check_flags, is_end};
use crate::parts::{Printed, Ram, Sectors};

/// A guest that uses every device.
const PORTS: &[u8] = include_bytes!("../../testdata/guests/ports.bin");
/// What a machine is run for, and after how much of it one that waits is woken.
const BUDGET: u64 = 4_000;
const SLICE: u64 = 500;
const MOST_RUNS: usize = 100;

/// Reads what the bytes are said to be, or what they make of an honest snapshot, and runs it.
pub fn snapshot(data: &[u8]) -> Reached {
    let mut input = Unstructured::new(data);
    let kind = u8::arbitrary(&mut input).unwrap_or(0);
    if kind & 1 == 0 {
        tampered::<(Cpu, State)>(&mut input, &HONEST_MACHINES)
            .map_or_else(refused, |(cpu, state)| run_machine(&state, cpu))
    } else {
        tampered::<(Cpu, InFlight)>(&mut input, &HONEST_PROCESSORS)
            .map_or_else(refused, |(cpu, record)| run_processor(&record, cpu))
    }
}

fn refused() -> Reached {
    Reached { refused: 1, ..Reached::default() }
}

/// A value out of bytes: the input's own, or an honest snapshot's with some of them replaced.
/// What can be read is written and read again, and is the same.
fn tampered<T>(input: &mut Unstructured<'_>, honest: &[Vec<u8>]) -> Option<T>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let choice = u8::arbitrary(input).ok()?;
    let value: T = match usize::from(choice).checked_sub(honest.len()) {
        Some(_) => postcard::from_bytes(input.bytes(input.len()).ok()?).ok()?,
        None => {
            let mut bytes = honest[usize::from(choice)].clone();
            let len = bytes.len();
            while !input.is_empty() {
                let (at, value) = (u16::arbitrary(input).ok()?, u8::arbitrary(input).ok()?);
                bytes[usize::from(at) % len] = value;
            }
            postcard::from_bytes(&bytes).ok()?
        }
    };
    let bytes = postcard::to_stdvec(&value).expect("it is plain data");
    let again: T = postcard::from_bytes(&bytes).expect("it was just written");
    assert!(again == value, "written and read again it is another");
    Some(value)
}

/// Machines at several times of a run.
pub(crate) static HONEST_MACHINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut found = Vec::new();
    let ram = Ram::new(1 << 20);
    let mut disk = new_disk();
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = machine(&ram, &mut disk).expect("the parts are sound");
    let mut cpu = pc.boot_image(PORTS, 0, 0x7C00).expect("it fits");
    pc.type_text("some text to type");
    pc.send_serial(b"some bytes to receive");
    for _ in 0..4 {
        pc.run(&mut emulator, &mut cpu, 3_000).expect("nothing is in flight");
        cpu.activity = Activity::Running;
        found.push(postcard::to_stdvec(&(&cpu, &pc.save())).expect("it is plain data"));
    }
    found
});

/// Processors that wait for a device: in an IN, a PUSH to a device, a repetition, and a delivery.
pub(crate) static HONEST_PROCESSORS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let codes: [&[u8]; 4] = [
        &[0xE4, 0x60],
        &[0xBC, 0x00, 0x60, 0x60],                   // mov sp, 6000h; pusha
        &[0xBE, 0x00, 0x50, 0xB1, 0x09, 0xF3, 0xA5], // mov si, 5000h; mov cl, 9; rep movsw
        &[0xBC, 0x02, 0x60, 0xCD, 0x21],             // mov sp, 6002h; int 21h
    ];
    codes.map(waiting).into_iter().collect()
});

fn waiting(code: &[u8]) -> Vec<u8> {
    let memory = Memory::new();
    memory.poke(0x1000, code);
    let mut machine = Machine::new(&memory, &[8; 64]);
    machine.allow(100);
    let mut cpu = Cpu::reset();
    cpu.seg = [realmode::Segment::real(0); 6];
    cpu.rip = 0x1000;
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    let stop = emulator.run(&mut cpu, &mut machine, 20);
    assert!(matches!(stop, Ok(Stop::Mmio(_) | Stop::Port(_))), "{stop:?}");
    let record = emulator.in_flight().expect("it waits");
    postcard::to_stdvec(&(&cpu, record)).expect("it is plain data")
}

fn run_machine(state: &State, mut cpu: Cpu) -> Reached {
    let ram = Ram::new(1 << 20);
    let mut disk = new_disk();
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = machine(&ram, &mut disk).expect("the parts are sound");
    pc.boot_image(PORTS, 0, 0x7C00).expect("it fits");
    if pc.restore(state).is_err() {
        return refused();
    }
    // What follows from the rest is worked out anew, once.
    let settled = pc.save();
    pc.restore(&settled).expect("a machine came to it");
    assert!(pc.save() == settled, "what was restored is another state");
    for _ in 0..MOST_RUNS {
        let left = BUDGET.saturating_sub(emulator.counters().spent).min(SLICE);
        match pc.run(&mut emulator, &mut cpu, left) {
            Ok(stop) if is_end(stop) => break,
            Err(_) => break,
            // Whatever it waits for: it goes on.
            Ok(_) => cpu.activity = Activity::Running,
        }
    }
    assert!(emulator.counters().spent <= BUDGET);
    ram.check();
    let (state, mut other_disk) = (pc.save(), new_disk());
    let _ = (pc.screen(), pc.cursor(), pc.now(), pc.next_event());
    let mut other = machine(&ram, &mut other_disk).expect("the parts are sound");
    other.restore(&state).expect("a machine came to it");
    let instructions = emulator.counters().instructions;
    Reached { instructions, accepted: 1, ..Reached::default() }
}

fn run_processor(record: &InFlight, mut cpu: Cpu) -> Reached {
    let memory = Memory::new();
    let rom = memory.rom();
    let mut machine = Machine::new(&memory, &[]);
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    if emulator.restore_in_flight(record).is_err() {
        return refused();
    }
    let mut reached = Reached { accepted: 1, ..Reached::default() };
    for _ in 0..MOST_RUNS {
        machine.allow(4);
        let flags = cpu.rflags;
        let stop = emulator.run(&mut cpu, &mut machine, 4);
        check_flags(emulator.profile(), flags, &cpu);
        match stop {
            Ok(Stop::Mmio(_) | Stop::Port(_)) => {
                if emulator.reply(0x1234_5678).is_ok() {
                    reached.requests += 1;
                }
            }
            Ok(stop) if is_end(stop) => break,
            Ok(_) => cpu.activity = Activity::Running,
            Err(_) => {
                reached.refused += 1;
                break;
            }
        }
    }
    memory.check(&rom);
    reached.instructions = emulator.counters().instructions;
    reached
}

fn machine<'m>(ram: &'m Ram, disk: &'m mut Sectors) -> Result<Pc<'m, Printed>, Error> {
    let mut pc = Pc::new(ram.cells(), Printed::default())?;
    pc.attach_disk(disk)?;
    Ok(pc)
}

fn new_disk() -> Sectors {
    Sectors::new(&[0x5A], 64, 0)
}
