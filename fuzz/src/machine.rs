//! A machine whose devices do what bytes say: they answer, wait, fault, and ask for whatever a
//! bus may ask for.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::{
    Access, Bus, Control, Cpu, Fault, HostPage, PAGE_SIZE, Phys, Prepared, Reply, Stop,
};

/// Pages that the guest may write; one of ROM follows.
const RAM_PAGES: usize = 4;
/// Bytes around them, which nobody is given.
const MARGIN: usize = 64;
const CANARY: u8 = 0xC5;
/// Of eight physical pages four are RAM, one is ROM, two are devices, and one is nothing.
const KINDS: u64 = 8;
const ROM: u64 = 4;
const DEVICES: core::ops::Range<u64> = 5..7;

/// The host's memory: RAM and ROM within a margin.
pub(crate) struct Memory(Vec<AtomicU8>);

impl Memory {
    pub(crate) fn new() -> Memory {
        let pages = (RAM_PAGES + 1) * PAGE_SIZE;
        let memory = Memory(bytemuck::zeroed_vec(pages + 2 * MARGIN));
        memory.margin().for_each(|cell| cell.store(CANARY, Relaxed));
        memory
    }

    fn margin(&self) -> impl Iterator<Item = &AtomicU8> {
        self.0[..MARGIN].iter().chain(&self.0[self.0.len() - MARGIN..])
    }

    fn page(&self, number: usize) -> &[AtomicU8] {
        &self.0[MARGIN + number * PAGE_SIZE..][..PAGE_SIZE]
    }

    /// What lies behind a physical page, if it is memory.
    fn behind(&self, page: u64) -> Option<&[AtomicU8]> {
        let kind = page % KINDS;
        (kind <= ROM).then(|| self.page(kind as usize))
    }

    /// Puts bytes at a physical address, as far as there is memory.
    pub(crate) fn poke(&self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..=u64::MAX).zip(bytes) {
            if let Some(cells) = self.behind(at / PAGE_SIZE as u64) {
                cells[at as usize % PAGE_SIZE].store(*byte, Relaxed);
            }
        }
    }

    /// Panics unless the margin and the ROM are as they were.
    pub(crate) fn check(&self, rom: &[u8]) {
        assert!(
            self.margin().all(|cell| cell.load(Relaxed) == CANARY),
            "memory of the host changed"
        );
        assert!(self.rom() == rom, "ROM changed");
    }

    /// What the ROM holds.
    pub(crate) fn rom(&self) -> Vec<u8> {
        self.page(RAM_PAGES).iter().map(|cell| cell.load(Relaxed)).collect()
    }
}

/// The bus. Every device call takes a byte; without any left, devices answer zeros.
pub(crate) struct Machine<'m> {
    memory: &'m Memory,
    answers: std::vec::IntoIter<u8>,
    /// Calls that may still come.
    calls_left: u64,
}

/// A slice of a repetition touches a page for each of its 4096 elements.
const CALLS_PER_STEP: u64 = 20_000;

impl<'m> Machine<'m> {
    pub(crate) fn new(memory: &'m Memory, answers: &[u8]) -> Machine<'m> {
        Machine { memory, answers: answers.to_vec().into_iter(), calls_left: 0 }
    }

    /// How much may be asked of it from now on.
    pub(crate) fn allow(&mut self, budget: u64) {
        self.calls_left = (budget + 2) * CALLS_PER_STEP;
    }

    /// The next byte that decides something.
    pub(crate) fn byte(&mut self) -> u8 {
        self.answers.next().unwrap_or(0)
    }

    fn count(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
        assert!(self.calls_left > 0, "more calls of the bus than the budget can lead to");
    }

    /// A call of a device, which may ask for something.
    fn ask(&mut self, page: u64, control: &mut Control) -> u8 {
        self.count();
        let byte = self.byte();
        match byte >> 4 {
            1 => control.interrupt(true),
            2 => control.interrupt(false),
            3 => control.nmi(),
            4 => control.stop(),
            5 => control.a20(byte & 1 != 0),
            6 => control.withdraw(Phys(page * PAGE_SIZE as u64), 1),
            7 => control.withdraw(Phys(0), u64::MAX),
            8 => {
                // A device that stores into memory.
                let value = byte << 1;
                self.memory.page(0).iter().step_by(61).for_each(|cell| cell.store(value, Relaxed));
                control.stored();
            }
            _ => {}
        }
        byte
    }

    fn reply(&mut self, page: u64, control: &mut Control) -> Reply {
        match self.ask(page, control) & 15 {
            0..6 => Reply::Ready(u64::from(self.byte()) * 0x0101_0101_0101_0101),
            6 => Reply::Fault(Fault::new(self.byte() & 31)),
            7 => Reply::Fault(Fault::with_code(self.byte(), 0xFFFF)),
            _ => Reply::Pending,
        }
    }
}

impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        self.count();
        let number = page.0 / PAGE_SIZE as u64;
        let host = self
            .memory
            .behind(number)
            .map(|cells| HostPage::from_cells(cells).expect("a page is as long as a page"));
        match host {
            Some(page) if number % KINDS == ROM => Prepared::Rom(page),
            Some(page) => Prepared::Ram(page),
            None if DEVICES.contains(&(number % KINDS)) => Prepared::Mmio,
            None => Prepared::Unmapped,
        }
    }

    fn mmio_read(&mut self, at: Phys, size: u8, control: &mut Control) -> Reply {
        check_size(at.0, size, 8);
        self.reply(at.0 / PAGE_SIZE as u64, control)
    }

    fn mmio_write(&mut self, at: Phys, size: u8, _: u64, control: &mut Control) -> Reply {
        check_size(at.0, size, 8);
        self.reply(at.0 / PAGE_SIZE as u64, control)
    }

    fn port_in(&mut self, _: u16, size: u8, control: &mut Control) -> Reply {
        check_size(0, size, 4);
        self.reply(0, control)
    }

    fn port_out(&mut self, _: u16, size: u8, _: u64, control: &mut Control) -> Reply {
        check_size(0, size, 4);
        self.reply(0, control)
    }

    fn port_in_string(
        &mut self,
        _: u16,
        size: u8,
        data: &mut [u8],
        control: &mut Control,
    ) -> usize {
        let byte = self.ask(0, control);
        data.fill(byte);
        data.len().min(usize::from(byte) * usize::from(size))
    }

    fn port_out_string(&mut self, _: u16, size: u8, data: &[u8], control: &mut Control) -> usize {
        let byte = self.ask(0, control);
        data.len().min(usize::from(byte) * usize::from(size))
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        self.ask(0, control)
    }

    fn is_bootstrap_processor(&self) -> bool {
        self.answers.len() % 2 == 0
    }

    fn read_msr(&mut self, _: u32, control: &mut Control) -> Option<u64> {
        let byte = self.ask(0, control);
        (byte & 1 != 0).then_some(byte.into())
    }

    fn write_msr(&mut self, _: u32, _: u64, control: &mut Control) -> bool {
        self.ask(0, control) & 1 != 0
    }

    fn random(&mut self, control: &mut Control) -> Option<u64> {
        self.read_msr(0, control)
    }

    fn fpu_error(&mut self, control: &mut Control) {
        self.ask(0, control);
    }
}

/// A device is asked for what the contract of the bus says.
fn check_size(at: u64, size: u8, most: u8) {
    assert!(matches!(size, 1 | 2 | 4 | 8) && size <= most, "a device is asked for {size} bytes");
    assert!(at % u64::from(size) == 0, "a device is asked for {size} bytes at {at:#x}");
}

/// Panics unless the flags are some that the profile has, or that the processor was given.
pub(crate) fn check_flags(profile: &realmode::Profile, before: u64, after: &Cpu) {
    let set = profile.flags_set & before;
    let clear = !profile.canonical_flags(!0) & !before;
    let flags = after.rflags;
    assert!(flags & set == set && flags & clear == 0, "flags {before:#x} became {flags:#x}");
}

/// Does the guest go no further, whatever the VMM does?
pub(crate) fn is_end(stop: Stop) -> bool {
    matches!(stop, Stop::Unimplemented(_) | Stop::Shutdown)
}
