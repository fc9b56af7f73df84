//! Errors of KVM that lead elsewhere: the emulator repeats them on demand, so that all the rest
//! of such a case is compared too.

use realmode::arch::rflags::{AC, IF, TF};
use realmode::{Attributes, Cpu, Event, Fault, Features, Profile, Reg, SegReg, Vendor};

use super::case::SystemCase;

/// IRET.
const IRET: u8 = 0xCF;
/// 0F 34 is SYSENTER, which is #GP in real mode.
const SYSENTER: u8 = 0x34;

/// Something that KVM does in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Quirk {
    /// The delivery of an exception takes SP for the stack pointer, whatever SS.B says, and clears
    /// the upper half of ESP.
    CutStack,
    /// The delivery of an exception does not check the limit of SS.
    NoStackLimit,
    /// The limit of the interrupt table is not checked.
    NoTableLimit,
    /// INT n with n from 80h on looks for the entry 400h bytes lower.
    BelowTable,
    /// MOV CR4 takes bits whose features CPUID does not offer.
    ControlBits,
    /// MOV CR0 that turns on paging without long mode is #GP.
    NoPaging,
    /// WRMSR does not take EFER.FFXSR although CPUID offers it.
    NoFastFxsave,
    /// LOCK MOV CR0 is #UD although CPUID says that it is MOV CR8.
    NoLockedCr8,
    /// MOV to a segment register that cannot be loaded reads its operand first.
    ReadsFirst,
    /// A far CALL or IRET to an EIP beyond FFFF is #GP before its stack is looked at.
    TargetFirst,
    /// LGDT and LIDT with a 16-bit operand read five bytes.
    FiveBytes,
    /// PUSH of a segment register with a 32-bit operand writes two bytes on an AMD processor too.
    HalfPush,
    /// POP of a segment register with a 32-bit operand reads two bytes.
    HalfPop,
}

/// Several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Quirks(u32);

impl Quirks {
    pub(super) const NONE: Quirks = Quirks(0);

    pub(super) fn of(quirks: &[Quirk]) -> Quirks {
        Quirks(quirks.iter().fold(0, |all, quirk| all | 1 << *quirk as u32))
    }

    fn has(self, quirk: Quirk) -> bool {
        self.0 >> quirk as u32 & 1 != 0
    }

    /// Is the delivery of exceptions another?
    pub(super) fn touch_delivery(self) -> bool {
        use Quirk::{CutStack, NoStackLimit, NoTableLimit, TargetFirst};
        [CutStack, NoStackLimit, NoTableLimit, TargetFirst].into_iter().any(|quirk| self.has(quirk))
    }

    /// The processor with them.
    pub(super) fn profile(self, profile: &Profile) -> Profile {
        let mut profile = profile.clone();
        if self.has(Quirk::ControlBits) {
            profile.features |= Features::SMEP
                .union(Features::SMAP)
                .union(Features::PKU)
                .union(Features::UMIP)
                .union(Features::LA57)
                .union(Features::FSGSBASE)
                .union(Features::PCID)
                .union(Features::XSAVE);
        }
        if self.has(Quirk::NoFastFxsave) {
            profile.features.remove(Features::FXSR_OPT);
        }
        if self.has(Quirk::NoLockedCr8) {
            profile.features.remove(Features::CR8_LEGACY);
        }
        if self.has(Quirk::HalfPush) {
            profile.vendor = Vendor::Intel;
        }
        profile
    }

    /// The case with them, before it is executed.
    pub(super) fn before(self, case: &SystemCase) -> SystemCase {
        let mut case = case.clone();
        let is_software = matches!(case.opcode(), [0xCC..=0xCE, ..]);
        if self.has(Quirk::NoTableLimit) && is_software || self.has(Quirk::BelowTable) {
            case.cpu.idtr.limit = u16::MAX;
        }
        if self.has(Quirk::BelowTable) && case.cpu.idtr.base >= 0x400 {
            case.cpu.idtr.base -= 0x400;
        }
        let opcode = usize::from(case.code.len) - case.opcode().len();
        if self.has(Quirk::NoPaging) {
            case.code.bytes[opcode + 1] = SYSENTER;
        }
        if self.has(Quirk::ReadsFirst) {
            // MOV ES.
            case.code.bytes[opcode + 1] &= 0b1100_0111;
        }
        if self.has(Quirk::TargetFirst) && case.opcode() != [IRET] {
            case.cpu.gpr[Reg::Rsp] = 0x8000;
        }
        let beyond = [(Quirk::TargetFirst, u32::MAX), (Quirk::FiveBytes, 1), (Quirk::HalfPop, 2)];
        for (_, bytes) in beyond.into_iter().filter(|(quirk, _)| self.has(*quirk)) {
            // No more than that much is missing.
            let segments = [SegReg::Es, SegReg::Ss, SegReg::Ds, SegReg::Fs, SegReg::Gs];
            for register in segments {
                let limit = &mut case.cpu.segment_mut(register).limit;
                *limit = limit.saturating_add(bytes);
            }
        }
        case
    }

    /// The processor after it has been executed.
    pub(super) fn after(self, case: &SystemCase, cpu: &mut Cpu) {
        if self.has(Quirk::NoTableLimit) || self.has(Quirk::BelowTable) {
            // Neither concerns LIDT.
            cpu.idtr = case.cpu.idtr;
        }
        let widens = [Quirk::TargetFirst, Quirk::FiveBytes, Quirk::HalfPop];
        if widens.into_iter().any(|quirk| self.has(quirk)) {
            let segments = cpu.seg.iter_mut().zip(&case.cpu.seg);
            segments.for_each(|(now, before)| now.limit = before.limit);
        }
        if self.has(Quirk::BelowTable) && case.cpu.idtr.base < 0x400 {
            // Nothing is there, and the frame is all that comes of it.
            let rflags = case.cpu.rflags & !(IF | TF | AC);
            *cpu = Cpu { rflags, shadow: cpu.shadow, ..case.cpu.clone() };
        }
    }

    /// The processor that is to deliver an exception.
    pub(super) fn before_delivery(self, case: &SystemCase, fault: Fault, cpu: &mut Cpu) {
        if self.has(Quirk::TargetFirst) {
            cpu.gpr[Reg::Rsp] = case.cpu.gpr[Reg::Rsp];
            cpu.segment_mut(SegReg::Ss).limit = case.cpu.segment(SegReg::Ss).limit;
        }
        if self.has(Quirk::CutStack) {
            cpu.gpr[Reg::Rsp] &= 0xFFFF;
            cpu.segment_mut(SegReg::Ss).attributes.0 &= !Attributes::DB;
        }
        if self.has(Quirk::NoStackLimit) {
            cpu.segment_mut(SegReg::Ss).limit = u32::MAX;
        }
        if self.has(Quirk::NoTableLimit) {
            cpu.idtr.limit = u16::MAX;
        }
        cpu.pending.event = Some(Event::Exception(fault));
    }
}
