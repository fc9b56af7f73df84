//! Guests of random port instructions, on a clock that is virtual or stands and jumps: nothing
//! panics, every run returns within its budget, and no event stays due.

use core::cell::Cell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};

use realmode::{CacheLine, Cpu, Emulator, Profile, Reg, SegReg, Segment};
use realmode_pc::{Channel, Clock, Disk, DiskError, Pc, SECTOR};

const ROUNDS: u32 = 200;
const OPERATIONS: usize = 60;
const CODE: u16 = 0x1000;
const HANDLER: u16 = 0x600;
/// push ax; mov al, 20h; out 20h, al; out A0h, al; pop ax; iret
const END_OF_INTERRUPT: [u8; 9] = [0x50, 0xB0, 0x20, 0xE6, 0x20, 0xE6, 0xA0, 0x58, 0xCF];
/// Ranges of ports, some of nobody.
const PORTS: [(u16, u64); 14] = [
    (0x20, 2),
    (0x40, 4),
    (0x60, 6),
    (0x70, 2),
    (0x80, 0x22),
    (0xA0, 2),
    (0x1F0, 9),
    (0x3B0, 0x30),
    (0x3F0, 0x13),
    (0x4D0, 2),
    (0x500, 9),
    (0x510, 2),
    (0x602, 4),
    (0xCF8, 2),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % end
    }
}

/// A disk that fails now and then, and changes its size.
struct Fickle(Random, Cell<usize>);

impl Disk for Fickle {
    fn sectors(&self) -> u64 {
        self.1.set(self.1.get() + 1);
        [1 << 48, 0x40_0000, 300, 0][self.1.get() % 4]
    }

    fn read(&mut self, _: u64, _: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        if self.0.below(4) == 0 { Err(DiskError) } else { Ok(()) }
    }

    fn write(&mut self, lba: u64, _: &[u8; SECTOR]) -> Result<(), DiskError> {
        self.read(lba, &mut [0; SECTOR])
    }
}

/// IN, OUT, INS or OUTS of any size with what it works on, or STI, CLI, HLT, STD, CLD.
fn operation(random: &mut Random, code: &mut Vec<u8>) {
    let (first, count) = PORTS[random.below(PORTS.len() as u64) as usize];
    let port = first + random.below(count) as u16;
    let value = match random.below(3) {
        // Commands: of the disk, or of the controllers of interrupts, time and keys.
        0 => [0x20, 0x30, 0xC4, 0xC5, 0xC6, 0xEC, 0x24, 0x90][random.below(8) as usize],
        1 => random.below(0x20) as u32,
        _ => random.below(1 << 32) as u32,
    };
    let times = random.below(0x300) as u16;
    // mov dx, port; mov eax, value; mov cx, times; mov si, 4000h; mov di, 4000h
    code.extend([&[0xBA], &port.to_le_bytes()[..], &[0x66, 0xB8], &value.to_le_bytes()].concat());
    code.extend([&[0xB9], &times.to_le_bytes()[..], &[0xBE, 0, 0x40, 0xBF, 0, 0x40]].concat());
    let kind = random.below(20);
    if kind < 5 {
        return code.push([0xFB, 0xFA, 0xF4, 0xFD, 0xFC][kind as usize]);
    }
    let string = kind < 8;
    if string && random.below(4) != 0 {
        code.push(0xF3);
    }
    if random.below(3) == 0 {
        code.push(0x66);
    }
    code.push(if string { 0x6C } else { 0xEC } + random.below(4) as u8);
}

/// A processor at the code.
fn start() -> Cpu {
    let mut cpu = Cpu::reset();
    cpu.seg = [Segment::real(0); SegReg::ALL.len()];
    cpu.rip = u64::from(CODE);
    cpu.gpr[Reg::Rsp] = 0x8000;
    cpu
}

fn run(seed: u64, source: Option<&dyn Fn() -> u64>) {
    let mut random = Random(seed);
    let memory = |len, byte| (0..len).map(|_| AtomicU8::new(byte)).collect::<Vec<_>>();
    // A BIOS, so that a reset does not end the run; its processor starts at HLT.
    let (ram, rom) = (memory(1 << 20, 0), memory(1 << 16, 0xF4));
    let put = |at: u16, bytes: &[u8]| {
        for (cell, byte) in ram[usize::from(at)..].iter().zip(bytes) {
            cell.store(*byte, Ordering::Relaxed);
        }
    };
    let mut printed = 0;
    let console = |_: Channel, _: u8| {
        printed += 1;
        if printed % 7 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let (mut disk, mut lines) = (Fickle(Random(seed), Cell::new(0)), vec![CacheLine::EMPTY; 64]);
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, console).expect("1 MiB of whole pages");
    pc.attach_disk(&mut disk).expect("it has sectors now");
    pc.boot_bios(&rom).expect("64 KiB that begin with HLT");
    if let Some(source) = source {
        pc.set_clock(Clock::Real(source));
    }
    for _ in 0..ROUNDS {
        put(0, &[HANDLER.to_le_bytes(), [0; 2]].concat().repeat(256));
        put(HANDLER, &END_OF_INTERRUPT);
        let mut code = Vec::new();
        (0..OPERATIONS).for_each(|_| operation(&mut random, &mut code));
        code.extend([0xEB, 0xFE]);
        put(CODE, &code);
        let mut cpu = start();
        for _ in 0..8 {
            let (budget, before) = (1 + random.below(400), emulator.counters().spent);
            let stop = pc.run(&mut emulator, &mut cpu, budget).expect("nothing is in flight");
            assert!(emulator.counters().spent - before <= budget, "{budget}, {stop:?}");
            if random.below(16) == 0 {
                let _ = pc.type_text("aB↑\n") + pc.send_serial(&[1, 2, 3]);
            }
        }
        // Whatever state the devices are in, the next run does what is due.
        pc.run(&mut emulator, &mut start(), 1).expect("nothing is in flight");
        let is_late = pc.next_event().is_some_and(|at| at < pc.now().saturating_sub(100));
        assert!(source.is_some() || !is_late, "{:?} at {}", pc.next_event(), pc.now());
    }
    assert!(emulator.counters().instructions > u64::from(ROUNDS) * 100);
}

#[test]
fn random_port_instructions_on_the_virtual_clock_always_return() {
    (0..2).for_each(|seed| run(seed, None));
}

#[test]
fn random_port_instructions_on_a_clock_that_stands_and_jumps_always_return() {
    for seed in 0..2 {
        let (now, random) = (Cell::new(0u64), Cell::new(Random(seed)));
        let source = || {
            let mut chance = random.replace(Random(0));
            let most = [1, 1, 1 << 20, 1 << 36, 1 << 52][chance.below(5) as usize];
            now.set(now.get().saturating_add(chance.below(most)));
            random.set(chance);
            now.get()
        };
        run(seed, Some(&source));
    }
}
