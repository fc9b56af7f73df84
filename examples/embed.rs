//! The smallest embedder: a guest that writes to a port.
//!
//! `cargo run --example embed`
#![allow(missing_docs)]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::*;

struct Machine<'m> {
    ram: &'m [AtomicU8],
    output: String,
}

impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        Prepared::in_ram(self.ram, page)
    }

    fn port_out(&mut self, port: u16, _: u8, data: u64, _: &mut Control) -> Reply {
        if port == 0xE9 {
            self.output.push(data as u8 as char);
        }
        Reply::Ready(0)
    }
}

fn main() -> Result<(), Error> {
    let ram: Vec<AtomicU8> = (0..1 << 20).map(|_| AtomicU8::new(0)).collect();
    // mov al, 'H'; out E9, al; mov al, 'i'; out E9, al; hlt
    let code = [0xB0, b'H', 0xE6, 0xE9, 0xB0, b'i', 0xE6, 0xE9, 0xF4];
    for (cell, byte) in ram[0x7C00..].iter().zip(code) {
        cell.store(byte, Relaxed);
    }
    let mut machine = Machine { ram: &ram, output: String::new() };
    let mut cache = vec![CacheLine::EMPTY; 256];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut cache);
    let mut cpu = Cpu::reset();
    cpu.seg[SegReg::Cs as usize] = Segment::real(0);
    cpu.rip = 0x7C00;
    let stop = emulator.run(&mut cpu, &mut machine, 1_000)?;
    println!("{} ({stop:?} at {:#x})", machine.output, cpu.rip);
    Ok(())
}
