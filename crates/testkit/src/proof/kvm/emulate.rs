//! The same case in the emulator.

use realmode::{
    Access, Activity, Bus, Control, Cpu, Direction, Emulator, Error, Fault, PAGE_SIZE, Phys,
    Prepared, Profile, Reply, Request, SegReg, Stop,
};

use super::case::{SystemCase, mask};
use super::outcome::{DeviceAccess, SystemEnd, SystemOutcome};
use super::quirk::Quirks;
use super::ram::Ram;

/// Units of budget that a case may take.
const MOST_STEPS: u32 = 5_000;

/// Executes a case as KVM steps through it, with the memory it is given. `landed` is where KVM
/// stopped, CS and IP: within a handler its place decides how much of the handler is executed.
pub(super) fn emulate(
    profile: &Profile,
    ram: &Ram,
    case: &SystemCase,
    landed: &Cpu,
    quirks: Quirks,
) -> SystemOutcome {
    let original = case;
    let case = &quirks.before(case);
    ram.restore();
    ram.begin(case);
    let mut emulator = Emulator::new(&quirks.profile(profile), &mut []);
    if quirks.touch_delivery() {
        emulator.policy_mut().exceptions = u32::MAX;
    }
    let mut world = World { ram, case, accesses: Vec::new(), faults: 0 };
    let mut cpu = case.cpu.clone();
    let mut end = SystemEnd::Hung;
    for _ in 0..MOST_STEPS {
        end = match emulator.run(&mut cpu, &mut world, 1) {
            Ok(Stop::Exception(fault)) => {
                world.faults += 1;
                deliver(&mut emulator, &mut cpu, &mut world, (original, fault, quirks))
            }
            stop => end_of(stop, &cpu),
        };
        let iterates = case.is_repeated() && world.faults == 0 && cpu.rip == case.cpu.rip;
        if end != SystemEnd::Stepped || !iterates {
            break;
        }
    }
    if world.faults != 0 && end == SystemEnd::Stepped {
        end = into_handler(&mut emulator, &mut cpu, &mut world, landed);
    }
    quirks.after(original, &mut cpu);
    if case.code != original.code {
        ram.poke(original.start(), original.code.as_slice());
    }
    SystemOutcome { end, cpu, accesses: world.accesses }
}

fn end_of(stop: Result<Stop, Error>, cpu: &Cpu) -> SystemEnd {
    match stop {
        Ok(Stop::Budget) if cpu.activity == Activity::Running => SystemEnd::Stepped,
        Ok(Stop::Budget | Stop::Halt | Stop::Idle) => SystemEnd::Halted,
        Ok(Stop::Shutdown) => SystemEnd::Shutdown,
        other => SystemEnd::Other(format!("{other:x?}")),
    }
}

/// Delivers an exception in another way than the processor does.
fn deliver<'r>(
    emulator: &mut Emulator<'r>,
    cpu: &mut Cpu,
    world: &mut World<'r>,
    (case, fault, quirks): (&SystemCase, Fault, Quirks),
) -> SystemEnd {
    let (ss, idtr) = (*cpu.segment(SegReg::Ss), cpu.idtr);
    quirks.before_delivery(case, fault, cpu);
    emulator.policy_mut().exceptions = 0;
    let end = end_of(emulator.run(cpu, world, 0), cpu);
    *cpu.segment_mut(SegReg::Ss) = ss;
    cpu.idtr = idtr;
    end
}

/// After an exception KVM may have executed the first instruction of the handler, which is a NOP.
fn into_handler<'r>(
    emulator: &mut Emulator<'r>,
    cpu: &mut Cpu,
    world: &mut World<'r>,
    landed: &Cpu,
) -> SystemEnd {
    let place = |cpu: &Cpu| cpu.segment(SegReg::Cs).base + cpu.rip;
    if place(landed) == place(cpu) + 1 {
        return end_of(emulator.run(cpu, world, 1), cpu);
    }
    SystemEnd::Stepped
}

/// The world of a case.
struct World<'r> {
    ram: &'r Ram,
    case: &'r SystemCase,
    accesses: Vec<DeviceAccess>,
    faults: u32,
}

impl<'a, 'r: 'a> Bus<'a> for World<'r> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        let page = usize::try_from(page.0).map_or(usize::MAX, |page| page / PAGE_SIZE);
        self.ram.host_page(page).map_or(Prepared::Mmio, Prepared::Ram)
    }

    fn mmio_read(&mut self, address: Phys, size: u8, _: &mut Control) -> Reply {
        let data = self.case.device_data(address.0, size);
        let request = Request { address: address.0, size, direction: Direction::Read, data };
        self.accesses.push(DeviceAccess::Memory(request));
        Reply::Ready(data)
    }

    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, _: &mut Control) -> Reply {
        let data = data & mask(size);
        let request = Request { address: address.0, size, direction: Direction::Write, data };
        self.accesses.push(DeviceAccess::Memory(request));
        Reply::Ready(0)
    }

    fn port_in(&mut self, port: u16, size: u8, _: &mut Control) -> Reply {
        let data = self.case.port_data(&self.accesses, size);
        let request = Request { address: port.into(), size, direction: Direction::Read, data };
        self.accesses.push(DeviceAccess::Port(request));
        Reply::Ready(data)
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, _: &mut Control) -> Reply {
        let data = data & mask(size);
        let request = Request { address: port.into(), size, direction: Direction::Write, data };
        self.accesses.push(DeviceAccess::Port(request));
        Reply::Ready(0)
    }

    fn observe_fault(&mut self, _: &Cpu, _: Fault) {
        self.faults += 1;
    }
}
