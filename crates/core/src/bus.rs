//! All that a VMM implements: memory pages on a miss, devices, and rare events.

use core::sync::atomic::AtomicU8;

use crate::arch::cpuid::CpuidResult;
use crate::fault::Fault;
use crate::mem::host::{HostPage, PAGE_SIZE};
use crate::profile::Profile;
use crate::state::Cpu;

/// A physical address, after the A20 gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Phys(pub u64);

/// A linear address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Linear(pub u64);

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store, or the store half of a read-modify-write.
    Write,
    /// An instruction fetch.
    Execute,
}

/// What lies behind a physical page.
#[derive(Clone, Copy, Debug)]
pub enum Prepared<'m> {
    /// Memory: loads and stores go to the host page directly from now on.
    Ram(HostPage<'m>),
    /// Loads and fetches come from the host page; a store becomes `mmio_write`.
    Rom(HostPage<'m>),
    /// A device: every access is a callback.
    Mmio,
    /// Nothing: loads read all ones, stores vanish.
    Unmapped,
}

impl<'m> Prepared<'m> {
    /// The page that starts at `page` in RAM that begins at physical address 0, and `Unmapped`
    /// past its last whole page.
    ///
    /// ```
    /// use core::sync::atomic::AtomicU8;
    /// use realmode::{Phys, Prepared};
    /// let ram: Vec<AtomicU8> = (0..8192).map(|_| AtomicU8::new(0)).collect();
    /// assert!(matches!(Prepared::in_ram(&ram, Phys(4096)), Prepared::Ram(_)));
    /// assert!(matches!(Prepared::in_ram(&ram, Phys(8192)), Prepared::Unmapped));
    /// ```
    pub fn in_ram(ram: &'m [AtomicU8], page: Phys) -> Prepared<'m> {
        let cells = usize::try_from(page.0)
            .ok()
            .and_then(|start| ram.get(start..start.checked_add(PAGE_SIZE)?));
        match cells.map(HostPage::from_cells) {
            Some(Ok(page)) => Prepared::Ram(page),
            _ => Prepared::Unmapped,
        }
    }
}

/// A device's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done; the data for a read, ignored for a write.
    Ready(u64),
    /// Not yet: `run` returns the request to the VMM, which answers with `Emulator::reply`.
    Pending,
    /// The access raises a guest exception.
    Fault(Fault),
}

/// What a callback may ask of the emulator. It takes effect at the next instruction, or at the
/// next iteration of a REP, and before `run` returns, also if an instruction stays in flight.
#[derive(Debug, Default)]
pub struct Control {
    pub(crate) withdrawn: Option<(Phys, u64)>,
    pub(crate) stop: bool,
    pub(crate) interrupt: Option<bool>,
    pub(crate) nmi: bool,
    pub(crate) a20: Option<bool>,
    pub(crate) task_priority: Option<u8>,
    pub(crate) stored: bool,
    /// Instructions completed so far, this run included.
    pub(crate) retired: u64,
}

impl Control {
    /// The pages of `len` bytes from `start` mean something else from now on: forget what
    /// `prepare` said of them. Several calls are remembered as one range that covers them all.
    pub fn withdraw(&mut self, start: Phys, len: u64) {
        let end = start.0.saturating_add(len);
        let (low, high) = match self.withdrawn {
            Some((old, old_len)) => (old.0.min(start.0), old.0.saturating_add(old_len).max(end)),
            None => (start.0, end),
        };
        self.withdrawn = Some((Phys(low), high - low));
    }

    /// `run` returns [`Stop::Requested`](crate::Stop::Requested) at the next boundary, unless it
    /// returns for another reason first.
    pub fn stop(&mut self) {
        self.stop = true;
    }

    /// Sets the level of the INTR pin.
    pub fn interrupt(&mut self, asserted: bool) {
        self.interrupt = Some(asserted);
    }

    /// Latches an NMI.
    pub fn nmi(&mut self) {
        self.nmi = true;
    }

    /// The device has stored into guest memory, as a disk controller does: code there is compared
    /// with what was decoded before it runs again. Without it the guest may see old code until
    /// the next event, serialising instruction or `run`.
    pub fn stored(&mut self) {
        self.stored = true;
    }

    /// Opens or closes the A20 gate.
    pub fn a20(&mut self, open: bool) {
        self.a20 = Some(open);
    }

    /// The local APIC's task priority has changed by itself, as CR8 shows it: 0 to 15 (SDM vol. 3A,
    /// "Task Priority in IA-32e Mode").
    pub fn task_priority(&mut self, priority: u8) {
        self.task_priority = Some(priority & 15);
    }

    /// Instructions completed since the emulator was created; a clock that two runs agree on.
    /// Only in [`prepare`](Bus::prepare) it may be ahead, by at most a block of instructions.
    pub fn retired(&self) -> u64 {
        self.retired
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.withdrawn.is_some()
            | self.stop
            | self.interrupt.is_some()
            | self.nmi
            | self.a20.is_some()
            | self.task_priority.is_some()
            | self.stored
    }
}

/// The machine around a processor. Called on misses, device accesses and rare events only.
///
/// Only [`prepare`](Bus::prepare) has no default; an implementation overrides what it has:
///
/// ```
/// use std::sync::atomic::AtomicU8;
/// use realmode::*;
///
/// struct Machine<'m> {
///     ram: &'m [AtomicU8],
/// }
///
/// impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
///     fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
///         match page.0 {
///             // The local APIC is a device.
///             0xFEE0_0000 => Prepared::Mmio,
///             _ => Prepared::in_ram(self.ram, page),
///         }
///     }
///
///     fn mmio_read(&mut self, _address: Phys, _size: u8, _: &mut Control) -> Reply {
///         Reply::Pending // `run` returns `Stop::Mmio`
///     }
///
///     fn port_out(&mut self, port: u16, _size: u8, data: u64, control: &mut Control) -> Reply {
///         if port == 0x92 {
///             control.a20(data & 2 != 0);
///         }
///         Reply::Ready(0)
///     }
/// }
/// ```
///
/// `'m` is how long the memory lives that it hands
/// out; write `impl<'a, 'm: 'a> Bus<'a> for Machine<'m>` so that a long-lived machine also serves
/// an emulator whose cache lives less long.
pub trait Bus<'m> {
    /// What is the page that starts at `page` (a multiple of 4096)? Called on a miss only; the
    /// answer is kept until the page is withdrawn, for every kind of access: a page of memory
    /// that was prepared for a fetch is not asked for again by a load.
    fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'m>;

    /// A load of `size` (1, 2, 4 or 8) bytes from a device; `address` is a multiple of `size`.
    fn mmio_read(&mut self, address: Phys, size: u8, control: &mut Control) -> Reply {
        let _ = (address, size, control);
        Reply::Ready(u64::MAX)
    }

    /// A store of the low `size` (1, 2, 4 or 8) bytes of `data` to a device or to ROM; `address`
    /// is a multiple of `size`.
    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, control: &mut Control) -> Reply {
        let _ = (address, size, data, control);
        Reply::Ready(0)
    }

    /// IN of `size` (1, 2 or 4) bytes. Unclaimed ports read all ones.
    fn port_in(&mut self, port: u16, size: u8, control: &mut Control) -> Reply {
        let _ = (port, size, control);
        Reply::Ready(u64::MAX)
    }

    /// OUT of the low `size` (1, 2 or 4) bytes of `data`.
    fn port_out(&mut self, port: u16, size: u8, data: u64, control: &mut Control) -> Reply {
        let _ = (port, size, data, control);
        Reply::Ready(0)
    }

    /// REP INS: fill `data` with elements of `size` bytes at once, as a device with a FIFO can.
    /// Returns how many bytes it has read, whole elements; fewer than asked is fine. With none,
    /// which is the default, each element is asked of [`port_in`](Bus::port_in), so that it can
    /// wait or fault; nothing may have been taken from the device then.
    fn port_in_string(
        &mut self,
        port: u16,
        size: u8,
        data: &mut [u8],
        control: &mut Control,
    ) -> usize {
        let _ = (port, size, data, control);
        0
    }

    /// REP OUTS: take elements of `size` bytes from `data` at once. Returns how many bytes it has
    /// taken, whole elements; none, the default, leaves them to [`port_out`](Bus::port_out).
    fn port_out_string(
        &mut self,
        port: u16,
        size: u8,
        data: &[u8],
        control: &mut Control,
    ) -> usize {
        let _ = (port, size, data, control);
        0
    }

    /// The interrupt controller's vector. Called once, when the interrupt is delivered.
    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        let _ = control;
        0xFF
    }

    /// Is this the bootstrap processor? After INIT the others wait for a start-up IPI.
    fn is_bootstrap_processor(&self) -> bool {
        true
    }

    /// CPUID. The default is the profile's answer.
    fn cpuid(&mut self, profile: &Profile, leaf: u32, subleaf: u32) -> CpuidResult {
        profile.cpuid(leaf, subleaf)
    }

    /// RDMSR of a register that `Cpu` does not hold; `None` raises #GP(0).
    fn read_msr(&mut self, index: u32, control: &mut Control) -> Option<u64> {
        let _ = (index, control);
        None
    }

    /// WRMSR of a register that `Cpu` does not hold; `false` raises #GP(0).
    fn write_msr(&mut self, index: u32, value: u64, control: &mut Control) -> bool {
        let _ = (index, value, control);
        false
    }

    /// MOV to CR8: the task priority of the local APIC, 0 to 15. Interrupts of that class and below
    /// are not to be asserted any more: see [`Control::interrupt`].
    fn task_priority(&mut self, priority: u8, control: &mut Control) {
        let _ = (priority, control);
    }

    /// RDPMC; `None` raises #GP(0).
    fn read_pmc(&mut self, index: u32, control: &mut Control) -> Option<u64> {
        let _ = (index, control);
        None
    }

    /// The time stamp counter. The default counts completed instructions, so that two runs agree.
    fn tsc(&mut self, control: &mut Control) -> u64 {
        control.retired()
    }

    /// A random number for RDRAND and RDSEED; `None` makes the instruction report "not ready".
    fn random(&mut self, control: &mut Control) -> Option<u64> {
        let _ = control;
        None
    }

    /// INVLPG or a CR3 write made translations of the guest stale; `None` is all of them.
    fn invalidate(&mut self, linear: Option<Linear>) {
        let _ = linear;
    }

    /// PTWRITE's payload.
    fn trace_write(&mut self, value: u64) {
        let _ = value;
    }

    /// FERR: an x87 error is reported through the interrupt controller (CR0.NE clear).
    fn fpu_error(&mut self, control: &mut Control) {
        let _ = control;
    }

    /// Which fault the processor is about to deliver; a VMM may log it. Changes nothing.
    fn observe_fault(&mut self, cpu: &Cpu, fault: Fault) {
        let _ = (cpu, fault);
    }
}
