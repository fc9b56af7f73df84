//! Guests that run in the PC, from their first byte to how they end.

#[path = "pc/bad_input.rs"]
mod bad_input;
#[path = "pc/devices.rs"]
mod devices;
#[path = "pc/firmware.rs"]
mod firmware;
#[path = "pc/grub.rs"]
mod grub;
#[cfg(feature = "serde")]
#[path = "pc/hostile_state.rs"]
mod hostile_state;
#[path = "pc/memtest.rs"]
mod memtest;
#[path = "pc/multiboot.rs"]
mod multiboot;
#[path = "pc/random_ports.rs"]
mod random_ports;
#[path = "pc/state.rs"]
mod state;
#[path = "pc/terminal.rs"]
mod terminal;

use core::ops::ControlFlow;
use core::sync::atomic::AtomicU8;

use realmode::{CacheLine, Cpu, Emulator, Profile, Reg, Stop};
use realmode_pc::{Channel, Console, Ending, Pc};

/// Collects output.
#[derive(Default)]
struct Log {
    serial: Vec<u8>,
    debug: Vec<u8>,
}

impl Console for Log {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        match channel {
            Channel::Serial => self.serial.push(byte),
            Channel::Debug => self.debug.push(byte),
        }
        if byte == b'!' { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What a test looks at afterwards.
struct After {
    stop: Stop,
    cpu: Cpu,
    ending: Option<Ending>,
    log: Log,
    missing: Option<u8>,
    first_row: String,
}

/// Runs `code` at 0000:7C00 with `mib` MiB of RAM.
fn run(mib: usize, code: &[u8]) -> After {
    let ram: Vec<AtomicU8> = (0..mib << 20).map(|_| AtomicU8::new(0)).collect();
    let mut lines = vec![CacheLine::EMPTY; 256];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, Log::default()).expect("whole MiB are whole pages");
    let mut cpu = pc.boot_image(code, 0, 0x7C00).expect("low memory holds it");
    let stop = emulator.run(&mut cpu, &mut pc, 1_000_000).expect("nothing is in flight");
    let screen = pc.screen().expect("1 MiB reaches past text memory");
    let first_row = screen.row(0).map(|cell| char::from(cell.code)).collect();
    let (ending, missing) = (pc.ending(), pc.missing_handler(&cpu));
    let log = std::mem::take(pc.console_mut());
    After { stop, cpu, ending, log, missing, first_row }
}

#[test]
fn a_guest_prints_on_com1_and_powers_off() {
    let after = run(
        1,
        &[
            0xBA, 0xF8, 0x03, // mov dx, 3F8h
            0xB0, 0x68, 0xEE, // mov al, 'h'; out dx, al
            0xB0, 0x69, 0xEE, // mov al, 'i'; out dx, al
            0xBA, 0x04, 0x06, // mov dx, 604h
            0xB8, 0x00, 0x20, 0xEF, // mov ax, 2000h; out dx, ax
            0xF4, // hlt, not reached
        ],
    );
    assert_eq!((after.stop, after.ending), (Stop::Requested, Some(Ending::PowerOff)));
    assert_eq!(after.log.serial, b"hi");
    assert_eq!(after.cpu.rip, 0x7C00 + 16, "the run ends right after the OUT");
}

#[test]
fn a_string_goes_out_of_the_debug_port_until_the_console_breaks() {
    let mut code = vec![
        0xBE, 0x20, 0x7C, // mov si, 7C20h
        0xB9, 0x05, 0x00, // mov cx, 5
        0xBA, 0x02, 0x04, // mov dx, 402h
        0xF3, 0x6E, // rep outsb
        0xF4, // hlt
    ];
    code.resize(0x20, 0x90);
    code.extend(b"ab!cd");
    let after = run(1, &code);
    assert_eq!(after.stop, Stop::Requested);
    assert_eq!(after.ending, None);
    assert_eq!(after.log.debug, b"ab!");
    assert_eq!(after.cpu.gpr[Reg::Rcx], 2, "the rest is still to come");
}

#[test]
fn with_the_a20_gate_closed_1_mib_is_0() {
    let code = [
        0xB8, 0xFF, 0xFF, 0x8E, 0xD8, // mov ax, FFFFh; mov ds, ax
        0x31, 0xC0, 0x8E, 0xC0, // xor ax, ax; mov es, ax
        0xE6, 0x92, // out 92h, al
        0xC6, 0x06, 0x10, 0x05, 0x5A, // mov byte [510h], 5Ah
        0x26, 0x8A, 0x1E, 0x00, 0x05, // mov bl, es:[500h]
        0xB0, 0x02, 0xE6, 0x92, // mov al, 2; out 92h, al
        0xC6, 0x06, 0x10, 0x05, 0xA5, // mov byte [510h], A5h
        0x26, 0x8A, 0x3E, 0x00, 0x05, // mov bh, es:[500h]
        0x8A, 0x0E, 0x10, 0x05, // mov cl, [510h]
        0xF4, // hlt
    ];
    let after = run(2, &code);
    assert_eq!(after.stop, Stop::Idle);
    assert_eq!(after.cpu.gpr[Reg::Rbx], 0x5A5A);
    assert_eq!(after.cpu.gpr[Reg::Rcx] & 0xFF, 0xA5);
}

#[test]
fn holes_read_ones_and_drop_stores_and_text_memory_does_not() {
    let code = [
        0xB8, 0x00, 0xA0, 0x8E, 0xD8, // mov ax, A000h; mov ds, ax
        0xC7, 0x06, 0x00, 0x00, 0x34, 0x12, // mov word [0], 1234h
        0x8B, 0x1E, 0x00, 0x00, // mov bx, [0]
        0xB8, 0x00, 0xB8, 0x8E, 0xD8, // mov ax, B800h; mov ds, ax
        0xC7, 0x06, 0x00, 0x00, 0x48, 0x07, // mov word [0], 'H' in grey
        0xF4, // hlt
    ];
    let after = run(1, &code);
    assert_eq!(after.cpu.gpr[Reg::Rbx], 0xFFFF);
    assert_eq!(after.first_row.trim_end(), "H");
}

#[test]
fn a_bios_call_stops_where_its_vector_points() {
    let after = run(1, &[0xCD, 0x10, 0xF4]);
    assert!(matches!(after.stop, Stop::Unimplemented(_)), "{:?}", after.stop);
    assert_eq!(after.missing, Some(0x10));
}

#[test]
fn a_value_written_to_port_501_ends_the_run() {
    // mov dx, 501h; mov al, 31h; out dx, al
    let after = run(1, &[0xBA, 0x01, 0x05, 0xB0, 0x31, 0xEE, 0xF4]);
    assert_eq!((after.stop, after.ending), (Stop::Requested, Some(Ending::Exit(0x31))));
}
