//! Task switches: by JMP, CALL, gates, events and IRET, what each checks, and what of a failure
//! belongs to the new task (SDM vol. 3A, "Task Switching").

use crate::guest::{CODE, DEVICE, Guest};
use crate::protected::{
    self, ABSENT, CODE32, CONFORMING, DATA32, GDT, IDT, LDT, READ_ONLY, TSS, TSS32, USER_CODE,
    USER_DATA, descriptor, faults, gate, stacked,
};
use realmode::arch::control::{CR0_TS, DR6_BT};
use realmode::arch::rflags::{IF, IOPL, NT, RF, TF, VM};
use realmode::*;

const FIXED: u64 = 2;
/// The other task: its descriptor, a gate to it, and its TSS.
const TASK: u16 = 0x70;
const TASK_GATE: u16 = 0x78;
const TASK16: u16 = 0x80;
const OTHER: u64 = 0x8000;
const OTHER16: u64 = 0x8100;
/// Where it begins and has its stack.
const START: u64 = 0x2000;
const STACK: u32 = 0x3F00;

const JMP: [u8; 7] = [0xEA, 0, 0, 0, 0, TASK as u8, 0];
const CALL: [u8; 7] = [0x9A, 0, 0, 0, 0, TASK as u8, 0];

/// A guest of level 0 in the task of `TSS32`, with another one of level 0.
fn guest(code: &[u8]) -> Guest {
    let mut guest = protected::guest(code);
    guest.poke(GDT + u64::from(TSS32), &descriptor(TSS as u32, 0x67, 0x8B, 0));
    guest.poke(GDT + u64::from(TASK), &descriptor(OTHER as u32, 0x67, 0x89, 0));
    guest.poke(GDT + u64::from(TASK_GATE), &gate(TASK, 0, 0x85));
    guest.poke(GDT + u64::from(TASK16), &descriptor(OTHER16 as u32, 0x2B, 0x81, 0));
    guest.cpu.gdtr.limit = 17 * 8 - 1;
    guest.poke(START, &[0x90; 16]);
    let saved = |general: u32| {
        let general = (0..8).map(move |i| if i == 4 { STACK } else { general + i });
        let selectors = [DATA32, CODE32, DATA32, DATA32, DATA32, 0].map(u32::from);
        [START as u32, 2].into_iter().chain(general).chain(selectors)
    };
    guest.poke(OTHER + 4, &[0x00, 0x40, 0, 0, DATA32 as u8]);
    guest.poke(OTHER + 0x66, &[0x68]);
    for (i, word) in saved(0xA0).enumerate() {
        guest.poke(OTHER + 0x20 + 4 * i as u64, &word.to_le_bytes());
    }
    guest.poke(OTHER16 + 2, &[0x00, 0x40, DATA32 as u8]);
    for (i, word) in saved(0xB0).take(14).enumerate() {
        guest.poke(OTHER16 + 0x0E + 2 * i as u64, &(word as u16).to_le_bytes());
    }
    use Reg::*;
    for (i, reg) in [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi].into_iter().enumerate() {
        guest.cpu.gpr[reg] = 0x1111_0000 + i as u64;
    }
    guest.cpu.gpr[Reg::Rsp] = 0xF00;
    guest
}

fn dword(guest: &Guest, at: u64) -> u32 {
    u32::from_le_bytes(guest.peek(at, 4).try_into().unwrap())
}

fn access(guest: &Guest, selector: u16) -> u8 {
    guest.peek(GDT + u64::from(selector) + 5, 1)[0]
}

fn is_in_other(guest: &Guest) -> bool {
    guest.cpu.tr.selector == TASK && guest.cpu.tr.base == OTHER
}

#[test]
fn jmp_saves_all_of_the_old_task_and_loads_all_of_the_new_one() {
    let mut guest = guest(&JMP);
    guest.cpu.rflags |= IF | NT;
    guest.cpu.dr7 = 0x5FF;
    guest.cpu.dr = [0x10_0000; 4];
    guest.step();
    assert_eq!((dword(&guest, TSS + 0x20), dword(&guest, TSS + 0x24)), (CODE as u32 + 7, 0x4202));
    let saved: Vec<u32> = (0..8).map(|i| dword(&guest, TSS + 0x28 + 4 * i)).collect();
    let expected = [0, 1, 2, 3].map(|i| 0x1111_0000 + i);
    assert_eq!((&saved[..4], saved[4], saved[7]), (&expected[..], 0xF00, 0x1111_0007));
    let selectors: Vec<u16> = (0..6).map(|i| guest.word(TSS + 0x48 + 4 * i)).collect();
    assert_eq!(selectors, [DATA32, CODE32, DATA32, DATA32, DATA32, DATA32]);
    assert!(is_in_other(&guest));
    assert_eq!((access(&guest, TSS32), access(&guest, TASK)), (0x89, 0x8B));
    assert_eq!(guest.word(OTHER), 0, "no link");
    assert_eq!((guest.cpu.rip, guest.cpu.rflags), (START, FIXED));
    assert_eq!((guest.reg(Reg::Rax), guest.reg(Reg::Rsp)), (0xA0, u64::from(STACK)));
    assert_eq!((guest.cpu.cr0 & CR0_TS, guest.cpu.dr7 & 0xFF), (CR0_TS, 0xAA));
    assert_eq!(guest.cpu.segment(SegReg::Fs).selector, DATA32);
    assert_eq!(guest.cpu.segment(SegReg::Gs).selector, 0);
}

#[test]
fn call_and_iret_nest() {
    for code in [&CALL[..], &[0x9A, 0, 0, 0, 0, TASK_GATE as u8, 0]] {
        let mut guest = guest(code);
        guest.poke(START, &[0xCF]);
        guest.step();
        assert!(is_in_other(&guest));
        assert_eq!((guest.word(OTHER), guest.cpu.rflags), (TSS32, FIXED | NT));
        assert_eq!((access(&guest, TSS32), access(&guest, TASK)), (0x8B, 0x8B));
        guest.cpu.nmi_blocked = true;
        guest.step();
        assert_eq!((guest.cpu.tr.selector, guest.cpu.rip), (TSS32, CODE + 7));
        assert_eq!((access(&guest, TSS32), access(&guest, TASK)), (0x8B, 0x89));
        assert_eq!((guest.reg(Reg::Rdi), guest.cpu.nmi_blocked), (0x1111_0007, false));
        // NT is gone from what the nested task will be entered with.
        assert_eq!(u64::from(dword(&guest, OTHER + 0x24)), FIXED);
        assert_eq!(dword(&guest, OTHER + 0x20), START as u32 + 1);
    }
}

#[test]
fn a_16_bit_tss_keeps_words() {
    let mut guest = guest(&[0x9A, 0, 0, 0, 0, TASK16 as u8, 0]);
    guest.poke(START, &[0x66, 0xCF]);
    guest.step();
    assert_eq!((guest.cpu.tr.selector, access(&guest, TASK16)), (TASK16, 0x83));
    assert_eq!((guest.cpu.rip, guest.reg(Reg::Rax), guest.reg(Reg::Rsp)), (START, 0xB0, 0x3F00));
    assert_eq!(guest.cpu.segment(SegReg::Fs).selector, 0);
    guest.step();
    assert_eq!((guest.cpu.tr.selector, guest.cpu.rip), (TSS32, CODE + 7));
    assert_eq!((guest.word(OTHER16 + 0x0E), guest.word(OTHER16 + 0x10)), (START as u16 + 2, 2));
    assert_eq!(guest.word(OTHER16 + 0x24), CODE32);
}

#[test]
fn an_exception_through_a_task_gate_brings_its_error_code() {
    // mov ds, ax with a selector beyond the table
    let mut guest = guest(&[0x8E, 0xD8]);
    guest.cpu.gpr[Reg::Rax] = 0x1234;
    guest.poke(IDT + 13 * 8, &gate(TASK, 0, 0x85));
    guest.step();
    assert!(is_in_other(&guest));
    assert_eq!((guest.reg(Reg::Rsp), stacked(&guest, 0)), (u64::from(STACK) - 4, 0x1234 & !3));
    assert_eq!(guest.cpu.rflags, FIXED | NT);
    let saved = u64::from(dword(&guest, TSS + 0x24));
    assert_eq!((saved, dword(&guest, TSS + 0x20)), (FIXED | RF, CODE as u32));
}

#[test]
fn int_n_through_a_task_gate_asks_its_level_and_saves_the_next_instruction() {
    let mut guest = guest(&[0xCD, 0x30]);
    guest.poke(IDT + 0x30 * 8, &gate(TASK, 0, 0x85));
    guest.step();
    assert!(is_in_other(&guest));
    assert_eq!((dword(&guest, TSS + 0x20), guest.reg(Reg::Rsp)), (CODE as u32 + 2, 0x3F00));
}

#[test]
fn what_the_old_task_is_refused() {
    let refused = |code: &[u8], change: &dyn Fn(&mut Guest), vector: u8, error: u32| {
        let mut guest = guest(code);
        change(&mut guest);
        assert_eq!(faults(&mut guest), (vector, error), "{code:x?}");
        assert_eq!((guest.cpu.tr.selector, stacked(&guest, 1)), (TSS32, CODE as u32));
        assert_eq!(guest.cpu.cr0 & CR0_TS, 0);
    };
    let task = |access: u8, limit: u32| {
        move |guest: &mut Guest| {
            guest.poke(GDT + u64::from(TASK), &descriptor(OTHER as u32, limit, access, 0));
        }
    };
    let selector = u32::from(TASK);
    for code in [JMP, CALL] {
        refused(&code, &task(0x8B, 0x67), 13, selector);
        refused(&code, &task(0x09, 0x67), 11, selector);
        refused(&code, &task(0x89, 0x66), 10, selector);
    }
    let through = [0x9A, 0, 0, 0, 0, TASK_GATE as u8, 0];
    refused(&through, &task(0x8B, 0x67), 13, selector);
    refused(&through, &|g| g.poke(GDT + 0x7D, &[0x05]), 11, u32::from(TASK_GATE));
    refused(&through, &|g| g.poke(GDT + 0x7A, &[0x74, 0]), 13, 0x74);
    refused(&JMP, &|g| g.cpu.tr.limit = 0x66, 10, u32::from(TSS32));
    // IRET with NT.
    let linked = |link: u16| {
        move |guest: &mut Guest| {
            guest.cpu.rflags |= NT;
            guest.poke(TSS, &link.to_le_bytes());
        }
    };
    refused(&[0xCF], &linked(TASK), 10, selector);
    refused(&[0xCF], &linked(CODE32), 10, u32::from(CODE32));
    refused(&[0xCF], &linked(0x1000), 10, 0x1000);
    refused(&[0xCF], &linked(0x74), 10, 0x74);
    let absent = |guest: &mut Guest| {
        linked(TASK)(guest);
        task(0x0B, 0x67)(guest);
    };
    refused(&[0xCF], &absent, 11, selector);
}

/// Changes the new TSS; the fault is raised where the new task begins.
fn late(change: impl Fn(&mut Guest), vector: u8, error: u32) {
    let mut guest = guest(&JMP);
    change(&mut guest);
    // The handler's stack is flat and its own, whatever the task's is.
    guest.poke(OTHER + 4, &0x4000u32.to_le_bytes());
    guest.policy.exceptions = u32::MAX;
    let stop = guest.run(1);
    assert_eq!(stop, Stop::Exception(Fault::with_code(vector, error as u16)));
    assert!(is_in_other(&guest), "the switch was made");
    assert_eq!(access(&guest, TASK), 0x8B);
}

#[test]
fn what_the_new_task_finds_wrong_is_its_own_fault() {
    let selector =
        |at: u64, value: u16| move |guest: &mut Guest| guest.poke(OTHER + at, &value.to_le_bytes());
    let (cs, ss, ds) = (0x4C, 0x50, 0x54);
    for (change, vector, error) in [
        (selector(0x60, CODE32), 10, CODE32),
        (selector(0x60, 0x44), 10, 0x44),
        (selector(0x60, 0x1000), 10, 0x1000),
        (selector(cs, 0), 10, 0),
        (selector(cs, DATA32), 10, DATA32),
        (selector(cs, CODE32 | 3), 10, CODE32),
        (selector(cs, 0x1000), 10, 0x1000),
        (selector(ss, 0), 10, 0),
        (selector(ss, READ_ONLY), 10, READ_ONLY),
        (selector(ss, USER_DATA), 10, USER_DATA & !3),
        (selector(ds, 0x1000), 10, 0x1000),
        (selector(ds, TSS32), 10, TSS32),
    ] {
        late(change, vector, u32::from(error));
    }
    late(|guest| guest.poke(GDT + 0x15, &[0x12]), 12, 0x10);
    late(|guest| guest.poke(GDT + 0x0D, &[0x1A]), 11, 8);
    late(selector(0x58, ABSENT), 11, u32::from(ABSENT));
    // EIP beyond a CS of 64 KiB.
    late(
        |guest| {
            guest.poke(OTHER + cs, &0x18u16.to_le_bytes());
            guest.poke(OTHER + 0x20, &0x1_0000u32.to_le_bytes());
        },
        13,
        0,
    );
}

#[test]
fn a_late_fault_is_delivered_in_the_new_task() {
    let mut guest = guest(&JMP);
    guest.poke(OTHER + 0x58, &0x1000u16.to_le_bytes());
    assert_eq!(faults(&mut guest), (10, 0x1000));
    assert_eq!(stacked(&guest, 1), START as u32);
    assert!(is_in_other(&guest));
    assert_eq!(guest.reg(Reg::Rsp), u64::from(STACK) - 16);
}

#[test]
fn a_task_of_level_3_and_a_conforming_one() {
    let outer = |cs: u16| {
        let guest = guest(&JMP);
        for at in [0x48, 0x50, 0x54, 0x58] {
            guest.poke(OTHER + at, &USER_DATA.to_le_bytes());
        }
        guest.poke(OTHER + 0x4C, &cs.to_le_bytes());
        guest
    };
    let mut user = outer(USER_CODE);
    user.poke(OTHER + 0x24, &((FIXED | IOPL | IF | TF) as u32).to_le_bytes());
    user.step();
    assert_eq!((user.cpu.cpl(), user.cpu.rflags), (3, FIXED | IOPL | IF | TF));
    let mut conforming = outer(CONFORMING | 3);
    conforming.step();
    assert_eq!((conforming.cpu.cpl(), conforming.cpu.rip), (3, START));
}

#[test]
fn a_task_of_virtual_8086_mode() {
    let mut guest = guest(&JMP);
    guest.poke(OTHER + 0x24, &((FIXED | VM) as u32).to_le_bytes());
    guest.poke(OTHER + 0x4C, &0x1FFu16.to_le_bytes());
    guest.poke(OTHER + 0x20, &0x10u32.to_le_bytes());
    guest.poke(OTHER + 0x54, &0x1234u16.to_le_bytes());
    guest.step();
    assert!(guest.cpu.is_virtual_8086());
    let (cs, ds) = (guest.cpu.segment(SegReg::Cs), guest.cpu.segment(SegReg::Ds));
    assert_eq!((cs.base, ds.base, ds.limit, guest.cpu.rip), (0x1FF0, 0x1_2340, 0xFFFF, 0x10));
    guest.step();
    assert_eq!(guest.cpu.rip, 0x11);
}

#[test]
fn the_new_tasks_ldt_is_loaded_before_its_segments() {
    let mut guest = guest(&JMP);
    guest.poke(OTHER + 0x60, &LDT.to_le_bytes());
    guest.poke(0x7000, &descriptor(0x100, 0xFFF, 0x93, 0));
    guest.poke(OTHER + 0x54, &4u16.to_le_bytes());
    guest.step();
    assert_eq!((guest.cpu.ldtr.selector, guest.cpu.segment(SegReg::Ds).base), (LDT, 0x100));
}

#[test]
fn the_trap_bit_of_a_tss_is_a_debug_trap_of_the_new_task() {
    let mut guest = guest(&JMP);
    guest.poke(OTHER + 0x64, &[1]);
    guest.step();
    assert_eq!((guest.cpu.rip, stacked(&guest, 0)), (0x6001, START as u32));
    assert_eq!(guest.cpu.dr6 & (DR6_BT | 0xF), DR6_BT);
}

#[test]
fn paging_takes_the_new_tasks_cr3_and_both_tsss_must_be_there() {
    let paged = |guest: &mut Guest| {
        // One page table maps the first 4 MiB in both address spaces.
        for directory in [0x10_0000u64, 0x10_1000] {
            guest.poke(directory, &0x10_2003u32.to_le_bytes());
        }
        for page in 0..512u32 {
            guest.poke(0x10_2000 + 4 * u64::from(page), &(page << 12 | 3).to_le_bytes());
        }
        guest.cpu.cr3 = 0x10_0000;
        guest.cpu.cr0 |= arch::control::CR0_PG;
        guest.poke(OTHER + 0x1C, &0x10_1000u32.to_le_bytes());
    };
    let mut guest_1 = guest(&JMP);
    paged(&mut guest_1);
    guest_1.step();
    assert_eq!((guest_1.cpu.cr3, guest_1.cpu.rip), (0x10_1000, START));
    // The new TSS is absent: a fault of the old task, which nothing has happened to.
    let mut absent = guest(&JMP);
    paged(&mut absent);
    absent.poke(0x10_2000 + 4 * 8, &[0]);
    absent.policy.exceptions = u32::MAX;
    let stop = absent.run(1);
    assert!(matches!(stop, Stop::Exception(Fault { vector: 14, .. })), "{stop:?}");
    assert_eq!((absent.cpu.cr2, absent.cpu.rip, absent.cpu.cr3), (OTHER, CODE, 0x10_0000));
    assert_eq!((absent.cpu.tr.selector, access(&absent, TASK)), (TSS32, 0x89));
}

#[test]
fn a_switch_that_waits_for_a_device_is_made_once() {
    // The descriptor of the new DS lies in the new LDT, which is a device.
    let prepare = || {
        let mut guest = guest(&CALL);
        guest.poke(GDT + u64::from(LDT), &descriptor(DEVICE as u32, 0xFF, 0x82, 0));
        guest.bus.device[..8].copy_from_slice(&descriptor(0x100, 0xFFF, 0x93, 0));
        guest.poke(OTHER + 0x60, &LDT.to_le_bytes());
        guest.poke(OTHER + 0x54, &4u16.to_le_bytes());
        guest
    };
    let mut at_once = prepare();
    at_once.step();
    let mut waiting = prepare();
    let before = waiting.cpu.clone();
    waiting.bus.pending = true;
    let mut emulator = Emulator::new(&waiting.profile, &mut []);
    let stop = emulator.run(&mut waiting.cpu, &mut waiting.bus, 1);
    assert!(matches!(stop, Ok(Stop::Mmio(_))), "{stop:?}");
    assert_eq!(waiting.cpu, before, "nothing of the processor has changed");
    let value = u64::from_le_bytes(descriptor(0x100, 0xFFF, 0x93, 0));
    emulator.reply(value).unwrap();
    assert_eq!(emulator.run(&mut waiting.cpu, &mut waiting.bus, 1), Ok(Stop::Budget));
    assert_eq!(waiting.cpu, at_once.cpu);
    assert_eq!(waiting.peek(TSS, 0x68), at_once.peek(TSS, 0x68));
    assert_eq!(waiting.peek(OTHER, 0x68), at_once.peek(OTHER, 0x68));
    assert_eq!(access(&waiting, TASK), 0x8B);
}
