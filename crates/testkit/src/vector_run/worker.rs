//! One emulator with its memory, and one test after another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use realmode::{CacheLine, Cpu, Emulator, Profile, SegReg, Stop};

use super::compare::{Ending, Failure, MemoryDifference, RegisterDifference};
use super::memory::{MEMORY_BYTES, VectorBus, VectorMemory};
use super::registers;
use crate::moo::{Register, RegisterMasks, Test};

/// How many instructions a test may take until its HLT. One and a HLT would do, but a REP may
/// come back once a page, or once for the 512 bytes that a port gives at a time.
pub const BUDGET: u64 = 500;

const HLT: u8 = 0xF4;

/// A byte of memory that a test lists.
#[derive(Clone, Copy, Debug)]
struct Cell {
    address: u32,
    before: u8,
    expected: u8,
}

/// Two selectors of CS in one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The one in the frame that the exception pushed.
    pub frame: u16,
    /// The one in the registers that the test starts from.
    pub registers: u16,
}

/// Runs tests in a memory of its own, one at a time.
///
/// ```no_run
/// use realmode::{CacheLine, Profile};
/// use realmode_testkit::moo::MooFile;
/// use realmode_testkit::vector_run::{VectorMemory, VectorWorker};
///
/// let file = MooFile::open("v1_real_mode/F7.6.MOO.gz".as_ref())?;
/// let memory = VectorMemory::new();
/// let mut lines = vec![CacheLine::EMPTY; 256];
/// let mut worker = VectorWorker::new(&Profile::I80286, &memory, &mut lines);
/// for test in file.tests() {
///     if let Err(failure) = worker.run(&test?, file.masks()) {
///         println!("{failure}");
///     }
/// }
/// # Ok::<(), realmode_testkit::moo::MooError>(())
/// ```
pub struct VectorWorker<'m> {
    profile: &'m Profile,
    emulator: Emulator<'m>,
    bus: VectorBus<'m>,
    cells: Vec<Cell>,
}

impl<'m> VectorWorker<'m> {
    /// A worker for `profile`. The memory has to be all zero, and is again after each test.
    pub fn new(
        profile: &'m Profile,
        memory: &'m VectorMemory,
        lines: &'m mut [CacheLine],
    ) -> VectorWorker<'m> {
        VectorWorker {
            profile,
            emulator: Emulator::new(profile, lines),
            bus: VectorBus { memory, faults: Vec::new() },
            cells: Vec::new(),
        }
    }

    /// Runs a test. `masks` are those of its file.
    ///
    /// # Errors
    /// With all that differs, if anything does.
    pub fn run(&mut self, test: &Test<'_>, masks: &RegisterMasks) -> Result<(), Box<Failure>> {
        let mut masks = *masks;
        masks.narrow_all(&test.expected.mask);
        self.collect_cells(test);
        for cell in &self.cells {
            self.bus.memory.set(cell.address, cell.before);
        }
        let mut cpu = registers::load(self.profile, &test.initial.registers);
        if let Some(contradiction) = self.contradiction(test) {
            cpu.segment_mut(SegReg::Cs).selector = contradiction.frame;
        }
        self.bus.faults.clear();
        let ending = self.run_to_halt(&mut cpu);
        let mut failure = Failure {
            index: test.index,
            name: String::new(),
            bytes: Vec::new(),
            exception: test.exception.map(|exception| exception.vector),
            faults: Vec::new(),
            ending,
            width: test.initial.registers.width(),
            registers: Vec::new(),
            memory: Vec::new(),
            more_memory: 0,
        };
        self.compare_registers(test, &masks, &cpu, &mut failure);
        self.compare_memory(test, &masks, &mut failure);
        if failure.is_empty() {
            return Ok(());
        }
        failure.name = test.name().into_owned();
        failure.bytes = test.bytes.to_vec();
        failure.faults.clone_from(&self.bus.faults);
        Err(Box::new(failure))
    }

    /// An exception's frame holds the CS of the instruction. Where a test lists another one there
    /// than it starts from, it contradicts itself: selector and base of CS were loaded apart
    /// (the capture used LOADALL). The base is what fetched the instruction, so such a test runs
    /// with the base it starts from and the selector of its frame, and is reported.
    pub fn contradiction(&self, test: &Test<'_>) -> Option<Contradiction> {
        let [flags_at, _] = pushed_flags(self.profile, test)?;
        let byte = |below: u32| {
            let address = flags_at.checked_sub(below)?;
            test.expected.ram.iter().filter(|cell| cell.0 == address).last().map(|cell| cell.1)
        };
        let frame = u16::from_le_bytes([byte(2)?, byte(1)?]);
        let registers = test.initial.registers.get(Register::Cs)? as u16;
        (frame != registers).then_some(Contradiction { frame, registers })
    }

    fn run_to_halt(&mut self, cpu: &mut Cpu) -> Ending {
        // A panic of the emulator is a bug of it that must not hide what the other tests say.
        let run = || self.emulator.run(cpu, &mut self.bus, BUDGET);
        let ending = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(Stop::Halt | Stop::Idle)) => return Ending::Halt,
            Ok(Ok(Stop::Budget)) => format!("{BUDGET} instructions executed"),
            Ok(Ok(Stop::Shutdown)) => "shutdown after a triple fault".into(),
            Ok(Ok(Stop::Unimplemented(what))) => {
                let bytes = &what.bytes[..usize::from(what.len).min(what.bytes.len())];
                format!("{} at {:04x}: {bytes:02x?}", what.reason, what.rip)
            }
            Ok(Ok(stop)) => format!("{stop:?}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the emulator panicked".into(),
        };
        // An instruction may be half done; the next test begins with another.
        self.emulator.cancel();
        self.emulator.flush();
        Ending::Other(ending)
    }

    /// All bytes that the test lists, each once, by address: where two list one address, the
    /// later counts, and a byte that is expected but was not set was zero.
    fn collect_cells(&mut self, test: &Test<'_>) {
        let wrap = |address: u32| address % MEMORY_BYTES as u32;
        let cells = &mut self.cells;
        cells.clear();
        for (address, value) in test.initial.ram.iter() {
            cells.push(Cell { address: wrap(address), before: value, expected: value });
        }
        sort_last_wins(cells);
        let set = cells.len();
        for (address, value) in test.expected.ram.iter() {
            let address = wrap(address);
            match cells[..set].binary_search_by_key(&address, |cell| cell.address) {
                Ok(at) => cells[at].expected = value,
                Err(_) => cells.push(Cell { address, before: 0, expected: value }),
            }
        }
        // Where control goes, the processor fetched a HLT; almost always the test lists it.
        let halt = wrap(halt_address(self.profile, test));
        if cells[..set].binary_search_by_key(&halt, |cell| cell.address).is_err() {
            let written = cells[set..].iter_mut().rev().find(|cell| cell.address == halt);
            match written {
                Some(cell) => cell.before = HLT,
                None => cells.push(Cell { address: halt, before: HLT, expected: HLT }),
            }
        }
        sort_last_wins(cells);
    }

    fn compare_registers(
        &self,
        test: &Test<'_>,
        masks: &RegisterMasks,
        cpu: &Cpu,
        failure: &mut Failure,
    ) {
        let (before, after) = (&test.initial.registers, &test.expected.registers);
        let width = before.width();
        for register in Register::ALL {
            let expected = registers::expected(self.profile, before, after, register);
            let Some(expected) = expected else { continue };
            let found = registers::read(cpu, register, width);
            let mask = registers::comparable(self.profile, masks, register, width);
            if (found ^ expected) & mask != 0 {
                let before = before.get(register).unwrap_or(0);
                let difference = RegisterDifference { register, before, expected, found, mask };
                failure.registers.push(difference);
            }
        }
    }

    /// Compares all of memory and makes it zero again.
    fn compare_memory(&self, test: &Test<'_>, masks: &RegisterMasks, failure: &mut Failure) {
        let memory = self.bus.memory;
        let flags_mask = masks.get(Register::Eflags);
        let pushed = pushed_flags(self.profile, test);
        for cell in &self.cells {
            let Cell { address, before, expected } = *cell;
            let mask = match pushed {
                Some([low, _]) if low == address => flags_mask as u8,
                Some([_, high]) if high == address => (flags_mask >> 8) as u8,
                _ => 0xFF,
            };
            let found = memory.get(address);
            if (found ^ expected) & mask != 0 {
                failure.add_memory(MemoryDifference {
                    address,
                    before,
                    expected,
                    found,
                    mask,
                    is_listed: true,
                });
            }
            memory.set(address, 0);
        }
        memory.sweep(|address, found| {
            failure.add_memory(MemoryDifference {
                address,
                before: 0,
                expected: 0,
                found,
                mask: 0xFF,
                is_listed: false,
            });
        });
    }
}

/// Sorts by address; of several cells with one address, the last stays.
fn sort_last_wins(cells: &mut Vec<Cell>) {
    cells.sort_by_key(|cell| cell.address);
    cells.dedup_by(|later, earlier| {
        let is_same = later.address == earlier.address;
        if is_same {
            *earlier = *later;
        }
        is_same
    });
}

fn expected(profile: &Profile, test: &Test<'_>, register: Register) -> u32 {
    let (before, after) = (&test.initial.registers, &test.expected.registers);
    registers::expected(profile, before, after, register).unwrap_or(0)
}

/// Where the HLT is that ends the test: IP is past it.
fn halt_address(profile: &Profile, test: &Test<'_>) -> u32 {
    let cs = expected(profile, test, Register::Cs) & 0xFFFF;
    let ip = expected(profile, test, Register::Eip).wrapping_sub(1);
    (cs << 4).wrapping_add(ip & 0xFFFF)
}

/// Where the two bytes of FLAGS are that an exception pushed. The address in the test is that of
/// a word on the bus; where SP is odd, FLAGS are one byte above it.
fn pushed_flags(profile: &Profile, test: &Test<'_>) -> Option<[u32; 2]> {
    let recorded = test.exception?.flags_at;
    let ss = expected(profile, test, Register::Ss) & 0xFFFF;
    let sp = expected(profile, test, Register::Esp);
    // CS and IP lie below them.
    let at = |offset: u32| ((ss << 4) + (sp.wrapping_add(offset) & 0xFFFF)) % MEMORY_BYTES as u32;
    let frame = [at(4), at(5)];
    if recorded == frame[0] || recorded == frame[0] & !1 {
        return Some(frame);
    }
    Some([recorded, recorded.wrapping_add(1)].map(|byte| byte % MEMORY_BYTES as u32))
}
