//! A device that answers later, and one that interrupts.
//!
//! `cargo run --example devices`
#![allow(missing_docs)]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::*;

/// A page of device registers.
const DEVICE: Phys = Phys(0xD_0000);
/// Writing to this port makes the interrupt controller raise `VECTOR`.
const TRIGGER: u16 = 0x10;
const VECTOR: u8 = 0x21;

struct Machine<'m> {
    ram: &'m [AtomicU8],
}

impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        if page == DEVICE { Prepared::Mmio } else { Prepared::in_ram(self.ram, page) }
    }

    fn mmio_read(&mut self, _: Phys, _: u8, _: &mut Control) -> Reply {
        Reply::Pending
    }

    fn mmio_write(&mut self, _: Phys, _: u8, _: u64, _: &mut Control) -> Reply {
        Reply::Pending
    }

    fn port_out(&mut self, port: u16, _: u8, _: u64, control: &mut Control) -> Reply {
        if port == TRIGGER {
            control.interrupt(true);
        }
        Reply::Ready(0)
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        control.interrupt(false); // INTR is a level: without this the interrupt comes again
        VECTOR
    }
}

fn main() -> Result<(), Error> {
    let ram: Vec<AtomicU8> = (0..1 << 20).map(|_| AtomicU8::new(0)).collect();
    let put = |at: usize, bytes: &[u8]| {
        for (cell, byte) in ram[at..].iter().zip(bytes) {
            cell.store(*byte, Relaxed);
        }
    };
    // mov ax, D000; mov ds, ax; add word [0], 1; sti; out 10, al; nop; hlt; hlt
    put(0x7C00, b"\xB8\x00\xD0\x8E\xD8\x83\x06\x00\x00\x01\xFB\xE6\x10\x90\xF4\xF4");
    put(usize::from(VECTOR) * 4, b"\x00\x80\x00\x00"); // the handler is at 0000:8000
    put(0x8000, b"\x43\xCF"); // inc bx; iret

    let mut machine = Machine { ram: &ram };
    let mut cache = vec![CacheLine::EMPTY; 256];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut cache);
    let mut cpu = Cpu::reset();
    cpu.seg[SegReg::Cs as usize] = Segment::real(0);
    cpu.rip = 0x7C00;
    cpu.gpr[Reg::Rsp] = 0x7000;

    let mut register = 41;
    loop {
        match emulator.run(&mut cpu, &mut machine, 1_000)? {
            Stop::Mmio(request) => {
                println!("{:?} at {:#x}", request.direction, request.address);
                if request.direction == Direction::Write {
                    register = request.data;
                }
                emulator.reply(register)?; // ignored for a write
            }
            // From outside of a callback, INTR is a field.
            Stop::Halt if cpu.gpr[Reg::Rbx] == 1 => cpu.pending.interrupt = true,
            stop => {
                println!("{stop:?}: register {register}, {} interrupts", cpu.gpr[Reg::Rbx]);
                return Ok(());
            }
        }
    }
}
