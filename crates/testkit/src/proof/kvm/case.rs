//! One instruction of the system in real mode, and everything it can see.

use realmode::{Cpu, SegReg};

use super::outcome::DeviceAccess;
use crate::prng::mix;
use crate::proof::case::{Code, Poke};

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// MOV, POP, LDS and their like into a segment register; PUSH and MOV out of one.
    Segment,
    /// Far JMP, CALL and RET, and near ones at the limit of IP.
    Far,
    /// INT n, INT3, INTO, IRET.
    Interrupt,
    /// PUSHF, POPF, CLI, STI and others that change the flags of the system.
    Flags,
    /// LGDT, LIDT, SGDT, SIDT.
    Table,
    /// MOV CR, SMSW, LMSW, CLTS.
    Control,
    /// MOV DR.
    Debug,
    /// RDMSR, WRMSR.
    Msr,
    /// HLT, INVD and the like.
    Power,
    /// IN and OUT.
    Port,
    /// INS and OUTS, repeated and not.
    PortString,
    /// Memory that is a device's.
    Mmio,
    /// Exceptions of instructions that any program can execute.
    Fault,
}

impl Family {
    /// Every one, in the order in which cases come.
    pub const ALL: [Family; 13] = [
        Family::Segment,
        Family::Far,
        Family::Interrupt,
        Family::Flags,
        Family::Table,
        Family::Control,
        Family::Debug,
        Family::Msr,
        Family::Power,
        Family::Port,
        Family::PortString,
        Family::Mmio,
        Family::Fault,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Segment => "segment",
            Family::Far => "far",
            Family::Interrupt => "interrupt",
            Family::Flags => "flags",
            Family::Table => "table",
            Family::Control => "control",
            Family::Debug => "debug",
            Family::Msr => "msr",
            Family::Power => "power",
            Family::Port => "port",
            Family::PortString => "port-string",
            Family::Mmio => "mmio",
            Family::Fault => "fault",
        }
    }
}

/// Where the two interrupt tables lie.
pub(super) const TABLES: [u32; 2] = [0, 0x3000];
/// Where the code lies that their entries lead to: four bytes a vector, NOP and HLTs.
pub(super) const HANDLERS: [u32; 2] = [0x8000, 0x9000];

/// Selector and offset of the code that a vector leads to: distinct, and the selectors too.
pub(super) const fn handler(table: usize, vector: u8) -> (u16, u16) {
    let back = (vector & 15) as u32;
    let linear = HANDLERS[table] + vector as u32 * 4;
    let selector = (HANDLERS[table] >> 4) - 1 - back;
    (selector as u16, (linear - selector * 16) as u16)
}

/// One instruction and everything it can see. Memory is the background, which is the same for all
/// cases, then the pokes in their order, then the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCase {
    /// What it is about.
    pub family: Family,
    /// The processor, in real mode and about to execute the code.
    pub cpu: Cpu,
    /// The instruction.
    pub code: Code,
    /// Bytes at physical addresses.
    pub pokes: Vec<Poke>,
    /// What devices answer follows from this.
    pub salt: u64,
}

impl SystemCase {
    /// The physical address of the code.
    pub fn start(&self) -> u64 {
        self.cpu.segment(SegReg::Cs).base + self.cpu.rip
    }

    /// Is it a string instruction with a repeat prefix?
    pub fn is_repeated(&self) -> bool {
        let opcode = self.opcode();
        let prefixes = &self.code.as_slice()[..usize::from(self.code.len) - opcode.len()];
        let repeats = prefixes.iter().any(|byte| matches!(byte, 0xF2 | 0xF3));
        let opcode = opcode.first().copied().unwrap_or(0);
        repeats && matches!(opcode, 0x6C..=0x6F | 0xA4..=0xA7 | 0xAA..=0xAF)
    }

    /// The code without its prefixes.
    pub fn opcode(&self) -> &[u8] {
        let code = self.code.as_slice();
        let first = code.iter().position(|byte| !is_prefix(*byte)).unwrap_or(code.len());
        &code[first..]
    }

    /// What a port answers after these accesses.
    pub(super) fn port_data(&self, accesses: &[DeviceAccess], size: u8) -> u64 {
        let is_port = |access: &&DeviceAccess| matches!(access, DeviceAccess::Port(_));
        mix(self.salt ^ accesses.iter().filter(is_port).count() as u64) & mask(size)
    }

    /// What devices answer at an address.
    pub(super) fn device_data(&self, address: u64, size: u8) -> u64 {
        let byte = |i| mix(self.salt ^ (address + i) << 8) & 0xFF;
        (0..u64::from(size)).fold(0, |value, i| value | byte(i) << (8 * i))
    }
}

const fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2E | 0x36 | 0x3E | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3)
}

/// The bits of `size` bytes.
pub(super) const fn mask(size: u8) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 }
}
