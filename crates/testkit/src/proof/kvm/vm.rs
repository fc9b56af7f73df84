//! The virtual machine: one processor that KVM steps through one instruction.
#![allow(unsafe_code)]

use std::fmt::Display;

use kvm_bindings::{
    KVM_EXIT_IO_IN, KVM_GUESTDBG_ENABLE, KVM_GUESTDBG_SINGLESTEP, KVM_INTERNAL_ERROR_EMULATION,
    KVM_MAX_CPUID_ENTRIES, KVM_MEM_LOG_DIRTY_PAGES, kvm_guest_debug, kvm_userspace_memory_region,
};
use kvm_ioctls::{Cap, SyncReg, VcpuExit, VcpuFd, VmFd};
use nix::errno::Errno;
use realmode::{Cpu, CpuidResult, Direction, PAGE_SIZE, Request};

use super::Unavailable;
use super::case::{Family, SystemCase, mask};
use super::outcome::{DeviceAccess, SystemEnd, SystemOutcome, pieces};
use super::ram::{HOLE, HOLE_END, PAGES, Ram};
use super::registers;
use super::watchdog::Watchdog;

/// Ticks without a return of KVM_RUN after which a case hangs.
const MOST_TICKS: u32 = 4;
/// Device accesses after which it does.
const MOST_EXITS: usize = 5_000;
/// Where memory is: first page, and one past the last.
const SLOTS: [(usize, usize); 2] = [(0, HOLE), (HOLE_END, PAGES)];
/// HLT.
const HLT: u8 = 0xF4;
/// Where no case is. KVM sets TF at the place where it was told to step, also when a later case
/// begins there.
const PARKED: u64 = 0xFFF0_0000;
/// Three unused pages that KVM wants on Intel, below the top of 4 GiB.
const TSS_ADDRESS: usize = 0xFFFB_D000;

/// A virtual machine that executes one case after the other, on the thread that made it.
pub struct Kvm {
    vcpu: VcpuFd,
    vm: VmFd,
    /// After the two that use it.
    pub(super) ram: Ram,
    cpuid: Vec<(u32, u32, CpuidResult)>,
    /// Whether the debug and model-specific registers may differ from those of reset.
    is_marked: bool,
    /// Whether it steps, and not runs.
    is_stepping: bool,
    /// The last case did not end well.
    is_spent: bool,
    /// KVM looks for the place to step from when it is told to step.
    renews: bool,
    _watchdog: Watchdog,
}

/// Says what could not be done.
fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> Unavailable {
    move |error| Unavailable(format!("{what}: {error}"))
}

impl Kvm {
    /// Makes the machine.
    ///
    /// # Errors
    /// If there is no KVM, or it may not be used, or it cannot do what is needed.
    pub fn open() -> Result<Kvm, Unavailable> {
        let kvm = kvm_ioctls::Kvm::new().map_err(failed("/dev/kvm cannot be opened"))?;
        if !kvm.check_extension(Cap::SyncRegs) || !kvm.check_extension(Cap::ImmediateExit) {
            return Err(Unavailable("this KVM has no synced registers or immediate exit".into()));
        }
        let vm = kvm.create_vm().map_err(failed("KVM makes no virtual machine"))?;
        vm.set_tss_address(TSS_ADDRESS).map_err(failed("KVM takes no TSS address"))?;
        let ram = Ram::new();
        for (slot, (first, end)) in SLOTS.into_iter().enumerate() {
            let region = kvm_userspace_memory_region {
                slot: slot as u32,
                flags: KVM_MEM_LOG_DIRTY_PAGES,
                guest_phys_addr: (first * PAGE_SIZE) as u64,
                memory_size: ((end - first) * PAGE_SIZE) as u64,
                userspace_addr: ram.cells(first).as_ptr() as u64,
            };
            // SAFETY: the pages from `first` to `end` lie one after the other in `ram`, are
            // aligned, are accessed as atomics only, and live until `vm` has been dropped.
            unsafe { vm.set_user_memory_region(region) }.map_err(failed("KVM takes no memory"))?;
        }
        let mut vcpu = vm.create_vcpu(0).map_err(failed("KVM makes no processor"))?;
        let offered = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES);
        let offered = offered.map_err(failed("KVM does not say what it supports"))?;
        vcpu.set_cpuid2(&offered).map_err(failed("KVM does not take its own CPUID"))?;
        let cpuid = offered.as_slice().iter().map(registers::cpuid).collect();
        for sync in [SyncReg::Register, SyncReg::SystemRegister, SyncReg::VcpuEvents] {
            vcpu.set_sync_valid_reg(sync);
        }
        let watchdog = Watchdog::new().map_err(failed("no timer for KVM_RUN"))?;
        Ok(Kvm {
            vcpu,
            vm,
            ram,
            cpuid,
            is_marked: true,
            is_stepping: false,
            is_spent: false,
            renews: false,
            _watchdog: watchdog,
        })
    }

    /// From now on KVM is told to step anew for each case.
    pub(super) fn renew(&mut self) {
        self.renews = true;
    }

    /// What CPUID says in it: leaf, subleaf, registers.
    pub(super) fn cpuid(&self) -> &[(u32, u32, CpuidResult)] {
        &self.cpuid
    }

    fn set_stepping(&mut self, steps: bool) -> Result<(), kvm_ioctls::Error> {
        let control = if steps { KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP } else { 0 };
        self.is_stepping = steps;
        self.vcpu.set_guest_debug(&kvm_guest_debug { control, ..Default::default() })
    }

    /// Executes a case. Memory stays as the case left it until the next one.
    pub fn run(&mut self, case: &SystemCase) -> SystemOutcome {
        if self.is_spent
            && let Err(Unavailable(what)) = self.begin_anew()
        {
            let (end, cpu) = (SystemEnd::Other(what), case.cpu.clone());
            return SystemOutcome { end, cpu, accesses: Vec::new() };
        }
        self.ram.restore();
        self.ram.begin(case);
        let (end, accesses) = match self.load(case) {
            Ok(()) => self.steps(case),
            Err(what) => (SystemEnd::Other(format!("the state cannot be loaded: {what}")), vec![]),
        };
        let mut cpu = case.cpu.clone();
        let end = self.store(case, &mut cpu).map_or_else(
            |what| SystemEnd::Other(format!("the state cannot be read: {what}")),
            |()| end,
        );
        self.is_spent = matches!(end, SystemEnd::Hung | SystemEnd::Other(_));
        SystemOutcome { end, cpu, accesses }
    }

    /// Makes another machine: what is left of the last case would go on.
    fn begin_anew(&mut self) -> Result<(), Unavailable> {
        *self = Kvm { renews: self.renews, ..Kvm::open()? };
        Ok(())
    }

    fn load(&mut self, case: &SystemCase) -> Result<(), kvm_ioctls::Error> {
        if has_marks(case) || self.is_marked {
            self.vcpu.set_debug_regs(&registers::debug(&case.cpu))?;
            self.vcpu.set_msrs(&registers::msr_list(&case.cpu)?)?;
            self.is_marked = has_marks(case);
        }
        // Stepping, KVM may report a step in place of HLT and remember that it has halted.
        let steps = case.opcode() != [HLT];
        if !self.renews && steps != self.is_stepping {
            self.vcpu.sync_regs_mut().regs.rip = PARKED;
            self.vcpu.set_sync_dirty_reg(SyncReg::Register);
            self.take_registers();
            self.set_stepping(steps)?;
        }
        let sync = self.vcpu.sync_regs_mut();
        sync.regs = registers::general(&case.cpu);
        sync.events = registers::events(&case.cpu);
        registers::system(&case.cpu, &mut sync.sregs);
        for sync in [SyncReg::Register, SyncReg::SystemRegister, SyncReg::VcpuEvents] {
            self.vcpu.set_sync_dirty_reg(sync);
        }
        if self.renews {
            self.take_registers();
            self.set_stepping(steps)?;
        }
        Ok(())
    }

    /// Lets KVM take the registers and come back.
    fn take_registers(&mut self) {
        self.vcpu.set_kvm_immediate_exit(1);
        // All it says is that it was to come back.
        let _ = self.vcpu.run();
    }

    /// Runs until the instruction is done, and completes what it asks of devices.
    fn steps(&mut self, case: &SystemCase) -> (SystemEnd, Vec<DeviceAccess>) {
        let mut accesses = Vec::new();
        let mut ticks = 0;
        // What a device has answered is taken at the next run, which then goes no further.
        let mut completes = false;
        while accesses.len() < MOST_EXITS {
            self.vcpu.set_kvm_immediate_exit(completes.into());
            match self.next_exit() {
                Exit::Interrupted if completes => {
                    completes = false;
                    if !self.has_more(case) {
                        return (SystemEnd::Stepped, accesses);
                    }
                }
                Exit::Interrupted => {
                    ticks += 1;
                    if ticks > MOST_TICKS {
                        return (SystemEnd::Hung, accesses);
                    }
                }
                Exit::Port => {
                    self.answer_port(case, &mut accesses);
                    completes = true;
                }
                Exit::Memory => {
                    self.answer_memory(case, &mut accesses);
                    completes = true;
                }
                Exit::End(SystemEnd::Stepped) if self.has_more(case) => completes = false,
                Exit::End(end) => return (end, accesses),
            }
        }
        (SystemEnd::Hung, accesses)
    }

    fn next_exit(&mut self) -> Exit {
        let end = match self.vcpu.run() {
            Err(error) if error.errno() == Errno::EINTR as i32 => return Exit::Interrupted,
            Ok(VcpuExit::IoIn(..) | VcpuExit::IoOut(..)) => return Exit::Port,
            Ok(VcpuExit::MmioRead(..) | VcpuExit::MmioWrite(..)) => return Exit::Memory,
            Ok(VcpuExit::Debug(_)) => SystemEnd::Stepped,
            Ok(VcpuExit::Hlt) => SystemEnd::Halted,
            Ok(VcpuExit::Shutdown) => SystemEnd::Shutdown,
            Ok(VcpuExit::InternalError) => return Exit::End(self.internal_error()),
            Ok(exit) => SystemEnd::Other(format!("exit {exit:?}")),
            Err(error) => SystemEnd::Other(format!("KVM_RUN: {error}")),
        };
        Exit::End(end)
    }

    fn internal_error(&mut self) -> SystemEnd {
        // SAFETY: KVM_EXIT_INTERNAL_ERROR says that this field of the union is valid.
        let suberror = unsafe { self.vcpu.get_kvm_run().__bindgen_anon_1.internal.suberror };
        match suberror {
            KVM_INTERNAL_ERROR_EMULATION => SystemEnd::NotOffered,
            _ => SystemEnd::Other(format!("internal error {suberror}")),
        }
    }

    /// Is something left of the instruction after a step or a device access? An exception that it
    /// raises, or iterations: KVM may report a step before the one that finds RCX to be 0.
    fn has_more(&self, case: &SystemCase) -> bool {
        let sync = self.vcpu.sync_regs();
        let exception = sync.events.exception;
        let raises = exception.injected != 0 || exception.pending != 0;
        raises || case.is_repeated() && sync.regs.rip == case.cpu.rip
    }

    fn answer_port(&mut self, case: &SystemCase, accesses: &mut Vec<DeviceAccess>) {
        let run = self.vcpu.get_kvm_run();
        // SAFETY: KVM_EXIT_IO says that this field of the union is valid.
        let io = unsafe { run.__bindgen_anon_1.io };
        let size = usize::from(io.size);
        let start = core::ptr::from_mut(run).cast::<u8>();
        // SAFETY: KVM puts `count` elements of `size` bytes at this offset of its pages, which are
        // mapped as long as `vcpu` lives, and nobody else looks at them now.
        let data = unsafe {
            let start = start.add(io.data_offset as usize);
            core::slice::from_raw_parts_mut(start, size * io.count as usize)
        };
        for element in data.chunks_exact_mut(size) {
            let mut word = [0; 8];
            let reads = u32::from(io.direction) == KVM_EXIT_IO_IN;
            if reads {
                word = case.port_data(accesses, io.size).to_le_bytes();
                element.copy_from_slice(&word[..size]);
            } else {
                word[..size].copy_from_slice(element);
            }
            accesses.push(DeviceAccess::Port(Request {
                address: io.port.into(),
                size: io.size,
                direction: if reads { Direction::Read } else { Direction::Write },
                data: u64::from_le_bytes(word),
            }));
        }
    }

    fn answer_memory(&mut self, case: &SystemCase, accesses: &mut Vec<DeviceAccess>) {
        // SAFETY: KVM_EXIT_MMIO says that this field of the union is valid.
        let mmio = unsafe { &mut self.vcpu.get_kvm_run().__bindgen_anon_1.mmio };
        let len = (mmio.len as usize).min(8);
        let direction = if mmio.is_write != 0 { Direction::Write } else { Direction::Read };
        if direction == Direction::Read {
            mmio.data = case.device_data(mmio.phys_addr, len as u8).to_le_bytes();
        }
        let word = u64::from_le_bytes(mmio.data);
        for (address, size) in pieces(mmio.phys_addr, len) {
            let data = word >> (8 * (address - mmio.phys_addr)) & mask(size);
            accesses.push(DeviceAccess::Memory(Request { address, size, direction, data }));
        }
    }

    /// Reads the state that the case left.
    fn store(&mut self, case: &SystemCase, cpu: &mut Cpu) -> Result<(), kvm_ioctls::Error> {
        let sync = self.vcpu.sync_regs();
        registers::store(&sync, cpu);
        if has_marks(case) {
            registers::store_debug(&self.vcpu.get_debug_regs()?, cpu);
            let mut list = registers::msr_list(cpu)?;
            self.vcpu.get_msrs(&mut list)?;
            registers::store_msrs(list.as_slice(), cpu);
        }
        for (slot, (first, end)) in SLOTS.into_iter().enumerate() {
            let bitmap = self.vm.get_dirty_log(slot as u32, (end - first) * PAGE_SIZE)?;
            self.ram.note_changed(first, &bitmap);
        }
        Ok(())
    }
}

/// May the case change registers that KVM does not synchronise?
fn has_marks(case: &SystemCase) -> bool {
    matches!(case.family, Family::Debug | Family::Msr)
}

/// Why KVM_RUN came back.
enum Exit {
    /// A signal, or because it was to.
    Interrupted,
    /// A port has to act.
    Port,
    /// A device in memory has to act.
    Memory,
    /// The case is at its end.
    End(SystemEnd),
}

#[cfg(test)]
mod tests {
    use super::Kvm;
    use crate::proof::kvm::{SystemEnd, generate};

    #[test]
    fn a_run_that_never_returns_is_ended() {
        let mut kvm = match Kvm::open() {
            Ok(kvm) => kvm,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let mut case = generate::case(1, 0);
        case.cpu.rip = 0x100;
        case.code = Default::default();
        [0xEB, 0xFE].iter().for_each(|byte| case.code.push(*byte));
        kvm.ram.begin(&case);
        kvm.load(&case).expect("the case is one of real mode");
        kvm.set_stepping(false).expect("stepping can end");
        assert_eq!(kvm.steps(&case).0, SystemEnd::Hung);
    }
}
