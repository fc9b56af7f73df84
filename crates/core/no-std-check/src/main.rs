//! Runs a few guest instructions with nothing but core around them, and exits with 0 if they did
//! what they should.
#![no_std]
#![no_main]

mod bare;

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::{
    Access, Bus, CacheLine, Control, Cpu, Emulator, Observer, PAGE_SIZE, Phys, Prepared, Profile,
    Reply, SegReg, Segment, Stop,
};

/// Two pages of guest memory.
static RAM: [AtomicU8; 2 * PAGE_SIZE] = [const { AtomicU8::new(0) }; 2 * PAGE_SIZE];

/// mov cx, 5; add ax, cx; loop -4; mov [1000], ax; out E9, al; hlt
const CODE: &[u8] = &[0xB9, 5, 0, 0x01, 0xC8, 0xE2, 0xFC, 0xA3, 0x00, 0x10, 0xE6, 0xE9, 0xF4];

struct Machine {
    written: u64,
    /// Ports answer `Pending`.
    waits: bool,
}

impl<'a> Bus<'a> for Machine {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        Prepared::in_ram(&RAM, page)
    }

    fn port_out(&mut self, _: u16, _: u8, data: u64, _: &mut Control) -> Reply {
        self.written = data;
        if self.waits { Reply::Pending } else { Reply::Ready(0) }
    }
}

struct Nobody;
impl Observer for Nobody {}

/// The guest's sum of 5 to 1, in memory and at the port.
fn run() -> bool {
    for (cell, byte) in RAM.iter().zip(CODE) {
        cell.store(*byte, Relaxed);
    }
    let mut cache = [const { CacheLine::EMPTY }; 4];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut cache);
    let mut cpu = Cpu::reset();
    cpu.seg[SegReg::Cs as usize] = Segment::real(0);
    cpu.rip = 0;
    let start = cpu.clone();
    let mut machine = Machine { written: 0, waits: false };
    let stop = emulator.run(&mut cpu, &mut machine, 100);
    let sum = RAM.get(0x1000).map(|cell| cell.load(Relaxed));
    let is_right = stop == Ok(Stop::Idle) && sum == Some(15) && machine.written == 15;
    is_right && run_waiting(&mut emulator, start, &mut machine) == Some(cpu)
}

/// The same, observed, with the port's write saved, restored, and answered by the VMM.
fn run_waiting(emulator: &mut Emulator<'_>, mut cpu: Cpu, machine: &mut Machine) -> Option<Cpu> {
    machine.waits = true;
    let Ok(Stop::Port(_)) = emulator.run_observed(&mut cpu, machine, 100, &mut Nobody) else {
        return None;
    };
    let record = emulator.in_flight()?.clone();
    emulator.flush();
    emulator.restore_in_flight(&record).ok()?;
    emulator.reply(0).ok()?;
    let stop = emulator.run(&mut cpu, machine, 100);
    (stop == Ok(Stop::Idle)).then_some(cpu)
}
