//! What the delivery of an event leaves: the expectation of `want #XX`, in real and in protected
//! mode (SDM vol. 3A, "Exception- or Interrupt-Handler Procedures"). Only what succeeds.

use crate::cases::bus::{Image, get, put};
use crate::cases::names::Assign;
use crate::cases::tables::{load, quad};
use realmode::arch::rflags::{AC, IF, NT, RF, TF};
use realmode::*;

/// An event that a case wants.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    pub vector: u8,
    /// Pushed in protected mode.
    pub code: Option<u16>,
    /// A fault, whose frame has RF set in protected mode.
    pub is_fault: bool,
}

/// Delivers an event from the state in which it is raised. Returns where the flags lie.
pub fn deliver(cpu: &mut Cpu, image: &mut Image, profile: &Profile, raised: Raised) -> u64 {
    if cpu.cr0 & 1 == 0 {
        real(cpu, image, profile, raised.vector)
    } else {
        protected(cpu, image, profile, raised)
    }
}

/// Pushes values of `size` bytes; returns where each lies.
fn push(
    cpu: &mut Cpu,
    image: &mut Image,
    profile: &Profile,
    size: usize,
    values: &[u64],
) -> Vec<u64> {
    let ss = *cpu.segment(SegReg::Ss);
    let mask = if ss.attributes.is_big() { 0xFFFF_FFFF } else { 0xFFFF };
    let mut sp = cpu.gpr[Reg::Rsp];
    let mut places = Vec::new();
    for value in values {
        let low = sp.wrapping_sub(size as u64) & mask;
        // A 32-bit stack pointer clears what is above it, a 16-bit one keeps it.
        sp = if mask == 0xFFFF { sp & !mask | low } else { low };
        let at = ss.base.wrapping_add(low) & profile.linear_mask;
        put(image, at, &value.to_le_bytes()[..size]);
        places.push(at);
    }
    cpu.gpr[Reg::Rsp] = sp;
    places
}

fn real(cpu: &mut Cpu, image: &mut Image, profile: &Profile, vector: u8) -> u64 {
    let frame = [cpu.rflags, u64::from(cpu.segment(SegReg::Cs).selector), cpu.rip];
    let flags_at = push(cpu, image, profile, 2, &frame)[0];
    cpu.rflags &= !(IF | TF | RF | AC);
    let entry = cpu.idtr.base + u64::from(vector) * 4;
    let word = |at: u64| u16::from_le_bytes([get(image, at), get(image, at + 1)]);
    let (ip, cs) = (word(entry), word(entry + 2));
    Assign::selector(SegReg::Cs, cs).apply(cpu, profile, None);
    cpu.rip = u64::from(ip);
    flags_at
}

fn protected(cpu: &mut Cpu, image: &mut Image, profile: &Profile, raised: Raised) -> u64 {
    let gate = quad(image, cpu.idtr.base + u64::from(raised.vector) * 8);
    let is_wide = gate >> 43 & 1 != 0;
    let size = if is_wide { 4 } else { 2 };
    let old_level = cpu.cpl();
    let mut cs = load(cpu, image, (gate >> 16) as u16);
    let conforming = cs.attributes.0 & 4 != 0;
    let level = if conforming { old_level } else { cs.attributes.dpl() };
    cs.selector = cs.selector & !3 | u16::from(level);
    let mut frame = Vec::new();
    if level < old_level {
        frame.extend([u64::from(cpu.segment(SegReg::Ss).selector), cpu.gpr[Reg::Rsp]]);
        let (selector, sp) = inner_stack(cpu, image, level);
        *cpu.segment_mut(SegReg::Ss) = load(cpu, image, selector);
        cpu.gpr[Reg::Rsp] = if cpu.segment(SegReg::Ss).attributes.is_big() {
            sp
        } else {
            cpu.gpr[Reg::Rsp] & !0xFFFF | sp & 0xFFFF
        };
    }
    let flags_index = frame.len();
    frame.push(cpu.rflags | if raised.is_fault { RF } else { 0 });
    frame.extend([u64::from(cpu.segment(SegReg::Cs).selector), cpu.rip]);
    frame.extend(raised.code.map(u64::from));
    let places = push(cpu, image, profile, size, &frame);
    *cpu.segment_mut(SegReg::Cs) = cs;
    let high = if is_wide { gate >> 48 << 16 } else { 0 };
    cpu.rip = gate & 0xFFFF | high;
    cpu.rflags &= !(TF | NT | RF);
    if gate >> 40 & 1 == 0 {
        cpu.rflags &= !IF;
    }
    places[flags_index]
}

/// SS and ESP of a level in the TSS, of either size.
fn inner_stack(cpu: &Cpu, image: &Image, level: u8) -> (u16, u64) {
    let (tss, level) = (cpu.tr.base, u64::from(level));
    if cpu.tr.attributes.0 & 8 != 0 {
        let at = tss + 4 + 8 * level;
        (quad(image, at + 4) as u16, quad(image, at) & 0xFFFF_FFFF)
    } else {
        let at = tss + 2 + 4 * level;
        (quad(image, at + 2) as u16, quad(image, at) & 0xFFFF)
    }
}
