//! The emulator: what a VMM holds and calls. Its loop is in `run/`.

mod attend;
mod code_mode;
mod dispatch;
#[cfg(test)]
mod flag_effects;
mod restart;
mod single;
#[cfg(test)]
mod undefined_flags;

use crate::arch::control::{CR0_PE, CR0_PG, DR6_BS, EFER_LMA};
use crate::arch::registers::SegReg;
use crate::arch::rflags::{RF, TF, VM};
use crate::bus::{Bus, Control, Phys};
use crate::cache::{Blocks, CacheLine};
use crate::error::Error;
use crate::flags::Flags;
use crate::flight::{Flight, InFlight};
use crate::machine::{Machine, Road, Window};
use crate::mem::code_map::CodeMap;
use crate::mem::tlb::{Basis, Tlbs};
use crate::observe::{Counters, Observer};
use crate::policy::Policy;
use crate::profile::{Generation, Profile};
use crate::state::{Cpu, Shadow};
use crate::stop::Stop;
use crate::view::{Views, new_stamp};

use code_mode::{decode_key, wrap_ip};
use dispatch::Runner;

/// An emulator for one virtual processor. It holds caches and the restart record; the state is
/// the [`Cpu`] that is given to [`run`](Emulator::run). `'m` is the guest's memory.
///
/// It is [`Send`]: create it anywhere, and move it to the thread of its virtual processor.
pub struct Emulator<'m> {
    profile: Profile,
    policy: Policy,
    blocks: Blocks<'m>,
    code_map: CodeMap,
    tlbs: Tlbs<'m>,
    views: Views,
    flight: Flight,
    counters: Counters,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Emulator<'static>>();
};

impl<'m> Emulator<'m> {
    /// An emulator of the processor that `profile` describes, with `cache` for its decoded
    /// blocks. A power of two of lines is used; none at all works too, slowly.
    pub fn new(profile: &Profile, cache: &'m mut [CacheLine]) -> Self {
        let stamp = new_stamp();
        Emulator {
            profile: profile.clone(),
            policy: Policy::default(),
            blocks: Blocks::new(cache, stamp),
            code_map: CodeMap::EMPTY,
            tlbs: Tlbs::new(),
            views: Views::new(stamp),
            flight: Flight::new(),
            counters: Counters::default(),
        }
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy, to change between runs.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets what `prepare` said about a physical range. When this has returned, the emulator
    /// holds no pointer into it.
    pub fn withdraw(&mut self, start: Phys, len: u64) {
        self.tlbs.withdraw(start, len);
        self.views.begin_epoch();
    }

    /// Forgets everything that was cached. Changes nothing but time: for tests and measurements.
    pub fn flush(&mut self) {
        self.tlbs.flush();
        self.views.begin_epoch();
        self.blocks.flush(new_stamp(), &mut self.code_map);
    }

    /// The instruction or event that waits for a device, if one does. A clone of it and of the
    /// `Cpu` are a snapshot of the processor.
    pub fn in_flight(&self) -> Option<&InFlight> {
        self.flight.is_held.then_some(&self.flight.record)
    }

    /// Puts a saved record in place, to go on with the `Cpu` it was saved with.
    ///
    /// # Errors
    /// If the record is of another version or contradicts itself; nothing is changed then.
    pub fn restore_in_flight(&mut self, record: &InFlight) -> Result<(), Error> {
        record.check()?;
        self.flight.hold(record.clone());
        Ok(())
    }

    /// Answers the request that `run` returned: the data of a read; for a write the value is
    /// ignored, the call says that it has been done.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    /// # use realmode::*;
    /// # struct Machine<'m>(&'m [AtomicU8]);
    /// # impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
    /// #     fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
    /// #         Prepared::in_ram(self.0, page)
    /// #     }
    /// #     fn port_in(&mut self, _: u16, _: u8, _: &mut Control) -> Reply {
    /// #         Reply::Pending
    /// #     }
    /// # }
    /// # let ram: Vec<AtomicU8> = (0..1 << 16).map(|_| AtomicU8::new(0)).collect();
    /// # let mut machine = Machine(&ram);
    /// # let mut cpu = Cpu::reset();
    /// # cpu.seg[SegReg::Cs as usize] = Segment::real(0);
    /// # cpu.rip = 0x1000;
    /// for (cell, byte) in ram[0x1000..].iter().zip([0xE4, 0x60, 0xF4]) {
    ///     cell.store(byte, Relaxed); // in al, 60h, which the bus answers with `Pending`; hlt
    /// }
    /// let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    /// let stop = emulator.run(&mut cpu, &mut machine, 1000)?;
    /// assert!(matches!(stop, Stop::Port(Request { address: 0x60, size: 1, .. })));
    /// emulator.reply(0x1C)?;
    /// assert_eq!(emulator.run(&mut cpu, &mut machine, 1000)?, Stop::Idle);
    /// assert_eq!(cpu.gpr[Reg::Rax], 0x1C);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Error::NoRequest` if nothing waits or it has been answered.
    pub fn reply(&mut self, value: u64) -> Result<(), Error> {
        if !self.flight.is_held || self.flight.record.answered {
            return Err(Error::NoRequest);
        }
        self.flight.answer(value);
        Ok(())
    }

    /// Drops the instruction in flight. The next `run` begins at the `Cpu`'s RIP anew, and what
    /// the instruction has read and written so far would be repeated. An event in flight is lost:
    /// deliver it, or put it into `Cpu::pending.event`.
    pub fn cancel(&mut self) {
        self.flight.is_held = false;
    }

    /// Takes the instruction in flight over: it counts as done, with all that follows a completed
    /// instruction (shadow and RF end, TF traps), and execution goes on at `new_rip`.
    pub fn finish(&mut self, cpu: &mut Cpu, new_rip: u64) {
        self.cancel();
        cpu.rip = new_rip;
        cpu.shadow = Shadow::NONE;
        cpu.rflags &= !RF;
        if cpu.rflags & TF != 0 {
            cpu.pending.debug |= DR6_BS as u32;
        }
        self.counters.instructions += 1;
    }

    /// Runs the guest until something stops it, or for `budget` units: an instruction is one, as
    /// are an exception and a slice of a REP (at most a page of its memory).
    ///
    /// The `Cpu` is whole again when it returns: read it, change it, or give another one that
    /// has no instruction in flight. A budget of 0 delivers what is pending and executes nothing.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    /// # use realmode::*;
    /// # struct Machine<'m>(&'m [AtomicU8]);
    /// # impl<'a, 'm: 'a> Bus<'a> for Machine<'m> {
    /// #     fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
    /// #         Prepared::in_ram(self.0, page)
    /// #     }
    /// # }
    /// # let ram: Vec<AtomicU8> = (0..1 << 16).map(|_| AtomicU8::new(0)).collect();
    /// # let mut machine = Machine(&ram);
    /// # let mut cpu = Cpu::reset();
    /// # cpu.seg[SegReg::Cs as usize] = Segment::real(0);
    /// # cpu.rip = 0x1000;
    /// for (cell, byte) in ram[0x1000..].iter().zip([0x40, 0xEB, 0xFD]) {
    ///     cell.store(byte, Relaxed); // inc ax; jmp -3
    /// }
    /// let mut cache = vec![CacheLine::EMPTY; 64];
    /// let mut emulator = Emulator::new(&Profile::INTEL, &mut cache);
    /// assert_eq!(emulator.run(&mut cpu, &mut machine, 1000)?, Stop::Budget);
    /// assert_eq!(cpu.gpr[Reg::Rax], 500);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Misuse by the host: the `Cpu` is not the one whose instruction is in flight, or it is in a
    /// mode its profile does not have. Nothing was executed then.
    pub fn run(
        &mut self,
        cpu: &mut Cpu,
        bus: &mut dyn Bus<'m>,
        budget: u64,
    ) -> Result<Stop, Error> {
        self.run_with(cpu, bus, budget, None)
    }

    /// Runs the guest and shows every instruction to `observer`. Slower, and otherwise the same.
    ///
    /// # Errors
    /// As [`run`](Emulator::run).
    pub fn run_observed(
        &mut self,
        cpu: &mut Cpu,
        bus: &mut dyn Bus<'m>,
        budget: u64,
        observer: &mut dyn Observer,
    ) -> Result<Stop, Error> {
        self.run_with(cpu, bus, budget, Some(observer))
    }

    fn run_with<'a>(
        &'a mut self,
        cpu: &'a mut Cpu,
        bus: &'a mut dyn Bus<'m>,
        budget: u64,
        observer: Option<&'a mut (dyn Observer + 'a)>,
    ) -> Result<Stop, Error> {
        self.check(cpu)?;
        wrap_ip(cpu, &self.profile);
        self.tlbs.begin(Basis { a20: cpu.a20, paged: cpu.cr0 & CR0_PG != 0 });
        let flags = Flags::from_rflags(cpu.rflags);
        let machine = Machine {
            cpu,
            tlb: &mut self.tlbs.supervisor,
            other_tlb: &mut self.tlbs.user,
            is_user_tlb: false,
            basis: &mut self.tlbs.basis,
            code_map: &mut self.code_map,
            flags,
            linear_mask: 0,
            stack_mask: 0,
            ip_limit: 0,
            code_base: 0,
            windows: [Window::default(); 8],
            loaded: 0,
            road: Road::Block,
            attention: true,
            view_stale: true,
            epoch_stale: true,
            casts: Shadow::NONE,
            keep_rf: false,
            no_trap: false,
            stepping: false,
            watched: 0,
            fault_address: 0,
            fetch_address: 0,
            profile: &self.profile,
            flight: &mut self.flight,
            control: Control { retired: self.counters.instructions, ..Control::default() },
            intercepts: self.policy.intercepts,
            split_lock: self.policy.split_lock,
            observer,
            bus,
        };
        let mut runner = Runner {
            m: machine,
            blocks: &mut self.blocks,
            views: &mut self.views,
            counters: &mut self.counters,
            exceptions: self.policy.exceptions,
            fuel: budget,
            view: 0,
            last: 0,
        };
        runner.m.refresh_mode();
        let stop = runner.run();
        // What a callback asked for must not be lost with this call: a page that it withdrew may
        // be gone as soon as `run` has returned.
        runner.apply_control();
        runner.m.settle_flags();
        runner.counters.instructions = runner.m.control.retired;
        runner.counters.spent += budget - runner.fuel;
        wrap_ip(runner.m.cpu, runner.m.profile);
        Ok(stop)
    }

    /// Host misuse: a `Cpu` that does not fit.
    fn check(&self, cpu: &Cpu) -> Result<(), Error> {
        let outside = |what| Error::ModeOutsideProfile { profile: self.profile.name, what };
        if self.profile.generation < Generation::I80286 && cpu.cr0 & CR0_PE != 0 {
            return Err(outside("CR0.PE is set"));
        }
        if self.profile.generation < Generation::I80386 && cpu.rflags & VM != 0 {
            return Err(outside("EFLAGS.VM is set"));
        }
        if self.profile.generation < Generation::Modern && cpu.msr.efer & EFER_LMA != 0 {
            return Err(outside("EFER.LMA is set"));
        }
        let flight = &self.flight;
        if !flight.is_held {
            return Ok(());
        }
        let record = &flight.record;
        let cs_base = cpu.segment(SegReg::Cs).base;
        let same = record.rip == cpu.rip
            && record.cs_base == cs_base
            && record.key == decode_key(cpu, &self.profile);
        if same {
            return Ok(());
        }
        Err(Error::StaleInFlight {
            flight_rip: record.rip,
            flight_cs_base: record.cs_base,
            rip: cpu.rip,
            cs_base,
        })
    }
}

impl core::fmt::Debug for Emulator<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Emulator")
            .field("profile", &self.profile.name)
            .field("in_flight", &self.in_flight())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
