//! The emulator and its run loop.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::control::{CR0_PE, EFER_LMA};
use crate::arch::msr::DEBUGCTL_BTF;
use crate::arch::registers::{RIP_SLOT, SegReg};
use crate::arch::rflags::{IF, TF, VM};
use crate::bus::{Bus, Control, Phys};
use crate::cache::{Blocks, CacheLine, Place};
use crate::decode::{CodeSize, Context, Incomplete, decode};
use crate::error::Error;
use crate::event::boundary::Boundary;
use crate::event::{Escalation, escalate};
use crate::fault::{Event, Fault};
use crate::flags::Flags;
use crate::flight::{Flight, InFlight, Work};
use crate::machine::{Leave, Machine, Road, Window};
use crate::mem::code_map::CodeMap;
use crate::mem::fetch::End;
use crate::mem::tlb::Tlb;
use crate::observe::{Counters, Observer};
use crate::op::Op;
use crate::policy::Policy;
use crate::profile::{Generation, Profile, Vendor};
use crate::state::{Activity, Cpu, Shadow};
use crate::stop::{Stop, Unimplemented, UnimplementedReason};
use crate::view::{self, Views};

/// Stamps tell the blocks of different emulators and flushes apart, so that cache memory can be
/// handed on without being cleared.
static NEXT_STAMP: AtomicU64 = AtomicU64::new(1);

fn new_stamp() -> u64 {
    NEXT_STAMP.fetch_add(1, Ordering::Relaxed)
}

/// An emulator for one virtual processor. It holds caches and the restart record; the state is
/// the [`Cpu`] that is given to [`run`](Emulator::run). `'m` is the guest's memory.
pub struct Emulator<'m> {
    profile: Profile,
    policy: Policy,
    blocks: Blocks<'m>,
    code_map: CodeMap,
    tlb: Tlb<'m>,
    views: Views,
    flight: Flight,
    counters: Counters,
}

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
            tlb: Tlb::new(),
            views: Views::new(stamp),
            flight: Flight::new(),
            counters: Counters::default(),
        }
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The policy; change it between runs.
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
        self.tlb.withdraw(start, len);
        self.views.begin_epoch();
    }

    /// Forgets everything that was cached. Changes nothing but time.
    pub fn flush(&mut self) {
        self.tlb.flush();
        self.views.begin_epoch();
        self.blocks.flush(new_stamp(), &mut self.code_map);
    }

    /// The instruction or event that waits for a device, if one does.
    pub fn in_flight(&self) -> Option<&InFlight> {
        self.flight.is_held.then_some(&self.flight.record)
    }

    /// Puts a saved record in place, to go on with the `Cpu` it was saved with.
    ///
    /// # Errors
    /// If the record is of another version or contradicts itself; nothing is changed then.
    pub fn restore_in_flight(&mut self, record: &InFlight) -> Result<(), Error> {
        record.check()?;
        self.flight.record = record.clone();
        self.flight.is_held = true;
        Ok(())
    }

    /// Answers the request that `run` returned: the data of a read; for a write the value is
    /// ignored, the call says that it has been done.
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
    /// the instruction has read and written so far would be repeated.
    pub fn cancel(&mut self) {
        self.flight.is_held = false;
    }

    /// Takes the instruction in flight over: it counts as done, and execution goes on at
    /// `new_rip`.
    pub fn finish(&mut self, cpu: &mut Cpu, new_rip: u64) {
        self.cancel();
        cpu.rip = new_rip;
        cpu.shadow = Shadow::NONE;
    }

    /// Runs the guest for at most `budget` instructions.
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
        let flags = Flags::from_rflags(cpu.rflags);
        let machine = Machine {
            cpu,
            tlb: &mut self.tlb,
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

/// An 8086 has sixteen bits of IP; a block that ends at FFFF leaves a seventeenth.
fn wrap_ip(cpu: &mut Cpu, profile: &Profile) {
    if profile.generation < Generation::I80286 {
        cpu.rip &= 0xFFFF;
    }
}

/// The size of the code that `cpu` is running.
fn code_size(cpu: &Cpu, profile: &Profile) -> CodeSize {
    if cpu.is_64_bit_code() {
        CodeSize::Bits64
    } else if cpu.segment(SegReg::Cs).attributes.is_big() && profile.has_32_bits() {
        CodeSize::Bits32
    } else {
        CodeSize::Bits16
    }
}

/// Everything besides the bytes that decides what decode yields.
fn decode_key(cpu: &Cpu, profile: &Profile) -> u32 {
    let bit = |on: bool, at: u32| u32::from(on) << at;
    code_size(cpu, profile) as u32
        | bit(cpu.cr0 & CR0_PE != 0, 2)
        | bit(cpu.rflags & VM != 0, 3)
        | bit(cpu.msr.efer & EFER_LMA != 0, 4)
        | bit(profile.vendor == Vendor::Amd, 5)
        | u32::from(profile.id) << 8
}

/// What `attend` decided.
enum Next {
    Go,
    Step,
    Stop(Stop),
}

/// What became of an attempt to run a block.
enum Ran {
    Block,
    NoBlock,
    Stop(Stop),
}

struct Runner<'r, 'm> {
    m: Machine<'r, 'm>,
    blocks: &'r mut Blocks<'m>,
    views: &'r mut Views,
    counters: &'r mut Counters,
    exceptions: u32,
    fuel: u64,
    view: u64,
    /// The block that ran last, whose links are tried first.
    last: usize,
}

/// An instruction on its way: the op and the bytes it came from.
#[derive(Clone, Copy)]
struct Current {
    op: Op,
    bytes: [u8; 15],
}

impl Runner<'_, '_> {
    fn run(&mut self) -> Stop {
        if self.m.flight.is_held
            && let Some(stop) = self.resume()
        {
            return stop;
        }
        loop {
            let mut alone = false;
            if self.m.attention {
                match self.attend() {
                    Next::Go => {}
                    Next::Step => alone = true,
                    Next::Stop(stop) => return stop,
                }
            }
            if self.fuel == 0 {
                return Stop::Budget;
            }
            if !alone {
                match self.run_block() {
                    Ran::Block => continue,
                    Ran::Stop(stop) => return stop,
                    Ran::NoBlock => {}
                }
            }
            if let Some(stop) = self.step() {
                return stop;
            }
        }
    }

    // ---- blocks ----

    /// Runs the block at RIP, if there is one and the budget covers it.
    #[inline]
    fn run_block(&mut self) -> Ran {
        if self.m.view_stale || self.m.epoch_stale {
            self.refresh_view();
        }
        let rip = self.m.cpu.rip;
        let linear = self.m.code_base.wrapping_add(rip) & self.m.linear_mask;
        let index = match self.blocks.follow(self.last, rip, self.view) {
            Some(index) => index,
            None => {
                let index = self.blocks.index(linear);
                if !self.blocks.is_proved(index, rip, self.view) && !self.prepare_block(linear) {
                    return Ran::NoBlock;
                }
                self.blocks.link(self.last, index);
                index
            }
        };
        self.last = index;
        let Some(line) = self.blocks.line(index) else {
            return Ran::NoBlock;
        };
        let ops = line.ops();
        let count = ops.len() as u64;
        if count > self.fuel {
            return Ran::NoBlock;
        }
        self.fuel -= count;
        let m = &mut self.m;
        m.control.retired += count;
        m.cpu.rip = rip.wrapping_add(u64::from(line.len()));
        *m.cpu.gpr.slot_mut(RIP_SLOT) = m.cpu.rip;
        for op in ops {
            let handler = op.handler.unwrap_or(crate::decode::undefined);
            if let Err(leave) = handler(m, op) {
                let current = Current { op: *op, bytes: line.bytes_of(op) };
                return self.leave_block(current, leave);
            }
        }
        Ran::Block
    }

    /// Puts a block for RIP in the cache. False if there can be none.
    #[cold]
    #[inline(never)]
    fn prepare_block(&mut self, linear: u64) -> bool {
        self.try_prepare_block(linear).is_some()
    }

    fn try_prepare_block(&mut self, linear: u64) -> Option<()> {
        if self.blocks.is_empty() {
            return None;
        }
        let rip = self.m.cpu.rip;
        let to_limit = if self.m.cpu.is_64_bit_code() {
            u64::MAX
        } else {
            (self.m.ip_limit + 1).checked_sub(rip)?
        };
        let page = self.m.code_page(linear).ok()?;
        if self.m.attention {
            // The bus changed something while it was asked for the page.
            return None;
        }
        let context = context(self.m.cpu, self.m.profile);
        let key = decode_key(self.m.cpu, self.m.profile);
        let place = Place { ip: rip, linear, key, page: &page, to_limit };
        let built = self.blocks.prove_or_build(&place, self.view, context, self.m.code_map)?;
        if built {
            self.counters.blocks_built += 1;
        } else {
            self.counters.blocks_proved += 1;
        }
        Some(())
    }

    fn refresh_view(&mut self) {
        if core::mem::take(&mut self.m.epoch_stale) {
            self.views.begin_epoch();
            self.counters.epochs += 1;
        }
        self.m.view_stale = false;
        let cs = self.m.cpu.segment(SegReg::Cs);
        self.view = self.views.view(view::Context {
            cs_base: cs.base,
            cs_limit: cs.limit,
            key: decode_key(self.m.cpu, self.m.profile),
        });
    }

    /// An op did not simply finish: the rest of the block has not been executed.
    #[inline(never)]
    fn leave_block(&mut self, current: Current, leave: Leave) -> Ran {
        let op = &current.op;
        let rest = u64::from(op.left) - 1;
        self.fuel += rest;
        self.m.control.retired -= rest;
        if leave == Leave::Branch {
            return Ran::Block;
        }
        // RIP and the budget go back to before the instruction; `settle` charges what it costs.
        self.fuel += 1;
        self.m.control.retired -= 1;
        let start = self.m.cpu.rip.wrapping_sub(u64::from(op.len) + u64::from(op.tail));
        let stop = if leave == Leave::Again {
            self.m.cpu.rip = start;
            self.execute_careful(&current, false)
        } else {
            self.settle(&current, start, false, leave)
        };
        stop.map_or(Ran::Block, Ran::Stop)
    }

    // ---- single instructions ----

    /// Fetches, decodes and executes one instruction.
    fn step(&mut self) -> Option<Stop> {
        if self.m.profile.generation < Generation::I80286 {
            self.m.cpu.rip &= 0xFFFF;
        }
        let current = match self.fetch_and_decode() {
            Ok(current) => current,
            Err(leave) => {
                let current = Current { op: Op::EMPTY, bytes: [0; 15] };
                return self.settle(&current, self.m.cpu.rip, false, leave);
            }
        };
        if let Some(observer) = self.m.observer.take() {
            self.m.settle_flags();
            let bytes = current.bytes.get(..usize::from(current.op.len)).unwrap_or_default();
            observer.decoded(self.m.cpu, bytes);
            self.m.observer = Some(observer);
            return self.execute_careful(&current, false);
        }
        self.execute(&current)
    }

    fn fetch_and_decode(&mut self) -> Result<Current, Leave> {
        let mut window = self.m.fetch()?;
        let context = context(self.m.cpu, self.m.profile);
        loop {
            match decode(window.bytes.get(..window.len).unwrap_or_default(), context) {
                Ok((op, details)) => {
                    let mut bytes = [0; 15];
                    let len = usize::from(op.len).min(window.len).min(15);
                    if details.repeat != 0 {
                        self.m.guard(&window, len);
                    }
                    bytes[..len].copy_from_slice(&window.bytes[..len]);
                    return Ok(Current { op, bytes });
                }
                Err(Incomplete::Short) if window.end == End::Page => {
                    self.m.fetch_more(&mut window)?;
                }
                Err(Incomplete::Short) if window.end == End::Limit => {
                    return Err(Fault::GP.into());
                }
                Err(_) => return Err(too_long(self.m.profile)),
            }
        }
    }

    /// Executes an instruction over plain memory, or carefully if it needs that.
    fn execute(&mut self, current: &Current) -> Option<Stop> {
        let start = self.m.cpu.rip;
        let trap = self.begin(current);
        match self.call(current) {
            Err(Leave::Again) => {
                self.m.cpu.rip = start;
                self.execute_careful(current, false)
            }
            result => self.end(current, start, trap, result),
        }
    }

    /// Executes an instruction with every access recorded and devices allowed. `resumed`: the
    /// record already holds its first accesses.
    fn execute_careful(&mut self, current: &Current, resumed: bool) -> Option<Stop> {
        self.counters.careful += 1;
        let start = self.m.cpu.rip;
        self.enter_careful(resumed);
        let trap = self.begin(current);
        let result = self.call(current);
        self.leave_careful();
        self.end(current, start, trap, result)
    }

    fn enter_careful(&mut self, resumed: bool) {
        self.m.road = Road::Careful;
        self.m.windows = [Window::default(); 8];
        if resumed {
            self.m.flight.rewind();
        } else {
            self.m.flight.begin();
        }
    }

    fn leave_careful(&mut self) {
        self.m.road = Road::Block;
        self.m.windows = [Window::default(); 8];
        self.m.attention = true;
    }

    /// Moves RIP past the instruction, and tells whether TF traps it.
    fn begin(&mut self, current: &Current) -> bool {
        let op = &current.op;
        let m = &mut self.m;
        m.cpu.rip = m.cpu.rip.wrapping_add(u64::from(op.len) + u64::from(op.tail));
        if m.profile.generation < Generation::I80286 {
            m.cpu.rip &= 0xFFFF;
        }
        *m.cpu.gpr.slot_mut(RIP_SLOT) = m.cpu.rip;
        m.casts = Shadow::NONE;
        m.keep_rf = false;
        m.no_trap = false;
        let trap = m.cpu.rflags & TF != 0;
        m.stepping = trap && m.cpu.msr.debugctl & DEBUGCTL_BTF == 0;
        trap
    }

    #[inline]
    fn call(&mut self, current: &Current) -> Result<(), Leave> {
        let handler = current.op.handler.unwrap_or(crate::decode::undefined);
        handler(&mut self.m, &current.op)
    }

    /// An instruction alone came to its end, one way or the other.
    fn end(
        &mut self,
        current: &Current,
        start: u64,
        trap: bool,
        result: Result<(), Leave>,
    ) -> Option<Stop> {
        match result {
            Ok(()) => {
                let rip = &mut self.m.cpu.rip;
                *rip = rip.wrapping_sub(u64::from(current.op.tail));
                self.complete(self.is_trapped(trap, current, start));
                None
            }
            Err(Leave::Branch) => {
                self.complete(self.is_trapped(trap, current, start));
                None
            }
            Err(leave) => self.settle(current, start, trap && self.m.stepping, leave),
        }
    }

    /// With IA32_DEBUGCTL.BTF only a taken branch is trapped (SDM vol. 3B, "Single-Stepping on
    /// Branches"). One to the next instruction passes for none.
    fn is_trapped(&self, trap: bool, current: &Current, start: u64) -> bool {
        let next = start.wrapping_add(u64::from(current.op.len));
        trap && (self.m.stepping || self.m.cpu.rip != next)
    }

    /// One more instruction is done.
    fn complete(&mut self, trap: bool) {
        self.fuel = self.fuel.saturating_sub(1);
        self.m.control.retired += 1;
        let trap = trap && !self.m.no_trap;
        self.m.retire_one(trap);
        self.m.attention = true;
        self.counters.instructions = self.m.control.retired;
        if let Some(observer) = self.m.observer.take() {
            self.m.settle_flags();
            observer.retired(self.m.cpu);
            self.m.observer = Some(observer);
        }
    }

    /// An instruction at `start` left for another reason than a branch.
    fn settle(&mut self, current: &Current, start: u64, trap: bool, leave: Leave) -> Option<Stop> {
        let after = start.wrapping_add(u64::from(current.op.len));
        self.m.cpu.rip = start;
        self.m.attention = true;
        match leave {
            Leave::Branch | Leave::Again => None,
            Leave::Fault(fault) => {
                // 8086: a division error saves the address of the next instruction.
                if fault == Fault::DE && self.m.profile.generation < Generation::I80286 {
                    self.m.cpu.rip = after & 0xFFFF;
                }
                self.raise(fault)
            }
            Leave::Repeat => {
                self.fuel = self.fuel.saturating_sub(1);
                self.m.keep_rf = true;
                self.m.retire_one(trap);
                None
            }
            Leave::Iterate => None,
            Leave::Halt => {
                self.m.cpu.rip = after;
                self.m.cpu.activity = Activity::Halted;
                self.complete(trap);
                None
            }
            Leave::Hypercall => {
                self.m.cpu.rip = after;
                self.complete(trap);
                Some(Stop::Hypercall)
            }
            Leave::Pending => {
                let (bytes, len) = (current.bytes, current.op.len);
                Some(self.hold(Work::Instruction { bytes, len }))
            }
            Leave::Intercept(what) => Some(Stop::Intercept(what)),
            Leave::Unimplemented(reason) => Some(self.unimplemented(current, reason)),
        }
    }

    fn unimplemented(&mut self, current: &Current, reason: UnimplementedReason) -> Stop {
        let fetch = reason == UnimplementedReason::FetchFromMmio;
        Stop::Unimplemented(Unimplemented {
            reason,
            rip: self.m.cpu.rip,
            bytes: current.bytes,
            len: current.op.len,
            bits: code_size(self.m.cpu, self.m.profile).bits(),
            address: if fetch { self.m.fetch_address } else { 0 },
        })
    }

    // ---- events ----

    /// Everything that can be due between two instructions.
    #[inline(never)]
    fn attend(&mut self) -> Next {
        loop {
            if self.apply_control() {
                return Next::Stop(Stop::Requested);
            }
            self.retire_code();
            if self.m.casts.is_any() {
                // The last instruction of a block cast a shadow.
                self.m.cpu.shadow = core::mem::take(&mut self.m.casts);
            }
            match self.m.boundary() {
                Boundary::Run if self.m.observer.is_none() => {
                    self.m.attention = false;
                    self.m.stepping = false;
                    return Next::Go;
                }
                Boundary::Run | Boundary::Step => return Next::Step,
                Boundary::Deliver(event) => {
                    if let Some(stop) = self.deliver(event, false) {
                        return Next::Stop(stop);
                    }
                }
                Boundary::Smi => {
                    let current = Current { op: Op::EMPTY, bytes: [0; 15] };
                    let reason = UnimplementedReason::Delivery;
                    return Next::Stop(self.unimplemented(&current, reason));
                }
                Boundary::Asleep => return Next::Stop(self.asleep()),
            }
        }
    }

    fn asleep(&self) -> Stop {
        match self.m.cpu.activity {
            Activity::Shutdown => Stop::Shutdown,
            Activity::WaitForSipi => Stop::WaitForSipi,
            _ if self.m.cpu.rflags & IF != 0 => Stop::Halt,
            _ => Stop::Idle,
        }
    }

    /// Does what callbacks asked for. Returns whether one asked to stop.
    fn apply_control(&mut self) -> bool {
        let control = &mut self.m.control;
        if let Some((start, len)) = control.withdrawn.take() {
            self.m.tlb.withdraw(start, len);
            self.m.epoch_stale = true;
        }
        if let Some(open) = control.a20.take()
            && self.m.cpu.a20 != open
        {
            self.m.cpu.a20 = open;
            self.m.tlb.flush();
            self.m.epoch_stale = true;
        }
        if let Some(asserted) = control.interrupt.take() {
            self.m.cpu.pending.interrupt = asserted;
        }
        self.m.cpu.pending.nmi |= core::mem::take(&mut control.nmi);
        core::mem::take(&mut control.stop)
    }

    /// Retires the blocks that the last instruction stored into.
    fn retire_code(&mut self) {
        if !self.m.code_map.has_retired() {
            return;
        }
        if core::mem::take(&mut self.m.code_map.retire_all) {
            self.blocks.flush(new_stamp(), self.m.code_map);
            self.views.begin_epoch();
            self.m.view_stale = true;
        }
        while let Some(retire) = self.m.code_map.take_retire() {
            self.counters.blocks_retired +=
                self.blocks.retire(retire.slot, retire.lines, self.m.code_map);
        }
    }

    /// A guest exception: shown to the VMM if it asked for it, else delivered.
    fn raise(&mut self, fault: Fault) -> Option<Stop> {
        if self.exceptions >> (fault.vector & 31) & 1 != 0 {
            return Some(Stop::Exception(fault));
        }
        self.fuel = self.fuel.saturating_sub(1);
        self.counters.faults += 1;
        self.m.cpu.shadow = Shadow::NONE;
        self.m.casts = Shadow::NONE;
        self.m.settle_flags();
        self.m.bus.observe_fault(self.m.cpu, fault);
        if let Some(observer) = self.m.observer.take() {
            self.m.settle_flags();
            observer.fault(self.m.cpu, fault);
            self.m.observer = Some(observer);
        }
        self.deliver(Event::Exception(fault), false)
    }

    /// Delivers an event, or what its delivery turns into.
    fn deliver(&mut self, mut event: Event, mut resumed: bool) -> Option<Stop> {
        self.counters.events += 1;
        loop {
            self.enter_careful(resumed);
            resumed = false;
            let result = self.m.deliver(event);
            self.leave_careful();
            let fault = match result {
                Ok(()) => return None,
                Err(Leave::Fault(fault)) => fault,
                Err(Leave::Pending) => return Some(self.hold(Work::Event(event))),
                Err(Leave::Unimplemented(reason)) => {
                    // An exception is raised again by its instruction; anything else must not
                    // be lost.
                    self.m.cpu.pending.event = Some(event);
                    let current = Current { op: Op::EMPTY, bytes: [0; 15] };
                    return Some(self.unimplemented(&current, reason));
                }
                Err(_) => return None,
            };
            event = match escalate(event, fault.vector) {
                Escalation::Serial => Event::Exception(fault),
                Escalation::DoubleFault => Event::Exception(Fault::new(8)),
                Escalation::Shutdown => {
                    self.m.cpu.activity = Activity::Shutdown;
                    return Some(Stop::Shutdown);
                }
            };
        }
    }

    // ---- restart ----

    /// Keeps what is in flight for the next run.
    fn hold(&mut self, work: Work) -> Stop {
        wrap_ip(self.m.cpu, self.m.profile);
        let record = &mut self.m.flight.record;
        record.rip = self.m.cpu.rip;
        record.cs_base = self.m.cpu.segment(SegReg::Cs).base;
        record.key = decode_key(self.m.cpu, self.m.profile);
        record.work = work;
        self.m.flight.is_held = true;
        self.held_stop()
    }

    fn held_stop(&self) -> Stop {
        let record = &self.m.flight.record;
        if record.is_port { Stop::Port(record.request) } else { Stop::Mmio(record.request) }
    }

    /// Goes on with what is in flight, if its reply is there.
    fn resume(&mut self) -> Option<Stop> {
        if !self.m.flight.record.answered {
            return Some(self.held_stop());
        }
        let work = self.m.flight.record.work;
        // The delivery of an event costs nothing, as without the wait.
        if self.fuel == 0 && matches!(work, Work::Instruction { .. }) {
            return Some(Stop::Budget);
        }
        self.m.flight.is_held = false;
        match work {
            Work::Event(event) => self.deliver(event, true),
            Work::Instruction { bytes, len } => {
                let context = context(self.m.cpu, self.m.profile);
                let len = usize::from(len).min(15);
                match decode(&bytes[..len], context) {
                    Ok((op, _)) => self.execute_careful(&Current { op, bytes }, true),
                    Err(_) => None,
                }
            }
        }
    }
}

/// What decode has to know of the processor.
fn context<'p>(cpu: &Cpu, profile: &'p Profile) -> Context<'p> {
    Context { size: code_size(cpu, profile), real: cpu.is_real_segmentation(), profile }
}

/// An instruction longer than the processor takes: #GP. An 8086 goes on forever, which an
/// emulator cannot.
fn too_long(profile: &Profile) -> Leave {
    match profile.generation {
        Generation::I8086 | Generation::I80186 => {
            Leave::Unimplemented(UnimplementedReason::Instruction)
        }
        _ => Fault::GP.into(),
    }
}
