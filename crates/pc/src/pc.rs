//! The machine: what is behind each page and each port.
//!
//! A device is a plain struct in a file of its own, with `read` and `write` of its registers; it
//! returns what it asks of the machine. This file alone knows where devices are and what they do
//! to the processor.

use core::ops::ControlFlow;
use core::sync::atomic::AtomicU8;

use realmode::{Access, Bus, Control, Phys, Prepared, Reply};

use crate::console::{Channel, Console};
use crate::error::Error;
use crate::memory::Memory;
use crate::power::{DEBUG_EXIT, Ending, PM1_CONTROL, is_power_off};
use crate::screen::Screen;
use crate::serial::{COM1, COM1_LAST, Serial};
use crate::system_port::{SYSTEM_PORT, SystemPort, SystemWrite};

/// Bochs's debug port.
const DEBUG_E9: u16 = 0xE9;
/// QEMU's debug console, where SeaBIOS writes its log if it reads E9h there.
const DEBUG_402: u16 = 0x402;
const DEBUG_PRESENT: u8 = 0xE9;

/// A small PC. Give it memory and a console, boot something, and run the emulator on it.
///
/// ```
/// use core::ops::ControlFlow;
/// use core::sync::atomic::AtomicU8;
/// use realmode::{CacheLine, Emulator, Profile, Stop};
/// use realmode_pc::{Channel, Ending, Pc};
///
/// let ram: Vec<AtomicU8> = (0..1 << 20).map(|_| AtomicU8::new(0)).collect();
/// let mut printed = Vec::new();
/// let mut pc = Pc::new(&ram, |_: Channel, byte: u8| {
///     printed.push(byte);
///     ControlFlow::Continue(())
/// })?;
/// // mov al, 'A'; out E9h, al; mov dx, 604h; mov ax, 2000h; out dx, ax
/// let guest = [0xB0, 0x41, 0xE6, 0xE9, 0xBA, 0x04, 0x06, 0xB8, 0x00, 0x20, 0xEF];
/// let mut cpu = pc.boot_image(&guest, 0x0000, 0x7C00)?;
///
/// let mut lines = vec![CacheLine::EMPTY; 64];
/// let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
/// assert_eq!(emulator.run(&mut cpu, &mut pc, 1000), Ok(Stop::Requested));
/// assert_eq!(pc.ending(), Some(Ending::PowerOff));
/// drop(pc);
/// assert_eq!(printed, b"A");
/// # Ok::<(), realmode_pc::Error>(())
/// ```
pub struct Pc<'m, C> {
    memory: Memory<'m>,
    console: C,
    serial: Serial,
    system_port: SystemPort,
    ending: Option<Ending>,
}

impl<'m, C: Console> Pc<'m, C> {
    /// A PC with `ram` as its physical memory from 0 up, which is any whole number of pages;
    /// text memory needs 740 KiB.
    ///
    /// # Errors
    /// `ram` is empty, not whole pages, or larger than [`MAX_RAM`](crate::MAX_RAM).
    pub fn new(ram: &'m [AtomicU8], console: C) -> Result<Self, Error> {
        Ok(Pc {
            memory: Memory::new(ram)?,
            console,
            serial: Serial::BOOTED,
            system_port: SystemPort::BOOTED,
            ending: None,
        })
    }

    /// Copies an image into physical memory. Pages from C0000h to FFFFFh become RAM by it. Load
    /// before the first `run`, or withdraw the range from the emulator.
    ///
    /// # Errors
    /// The image is empty or does not lie in memory; then nothing was written.
    pub fn load(&mut self, start: Phys, image: &[u8]) -> Result<(), Error> {
        self.memory.load(start, image)
    }

    /// The byte a load from physical memory would read; all ones where there is none.
    pub fn byte(&self, at: Phys) -> u8 {
        self.memory.byte(at)
    }

    /// Is there memory at this physical address?
    pub fn is_memory(&self, at: Phys) -> bool {
        self.memory.is_memory(at)
    }

    /// The text screen, or `None` if RAM ends before it.
    pub fn screen(&self) -> Option<Screen<'m>> {
        self.memory.screen()
    }

    /// How the guest ended the run, once `run` returned `Stop::Requested`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The console it was given.
    pub fn console(&self) -> &C {
        &self.console
    }

    /// The console it was given, to change.
    pub fn console_mut(&mut self) -> &mut C {
        &mut self.console
    }

    pub(crate) fn is_a20_open(&self) -> bool {
        self.system_port.is_a20_open()
    }

    fn read_byte(&mut self, port: u16) -> u8 {
        match port {
            SYSTEM_PORT => self.system_port.read(),
            DEBUG_E9 | DEBUG_402 => DEBUG_PRESENT,
            COM1..=COM1_LAST => self.serial.read(port - COM1),
            _ => 0xFF,
        }
    }

    fn write_byte(&mut self, port: u16, value: u8, control: &mut Control) {
        match port {
            SYSTEM_PORT => match self.system_port.write(value) {
                SystemWrite::A20(open) => control.a20(open),
                SystemWrite::Reset => self.end(Ending::Reset, control),
            },
            DEBUG_E9 | DEBUG_402 => self.print(Channel::Debug, value, control),
            DEBUG_EXIT => self.end(Ending::Exit(u32::from(value)), control),
            COM1..=COM1_LAST => {
                if let Some(byte) = self.serial.write(port - COM1, value) {
                    self.print(Channel::Serial, byte, control);
                }
            }
            _ => {}
        }
    }

    fn print(&mut self, channel: Channel, byte: u8, control: &mut Control) {
        if self.console.byte(channel, byte) == ControlFlow::Break(()) {
            control.stop();
        }
    }

    fn end(&mut self, ending: Ending, control: &mut Control) {
        self.ending = Some(ending);
        control.stop();
    }
}

impl<'m, C: Console> Bus<'m> for Pc<'m, C> {
    fn prepare(&mut self, page: Phys, _access: Access, _control: &mut Control) -> Prepared<'m> {
        self.memory.page(page)
    }

    fn port_in(&mut self, port: u16, size: u8, _control: &mut Control) -> Reply {
        let mut value = 0;
        for i in 0..u16::from(size.min(4)) {
            // Devices are a byte wide: a wider access reaches the ports that follow, one by one.
            value |= u64::from(self.read_byte(port.wrapping_add(i))) << (8 * i);
        }
        Reply::Ready(value)
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, control: &mut Control) -> Reply {
        match (port, size) {
            (DEBUG_EXIT, _) => self.end(Ending::Exit(data as u32), control),
            (PM1_CONTROL, 2..) if is_power_off(data as u16) => {
                self.end(Ending::PowerOff, control);
            }
            _ => {
                for i in 0..u16::from(size.min(4)) {
                    self.write_byte(port.wrapping_add(i), (data >> (8 * i)) as u8, control);
                }
            }
        }
        Reply::Ready(0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    struct Log(Vec<(Channel, u8)>);

    impl Console for Log {
        fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
            self.0.push((channel, byte));
            ControlFlow::Continue(())
        }
    }

    fn ram() -> Vec<AtomicU8> {
        (0..4096).map(|_| AtomicU8::new(0)).collect()
    }

    fn input(pc: &mut Pc<'_, Log>, port: u16, size: u8) -> u64 {
        match pc.port_in(port, size, &mut Control::default()) {
            Reply::Ready(value) => value,
            other => panic!("{other:?}"),
        }
    }

    fn output(pc: &mut Pc<'_, Log>, port: u16, size: u8, data: u64) {
        let _ = pc.port_out(port, size, data, &mut Control::default());
    }

    #[test]
    fn unclaimed_ports_read_all_ones_at_every_size() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        assert_eq!(input(&mut pc, 0x60, 1), 0xFF);
        assert_eq!(input(&mut pc, 0xCF8, 4), 0xFFFF_FFFF);
        assert_eq!(input(&mut pc, 0xFFFF, 2), 0xFFFF);
    }

    #[test]
    fn both_debug_ports_read_e9_and_print() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        assert_eq!((input(&mut pc, 0x402, 1), input(&mut pc, 0xE9, 1)), (0xE9, 0xE9));
        output(&mut pc, 0x402, 1, 0x41);
        output(&mut pc, 0xE9, 1, 0x142);
        output(&mut pc, 0x3F8, 1, 0x43);
        let log = [(Channel::Debug, 0x41), (Channel::Debug, 0x42), (Channel::Serial, 0x43)];
        assert_eq!(pc.console().0, log);
    }

    #[test]
    fn a_word_reaches_two_byte_wide_ports() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        output(&mut pc, 0x3FE, 2, 0x5AFF);
        assert_eq!(input(&mut pc, 0x3FE, 2), 0x5AB0);
        output(&mut pc, 0xE8, 2, 0x4100);
        assert_eq!(pc.console().0, [(Channel::Debug, 0x41)]);
    }

    #[test]
    fn port_501_ends_the_run_with_the_value_written() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        assert_eq!(pc.ending(), None);
        output(&mut pc, 0x501, 4, 0x1_0002);
        assert_eq!(pc.ending(), Some(Ending::Exit(0x1_0002)));
    }

    #[test]
    fn port_604_powers_off_on_a_word_of_2000h_only() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        output(&mut pc, 0x604, 1, 0x00);
        output(&mut pc, 0x604, 2, 0x0001);
        assert_eq!(pc.ending(), None);
        output(&mut pc, 0x604, 2, 0x2000);
        assert_eq!(pc.ending(), Some(Ending::PowerOff));
    }

    #[test]
    fn port_92_reads_back_the_gate_and_resets() {
        let ram = ram();
        let mut pc = Pc::new(&ram, Log(Vec::new())).expect("one page");
        assert_eq!(input(&mut pc, 0x92, 1), 0x02);
        output(&mut pc, 0x92, 1, 0x00);
        assert!(!pc.is_a20_open());
        output(&mut pc, 0x92, 1, 0x01);
        assert_eq!(pc.ending(), Some(Ending::Reset));
    }
}
