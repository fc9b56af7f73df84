//! `realmode run-image`: the smallest machine, to be measured side by side with other emulators.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use realmode::{
    Access, Bus, CacheLine, Control, Cpu, Emulator, Phys, Prepared, Profile, Reg, SegReg, Segment,
    Stop,
};

use crate::stdout;

const RAM: usize = 1 << 20;
const ENTRY: usize = 0x1000;
const STACK: u64 = 0x0FF0;
/// Where programs leave their results.
const RESULTS: [usize; 3] = [0x3000, 0x3002, 0x3004];
const LINES: usize = 2048;

/// Run a flat real-mode image until HLT and print seconds and three words of memory.
///
/// The file is loaded at 0000:1000 into 1 MiB of RAM; SP is 0FF0, segments and all other
/// registers are zero. Prints `SECONDS WORD WORD WORD`, the words at 0000:3000, 3002 and 3004
/// in hexadecimal.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  realmode run-image loop.bin

Exit code: 0 at HLT, 1 if the guest stopped elsewhere, 2 if the file is bad. An image that never
halts runs until it is killed.")]
pub(crate) struct Args {
    /// The image
    file: PathBuf,
}

/// Nothing but memory.
struct Flat<'m>(&'m [AtomicU8]);

impl<'m> Bus<'m> for Flat<'m> {
    fn prepare(&mut self, page: Phys, _access: Access, _control: &mut Control) -> Prepared<'m> {
        Prepared::in_ram(self.0, page)
    }
}

/// Runs the command. The error is a message for the user; the exit code is then 2.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let shown = args.file.display();
    let image = fs::read(&args.file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if image.is_empty() {
        return Err(format!("{shown} is empty"));
    }
    let ram: Box<[AtomicU8]> = bytemuck::zeroed_slice_box(RAM);
    if image.len() > ram.len() - ENTRY {
        return Err(format!("{shown} does not fit into 1 MiB of RAM from {ENTRY:#x} on"));
    }
    for (cell, byte) in ram[ENTRY..].iter().zip(&image) {
        cell.store(*byte, Ordering::Relaxed);
    }

    let mut lines = vec![CacheLine::EMPTY; LINES];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut cpu = start();
    let mut bus = Flat(&ram);
    let started = Instant::now();
    let stop = loop {
        match emulator.run(&mut cpu, &mut bus, u64::MAX).map_err(|error| error.to_string())? {
            Stop::Budget => {}
            stop => break stop,
        }
    };
    let seconds = started.elapsed().as_secs_f64();

    let byte = |at: usize| ram[at].load(Ordering::Relaxed);
    let words = RESULTS.map(|at| u16::from_le_bytes([byte(at), byte(at + 1)]));
    stdout::print(&format!("{seconds:.6} {:04x} {:04x} {:04x}\n", words[0], words[1], words[2]))?;
    if matches!(stop, Stop::Halt | Stop::Idle) {
        return Ok(ExitCode::SUCCESS);
    }
    let cs = cpu.segment(SegReg::Cs).selector;
    eprintln!("realmode: {shown} did not reach HLT: {stop:?} at {cs:04X}:{:04X}", cpu.rip);
    Ok(ExitCode::FAILURE)
}

fn start() -> Cpu {
    let mut cpu = Cpu::reset();
    for reg in SegReg::ALL {
        *cpu.segment_mut(reg) = Segment::real(0);
    }
    cpu.gpr = realmode::Registers::ZERO;
    cpu.gpr[Reg::Rsp] = STACK;
    cpu.rip = ENTRY as u64;
    cpu
}
