//! Tests of `isa/string.rs` and `isa/port.rs`: what no case under `testdata/cases` can say.
//!
//! Random strings are executed twice, all at once and one recorded iteration after the other.
//! `native_string.rs` compares them with the host's own.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::guest::{CODE, DEVICE, Guest, Seen};
use crate::native::{Random, long_guest, pick};
use realmode::arch::rflags::{ARITH, CF, DF, IF, ZF};
use realmode::*;

/// A machine of 192 KiB with a device page in the middle, small enough to be compared whole.
struct Small<'m> {
    ram: &'m [AtomicU8],
    dirty: &'m AtomicU64,
    device: Vec<u8>,
    seen: Vec<Seen>,
    /// Pages asked for.
    prepared: usize,
    /// Elements that the string forms of the ports may have; `None`: the bus does not know them.
    fifo: Option<Vec<usize>>,
    pending: bool,
    interrupt: bool,
}

const SMALL: usize = 0x3_0000;
const SMALL_DEVICE: u64 = 0x1_8000;
/// The page whose stores mark a dirty bit.
const DIRTY: u64 = 0x2_2000;

impl<'m> Small<'m> {
    fn new() -> Small<'static> {
        let ram: Vec<AtomicU8> = (0..SMALL).map(|_| AtomicU8::new(0)).collect();
        Small {
            ram: Box::leak(ram.into_boxed_slice()),
            dirty: Box::leak(Box::new(AtomicU64::new(0))),
            device: vec![0; PAGE_SIZE],
            seen: Vec::new(),
            prepared: 0,
            fifo: None,
            pending: false,
            interrupt: false,
        }
    }

    fn poke(&self, at: usize, bytes: &[u8]) {
        for (cell, byte) in self.ram[at..].iter().zip(bytes) {
            cell.store(*byte, Relaxed);
        }
    }

    fn peek(&self, at: usize, len: usize) -> Vec<u8> {
        self.ram[at..at + len].iter().map(|cell| cell.load(Relaxed)).collect()
    }

    /// How many elements of `wanted` bytes the ports take at once.
    fn share(&mut self, wanted: usize, size: u8) -> usize {
        let Some(fifo) = &mut self.fifo else { return wanted };
        let most = if fifo.is_empty() { 0 } else { fifo.remove(0) };
        wanted.min(most * usize::from(size))
    }
}

impl<'a, 'm: 'a> Bus<'a> for Small<'m> {
    fn prepare(&mut self, page: Phys, _: Access, _: &mut Control) -> Prepared<'a> {
        self.prepared += 1;
        let at = page.0 as usize;
        let Some(cells) = self.ram.get(at..at + PAGE_SIZE) else { return Prepared::Unmapped };
        match page.0 {
            SMALL_DEVICE => Prepared::Mmio,
            DIRTY => {
                let host = HostPage::from_cells(cells).unwrap();
                Prepared::Ram(host.with_dirty_bit(self.dirty, 5))
            }
            _ => Prepared::Ram(HostPage::from_cells(cells).unwrap()),
        }
    }

    fn mmio_read(&mut self, address: Phys, size: u8, control: &mut Control) -> Reply {
        self.seen.push(Seen::Read(address.0, size));
        if self.interrupt {
            control.interrupt(true);
        }
        let at = (address.0 - SMALL_DEVICE) as usize;
        let mut word = [0; 8];
        word[..size as usize].copy_from_slice(&self.device[at..at + size as usize]);
        Reply::Ready(u64::from_le_bytes(word))
    }

    fn mmio_write(&mut self, address: Phys, size: u8, data: u64, _: &mut Control) -> Reply {
        self.seen.push(Seen::Write(address.0, size, data));
        let at = (address.0 - SMALL_DEVICE) as usize;
        self.device[at..at + size as usize].copy_from_slice(&data.to_le_bytes()[..size as usize]);
        Reply::Ready(0)
    }

    fn port_in(&mut self, port: u16, size: u8, _: &mut Control) -> Reply {
        self.seen.push(Seen::In(port, size));
        if self.pending { Reply::Pending } else { Reply::Ready(0x4433_2211) }
    }

    fn port_out(&mut self, port: u16, size: u8, data: u64, _: &mut Control) -> Reply {
        self.seen.push(Seen::Out(port, size, data));
        if self.pending { Reply::Pending } else { Reply::Ready(0) }
    }

    fn port_in_string(
        &mut self,
        port: u16,
        size: u8,
        data: &mut [u8],
        control: &mut Control,
    ) -> usize {
        let len = self.share(data.len(), size);
        if self.fifo.is_some() {
            data[..len].fill(0x77);
            return len;
        }
        let mut done = 0;
        for element in data.chunks_exact_mut(usize::from(size)) {
            let Reply::Ready(value) = self.port_in(port, size, control) else { break };
            element.copy_from_slice(&value.to_le_bytes()[..usize::from(size)]);
            done += usize::from(size);
        }
        done
    }

    fn port_out_string(&mut self, _: u16, size: u8, data: &[u8], _: &mut Control) -> usize {
        let len = self.share(data.len(), size);
        for element in data[..len].chunks_exact(usize::from(size)) {
            let mut word = [0; 8];
            word[..element.len()].copy_from_slice(element);
            self.seen.push(Seen::Out(0, size, u64::from_le_bytes(word)));
        }
        len
    }

    fn interrupt_acknowledge(&mut self, _: &mut Control) -> u8 {
        0x20
    }
}

// ---- all at once, and one iteration after the other ----

/// A random string instruction in a random place, followed by HLT.
struct Attempt {
    code: Vec<u8>,
    cpu: Cpu,
}

const OPCODES: [u8; 14] =
    [0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF, 0x6C, 0x6D, 0x6E, 0x6F];

/// Offsets where something happens nearby: pages, the device, limits, the code itself.
fn offset(random: &mut Random) -> u64 {
    let near = pick(random, &[0, 0x1000, 0x3000, 0x7FFF, 0x8000, 0x9000, 0xF000, 0xFFFF, 0x1_0000]);
    let spread = pick(random, &[4, 20, 300]);
    (near + random.word() % spread).wrapping_sub(spread / 2)
}

fn attempt(random: &mut Random, profile: &Profile) -> Attempt {
    let has_32 = profile.generation >= Generation::I80386;
    let mut code = Vec::new();
    if has_32 && random.word().is_multiple_of(3) {
        code.push(0x66);
    }
    if has_32 && random.word().is_multiple_of(4) {
        code.push(0x67);
    }
    if random.word().is_multiple_of(4) {
        code.push(pick(random, &[0x26, 0x2E, 0x36, 0x3E]));
    }
    code.extend(pick(random, &[&[][..], &[0xF3], &[0xF3], &[0xF2]]));
    let since_186 = profile.generation >= Generation::I80186;
    code.push(pick(random, if since_186 { &OPCODES } else { &OPCODES[..10] }));
    code.push(0xF4);
    let mut cpu = Cpu::reset_as(profile);
    cpu.seg = [Segment::real(0); 6];
    for seg in [SegReg::Es, SegReg::Ds] {
        let place = &mut cpu.seg[seg as usize];
        *place = Segment::real(pick(random, &[0, 0x1000, 0x1001, 0x0FFF, 0x1800, 0x2000]));
        if has_32 {
            place.limit = pick(random, &[0xFFFF, 0xFFFF, 0xFFFF_FFFF, 0x8FFE, 0x3003]);
            if random.word().is_multiple_of(8) {
                place.attributes = Attributes(0x97);
            }
        }
    }
    cpu.rip = CODE;
    let wide = if has_32 { u64::from(u32::MAX) } else { 0xFFFF };
    cpu.gpr[Reg::Rsp] = 0xF00;
    cpu.gpr[Reg::Rax] = pick(random, &[0, 0x1111_1111, 0x9090_9090]) & wide;
    cpu.gpr[Reg::Rdx] = 0x60;
    cpu.gpr[Reg::Rcx] = pick(random, &[0, 1, 2, 5, 40, 300, 5000]) & wide;
    cpu.gpr[Reg::Rsi] = offset(random) & wide;
    cpu.gpr[Reg::Rdi] = offset(random) & wide;
    cpu.rflags |= random.word() & (ARITH | DF);
    Attempt { code, cpu }
}

#[derive(PartialEq)]
struct Outcome {
    cpu: Cpu,
    ram: Vec<u8>,
    device: Vec<u8>,
    seen: Vec<Seen>,
}

/// How an attempt is executed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Cached,
    Uncached,
    /// A budget of one again and again, with a new emulator each time.
    Stepped,
    Observed,
}

struct Silent;
impl Observer for Silent {}

fn execute(attempt: &Attempt, profile: &Profile, bus: &mut Small<'static>, how: How) -> Outcome {
    let page: Vec<u8> = (0..PAGE_SIZE).map(|i| if i % 97 < 90 { 0x11 } else { i as u8 }).collect();
    for at in (0..SMALL).step_by(PAGE_SIZE) {
        bus.poke(at, &page);
    }
    for n in 0..256 {
        bus.poke(n * 4, &(0x400 + n as u32).to_le_bytes());
    }
    bus.poke(0x400, &[0xF4; 256]);
    bus.poke(CODE as usize, &attempt.code);
    bus.device.copy_from_slice(&page);
    bus.seen.clear();
    let mut cpu = attempt.cpu.clone();
    let mut lines = vec![CacheLine::EMPTY; if how == How::Uncached { 0 } else { 64 }];
    let stop = match how {
        How::Cached | How::Uncached => {
            Emulator::new(profile, &mut lines).run(&mut cpu, bus, 40).unwrap()
        }
        How::Observed => {
            Emulator::new(profile, &mut lines).run_observed(&mut cpu, bus, 40, &mut Silent).unwrap()
        }
        How::Stepped => (0..40)
            .map(|_| Emulator::new(profile, &mut lines).run(&mut cpu, bus, 1).unwrap())
            .find(|stop| *stop != Stop::Budget)
            .unwrap_or(Stop::Budget),
    };
    // What a string wrote over the code may do anything, the same in every way.
    cpu.pending.debug |= u32::from(stop == Stop::Budget) << 31;
    let (device, seen) = (bus.device.clone(), bus.seen.clone());
    Outcome { cpu, ram: bus.peek(0, SMALL), device, seen }
}

#[test]
fn strings_at_once_are_strings_one_iteration_after_the_other() {
    let mut bus = Small::new();
    let mut random = Random::new(0x5EED_5EED_5EED_5EED);
    for round in 0..700 {
        let profile = pick(
            &mut random,
            &[&Profile::INTEL, &Profile::AMD, &Profile::I80386, &Profile::I80286, &Profile::I8086],
        );
        let attempt = attempt(&mut random, profile);
        let wanted = execute(&attempt, profile, &mut bus, How::Observed);
        for how in [How::Cached, How::Uncached, How::Stepped] {
            let got = execute(&attempt, profile, &mut bus, how);
            let place = (0..SMALL).find(|i| got.ram[*i] != wanted.ram[*i]);
            let what = format!(
                "round {round}: {:02X?} on {} {how:?}\nfrom {:X?}\nmemory differs at {place:X?}",
                attempt.code, profile.name, attempt.cpu
            );
            assert_eq!(got.cpu, wanted.cpu, "{what}");
            assert_eq!(got.seen, wanted.seen, "{what}");
            assert!(got == wanted, "{what}");
        }
    }
}

// ---- the host as an oracle ----

// ---- single facts ----

#[test]
fn a13_a_count_of_zero_with_67_clears_upper_halves_on_intel_only() {
    const HIGH: u64 = 0x5_0000_0000;
    let cases: [(u8, [u64; 3]); 7] = [
        (0xA4, [0, 0x22, 0x33]),
        (0xAA, [0, HIGH | 0x22, 0x33]),
        (0xAC, [0, HIGH | 0x22, HIGH | 0x33]),
        (0xA6, [0, HIGH | 0x22, HIGH | 0x33]),
        (0xAE, [0, HIGH | 0x22, HIGH | 0x33]),
        (0x6C, [0, HIGH | 0x22, HIGH | 0x33]),
        (0x6E, [0, HIGH | 0x22, HIGH | 0x33]),
    ];
    for (profile, intel) in [(&Profile::INTEL, true), (&Profile::AMD, false)] {
        let mut guest = long_guest(profile);
        for (opcode, wanted) in cases {
            guest.poke(CODE, &[0x67, 0xF3, opcode]);
            guest.cpu.rip = CODE;
            let before = [HIGH, HIGH | 0x22, HIGH | 0x33];
            for (reg, value) in [Reg::Rcx, Reg::Rsi, Reg::Rdi].into_iter().zip(before) {
                guest.cpu.gpr[reg] = value;
            }
            guest.step();
            let got = [Reg::Rcx, Reg::Rsi, Reg::Rdi].map(|reg| guest.reg(reg));
            assert_eq!(got, if intel { wanted } else { before }, "{opcode:X} {}", profile.name);
            assert_eq!(guest.cpu.rip, CODE + 3);
        }
    }
}

#[test]
fn a14_offsets_of_16_bits_wrap_inside_a_page_of_a_segment_without_limit() {
    // The segments begin 10h bytes into a page, so that offset FFFF does too.
    let mut guest = Guest::new(&[0xF3, 0xA4, 0xF4]);
    for (seg, selector) in [(SegReg::Ds, 0x1001), (SegReg::Es, 0x3001)] {
        guest.cpu.seg[seg as usize] = Segment::big_real(selector);
    }
    guest.poke(0x2_000D, b"abc*****");
    guest.poke(0x1_0010, b"defg");
    for (reg, value) in [(Reg::Rcx, 7), (Reg::Rsi, 0xFFFD), (Reg::Rdi, 0xFFFB)] {
        guest.cpu.gpr[reg] = value;
    }
    assert_eq!(guest.run(100), Stop::Idle);
    assert_eq!(guest.peek(0x4_000B, 6), b"abcde\0");
    assert_eq!(guest.peek(0x3_0010, 3), b"fg\0");
    assert_eq!([Reg::Rsi, Reg::Rdi].map(|reg| guest.reg(reg)), [4, 2]);
}

#[test]
fn m07_movsq_reads_a_device_once_and_writes_one_once() {
    let mut guest = long_guest(&Profile::INTEL);
    guest.poke(CODE, &[0x48, 0xA5, 0x48, 0xA5]);
    guest.bus.device[8..16].copy_from_slice(&0x1122_3344_5566_7788u64.to_le_bytes());
    guest.cpu.gpr[Reg::Rsi] = DEVICE + 8;
    guest.cpu.gpr[Reg::Rdi] = 0x2000;
    guest.step();
    guest.cpu.gpr[Reg::Rsi] = 0x2000;
    guest.cpu.gpr[Reg::Rdi] = DEVICE;
    guest.step();
    let value = 0x1122_3344_5566_7788;
    assert_eq!(guest.bus.seen, [Seen::Read(DEVICE + 8, 8), Seen::Write(DEVICE, 8, value)]);
}

#[test]
fn a_fault_in_repe_cmps_restores_the_flags_on_intel_and_shows_the_last_comparison_on_amd() {
    // Seven equal bytes up to the end of the segment, then #GP; interrupt 13's frame has FLAGS.
    for (profile, zf) in [(&Profile::INTEL, 0), (&Profile::AMD, ZF)] {
        let mut guest = Guest::with_profile(profile, &[0xF3, 0xA7]);
        guest.cpu.rflags |= CF;
        for (reg, value) in [(Reg::Rcx, 100), (Reg::Rsi, 0xFFF1), (Reg::Rdi, 0xF001)] {
            guest.cpu.gpr[reg] = value;
        }
        let es = &mut guest.cpu.seg[SegReg::Es as usize];
        *es = Segment::real(0x1000);
        guest.poke(0x1_F001, &guest.peek(0xFFF1, 14));
        assert_eq!(guest.fault(), Some(13));
        let moved = [Reg::Rcx, Reg::Rsi, Reg::Rdi].map(|reg| guest.reg(reg));
        assert_eq!(moved, [93, 0xFFFF, 0xF00F]);
        assert_eq!(u64::from(guest.word(0xEFE)) & ZF, zf, "{}", profile.name);
        assert_eq!(u64::from(guest.word(0xEFE)) & CF, if zf == 0 { CF } else { 0 });
    }
}

#[test]
fn an_80286_has_moved_on_when_an_element_faults() {
    // shared/sst286, files A5, A7, AB, AD, AF and 6F: CX, SI, DI after the fault.
    let cases: [(&[u8], [u64; 3], [u64; 3]); 8] = [
        (&[0xA5], [9, 0xFFFF, 0x3000], [9, 1, 0x3000]),
        (&[0xA5], [9, 0x3000, 0xFFFF], [9, 0x3002, 1]),
        (&[0xF3, 0xA5], [9, 0x3000, 0xFFFF], [7, 0x3002, 1]),
        (&[0xF3, 0xA7], [9, 0x3000, 0xFFFF], [9, 0x3000, 1]),
        (&[0xF3, 0xA7], [9, 0xFFFF, 0x3000], [8, 1, 0x3002]),
        (&[0xF2, 0xAB], [9, 0x3000, 0xFFFD], [6, 0x3000, 1]),
        (&[0xF3, 0xAD], [9, 0xFFFF, 0x3000], [8, 1, 0x3000]),
        (&[0xF3, 0x6F], [9, 0xFFFD, 0x3000], [7, 1, 0x3000]),
    ];
    for (code, before, after) in cases {
        let mut guest = Guest::with_profile(&Profile::I80286, code);
        for (reg, value) in [Reg::Rcx, Reg::Rsi, Reg::Rdi].into_iter().zip(before) {
            guest.cpu.gpr[reg] = value;
        }
        // FFFD is odd, so that FFFF is reached after one element.
        while guest.cpu.rip == CODE {
            guest.step();
        }
        assert_eq!(guest.cpu.rip, 0x40D, "{code:X?}");
        let got = [Reg::Rcx, Reg::Rsi, Reg::Rdi].map(|reg| guest.reg(reg));
        assert_eq!(got, after, "{code:X?} from {before:X?}");
    }
}

#[test]
fn an_interrupt_that_a_device_raises_is_taken_before_the_next_iteration() {
    // rep movsb from the device
    let mut bus = Small::new();
    bus.poke(CODE as usize, &[0xF3, 0xA4]);
    bus.poke(0x20 * 4, &0x420u32.to_le_bytes());
    bus.poke(0x420, &[0xF4]);
    bus.interrupt = true;
    let mut cpu = real_cpu();
    cpu.rflags |= IF;
    cpu.seg[SegReg::Ds as usize] = Segment::real((SMALL_DEVICE >> 4) as u16);
    cpu.gpr[Reg::Rcx] = 5;
    cpu.gpr[Reg::Rdi] = 0x2000;
    let stop = Emulator::new(&Profile::INTEL, &mut []).run(&mut cpu, &mut bus, 20);
    assert_eq!(stop, Ok(Stop::Idle));
    let moved = [Reg::Rcx, Reg::Rsi, Reg::Rdi].map(|reg| cpu.gpr[reg]);
    assert_eq!(moved, [4, 1, 0x2001]);
    assert_eq!(bus.peek(0xEFA, 2), (CODE as u16).to_le_bytes());
}

/// Registers of real mode with the code at 0000:1000.
fn real_cpu() -> Cpu {
    let mut cpu = Cpu::reset();
    cpu.seg = [Segment::real(0); 6];
    cpu.rip = CODE;
    cpu.gpr[Reg::Rsp] = 0xF00;
    cpu.gpr[Reg::Rdx] = 0;
    cpu
}

#[test]
fn code_that_rep_stosb_writes_ahead_of_itself_is_executed() {
    // rep stosb; inc ax (three times); hlt. AL is the code of NOP, and CX covers two INCs.
    for lines in [0, 64] {
        let mut guest = Guest::new(&[0xF3, 0xAA, 0x40, 0x40, 0x40, 0xF4]);
        guest.lines = lines;
        guest.cpu.gpr[Reg::Rax] = 0x90;
        guest.cpu.gpr[Reg::Rcx] = 2;
        guest.cpu.gpr[Reg::Rdi] = CODE + 2;
        assert_eq!(guest.run(100), Stop::Idle);
        assert_eq!(guest.reg(Reg::Rax), 0x91, "{lines} lines");
    }
}

#[test]
fn strings_over_plain_memory_ask_for_each_page_a_few_times_only() {
    // rep movsw of a whole segment; the pages of source and destination share TLB entries.
    let mut guest = Guest::new(&[0xF3, 0xA5, 0xF4]);
    guest.cpu.gpr[Reg::Rcx] = 0x8000;
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real(0x1000);
    guest.cpu.seg[SegReg::Es as usize].base = 0x11_0000;
    let text: Vec<u8> = (0..0x1_0000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    guest.poke(0x1_0000, &text);
    struct Counting<'g> {
        guest: &'g mut crate::guest::TestBus<'static>,
        prepared: usize,
    }
    impl<'a> Bus<'a> for Counting<'_> {
        fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
            self.prepared += 1;
            self.guest.prepare(page, access, control)
        }
    }
    let mut bus = Counting { guest: &mut guest.bus, prepared: 0 };
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    assert_eq!(emulator.run(&mut guest.cpu, &mut bus, 100), Ok(Stop::Idle));
    assert!(bus.prepared < 100, "{}", bus.prepared);
    assert!(guest.peek(0x11_0000, 0x1_0000) == text);
}

#[test]
fn rep_stos_into_a_tracked_page_marks_it_dirty() {
    let mut bus = Small::new();
    bus.poke(CODE as usize, &[0xF3, 0xAA, 0xF4]);
    let mut cpu = real_cpu();
    cpu.gpr[Reg::Rcx] = 20;
    cpu.gpr[Reg::Rax] = 0x5A;
    cpu.seg[SegReg::Es as usize] = Segment::real((DIRTY >> 4) as u16);
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    assert_eq!(emulator.run(&mut cpu, &mut bus, 100), Ok(Stop::Idle));
    assert_eq!(bus.dirty.load(Relaxed), 1 << 5);
    assert_eq!(bus.peek(DIRTY as usize, 21), [[0x5A; 20].as_slice(), &[0]].concat());
}

// ---- ports in blocks ----

/// Runs a REP INSW or OUTSW of 300 words at 0000:2000 against a FIFO.
fn run_fifo(code: &[u8], fifo: &[usize]) -> (Small<'static>, Cpu, Vec<Stop>) {
    let mut bus = Small::new();
    bus.poke(CODE as usize, code);
    bus.fifo = Some(fifo.to_vec());
    bus.pending = true;
    let mut cpu = real_cpu();
    cpu.gpr[Reg::Rcx] = 300;
    cpu.gpr[Reg::Rsi] = 0x2000;
    cpu.gpr[Reg::Rdi] = 0x2000;
    let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
    let mut stops = Vec::new();
    while stops.len() < 10 {
        let stop = emulator.run(&mut cpu, &mut bus, 1000).unwrap();
        stops.push(stop);
        if !matches!(stop, Stop::Port(_)) {
            break;
        }
        emulator.reply(0x8888).unwrap();
    }
    (bus, cpu, stops)
}

#[test]
fn m11_rep_ins_takes_blocks_from_a_fifo_and_waits_where_it_runs_dry() {
    let (bus, cpu, stops) = run_fifo(&[0xF3, 0x6D, 0xF4], &[256, 3, 0, 500]);
    let request = Request { address: 0, size: 2, direction: Direction::Read, data: 0 };
    assert_eq!(stops, [Stop::Port(request), Stop::Idle]);
    // Only the word that the FIFO had not went through the single form.
    assert_eq!(bus.seen, [Seen::In(0, 2)]);
    let mut wanted = vec![0x77; 600];
    wanted[518..520].fill(0x88);
    assert_eq!(bus.peek(0x2000, 600), wanted);
    assert_eq!([Reg::Rcx, Reg::Rdi].map(|reg| cpu.gpr[reg]), [0, 0x2000 + 600]);
}

#[test]
fn rep_outs_gives_blocks_to_a_fifo_and_waits_where_it_is_full() {
    let (bus, cpu, stops) = run_fifo(&[0xF3, 0x6F, 0xF4], &[256, 3, 0, 500]);
    let request = Request { address: 0, size: 2, direction: Direction::Write, data: 0 };
    assert_eq!(stops, [Stop::Port(request), Stop::Idle]);
    assert_eq!(bus.seen.len(), 300);
    assert_eq!([Reg::Rcx, Reg::Rsi].map(|reg| cpu.gpr[reg]), [0, 0x2000 + 600]);
}

#[test]
fn r11_a_bus_that_claims_more_than_it_was_asked_for_is_not_believed() {
    // Half an element is none: the word goes through the single form.
    struct Liar<'m>(Small<'m>);
    impl<'a, 'm: 'a> Bus<'a> for Liar<'m> {
        fn prepare(&mut self, page: Phys, access: Access, control: &mut Control) -> Prepared<'a> {
            self.0.prepare(page, access, control)
        }
        fn port_in(&mut self, _: u16, _: u8, _: &mut Control) -> Reply {
            Reply::Ready(0x5555)
        }
        fn port_in_string(&mut self, _: u16, _: u8, data: &mut [u8], _: &mut Control) -> usize {
            if data.len() > 4 { usize::MAX } else { 1 }
        }
    }
    let mut bus = Liar(Small::new());
    bus.0.poke(CODE as usize, &[0xF3, 0x6D, 0xF4]);
    for (count, wanted) in [(2, 0x5555_5555), (10, 0)] {
        let mut cpu = real_cpu();
        cpu.gpr[Reg::Rcx] = count;
        cpu.gpr[Reg::Rdi] = 0x2000;
        let mut emulator = Emulator::new(&Profile::INTEL, &mut []);
        assert_eq!(emulator.run(&mut cpu, &mut bus, 100), Ok(Stop::Idle));
        assert_eq!(bus.0.peek(0x2000, 4), u32::to_le_bytes(wanted));
        assert_eq!(cpu.gpr[Reg::Rdi], 0x2000 + 2 * count);
    }
}
