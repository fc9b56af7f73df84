//! Where the processor is, in the words a report uses.

use realmode::arch::control::CR0_PG;
use realmode::{CodeSize, Cpu, Phys, Profile, SegReg, Segmentation, decode_one};

use super::machine::Machine;

const HLT: u8 = 0xF4;
/// The longest instruction.
const MOST_BYTES: u64 = 15;

/// An instruction that a report points at.
pub(super) struct Place {
    pub(super) cs: u16,
    pub(super) ip: u64,
    pub(super) mode: &'static str,
    /// What lies there; empty if it cannot be told.
    pub(super) bytes: Vec<u8>,
    /// What it says, where it is an instruction.
    pub(super) text: Option<String>,
}

impl Place {
    /// Where the processor is now.
    pub(super) fn of(machine: &Machine<'_>) -> Place {
        let cs = machine.cpu.segment(SegReg::Cs);
        Place::at(machine, cs.selector, cs.base, machine.cpu.rip)
    }

    /// Where the processor is now, with the bytes that the emulator has fetched there.
    pub(super) fn of_bytes(machine: &Machine<'_>, bytes: &[u8]) -> Place {
        let cpu = &machine.cpu;
        let profile = machine.emulator.profile();
        let text = disassemble(profile, cpu, cpu.rip, bytes).map(|(_, text)| text);
        let cs = cpu.segment(SegReg::Cs).selector;
        Place { cs, ip: cpu.rip, mode: mode(cpu), bytes: bytes.to_vec(), text }
    }

    /// The HLT that the processor has just executed.
    pub(super) fn of_halt(machine: &Machine<'_>) -> Place {
        let here = Place::of(machine);
        let cs = machine.cpu.segment(SegReg::Cs);
        let before = Place::at(machine, cs.selector, cs.base, machine.cpu.rip.wrapping_sub(1));
        if before.bytes.first() == Some(&HLT) { before } else { here }
    }

    /// Who called the interrupt handler that the processor has just entered in real mode: the INT
    /// instruction, or the instruction that raised the exception.
    pub(super) fn of_caller(machine: &Machine<'_>, vector: u8) -> Place {
        let Machine { cpu, pc, .. } = machine;
        let ss = cpu.segment(SegReg::Ss);
        let sp = cpu.gpr[realmode::Reg::Rsp] as u16;
        let word = |offset: u16| {
            let byte = |i| pc.byte(Phys(ss.base + u64::from(sp.wrapping_add(offset + i))));
            u16::from_le_bytes([byte(0), byte(1)])
        };
        let (ip, cs) = (word(0), word(2));
        let base = u64::from(cs) << 4;
        let before = ip.wrapping_sub(2);
        let code = [0, 1].map(|i| pc.byte(Phys(base + u64::from(before) + i)));
        let ip = if code == [0xCD, vector] { before } else { ip };
        Place::at(machine, cs, base, u64::from(ip))
    }

    fn at(machine: &Machine<'_>, cs: u16, base: u64, ip: u64) -> Place {
        let mode = mode(&machine.cpu);
        let bytes = bytes_at(machine, base.wrapping_add(ip));
        let profile = machine.emulator.profile();
        let (bytes, text) = match disassemble(profile, &machine.cpu, ip, &bytes) {
            Some((len, text)) => (bytes[..len.min(bytes.len())].to_vec(), Some(text)),
            None => (bytes, None),
        };
        Place { cs, ip, mode, bytes, text }
    }

    /// `0000:7C00`.
    pub(super) fn address(&self) -> String {
        format!("{:04X}:{:04X}", self.cs, self.ip)
    }

    /// Its bytes as text.
    pub(super) fn hex(&self) -> String {
        hex(&self.bytes)
    }
}

/// `F4 EB FD`.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ")
}

/// The bytes at a linear address, up to where memory ends. With paging on, the address is not
/// where they lie.
fn bytes_at(machine: &Machine<'_>, linear: u64) -> Vec<u8> {
    let Machine { cpu, pc, .. } = machine;
    if is_paged(cpu) {
        return Vec::new();
    }
    (0..MOST_BYTES)
        .map(|i| Phys(masked(cpu, linear.wrapping_add(i))))
        .take_while(|at| pc.is_memory(*at))
        .map(|at| pc.byte(at))
        .collect()
}

/// Has the guest turned paging on?
pub(super) fn is_paged(cpu: &Cpu) -> bool {
    cpu.cr0 & CR0_PG != 0
}

/// Where a linear address lies with the A20 gate as it is, without paging.
pub(super) fn masked(cpu: &Cpu, linear: u64) -> u64 {
    let address = linear & 0xFFFF_FFFF;
    if cpu.a20 { address } else { address & !(1 << 20) }
}

/// The mode by its usual name.
fn mode(cpu: &Cpu) -> &'static str {
    let is_big_code = cpu.segment(SegReg::Cs).attributes.is_big();
    if cpu.is_real_mode() {
        let is_big = is_big_code || cpu.seg.iter().any(|segment| segment.limit > 0xFFFF);
        return if is_big { "big real mode" } else { "real mode" };
    }
    if cpu.is_virtual_8086() {
        return "virtual-8086 mode";
    }
    match (cpu.is_64_bit_code(), is_big_code, is_paged(cpu)) {
        (true, _, _) => "64-bit mode",
        (false, true, false) => "32-bit protected mode",
        (false, false, false) => "16-bit protected mode",
        (false, true, true) => "32-bit protected mode with paging",
        (false, false, true) => "16-bit protected mode with paging",
    }
}

/// The length and the text of the instruction that `bytes`, which lie at `ip`, start with.
pub(super) fn disassemble(
    profile: &Profile,
    cpu: &Cpu,
    ip: u64,
    bytes: &[u8],
) -> Option<(usize, String)> {
    let size = match (cpu.is_64_bit_code(), cpu.segment(SegReg::Cs).attributes.is_big()) {
        (true, _) => CodeSize::Bits64,
        (false, true) => CodeSize::Bits32,
        (false, false) => CodeSize::Bits16,
    };
    let segmentation =
        if cpu.is_real_segmentation() { Segmentation::Real } else { Segmentation::Protected };
    let instruction = decode_one(bytes, size, profile, segmentation).ok()?;
    Some((instruction.len(), instruction.at(ip).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use realmode::Segment;
    use realmode::arch::control::CR0_PE;

    #[test]
    fn a_limit_above_64_kib_is_big_real_mode() {
        let mut cpu = Cpu::reset();
        assert_eq!(mode(&cpu), "real mode");
        *cpu.segment_mut(SegReg::Ds) = Segment::big_real(0);
        assert_eq!(mode(&cpu), "big real mode");
        cpu.cr0 |= CR0_PE;
        assert_eq!(mode(&cpu), "16-bit protected mode");
        cpu.cr0 |= CR0_PG;
        assert_eq!(mode(&cpu), "16-bit protected mode with paging");
    }
}
