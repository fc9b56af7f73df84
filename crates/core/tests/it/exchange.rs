//! Tests of `isa/exchange.rs`.

use crate::guest::{CODE, DEVICE, Guest, Seen};
use crate::native::{State, compare, long_guest};
use realmode::arch::rflags::{AF, ARITH, CF, PF, SF, ZF};
use realmode::*;

const ROUNDS: usize = 3000;

#[test]
fn exchanges_agree_with_the_host() {
    let cases = [
        case!("xchg al, dh", [0x86, 0xC6]),
        case!("xchg al, ah", [0x86, 0xC4]),
        case!("xchg ax, dx", [0x66, 0x87, 0xD0]),
        case!("xchg eax, edx", [0x87, 0xD0]),
        case!("xchg rax, rdx", [0x48, 0x87, 0xD0]),
        case!("xchg cx, ax", [0x66, 0x91]),
        case!("xchg esi, eax", [0x96]),
        case!("xchg rdx, rax", [0x48, 0x92]),
        case!("nop", [0x90]),
        case!("xchg ax, ax", [0x66, 0x90]),
    ];
    compare(&cases, ROUNDS, |_| {}, |_| 0);
}

#[test]
fn a01_xadd_agrees_with_the_host_also_with_itself() {
    let cases = [
        case!("xadd al, dh", [0x0F, 0xC0, 0xF0]),
        case!("xadd al, ah", [0x0F, 0xC0, 0xE0]),
        case!("xadd al, al", [0x0F, 0xC0, 0xC0]),
        case!("xadd ax, dx", [0x66, 0x0F, 0xC1, 0xD0]),
        case!("xadd eax, edx", [0x0F, 0xC1, 0xD0]),
        case!("xadd eax, eax", [0x0F, 0xC1, 0xC0]),
        case!("xadd rax, rdx", [0x48, 0x0F, 0xC1, 0xD0]),
        case!("xadd rsi, rsi", [0x48, 0x0F, 0xC1, 0xF6]),
    ];
    compare(&cases, ROUNDS, |_| {}, |_| 0);
}

#[test]
fn a02_cmpxchg_agrees_with_the_host() {
    let cases = [
        case!("cmpxchg dl, ch", [0x0F, 0xB0, 0xEA]),
        case!("cmpxchg ah, cl", [0x0F, 0xB0, 0xCC]),
        case!("cmpxchg dx, cx", [0x66, 0x0F, 0xB1, 0xCA]),
        case!("cmpxchg edx, ecx", [0x0F, 0xB1, 0xCA]),
        case!("cmpxchg eax, ecx", [0x0F, 0xB1, 0xC8]),
        case!("cmpxchg edx, eax", [0x0F, 0xB1, 0xC2]),
        case!("cmpxchg rdx, rcx", [0x48, 0x0F, 0xB1, 0xCA]),
    ];
    compare(&cases, ROUNDS, |_| {}, |_| 0);
    let equal = |state: &mut State| state.rdx = state.rax ^ state.rsi << 32;
    compare(&cases, ROUNDS, equal, |_| 0);
}

#[test]
fn a02_an_unequal_cmpxchg_has_the_flags_of_accumulator_minus_destination() {
    // cmpxchg [0x2000], bx with AX = 1, memory 2
    let mut guest = Guest::new(&[0x0F, 0xB1, 0x1E, 0x00, 0x20]).with(Reg::Rax, 1);
    guest.poke(0x2000, &[2, 0]);
    guest.step();
    assert_eq!((guest.reg(Reg::Rax), guest.word(0x2000)), (2, 2));
    assert_eq!(guest.flags(), CF | AF | SF | PF);
}

#[test]
fn cmpxchg_writes_its_memory_in_either_case() {
    for (locked, al, written) in [(false, 5, 5), (false, 7, 9), (true, 5, 5), (true, 7, 9)] {
        // cmpxchg [0x10], bl; the device holds 5 or 7, AL is 7.
        let code = [0xF0, 0x0F, 0xB0, 0x1E, 0x10, 0x00];
        let mut guest = Guest::new(if locked { &code } else { &code[1..] });
        guest = guest.with(Reg::Rax, 7).with(Reg::Rbx, 9);
        guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
        guest.bus.device[0x10] = al;
        guest.step();
        let at = DEVICE + 0x10;
        assert_eq!(guest.bus.seen, [Seen::Read(at, 1), Seen::Write(at, 1, written)]);
        assert_eq!(guest.flags() & ZF != 0, al == 7);
    }
}

/// CMPXCHG8B [0x2000] with EDX:EAX = 1111_1111_2222_2222, ECX:EBX = 3333_3333_4444_4444.
fn exchange_8(code: &[u8], memory: u64) -> Guest {
    let mut guest = Guest::new(code)
        .with(Reg::Rdx, 0x1111_1111)
        .with(Reg::Rax, 0x2222_2222)
        .with(Reg::Rcx, 0x3333_3333)
        .with(Reg::Rbx, 0x4444_4444);
    guest.cpu.rflags |= ARITH;
    guest.poke(0x2000, &memory.to_le_bytes());
    guest.step();
    guest
}

#[test]
fn a04_cmpxchg8b_changes_no_flag_but_zf() {
    let plain = &[0x0F, 0xC7, 0x0E, 0x00, 0x20][..];
    let locked = &[0xF0, 0x0F, 0xC7, 0x0E, 0x00, 0x20];
    // D11: 66 does not make it smaller.
    let small = &[0x66, 0x0F, 0xC7, 0x0E, 0x00, 0x20];
    for code in [plain, locked, small] {
        let guest = exchange_8(code, 0x1111_1111_2222_2222);
        assert_eq!(guest.peek(0x2000, 8), 0x3333_3333_4444_4444u64.to_le_bytes());
        assert_eq!(guest.flags(), ARITH);
        assert_eq!(guest.reg(Reg::Rax), 0x2222_2222);
        let guest = exchange_8(code, 0x5555_5555_6666_6666);
        assert_eq!(guest.peek(0x2000, 8), 0x5555_5555_6666_6666u64.to_le_bytes());
        assert_eq!(guest.flags(), ARITH & !ZF);
        assert_eq!((guest.reg(Reg::Rdx), guest.reg(Reg::Rax)), (0x5555_5555, 0x6666_6666));
    }
}

#[test]
fn d11_cmpxchg8b_with_66_reads_and_writes_eight_bytes_of_a_device() {
    let mut guest = Guest::new(&[0x66, 0x0F, 0xC7, 0x0E, 0x08, 0x00]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
    guest.bus.device[8] = 1;
    guest.step();
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE + 8, 8), Seen::Write(DEVICE + 8, 8, 1)]);
}

#[test]
fn cmpxchg8b_needs_memory_and_its_feature() {
    assert_eq!(Guest::new(&[0x0F, 0xC7, 0xC8]).fault(), Some(6));
    assert_eq!(Guest::new(&[0xF0, 0x0F, 0xC7, 0xC8]).fault(), Some(6));
    let code = [0x0F, 0xC7, 0x0E, 0x00, 0x20];
    assert_eq!(Guest::with_profile(&Profile::I80486, &code).fault(), Some(6));
    let xadd = [0x0F, 0xC1, 0xC0];
    assert_eq!(Guest::with_profile(&Profile::I80486, &xadd).fault(), None);
    assert_eq!(Guest::with_profile(&Profile::I80386, &xadd).fault(), Some(6));
}

/// CMPXCHG16B [RSI] in 64-bit code.
fn exchange_16(code: &[u8], at: u64, memory: u128) -> Guest {
    let mut guest = long_guest(&Profile::INTEL);
    guest.poke(crate::guest::CODE, code);
    guest.poke(0x2000, &memory.to_le_bytes());
    guest.cpu.gpr[Reg::Rdx] = 1;
    guest.cpu.gpr[Reg::Rax] = 2;
    guest.cpu.gpr[Reg::Rcx] = 3;
    guest.cpu.gpr[Reg::Rbx] = 4;
    guest.cpu.gpr[Reg::Rsi] = at;
    guest.cpu.rflags |= CF;
    guest
}

#[test]
fn cmpxchg16b_exchanges_sixteen_bytes() {
    for code in [&[0x48, 0x0F, 0xC7, 0x0E][..], &[0xF0, 0x48, 0x0F, 0xC7, 0x0E]] {
        let mut guest = exchange_16(code, 0x2000, 1 << 64 | 2);
        guest.step();
        assert_eq!(guest.peek(0x2000, 16), (3u128 << 64 | 4).to_le_bytes());
        assert_eq!(guest.flags(), CF | ZF);
        let mut guest = exchange_16(code, 0x2000, 5 << 64 | 6);
        guest.step();
        assert_eq!(guest.peek(0x2000, 16), (5u128 << 64 | 6).to_le_bytes());
        assert_eq!((guest.reg(Reg::Rdx), guest.reg(Reg::Rax)), (5, 6));
        assert_eq!(guest.flags(), CF);
    }
}

#[test]
fn cmpxchg16b_raises_gp_where_it_is_not_aligned() {
    let mut guest = exchange_16(&[0x48, 0x0F, 0xC7, 0x0E], 0x2008, 0);
    assert_eq!(only_exception(&mut guest), Fault::GP);
    // Before the address is looked at: [rsp], which is not canonical.
    let mut guest = exchange_16(&[0x48, 0x0F, 0xC7, 0x0C, 0x24], 0x2000, 0);
    guest.cpu.gpr[Reg::Rsp] = 0xC405_D616_CC56_6F61;
    assert_eq!(only_exception(&mut guest), Fault::GP);
}

fn only_exception(guest: &mut Guest) -> Fault {
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    emulator.policy_mut().exceptions = u32::MAX;
    let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 1);
    match stop {
        Ok(Stop::Exception(fault)) => fault,
        stop => panic!("no exception but {stop:?}"),
    }
}

#[test]
fn a08_90_is_nop_and_41_90_is_an_exchange() {
    let run_on = |profile: &Profile, code: &[u8]| {
        let mut guest = long_guest(profile);
        guest.poke(crate::guest::CODE, code);
        guest.cpu.gpr[Reg::Rax] = 0x1234_5678_9ABC_DEF0;
        guest.cpu.gpr[Reg::R8] = 5;
        guest.step();
        (guest.reg(Reg::Rax), guest.reg(Reg::R8))
    };
    let run = |code: &[u8]| run_on(&Profile::INTEL, code);
    assert_eq!(run(&[0x90]), (0x1234_5678_9ABC_DEF0, 5));
    assert_eq!(run(&[0x48, 0x90]), (0x1234_5678_9ABC_DEF0, 5));
    assert_eq!(run(&[0x41, 0x90]), (5, 0x9ABC_DEF0));
    assert_eq!(run(&[0x49, 0x90]), (5, 0x1234_5678_9ABC_DEF0));
    // PAUSE is F3 90; with REX.B it is an exchange for AMD, and a PAUSE for Intel.
    for profile in [&Profile::INTEL, &Profile::AMD] {
        assert_eq!(run_on(profile, &[0xF3, 0x90]), (0x1234_5678_9ABC_DEF0, 5));
    }
    assert_eq!(run_on(&Profile::AMD, &[0xF3, 0x41, 0x90]), (5, 0x9ABC_DEF0));
    assert_eq!(run(&[0xF3, 0x41, 0x90]), (0x1234_5678_9ABC_DEF0, 5));
    // 87 C0 is no NOP.
    assert_eq!(run(&[0x87, 0xC0]), (0x9ABC_DEF0, 5));
}

#[test]
fn xchg_with_memory_reads_and_writes_once_with_or_without_lock() {
    for code in [&[0x87, 0x06, 0x10, 0x00][..], &[0xF0, 0x87, 0x06, 0x10, 0x00]] {
        let mut guest = Guest::new(code).with(Reg::Rax, 0xABCD);
        guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0xB800);
        guest.bus.device[0x10] = 0x34;
        guest.step();
        let at = DEVICE + 0x10;
        assert_eq!(guest.bus.seen, [Seen::Read(at, 2), Seen::Write(at, 2, 0xABCD)]);
        assert_eq!(guest.reg(Reg::Rax), 0x34);
    }
    assert_eq!(Guest::new(&[0xF0, 0x87, 0xC3]).fault(), Some(6));
}

#[test]
fn xadd_in_memory_loads_the_register_after_the_store() {
    // xadd [0xFFFF], ax: the word leaves the segment and AX stays.
    let mut guest = Guest::new(&[0x0F, 0xC1, 0x06, 0xFF, 0xFF]).with(Reg::Rax, 0x1234);
    assert_eq!(guest.fault(), Some(13));
    assert_eq!(guest.reg(Reg::Rax), 0x1234);
    for code in [&[0x0F, 0xC1, 0x06, 0x00, 0x20][..], &[0xF0, 0x0F, 0xC1, 0x06, 0x00, 0x20]] {
        let mut guest = Guest::new(code).with(Reg::Rax, 0xFFFF);
        guest.poke(0x2000, &[1, 0]);
        guest.step();
        assert_eq!((guest.reg(Reg::Rax), guest.word(0x2000)), (1, 0));
        assert_eq!(guest.flags(), CF | ZF | AF | PF);
    }
}

/// The accesses of one instruction.
#[derive(Default)]
struct Accesses(Vec<(Access, u64, Vec<u8>)>);

impl Observer for Accesses {
    fn access(&mut self, access: Access, address: Phys, bytes: &[u8]) {
        self.0.push((access, address.0, bytes.to_vec()));
    }
}

#[test]
fn an_observer_sees_a_locked_update_as_a_read_and_a_write() {
    // lock inc word [2002]; lock cmpxchg16b [2010], which differs and is stored unchanged.
    type Update = (&'static [u8], u64, Vec<u8>, Vec<u8>);
    let codes: [Update; 2] = [
        (&[0xF0, 0x66, 0xFF, 0x04, 0x25, 2, 0x20, 0, 0], 0x2002, vec![0xFF, 0], vec![0, 1]),
        (&[0xF0, 0x48, 0x0F, 0xC7, 0x0C, 0x25, 0x10, 0x20, 0, 0], 0x2010, vec![5; 16], vec![5; 16]),
    ];
    for (code, at, old, new) in codes {
        let mut guest = long_guest(&Profile::INTEL);
        guest.poke(CODE, code);
        guest.poke(at, &old);
        // DR0 watches the last bytes of the operand for writes.
        guest.cpu.dr[0] = (at + old.len() as u64 - 1) & !1;
        guest.cpu.dr7 |= 1 | 5 << 16;
        let mut seen = Accesses::default();
        let mut emulator = Emulator::new(&guest.profile, &mut []);
        emulator.run_observed(&mut guest.cpu, &mut guest.bus, 1, &mut seen).unwrap();
        // The delivery of #DB follows.
        let update = [(Access::Read, at, old), (Access::Write, at, new)];
        assert_eq!(seen.0[..2], update, "{code:02X?}");
        assert!(seen.0.iter().all(|(_, _, bytes)| !bytes.is_empty()), "{code:02X?}");
        assert_eq!(guest.cpu.dr6 & 0xF, 1, "{code:02X?}");
    }
}
