//! Runs every case of `testdata/cases`, in several ways that must not differ: with a cache and
//! without, as part of a block, one instruction a run, observed, with all flags set before, and
//! with each device access held and answered by a fresh emulator.

pub mod bus;
pub mod coverage;
pub mod deliver;
pub mod file;
pub mod names;
pub mod tables;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::cases::bus::{Arena, CaseBus, Image, get, put};
use crate::cases::deliver::deliver;
use crate::cases::file::{Case, PageKind, StopIs, parse};
use crate::cases::names::Assign;
use crate::cases::tables::{enter, lay_out, quad};
use crate::guest::Seen;
use realmode::arch::rflags::{ARITH, IF, RF, TF};
use realmode::*;

/// Every case of every file.
pub fn all() -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    let listing = dir.read_dir().unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = listing.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "case"));
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        cases.extend(parse(&path, &text).unwrap_or_else(|e| panic!("{e}")));
    }
    cases
}

/// `CASES=W05 cargo test -p realmode every_case` runs those whose place, id or title has W05.
#[test]
fn every_case_holds_in_every_way_of_running() {
    let only = std::env::var("CASES").unwrap_or_default();
    let arena = Arena::new();
    let (mut ran, mut failures) = (0, Vec::new());
    for case in all() {
        let name = format!("{} {} {}", case.place, case.ids.join(" "), case.title);
        if !name.contains(&only) {
            continue;
        }
        for profile in &case.profiles {
            ran += 1;
            if let Some(failure) = fails(&case, profile, &arena) {
                failures.push(format!("{name} [{}]\n{failure}", profile.name));
            }
        }
    }
    let count = failures.len();
    assert!(failures.is_empty(), "{}\n{count} of {ran} cases failed", failures.join("\n"));
    coverage::say(&format!("cases: {ran} hold"));
}

/// The first way of running in which a case does not hold, and how.
fn fails(case: &Case, profile: &Profile, arena: &Arena) -> Option<String> {
    for way in &WAYS {
        let attempt = catch_unwind(AssertUnwindSafe(|| attempt(case, profile, arena, way)));
        let lines = match attempt {
            Ok(lines) => lines,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                vec![format!("panicked: {}", text.unwrap_or_default())]
            }
        };
        if !lines.is_empty() {
            return Some(format!("  ({})\n    {}", way.name, lines.join("\n    ")));
        }
    }
    None
}

/// A way to run a case.
struct Way {
    name: &'static str,
    /// Lines of cache.
    lines: usize,
    drive: Drive,
    /// Set the arithmetic flags before, if the case does not say what they are.
    flags: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drive {
    Whole,
    /// One instruction a run.
    Stepped,
    /// One instruction a run, each with a new emulator, and each device access held.
    Held,
    Observed,
    /// A HLT follows, so that the instruction is part of a block.
    Block,
}

const fn way(name: &'static str, lines: usize, drive: Drive, flags: bool) -> Way {
    Way { name, lines, drive, flags }
}

const WAYS: [Way; 8] = [
    way("uncached", 0, Drive::Whole, false),
    way("cached", 64, Drive::Whole, false),
    way("cached, flags set before", 64, Drive::Whole, true),
    way("stepped", 64, Drive::Stepped, false),
    way("held", 64, Drive::Held, false),
    way("held, uncached, flags set before", 0, Drive::Held, true),
    way("observed", 64, Drive::Observed, false),
    way("in a block", 64, Drive::Block, false),
];

/// What is there before and what must be there after.
struct Setup {
    cpu: Cpu,
    image: Image,
    budget: u64,
    want: Cpu,
    want_image: Image,
    want_stop: StopIs,
    /// Where a frame has the flags.
    flags_at: Option<u64>,
}

fn attempt(case: &Case, profile: &Profile, arena: &Arena, way: &Way) -> Vec<String> {
    let mut setup = set_up(case, profile, way.flags);
    if way.drive == Drive::Block && !follow_with_halt(&mut setup, case, profile) {
        return Vec::new();
    }
    let mut bus = CaseBus::new(arena, &setup.image, &case.pages);
    for (port, values) in &case.ports {
        bus.port(*port, values);
    }
    for set in &case.set {
        if let Assign::Interrupt(vector) = set {
            bus.vector = *vector;
        }
    }
    let mut cpu = setup.cpu.clone();
    let stop = drive(&mut cpu, &mut bus, profile, way, setup.budget);
    let mut lines = Vec::new();
    if !stop_fits(&stop, setup.want_stop) {
        lines.push(format!("stop is {stop:x?}, want {:?}", setup.want_stop));
    }
    cpu.pending.interrupt = setup.want.pending.interrupt;
    for any in &case.want.any {
        any.apply(&mut cpu, profile, None);
        any.apply(&mut setup.want, profile, None);
    }
    compare_cpu(&cpu, &setup.want, case.want.undefined, &mut lines);
    if !lines.is_empty() && cpu.rip != setup.want.rip {
        // One frame on the stack explains most surprises.
        let event = cpu.rip.wrapping_sub(HANDLERS);
        if event < 0x100 {
            lines.push(format!("(vector {event:02X} was raised)"));
        }
    }
    compare_memory(&bus, &setup, case, &mut lines);
    if bus.seen != case.want.seen {
        lines.push(format!("devices saw {:X?}, want {:X?}", bus.seen, case.want.seen));
    }
    lines
}

/// Handlers of the interrupt table: entry n leads to a HLT at 0000:0400+n.
const HANDLERS: u64 = 0x400;

fn set_up(case: &Case, profile: &Profile, flags_before: bool) -> Setup {
    let mut image = Image::new();
    for n in 0..256u64 {
        put(&mut image, n * 4, &(HANDLERS as u32 + n as u32).to_le_bytes());
    }
    put(&mut image, HANDLERS, &[0xF4; 256]);
    if case.protected.is_some() {
        lay_out(&mut image, HANDLERS);
        fill(&mut image, &case.set);
    }
    let mut cpu = first_cpu(case, profile, &image);
    if flags_before {
        cpu.rflags |= ARITH;
    }
    for set in &case.set {
        set.apply(&mut cpu, profile, case.protected.map(|_| &image));
    }
    let start = linear(&cpu, profile);
    put(&mut image, start, &case.code);
    fill(&mut image, &case.set);
    expected(case, profile, cpu, image)
}

/// Puts what is said of memory into an image.
fn fill(image: &mut Image, assigns: &[Assign]) {
    for assign in assigns {
        if let Assign::Memory(at, bytes) = assign {
            put(image, *at, bytes);
        }
    }
}

/// Everything zero, but in real mode registers of 32 bits have something in their upper half that
/// must stay.
fn first_cpu(case: &Case, profile: &Profile, image: &Image) -> Cpu {
    let mut cpu = Cpu::reset_as(profile);
    cpu.seg = [Segment::real(0); 6];
    if profile.generation >= Generation::I80386 && case.protected.is_none() {
        let junk = [0xA0A0, 0xC1C1, 0xD2D2, 0xB3B3, 0x5454, 0x6565, 0x7676, 0x8787];
        cpu.gpr = Registers::from(std::array::from_fn(|i| match junk.get(i) {
            Some(high) => high << 16,
            None => 0,
        }));
    } else {
        cpu.gpr = Registers::ZERO;
    }
    cpu.gpr[Reg::Rsp] |= 0xF00;
    cpu.idtr = TableRegister { base: 0, limit: 0x3FF };
    *cpu.segment_mut(SegReg::Cs) = Segment::real(case.at.0);
    cpu.rip = case.at.1;
    if let Some(level) = case.protected {
        enter(&mut cpu, image, level);
        Assign::selector(SegReg::Cs, case.at.0).apply(&mut cpu, profile, Some(image));
    }
    cpu
}

fn linear(cpu: &Cpu, profile: &Profile) -> u64 {
    cpu.segment(SegReg::Cs).base.wrapping_add(cpu.rip) & profile.linear_mask
}

/// Adds the state and memory that a case wants to what is there before.
fn expected(case: &Case, profile: &Profile, cpu: Cpu, image: Image) -> Setup {
    let (mut want, mut want_image, mut flags_at) = (cpu.clone(), image.clone(), None);
    let stays = case.want.event.is_some()
        || matches!(case.want.stop, StopIs::Unimplemented(_) | StopIs::Shutdown);
    if !stays {
        want.rip = want.rip.wrapping_add(case.code.len() as u64);
    }
    match case.want.stop {
        StopIs::Halt | StopIs::Idle => want.activity = Activity::Halted,
        StopIs::Shutdown => want.activity = Activity::Shutdown,
        _ => {}
    }
    for assign in &case.want.assigns {
        assign.apply(&mut want, profile, case.protected.map(|_| &image));
        if let Assign::Marked(selector, bits) = assign {
            let table = if selector & 4 == 0 { cpu.gdtr.base } else { cpu.ldtr.base };
            let at = table + u64::from(selector & !7);
            let marked = quad(&want_image, at) | bits;
            put(&mut want_image, at, &marked.to_le_bytes());
        }
    }
    // The frame is written before what the case says of memory, which may speak of the frame.
    if let Some(event) = case.want.event {
        flags_at = Some(deliver(&mut want, &mut want_image, profile, event));
        if case.want.stop == StopIs::Idle {
            want.rip += 1;
        }
    }
    fill(&mut want_image, &case.want.assigns);
    let (budget, want_stop) = (case.budget, case.want.stop);
    Setup { cpu, image, budget, want, want_image, want_stop, flags_at }
}

/// Puts a HLT where the case ends and lets it be executed too. False if that would be another
/// case.
fn follow_with_halt(setup: &mut Setup, case: &Case, profile: &Profile) -> bool {
    let want = &mut setup.want;
    let at = linear(want, profile);
    let start = linear(&setup.cpu, profile);
    // HLT is for level 0.
    if want.cpl() != 0 {
        return false;
    }
    let in_code = (start..start + case.code.len() as u64).contains(&at);
    let held_off = want.rflags & TF != 0 || want.pending.is_any() || want.shadow.is_any();
    let beyond = want.rip > u64::from(want.segment(SegReg::Cs).limit);
    let odd = case.pages.iter().any(|page| page.start == at & !0xFFF);
    if setup.want_stop != StopIs::Budget || in_code || held_off || beyond || odd || !want.a20 {
        return false;
    }
    put(&mut setup.image, at, &[0xF4]);
    put(&mut setup.want_image, at, &[0xF4]);
    want.rip += 1;
    want.rflags &= !RF;
    want.activity = Activity::Halted;
    setup.budget += 1;
    setup.want_stop = if want.rflags & IF != 0 { StopIs::Halt } else { StopIs::Idle };
    true
}

/// Runs a case in one way, and tells why it came back.
fn drive(
    cpu: &mut Cpu,
    bus: &mut CaseBus<'_>,
    profile: &Profile,
    way: &Way,
    budget: u64,
) -> Result<Stop, String> {
    if way.drive == Drive::Held {
        return drive_held(cpu, bus, profile, way.lines, budget);
    }
    let mut lines = vec![CacheLine::EMPTY; way.lines];
    let mut emulator = Emulator::new(profile, &mut lines);
    match way.drive {
        Drive::Observed => emulator.run_observed(cpu, bus, budget, &mut Nothing),
        Drive::Stepped => {
            for _ in 1..budget {
                match emulator.run(cpu, bus, 1) {
                    Ok(Stop::Budget) => {}
                    other => return other.map_err(|e| e.to_string()),
                }
            }
            emulator.run(cpu, bus, 1)
        }
        _ => emulator.run(cpu, bus, budget),
    }
    .map_err(|e| e.to_string())
}

struct Nothing;
impl Observer for Nothing {}

/// Every access to a device is a stop, after which another emulator goes on.
fn drive_held(
    cpu: &mut Cpu,
    bus: &mut CaseBus<'_>,
    profile: &Profile,
    lines: usize,
    budget: u64,
) -> Result<Stop, String> {
    bus.held = true;
    let (mut left, mut answer) = (budget, None::<(InFlight, u64)>);
    loop {
        let mut lines = vec![CacheLine::EMPTY; lines];
        let mut emulator = Emulator::new(profile, &mut lines);
        if let Some((record, value)) = answer.take() {
            emulator.restore_in_flight(&record).map_err(|e| e.to_string())?;
            emulator.reply(value).map_err(|e| e.to_string())?;
        }
        let before = cpu.clone();
        let stop = emulator.run(cpu, bus, left.min(1)).map_err(|e| e.to_string())?;
        left -= emulator.counters().spent;
        let (request, is_port) = match stop {
            Stop::Budget if left > 0 => continue,
            Stop::Mmio(request) => (request, false),
            Stop::Port(request) => (request, true),
            stop => return Ok(stop),
        };
        check_held(cpu, &before, bus, &request, is_port)?;
        let record = emulator.in_flight().ok_or("nothing is in flight after a request")?.clone();
        answer = Some((record, bus.serve(&request, is_port)));
    }
}

/// A held access: the request is what the bus saw last, and the instruction has not begun.
fn check_held(
    cpu: &Cpu,
    before: &Cpu,
    bus: &CaseBus<'_>,
    request: &Request,
    is_port: bool,
) -> Result<(), String> {
    let Request { address, size, direction, data } = *request;
    let seen = match (is_port, direction) {
        (false, Direction::Read) => Seen::Read(address, size),
        (false, Direction::Write) => Seen::Write(address, size, data),
        (true, Direction::Read) => Seen::In(address as u16, size),
        (true, Direction::Write) => Seen::Out(address as u16, size, data),
    };
    if bus.seen.last() != Some(&seen) {
        return Err(format!("the request is {seen:X?}, the bus saw {:X?}", bus.seen));
    }
    // An event taken at the boundary or an iteration may have come before; else nothing changed.
    let mut lines = Vec::new();
    if before.rip == cpu.rip && before.pending == cpu.pending {
        let mut before = before.clone();
        before.pending.interrupt = cpu.pending.interrupt;
        for reg in [Reg::Rcx, Reg::Rsi, Reg::Rdi] {
            before.gpr[reg] = cpu.gpr[reg];
        }
        compare_cpu(cpu, &before, 0, &mut lines);
    }
    if lines.is_empty() { Ok(()) } else { Err(format!("while held: {}", lines.join(", "))) }
}

fn stop_fits(stop: &Result<Stop, String>, want: StopIs) -> bool {
    let Ok(stop) = stop else { return false };
    match want {
        StopIs::Budget => *stop == Stop::Budget,
        StopIs::Halt => *stop == Stop::Halt,
        StopIs::Idle => *stop == Stop::Idle,
        StopIs::Shutdown => *stop == Stop::Shutdown,
        StopIs::Hypercall => *stop == Stop::Hypercall,
        StopIs::Unimplemented(reason) => {
            matches!(stop, Stop::Unimplemented(u) if u.reason == reason)
        }
    }
}

const NAMES: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Adds a line for each part of the state that differs.
fn compare_cpu(cpu: &Cpu, want: &Cpu, undefined: u64, lines: &mut Vec<String>) {
    for (i, name) in NAMES.iter().enumerate() {
        let (is, wanted) = (cpu.gpr.as_array()[i], want.gpr.as_array()[i]);
        if is != wanted {
            lines.push(format!("{name} is {is:08X}, want {wanted:08X}"));
        }
    }
    if cpu.rip != want.rip {
        lines.push(format!("eip is {:08X}, want {:08X}", cpu.rip, want.rip));
    }
    let (is, wanted) = (cpu.rflags & !undefined, want.rflags & !undefined);
    if is != wanted {
        lines.push(format!("flags are {}, want {}", names(is), names(wanted)));
    }
    for reg in SegReg::ALL {
        if cpu.segment(reg) != want.segment(reg) {
            let (is, wanted) = (cpu.segment(reg), want.segment(reg));
            lines.push(format!("{reg:?} is {is:?}, want {wanted:?}"));
        }
    }
    let rest = |cpu: &Cpu| Cpu {
        gpr: Registers::ZERO,
        rip: 0,
        rflags: 0,
        seg: [Segment::real(0); 6],
        ..cpu.clone()
    };
    let (is, wanted) = (rest(cpu), rest(want));
    if is != wanted {
        let fields = |cpu: &Cpu| format!("{cpu:#X?}");
        for (is, wanted) in fields(&is).lines().zip(fields(&wanted).lines()) {
            if is != wanted {
                lines.push(format!("{} but want {}", is.trim(), wanted.trim()));
            }
        }
    }
}

/// Flags by name.
fn names(rflags: u64) -> String {
    let set = arch::rflags::NAMES.iter().filter(|(mask, _)| rflags & mask != 0);
    let names: Vec<_> = set.map(|(_, name)| *name).collect();
    format!("{rflags:X} ({})", names.join(","))
}

/// Adds a line for each byte of memory that differs, up to a few.
fn compare_memory(bus: &CaseBus<'_>, setup: &Setup, case: &Case, lines: &mut Vec<String>) {
    let mut pages: Vec<u64> = bus.touched().chain(setup.want_image.keys().copied()).collect();
    pages.sort_unstable();
    pages.dedup();
    // The flags in a frame are as undefined as the flags.
    let flags_at = setup.flags_at;
    let mut shown = 0;
    pages.retain(|page| !bus.holds(*page, setup.want_image.get(page)));
    pages.retain(|page| !case.pages.iter().any(|p| p.start == *page && p.kind == PageKind::Device));
    for at in pages.into_iter().flat_map(|page| page..page + PAGE_SIZE as u64) {
        let (mut is, mut wanted) = (bus.byte(at), get(&setup.want_image, at));
        if let Some(flags_at) = flags_at
            && (at == flags_at || at == flags_at.wrapping_add(1))
        {
            let mask = !(case.want.undefined >> (8 * (at - flags_at))) as u8;
            (is, wanted) = (is & mask, wanted & mask);
        }
        if is != wanted && shown < 8 {
            shown += 1;
            lines.push(format!("memory {at:X} is {is:02X}, want {wanted:02X}"));
        }
    }
}
