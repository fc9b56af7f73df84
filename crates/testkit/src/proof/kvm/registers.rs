//! The processor in KVM's terms, and back.

use kvm_bindings::{
    KVM_VCPUEVENT_VALID_NMI_PENDING, KVM_VCPUEVENT_VALID_SHADOW, Msrs as MsrList, kvm_cpuid_entry2,
    kvm_debugregs, kvm_dtable, kvm_msr_entry, kvm_regs, kvm_segment, kvm_sregs, kvm_sync_regs,
    kvm_vcpu_events,
};
use realmode::arch::msr;
use realmode::{Attributes, Cpu, CpuidResult, Msrs, Segment, Shadow, TableRegister};

/// Bits of the interrupt shadow in KVM's events.
const SHADOW_MOV_SS: u8 = 1;
const SHADOW_STI: u8 = 2;

type Place = fn(&mut Msrs) -> &mut u64;

/// The model-specific registers that are compared.
const MSRS: [(u32, Place); 12] = [
    (msr::IA32_SYSENTER_CS, |msr| &mut msr.sysenter_cs),
    (msr::IA32_SYSENTER_ESP, |msr| &mut msr.sysenter_esp),
    (msr::IA32_SYSENTER_EIP, |msr| &mut msr.sysenter_eip),
    (msr::IA32_DEBUGCTL, |msr| &mut msr.debugctl),
    (msr::IA32_PAT, |msr| &mut msr.pat),
    (msr::STAR, |msr| &mut msr.star),
    (msr::LSTAR, |msr| &mut msr.lstar),
    (msr::CSTAR, |msr| &mut msr.cstar),
    (msr::FMASK, |msr| &mut msr.fmask),
    (msr::KERNEL_GS_BASE, |msr| &mut msr.kernel_gs_base),
    (msr::TSC_AUX, |msr| &mut msr.tsc_aux),
    (msr::EFER, |msr| &mut msr.efer),
];

pub(super) fn general(cpu: &Cpu) -> kvm_regs {
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] =
        cpu.gpr.as_array();
    let (rip, rflags) = (cpu.rip, cpu.rflags);
    kvm_regs {
        rax,
        rbx,
        rcx,
        rdx,
        rsi,
        rdi,
        rsp,
        rbp,
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rip,
        rflags,
    }
}

pub(super) fn events(cpu: &Cpu) -> kvm_vcpu_events {
    let flags = KVM_VCPUEVENT_VALID_SHADOW | KVM_VCPUEVENT_VALID_NMI_PENDING;
    let mut events = kvm_vcpu_events { flags, ..Default::default() };
    events.nmi.masked = cpu.nmi_blocked.into();
    let Shadow { sti, mov_ss } = cpu.shadow;
    events.interrupt.shadow = (u8::from(mov_ss) * SHADOW_MOV_SS) | (u8::from(sti) * SHADOW_STI);
    events
}

/// Puts what `Cpu` holds over what KVM said last.
pub(super) fn system(cpu: &Cpu, sregs: &mut kvm_sregs) {
    let [es, cs, ss, ds, fs, gs] = cpu.seg.map(segment);
    (sregs.es, sregs.cs, sregs.ss, sregs.ds, sregs.fs, sregs.gs) = (es, cs, ss, ds, fs, gs);
    (sregs.tr, sregs.ldt) = (segment(cpu.tr), segment(cpu.ldtr));
    (sregs.gdt, sregs.idt) = (table(cpu.gdtr), table(cpu.idtr));
    (sregs.cr0, sregs.cr2, sregs.cr3, sregs.cr4) = (cpu.cr0, cpu.cr2, cpu.cr3, cpu.cr4);
    (sregs.cr8, sregs.efer) = (cpu.cr8, cpu.msr.efer);
    sregs.interrupt_bitmap = [0; 4];
}

/// Takes general, system registers and events from KVM.
pub(super) fn store(sync: &kvm_sync_regs, cpu: &mut Cpu) {
    let kvm_regs { rax, rbx, rcx, rdx, rsi, rdi, rsp, rbp, .. } = sync.regs;
    let kvm_regs { r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags, .. } = sync.regs;
    let low = [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi];
    let high = [r8, r9, r10, r11, r12, r13, r14, r15];
    let both: [u64; 16] = core::array::from_fn(|i| if i < 8 { low[i] } else { high[i - 8] });
    cpu.gpr = both.into();
    (cpu.rip, cpu.rflags) = (rip, rflags);
    let s = &sync.sregs;
    cpu.seg = [s.es, s.cs, s.ss, s.ds, s.fs, s.gs].map(from_segment);
    (cpu.gdtr, cpu.idtr) = (from_table(s.gdt), from_table(s.idt));
    (cpu.cr0, cpu.cr2, cpu.cr3, cpu.cr4, cpu.cr8) = (s.cr0, s.cr2, s.cr3, s.cr4, s.cr8);
    cpu.msr.efer = s.efer;
    let shadow = sync.events.interrupt.shadow;
    cpu.shadow = Shadow { sti: shadow & SHADOW_STI != 0, mov_ss: shadow & SHADOW_MOV_SS != 0 };
    cpu.nmi_blocked = sync.events.nmi.masked != 0;
}

fn segment(segment: Segment) -> kvm_segment {
    let Attributes(bits) = segment.attributes;
    let bit = |number: u32| (bits >> number & 1) as u8;
    kvm_segment {
        base: segment.base,
        limit: segment.limit,
        selector: segment.selector,
        type_: segment.attributes.segment_type(),
        present: bit(7),
        dpl: segment.attributes.dpl(),
        db: bit(14),
        s: bit(4),
        l: bit(13),
        g: bit(15),
        avl: bit(12),
        unusable: bit(16),
        padding: 0,
    }
}

fn from_segment(segment: kvm_segment) -> Segment {
    let bits = [
        (segment.type_, 0),
        (segment.s, 4),
        (segment.dpl, 5),
        (segment.present, 7),
        (segment.avl, 12),
        (segment.l, 13),
        (segment.db, 14),
        (segment.g, 15),
        (segment.unusable, 16),
    ];
    let attributes = bits.iter().fold(0, |all, (value, at)| all | u32::from(*value) << at);
    Segment {
        selector: segment.selector,
        base: segment.base,
        limit: segment.limit,
        attributes: Attributes(attributes),
    }
}

fn table(table: TableRegister) -> kvm_dtable {
    kvm_dtable { base: table.base, limit: table.limit, padding: [0; 3] }
}

fn from_table(table: kvm_dtable) -> TableRegister {
    TableRegister { base: table.base, limit: table.limit }
}

pub(super) fn debug(cpu: &Cpu) -> kvm_debugregs {
    kvm_debugregs { db: cpu.dr, dr6: cpu.dr6, dr7: cpu.dr7, ..Default::default() }
}

pub(super) fn store_debug(debug: &kvm_debugregs, cpu: &mut Cpu) {
    (cpu.dr, cpu.dr6, cpu.dr7) = (debug.db, debug.dr6, debug.dr7);
}

pub(super) fn msr_list(cpu: &Cpu) -> Result<MsrList, kvm_ioctls::Error> {
    let mut values = cpu.msr;
    let entries = MSRS.map(|(index, place)| {
        let data = *place(&mut values);
        kvm_msr_entry { index, data, ..Default::default() }
    });
    MsrList::from_entries(&entries).map_err(|_| kvm_ioctls::Error::new(nix::libc::E2BIG))
}

pub(super) fn store_msrs(list: &[kvm_msr_entry], cpu: &mut Cpu) {
    for ((_, place), entry) in MSRS.iter().zip(list) {
        *place(&mut cpu.msr) = entry.data;
    }
}

pub(super) fn cpuid(entry: &kvm_cpuid_entry2) -> (u32, u32, CpuidResult) {
    let kvm_cpuid_entry2 { eax, ebx, ecx, edx, .. } = *entry;
    (entry.function, entry.index, CpuidResult { eax, ebx, ecx, edx })
}
