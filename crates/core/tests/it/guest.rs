//! A guest for tests: a processor, a MiB of memory, a device page and ports that record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use realmode::*;

/// RAM, in bytes.
pub const RAM: usize = 2 << 20;
/// A device page, just below the VGA hole's end, reachable from real mode as B800:0.
pub const DEVICE: u64 = 0xB_8000;
/// Where code is loaded: 0000:1000.
pub const CODE: u64 = 0x1000;

/// What the device and the ports saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Read(u64, u8),
    Write(u64, u8, u64),
    In(u16, u8),
    Out(u16, u8, u64),
}

/// The machine around the processor.
pub struct TestBus<'m> {
    ram: &'m [AtomicU8],
    /// Everything the devices were asked.
    pub seen: Vec<Seen>,
    /// The bytes of the device page.
    pub device: Vec<u8>,
    /// What IN returns.
    pub port_value: u64,
    /// Answer every device access with `Pending`.
    pub pending: bool,
    /// Vector of the next acknowledged interrupt.
    pub vector: u8,
    /// What RDRAND gets.
    pub random: Option<u64>,
    /// The value of each MSR that is not the processor's; a missing one is #GP.
    pub msrs: BTreeMap<u32, u64>,
    /// Translations that became stale; `None` is all of them.
    pub stale: Vec<Option<Linear>>,
    /// Payloads of PTWRITE.
    pub traced: Vec<u64>,
    /// How often FERR was asserted.
    pub ferr: u32,
    /// An acknowledged interrupt is no longer asserted.
    pub edge: bool,
    /// How often a vector was asked for.
    pub acknowledgements: usize,
    /// Is the processor the one that starts by itself?
    pub bootstrap: bool,
    /// From here on there is no RAM.
    pub hole: u64,
}

impl TestBus<'_> {
    /// Writes a byte of memory, as a device does.
    pub fn poke(&self, at: u64, byte: u8) {
        self.ram[at as usize].store(byte, Relaxed);
    }
}

impl<'a, 'm: 'a> Bus<'a> for TestBus<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        if page.0 == DEVICE {
            return Prepared::Mmio;
        }
        if page.0 >= self.hole {
            return Prepared::Unmapped;
        }
        Prepared::in_ram(self.ram, page)
    }

    fn mmio_read(&mut self, address: Phys, size: u8, _: &mut Control) -> Reply {
        self.seen.push(Seen::Read(address.0, size));
        if self.pending {
            return Reply::Pending;
        }
        let at = (address.0 - DEVICE) as usize;
        let mut word = [0; 8];
        word[..size as usize].copy_from_slice(&self.device[at..at + size as usize]);
        Reply::Ready(u64::from_le_bytes(word))
    }

    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, _: &mut Control) -> Reply {
        self.seen.push(Seen::Write(address.0, size, data));
        if self.pending {
            return Reply::Pending;
        }
        let at = (address.0 - DEVICE) as usize;
        self.device[at..at + size as usize].copy_from_slice(&data.to_le_bytes()[..size as usize]);
        Reply::Ready(0)
    }

    fn port_in(&mut self, port: u16, size: u8, _: &mut Control) -> Reply {
        self.seen.push(Seen::In(port, size));
        if self.pending { Reply::Pending } else { Reply::Ready(self.port_value) }
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, _: &mut Control) -> Reply {
        self.seen.push(Seen::Out(port, size, data));
        if self.pending { Reply::Pending } else { Reply::Ready(0) }
    }

    fn interrupt_acknowledge(&mut self, control: &mut Control) -> u8 {
        self.acknowledgements += 1;
        if self.edge {
            control.interrupt(false);
        }
        self.vector
    }

    fn random(&mut self, _: &mut Control) -> Option<u64> {
        self.random
    }

    fn read_msr(&mut self, index: u32, _: &mut Control) -> Option<u64> {
        self.msrs.get(&index).copied()
    }

    fn write_msr(&mut self, index: u32, value: u64, _: &mut Control) -> bool {
        self.msrs.get_mut(&index).map(|place| *place = value).is_some()
    }

    fn invalidate(&mut self, linear: Option<Linear>) {
        self.stale.push(linear);
    }

    fn trace_write(&mut self, value: u64) {
        self.traced.push(value);
    }

    fn fpu_error(&mut self, _: &mut Control) {
        self.ferr += 1;
    }

    fn is_bootstrap_processor(&self) -> bool {
        self.bootstrap
    }
}

/// A guest in real mode: CS=DS=ES=SS=0, SP=0xF00, IVT entry n points to 0000:(0x400 + n), where
/// a HLT lies.
pub struct Guest {
    pub cpu: Cpu,
    pub profile: Profile,
    /// Lines of decode cache; 0 for none.
    pub lines: usize,
    pub policy: Policy,
    pub bus: TestBus<'static>,
}

impl Guest {
    pub fn new(code: &[u8]) -> Guest {
        Guest::with_profile(&Profile::INTEL, code)
    }

    pub fn with_profile(profile: &Profile, code: &[u8]) -> Guest {
        let ram: Vec<AtomicU8> = (0..RAM).map(|_| AtomicU8::new(0)).collect();
        let ram: &'static [AtomicU8] = Box::leak(ram.into_boxed_slice());
        let mut cpu = Cpu::reset_as(profile);
        cpu.seg = [Segment::real(0); 6];
        cpu.rip = CODE;
        cpu.gpr[Reg::Rsp] = 0xF00;
        cpu.gpr[Reg::Rdx] = 0;
        let bus = TestBus {
            ram,
            seen: Vec::new(),
            device: vec![0; PAGE_SIZE],
            port_value: u64::MAX,
            pending: false,
            vector: 0x20,
            random: None,
            msrs: BTreeMap::new(),
            stale: Vec::new(),
            traced: Vec::new(),
            ferr: 0,
            edge: false,
            acknowledgements: 0,
            bootstrap: true,
            hole: u64::MAX,
        };
        let guest =
            Guest { cpu, profile: profile.clone(), lines: 64, policy: Policy::default(), bus };
        for n in 0..256u64 {
            guest.poke(n * 4, &(0x400 + n as u16).to_le_bytes());
        }
        guest.poke(0x400, &[0xF4; 256]);
        guest.poke(CODE, code);
        guest
    }

    /// Writes memory.
    pub fn poke(&self, at: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            self.bus.ram[at as usize + i].store(*byte, Relaxed);
        }
    }

    /// Reads memory.
    pub fn peek(&self, at: u64, len: usize) -> Vec<u8> {
        (0..len).map(|i| self.bus.ram[at as usize + i].load(Relaxed)).collect()
    }

    /// Reads a word of memory.
    pub fn word(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.peek(at, 2).try_into().unwrap())
    }

    /// Sets a register.
    pub fn with(mut self, reg: Reg, value: u64) -> Guest {
        self.cpu.gpr[reg] = value;
        self
    }

    /// Runs `budget` instructions.
    pub fn run(&mut self, budget: u64) -> Stop {
        let mut lines = vec![CacheLine::EMPTY; self.lines];
        let mut emulator = Emulator::new(&self.profile, &mut lines);
        *emulator.policy_mut() = self.policy;
        emulator_run(&mut emulator, &mut self.cpu, &mut self.bus, budget)
    }

    /// Runs one instruction and expects that it completes or faults.
    pub fn step(&mut self) {
        assert_eq!(self.run(1), Stop::Budget);
    }

    /// Runs one instruction and returns the vector it raised, if it raised one: execution is
    /// then at the handler that the table names.
    pub fn fault(&mut self) -> Option<u8> {
        assert_eq!(self.run(1), Stop::Budget);
        let rip = self.cpu.rip;
        (0x400..0x500).contains(&rip).then(|| (rip - 0x400) as u8)
    }

    /// A register.
    pub fn reg(&self, reg: Reg) -> u64 {
        self.cpu.gpr[reg]
    }

    /// The arithmetic flags.
    pub fn flags(&self) -> u64 {
        self.cpu.rflags & arch::rflags::ARITH
    }
}

fn emulator_run<'m>(
    emulator: &mut Emulator<'m>,
    cpu: &mut Cpu,
    bus: &mut dyn Bus<'m>,
    budget: u64,
) -> Stop {
    emulator.run(cpu, bus, budget).unwrap()
}
