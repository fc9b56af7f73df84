//! Cases of the system, made from a seed and a number: the same on every machine.

mod device;
mod place;
mod register;
mod transfer;

use realmode::arch::rflags;
use realmode::{Attributes, Cpu, Reg, SegReg, Segment, Shadow, TableRegister};

use super::case::{Family, SystemCase, TABLES};
use crate::prng::{Prng, mix};
use crate::proof::case::{Code, Poke};

/// The flags that a case may begin with. TF is not among them: stepping hides it.
const FLAGS: u64 =
    rflags::ARITH | rflags::IF | rflags::DF | rflags::IOPL | rflags::NT | rflags::AC | rflags::ID;

/// Numbers at which something changes.
const EDGES: [u32; 12] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
];

/// The case with this number.
pub fn case(seed: u64, index: u64) -> SystemCase {
    let family = Family::ALL[(index % Family::ALL.len() as u64) as usize];
    let mut maker = Maker::new(family, Prng::new(mix(mix(seed).wrapping_add(index))));
    match family {
        Family::Segment => transfer::segment(&mut maker),
        Family::Far => transfer::far(&mut maker),
        Family::Interrupt => transfer::interrupt(&mut maker),
        Family::Flags => register::flags(&mut maker),
        Family::Table => register::table(&mut maker),
        Family::Control => register::control(&mut maker),
        Family::Debug => register::debug(&mut maker),
        Family::Msr => register::model_specific(&mut maker),
        Family::Power => register::power(&mut maker),
        Family::Port => device::port(&mut maker),
        Family::PortString => device::port_string(&mut maker),
        Family::Mmio => device::memory(&mut maker),
        Family::Fault => transfer::fault(&mut maker),
    }
    maker.case
}

/// A case in the making.
struct Maker {
    random: Prng,
    case: SystemCase,
}

impl Maker {
    fn new(family: Family, random: Prng) -> Maker {
        let (cpu, salt) = (Cpu::reset(), 0);
        let case = SystemCase { family, cpu, code: Code::default(), pokes: Vec::new(), salt };
        let mut maker = Maker { random, case };
        maker.case.salt = maker.random.next();
        maker.processor();
        maker
    }

    fn processor(&mut self) {
        let values: [u64; 16] =
            core::array::from_fn(|i| if i < 8 { self.value().into() } else { 0 });
        let random = &mut self.random;
        let cpu = &mut self.case.cpu;
        cpu.gpr = values.into();
        cpu.cr0 = 0x10;
        cpu.rflags = rflags::FIXED | random.next() & FLAGS;
        for number in 0..6 {
            cpu.seg[number] = segment(random, number == SegReg::Cs as usize);
        }
        cpu.rip = match random.below(8) {
            0 => 0xFFF0 + random.below(16),
            _ => random.below(0xFFF0),
        };
        let stack = match random.below(8) {
            0 => random.below(8),
            1 => 0xFFF8 + random.below(8),
            2 => random.below(0x1_0000),
            _ => random.below(0x8000) * 2,
        };
        cpu.gpr[Reg::Rsp] = cpu.gpr[Reg::Rsp] & 0xFFFF_0000 | stack;
        let ss = cpu.segment(SegReg::Ss);
        if ss.attributes.is_big() {
            // SDM vol. 3A, "Limit Checking": what wraps at 4 GiB may or may not fault.
            cpu.gpr[Reg::Rsp] = if ss.limit == u32::MAX { stack | 0x100 } else { stack };
        }
        cpu.gdtr = TableRegister { base: random.next() & 0xFFFF_FFFF, limit: random.next() as u16 };
        let base = random.pick(&TABLES).into();
        cpu.idtr = TableRegister { base, limit: random.pick(&[0x3FF, 0x3FF, 0xFFFF]) };
        match random.below(16) {
            0 if cpu.rflags & rflags::IF != 0 => {
                cpu.shadow = Shadow { sti: true, mov_ss: false };
            }
            1 => cpu.shadow = Shadow { sti: false, mov_ss: true },
            _ => {}
        }
        cpu.nmi_blocked = random.one_in(8);
    }

    /// A number for a register.
    fn value(&mut self) -> u32 {
        let random = &mut self.random;
        match random.below(4) {
            0 => random.pick(&EDGES),
            1 => random.next() as u32 & 0xFFFF,
            _ => random.next() as u32,
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.random.one_in(n)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        self.random.pick(choices)
    }

    fn code(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.case.code.push(*byte));
    }

    /// Appends 66, or not; tells which.
    fn operand_size(&mut self) -> bool {
        let wide = self.one_in(2);
        if wide {
            self.code(&[0x66]);
        }
        wide
    }

    fn poke(&mut self, at: u64, bytes: &[u8]) {
        let mut poke = Poke { at: at as u32, bytes: [0; 32], len: bytes.len() as u8 };
        poke.bytes[..bytes.len()].copy_from_slice(bytes);
        self.case.pokes.push(poke);
    }

    /// The place of `above` bytes above the stack pointer.
    fn stack(&self, above: u64) -> u64 {
        let ss = self.case.cpu.segment(SegReg::Ss);
        let mask = if ss.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
        ss.base + ((self.case.cpu.gpr[Reg::Rsp] + above) & mask)
    }

    /// Puts words or double words on the stack, the first one on top.
    fn on_stack(&mut self, values: &[u32], wide: bool) {
        let size = if wide { 4 } else { 2 };
        for (value, above) in values.iter().zip((0..).step_by(size)) {
            let at = self.stack(above);
            self.poke(at, &value.to_le_bytes()[..size]);
        }
    }

    /// An offset to go to: mostly one of a 16-bit segment.
    fn target(&mut self) -> u32 {
        match self.random.below(6) {
            0 => self.pick(&EDGES),
            1 => self.random.next() as u32,
            _ => self.random.next() as u32 & 0xFFFF,
        }
    }
}

/// A segment of real mode; those of data with another limit than real mode loads, sometimes. Code
/// lies below all data.
fn segment(random: &mut Prng, is_code: bool) -> Segment {
    if is_code {
        return Segment::real(0xA00 + random.below(0x600) as u16);
    }
    let selector = 0x2000 + random.below(0x6000) as u16;
    let mut segment = Segment::real(selector);
    match random.below(16) {
        0 | 1 => segment = Segment::big_real(selector),
        2 => segment.limit = 0xFFE,
        3 => segment.limit = 0x7FFF,
        _ => {}
    }
    if random.one_in(24) {
        segment.attributes.0 |= Attributes::DB;
    }
    segment
}
