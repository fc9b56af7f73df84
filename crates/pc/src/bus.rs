//! The machine as the emulator sees it: memory, ports, interrupts, time.

use core::ops::ControlFlow;

use realmode::{Access, Bus, Control, CpuidResult, Phys, Prepared, Profile, Reply, Vendor};

use crate::ata::ATA;
use crate::board::{Effect, PCI_ADDRESS};
use crate::console::Console;
use crate::kernel::KERNEL_PORT;
use crate::local_apic::{APIC_BASE_MSR, LOCAL_APIC, PAGE, Signal};
use crate::msr;
use crate::pc::Pc;
use crate::power::{Ending, PM1_CONTROL, is_power_off};

/// CPUID.1:EDX: the local APIC is the machine's, and there are no MTRRs.
const CPUID_APIC: u32 = 1 << 9;
const CPUID_MTRR: u32 = 1 << 12;

impl<C: Console> Pc<'_, C> {
    /// Before a device is used: it is as late as the processor is.
    fn arrive(&mut self, control: &Control) {
        self.board.time.advance(control.retired());
        self.board.settle();
    }

    /// After a device was used: it may interrupt now, or earlier than was thought.
    fn leave(&mut self, control: &mut Control) {
        self.board.refresh();
        let intr = self.board.is_interrupting();
        if core::mem::replace(&mut self.intr, intr) != intr {
            control.interrupt(intr);
        }
        if self.board.next_event().is_some_and(|at| at < self.slice_end) {
            self.slice_end = 0;
            control.stop();
        }
    }

    fn apply(&mut self, effect: Effect, control: &mut Control) {
        match effect {
            Effect::Nothing => {}
            Effect::Print(channel, byte) => {
                if self.console.byte(channel, byte) == ControlFlow::Break(()) {
                    self.is_broken = true;
                    control.stop();
                }
            }
            Effect::A20 => control.a20(self.board.a20),
            Effect::Reset => self.end(Ending::Reset, control),
            Effect::HardReset => {
                self.board.reset();
                self.memory.copy_bios();
                self.end(Ending::Reset, control);
            }
            Effect::Exit(value) => self.end(Ending::Exit(u32::from(value)), control),
        }
    }

    fn end(&mut self, ending: Ending, control: &mut Control) {
        self.ending = Some(ending);
        control.stop();
    }
}

impl<'m, C: Console> Bus<'m> for Pc<'m, C> {
    fn prepare(&mut self, page: Phys, _access: Access, _control: &mut Control) -> Prepared<'m> {
        if self.board.has_registers(page.0) {
            return Prepared::Mmio;
        }
        self.memory.page(page)
    }

    fn mmio_read(&mut self, address: Phys, _: u8, control: &mut Control) -> Reply {
        self.arrive(control);
        let value = self.board.read_registers(address.0);
        self.leave(control);
        Reply::Ready(value)
    }

    fn mmio_write(&mut self, address: Phys, _: u8, data: u64, control: &mut Control) -> Reply {
        self.arrive(control);
        match self.board.write_registers(address.0, data as u32) {
            Signal::Nmi => control.nmi(),
            Signal::Priority(priority) => control.task_priority(priority),
            Signal::Nothing | Signal::End(_) => {}
        }
        self.leave(control);
        Reply::Ready(0)
    }

    fn task_priority(&mut self, priority: u8, control: &mut Control) {
        self.board.local_apic.set_task_priority(priority);
        self.leave(control);
    }

    fn port_in(&mut self, port: u16, size: u8, control: &mut Control) -> Reply {
        self.arrive(control);
        let mut data = [0; 4];
        let data = &mut data[..usize::from(size.min(4))];
        let mut done = if size > 1 { self.board.read_data(port, data) } else { 0 };
        while let Some(slot) = data.get_mut(done) {
            // Devices are a byte wide: a wider access reaches the ports that follow, one by one.
            *slot = self.board.read(port.wrapping_add(done as u16));
            done += 1;
        }
        let value = data.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        self.leave(control);
        Reply::Ready(value)
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, control: &mut Control) -> Reply {
        self.arrive(control);
        match (port, size) {
            (port, _) if port == self.board.exit_port => {
                self.end(Ending::Exit(data as u32), control);
            }
            (KERNEL_PORT, _) if self.kernel.is_some() => {
                self.wants_kernel = true;
                control.stop();
            }
            (PM1_CONTROL, 2..) if is_power_off(data as u16) => {
                self.end(Ending::PowerOff, control);
            }
            // The address register of PCI, which is a double word, covers the reset register.
            (PCI_ADDRESS, 4) => {}
            _ => {
                let bytes = data.to_le_bytes();
                let bytes = &bytes[..usize::from(size.min(4))];
                let done = if size > 1 { self.board.write_data(port, bytes) } else { 0 };
                for (at, byte) in bytes.iter().enumerate().skip(done) {
                    let effect = self.board.write(port.wrapping_add(at as u16), *byte);
                    self.apply(effect, control);
                }
            }
        }
        self.leave(control);
        Reply::Ready(0)
    }

    fn port_in_string(
        &mut self,
        port: u16,
        size: u8,
        data: &mut [u8],
        control: &mut Control,
    ) -> usize {
        self.arrive(control);
        let len = self.board.whole_elements(port, size, data.len());
        let done = self.board.read_data(port, &mut data[..len]);
        self.leave(control);
        done
    }

    fn port_out_string(
        &mut self,
        port: u16,
        size: u8,
        data: &[u8],
        control: &mut Control,
    ) -> usize {
        self.arrive(control);
        let len = self.board.whole_elements(port, size, data.len());
        let is_data = port == ATA;
        let done = if is_data { self.board.write_data(port, &data[..len]) } else { 0 };
        self.leave(control);
        done
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        let vector = self.board.acknowledge();
        self.leave(control);
        vector
    }

    fn cpuid(&mut self, profile: &Profile, leaf: u32, subleaf: u32) -> CpuidResult {
        let mut result = profile.cpuid(leaf, subleaf);
        let repeats_leaf_1 = leaf == 0x8000_0001 && profile.vendor == Vendor::Amd;
        if leaf == 1 || repeats_leaf_1 {
            result.edx = result.edx & !CPUID_MTRR | CPUID_APIC;
        }
        result
    }

    fn read_msr(&mut self, index: u32, _: &mut Control) -> Option<u64> {
        match index {
            APIC_BASE_MSR => Some(self.board.local_apic.base()),
            _ => msr::read(index),
        }
    }

    fn write_msr(&mut self, index: u32, value: u64, control: &mut Control) -> bool {
        if index != APIC_BASE_MSR {
            return msr::write(index);
        }
        let is_done = self.board.local_apic.set_base(value);
        control.withdraw(Phys(LOCAL_APIC), PAGE);
        self.leave(control);
        is_done
    }

    /// One count a nanosecond.
    fn tsc(&mut self, control: &mut Control) -> u64 {
        self.board.time.advance(control.retired());
        self.board.time.now()
    }
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
