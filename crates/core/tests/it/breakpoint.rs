//! Breakpoints of DR0 to DR3.

use crate::guest::{CODE, Guest};
use realmode::arch::control::{CR4_DE, DR6_BS};
use realmode::arch::rflags::{RF, TF};
use realmode::*;

const WRITE: u64 = 1;
const PORT: u64 = 2;
const READ_WRITE: u64 = 3;

/// Puts breakpoint `i` on `len` bytes at `address`; `kind` is DR7's R/W field.
fn watch(guest: &mut Guest, i: usize, address: u64, kind: u64, len: u64) {
    let len_field = [0, 0, 1, 0, 3, 0, 0, 0, 2][len as usize];
    guest.cpu.dr[i] = address;
    guest.cpu.dr7 |= 1 << (2 * i) | kind << (16 + 4 * i) | len_field << (18 + 4 * i);
}

/// Runs until the handler of vector 1, at most `budget` instructions; returns the IP it saved and
/// the low bits of DR6.
fn trapped(guest: &mut Guest, budget: u64) -> Option<(u16, u64)> {
    for _ in 0..budget {
        assert_eq!(guest.run(1), Stop::Budget);
        if guest.cpu.rip == 0x401 {
            let saved = guest.word(guest.reg(Reg::Rsp));
            return Some((saved, guest.cpu.dr6 & (0xF | DR6_BS)));
        }
    }
    None
}

#[test]
fn an_instruction_breakpoint_faults_before_the_instruction_and_rf_holds_it_off() {
    let mut guest = Guest::new(&[0x90, 0x40, 0x90]);
    watch(&mut guest, 0, CODE + 1, 0, 1);
    assert_eq!(trapped(&mut guest, 2), Some((CODE as u16 + 1, 1)));
    assert_eq!(guest.reg(Reg::Rax), 0);
    guest.cpu.rip = CODE + 1;
    guest.cpu.rflags |= RF;
    guest.step();
    assert_eq!((guest.reg(Reg::Rax), guest.cpu.rflags & RF), (1, 0));
}

#[test]
fn a_data_breakpoint_traps_after_the_access_that_meets_its_range() {
    // mov al, [2003]; mov [2003], al; mov [2000], eax
    let code = [0xA0, 0x03, 0x20, 0xA2, 0x03, 0x20, 0x66, 0xA3, 0x00, 0x20];
    let mut guest = Guest::new(&code);
    watch(&mut guest, 1, 0x2003, WRITE, 1);
    assert_eq!(trapped(&mut guest, 3), Some((CODE as u16 + 6, 2)), "a load does not meet it");
    let mut guest = Guest::new(&code);
    watch(&mut guest, 2, 0x2003, READ_WRITE, 1);
    assert_eq!(trapped(&mut guest, 1), Some((CODE as u16 + 3, 4)));
    let mut wide = Guest::new(&code[6..]);
    watch(&mut wide, 3, 0x2003, WRITE, 1);
    assert_eq!(trapped(&mut wide, 1), Some((CODE as u16 + 4, 8)), "the last byte of a dword");
    let mut beside = Guest::new(&code);
    watch(&mut beside, 0, 0x2004, READ_WRITE, 4);
    assert_eq!(trapped(&mut beside, 3), None);
    let mut aligned = Guest::new(&code);
    watch(&mut aligned, 0, 0x2002, READ_WRITE, 4);
    assert_eq!(trapped(&mut aligned, 1), Some((CODE as u16 + 3, 1)), "the range is 2000 to 2003");
}

#[test]
fn rep_stops_at_the_element_that_meets_a_data_breakpoint() {
    let mut guest = Guest::new(&[0xF3, 0xAA]).with(Reg::Rcx, 8).with(Reg::Rdi, 0x2000);
    watch(&mut guest, 0, 0x2002, WRITE, 1);
    assert_eq!(trapped(&mut guest, 8), Some((CODE as u16, 1)));
    assert_eq!((guest.reg(Reg::Rcx), guest.reg(Reg::Rdi)), (5, 0x2003));
}

#[test]
fn a_port_breakpoint_needs_cr4_de() {
    let mut guest = Guest::new(&[0xE6, 0x80, 0x90]);
    watch(&mut guest, 0, 0x80, PORT, 1);
    assert_eq!(trapped(&mut guest, 2), None);
    let mut guest = Guest::new(&[0xE6, 0x80, 0x90]);
    watch(&mut guest, 0, 0x80, PORT, 1);
    guest.cpu.cr4 |= CR4_DE;
    assert_eq!(trapped(&mut guest, 2), Some((CODE as u16 + 2, 1)));
}

#[test]
fn b05_a_mov_ss_shadow_holds_a_data_trap_and_suppresses_a_code_breakpoint_on_intel_only() {
    // mov ss, [2000]; inc ax; nop
    let code = [0x8E, 0x16, 0x00, 0x20, 0x40, 0x90];
    let mut held = Guest::new(&code);
    watch(&mut held, 0, 0x2000, READ_WRITE, 2);
    assert_eq!(trapped(&mut held, 2), Some((CODE as u16 + 5, 1)), "after the next instruction");
    assert_eq!(held.reg(Reg::Rax), 1);

    let mut intel = Guest::new(&code);
    watch(&mut intel, 0, CODE + 4, 0, 1);
    assert_eq!(trapped(&mut intel, 3), None);
    let mut amd = Guest::with_profile(&Profile::AMD, &code);
    watch(&mut amd, 0, CODE + 4, 0, 1);
    assert_eq!(trapped(&mut amd, 3), Some((CODE as u16 + 4, 1)));
}

#[test]
fn a_trap_flag_and_a_data_breakpoint_are_one_exception() {
    let mut guest = Guest::new(&[0xA2, 0x00, 0x20, 0x90]);
    watch(&mut guest, 0, 0x2000, WRITE, 1);
    guest.cpu.rflags |= TF;
    assert_eq!(trapped(&mut guest, 1), Some((CODE as u16 + 3, 1 | DR6_BS)));
}

#[test]
fn mov_to_dr7_arms_a_breakpoint_for_the_next_instruction() {
    // mov dr7, eax; mov [2000], bl
    let mut guest =
        Guest::new(&[0x0F, 0x23, 0xF8, 0x88, 0x1E, 0x00, 0x20, 0x90]).with(Reg::Rax, 0x1_0401);
    guest.cpu.dr[0] = 0x2000;
    assert_eq!(guest.run(2), Stop::Budget);
    assert_eq!(guest.cpu.dr6 & 0xF, 1);
}

#[test]
fn a_vmm_sees_a_trap_and_a_double_fault_before_the_guest_does_and_can_inject_them() {
    let mut guest = Guest::new(&[0x40, 0x90]);
    guest.policy.exceptions = 1 << 1 | 1 << 8;
    guest.cpu.rflags |= TF;
    assert_eq!(guest.run(5), Stop::Exception(Fault::new(1)));
    assert_eq!((guest.reg(Reg::Rax), guest.cpu.rip), (1, CODE + 1));
    assert_eq!(guest.cpu.dr6 & DR6_BS, DR6_BS);
    guest.cpu.pending.event = Some(Event::Exception(Fault::new(1)));
    assert_eq!(guest.run(1), Stop::Idle);
    assert_eq!(guest.word(guest.reg(Reg::Rsp)), CODE as u16 + 1);

    // #GP whose vector lies beyond the table.
    let mut guest = Guest::new(&[0xA1, 0xFF, 0xFF]);
    guest.policy.exceptions = 1 << 8;
    guest.cpu.idtr.limit = 13 * 4 - 1;
    assert_eq!(guest.run(1), Stop::Exception(Fault::new(8)));
    assert_eq!(guest.cpu.rip, CODE);
}
