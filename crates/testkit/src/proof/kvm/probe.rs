//! Does this KVM step through real mode as the comparison needs it? Where it interprets real mode
//! it does; a processor that executes it may lose the step when an exception is delivered.

use realmode::arch::rflags::TF;
use realmode::{Cpu, Reg, SegReg, Segment};

use super::Unavailable;
use super::case::{Family, HANDLERS, SystemCase};
use super::outcome::{SystemEnd, SystemOutcome};
use super::vm::Kvm;
use crate::proof::case::Code;

/// Tries a few cases; where they end otherwise, once more with KVM told to step each time anew.
pub(super) fn probe(kvm: &mut Kvm) -> Result<(), Unavailable> {
    let Err(_) = attempt(kvm) else { return Ok(()) };
    kvm.renew();
    attempt(kvm)
}

fn attempt(kvm: &mut Kvm) -> Result<(), Unavailable> {
    let expect = |what: &str, outcome: &SystemOutcome, is_right: bool| {
        let SystemOutcome { end, cpu, .. } = outcome;
        let at = cpu.segment(SegReg::Cs).base + cpu.rip;
        let text =
            format!("this KVM does not step through {what}: {end:?} at linear address {at:x}");
        if is_right { Ok(()) } else { Err(Unavailable(text)) }
    };
    let nop = plain(&[0x90], 0);
    let outcome = kvm.run(&nop);
    let next = outcome.cpu.rip == nop.cpu.rip + 1;
    expect("NOP", &outcome, outcome.end == SystemEnd::Stepped && next)?;
    let outcome = kvm.run(&plain(&[0xF0, 0x90], 0));
    expect("LOCK NOP", &outcome, has_raised(&outcome, 6))?;
    let int = plain(&[0xCD, 0x21], 0);
    let outcome = kvm.run(&int);
    let flags = kvm.ram.number(int.cpu.segment(SegReg::Ss).base + int.cpu.gpr[Reg::Rsp] - 2, 2);
    expect("INT 21h", &outcome, has_raised(&outcome, 0x21) && flags & TF == 0)?;
    let outcome = kvm.run(&plain(&[0x0F, 0x32], 0x4000_0F00));
    let text = "RDMSR of a register that does not exist (is kvm.ignore_msrs set?)";
    expect(text, &outcome, has_raised(&outcome, 13))
}

/// A case in which nothing is special.
fn plain(bytes: &[u8], rcx: u64) -> SystemCase {
    let mut cpu = Cpu::reset();
    cpu.cr0 = 0x10;
    for number in 0..6 {
        cpu.seg[number] = Segment::real(0x2000);
    }
    *cpu.segment_mut(SegReg::Cs) = Segment::real(0xA00);
    cpu.rip = 0x100;
    cpu.gpr[Reg::Rsp] = 0x1000;
    cpu.gpr[Reg::Rcx] = rcx;
    cpu.idtr.limit = 0x3FF;
    let mut code = Code::default();
    bytes.iter().for_each(|byte| code.push(*byte));
    SystemCase { family: Family::Fault, cpu, code, pokes: Vec::new(), salt: 0 }
}

/// Is the end in the handler of this vector?
pub(super) fn has_raised(outcome: &SystemOutcome, vector: u64) -> bool {
    let at = outcome.cpu.segment(SegReg::Cs).base + outcome.cpu.rip;
    let starts = HANDLERS.map(|handlers| u64::from(handlers) + vector * 4);
    starts.iter().any(|start| (*start..start + 2).contains(&at))
}
