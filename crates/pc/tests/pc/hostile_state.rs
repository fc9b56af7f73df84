//! Saved machines that were tampered with: refused, or run into no panic and no endless loop.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU8, Ordering};

use realmode::{Activity, CacheLine, Cpu, Emulator, Profile, Stop};
use realmode_pc::{Channel, Error, Pc, SECTOR, State};
use serde_json::{Value, json};

use super::devices::{InMemory, memory};

const PORTS: &[u8] = include_bytes!("../../../../testdata/guests/ports.bin");
/// What a machine is run for.
const BUDGET: u64 = 10_000;
/// After so much of it a machine that waits is woken.
const SLICE: u64 = 500;
/// It runs no more often, used up or not.
const MOST_RUNS: usize = 2_000;

/// What a leaf may be replaced by: another one of its kind, or anything if it is nothing.
fn replacements(leaf: &Value) -> Vec<Value> {
    let small = [0, 1, 2, 3, 6, 7, 8, 9, 16, 17, 32, 127, 128, 255, 256, 511, 512, 513, 10_001];
    let large = [0xFFFF, 0x1_0000, 0x1_0001, u64::from(u32::MAX), 1 << 40, 1 << 62, u64::MAX];
    let negative = [-1, -(1 << 49), i64::MIN, i64::MAX];
    let names = ["In", "Out", "Low", "High", "Both", "Icw2", "Icw3", "Icw4", "Mask"];
    let more = ["Reset", "PowerOff", "Halted", "Shutdown", "WaitForSipi", "Nmi"];
    let numbers = small.into_iter().chain(large).map(|number| json!(number));
    let numbers: Vec<Value> = numbers.chain(negative.map(|number| json!(number))).collect();
    let names = names.into_iter().chain(more).map(|name| json!(name));
    match leaf {
        Value::Number(_) => numbers,
        Value::Bool(is_set) => vec![json!(!is_set)],
        Value::String(_) => names.collect(),
        _ => names.chain(numbers).chain([json!({ "Exit": 1 })]).collect(),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) as usize % end
    }

    /// Replaces one of the leaves.
    fn tamper(&mut self, tree: &mut Value, place: &str) {
        let leaf = tree.pointer_mut(place).expect("it was found there");
        let values = replacements(leaf);
        *leaf = values[self.below(values.len())].clone();
    }
}

/// Where the leaves of a tree are, as JSON pointers. Of an array of numbers two are enough.
fn leaves(tree: &Value, at: &str, found: &mut Vec<String>) {
    match tree {
        Value::Object(fields) => {
            for (name, field) in fields {
                leaves(field, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            let is_plain = items.iter().all(Value::is_number) && items.len() > 4;
            for (i, item) in items.iter().enumerate().take(if is_plain { 2 } else { 16 }) {
                leaves(item, &format!("{at}/{i}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Restores a machine of its own and runs it. Returns the instructions it executed.
fn go_on(state: &State, mut cpu: Cpu) -> Result<u64, Error> {
    let ram = memory(1 << 20);
    let mut disk = InMemory((0..64 * SECTOR).map(|at| at as u8).collect());
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, |_: Channel, _: u8| ControlFlow::Continue(()))?;
    pc.attach_disk(&mut disk)?;
    pc.boot_image(PORTS, 0, 0x7C00)?;
    pc.restore(state)?;
    set_vectors(&ram);
    for _ in 0..MOST_RUNS {
        let left = BUDGET.saturating_sub(emulator.counters().spent).min(SLICE);
        match pc.run(&mut emulator, &mut cpu, left) {
            Ok(Stop::Unimplemented(_) | Stop::Shutdown) | Err(_) => break,
            // Whatever it waits for: it goes on.
            Ok(_) => cpu.activity = Activity::Running,
        }
    }
    let _ = (pc.screen(), pc.cursor(), pc.now(), pc.next_event(), pc.save());
    Ok(emulator.counters().instructions)
}

/// The vectors as the guest has set them some time ago.
fn set_vectors(ram: &[AtomicU8]) {
    let handler = PORTS.windows(3).position(|code| code == [0x50, 0xB0, 0x20]);
    let [low, high] = (0x7C00 + handler.expect("it is there") as u16).to_le_bytes();
    for vector in ram[..0x400].chunks(4) {
        vector[0].store(low, Ordering::Relaxed);
        vector[1].store(high, Ordering::Relaxed);
        vector[2..].iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
    }
}

/// States and processors of a run of the guest, of which each device has seen something.
fn honest() -> Vec<(State, Cpu)> {
    let ram = memory(1 << 20);
    let mut disk = InMemory((0..64 * SECTOR).map(|at| at as u8).collect());
    let mut lines = vec![CacheLine::EMPTY; 64];
    let mut emulator = Emulator::new(&Profile::INTEL, &mut lines);
    let mut pc = Pc::new(&ram, |_: Channel, _: u8| ControlFlow::Continue(())).expect("pages");
    pc.attach_disk(&mut disk).expect("64 sectors");
    let mut cpu = pc.boot_image(PORTS, 0, 0x7C00).expect("it fits");
    pc.type_text("some text to type");
    pc.send_serial(b"some bytes to receive");
    let mut found = Vec::new();
    for _ in 0..3 {
        pc.run(&mut emulator, &mut cpu, 3_000).expect("nothing is in flight");
        cpu.activity = Activity::Running;
        found.push((pc.save(), cpu.clone()));
    }
    found
}

/// Replaces leaves of the tree: one, then some at a time. Returns the cases.
fn tampered(tree: &Value, each: usize, random: &mut Random) -> Vec<Value> {
    let mut places = Vec::new();
    leaves(tree, "", &mut places);
    let mut cases = Vec::new();
    for place in &places {
        for _ in 0..each {
            let mut case = tree.clone();
            random.tamper(&mut case, place);
            cases.push(case);
        }
    }
    for _ in 0..each * places.len() {
        let mut case = tree.clone();
        for _ in 0..2 + random.below(3) {
            let place = random.below(places.len());
            random.tamper(&mut case, &places[place]);
        }
        cases.push(case);
    }
    cases
}

#[test]
fn a_tampered_state_is_refused_or_harmless() {
    let mut random = Random(1);
    let (mut refused, mut ran) = (0, 0);
    for (state, cpu) in honest() {
        let count = go_on(&state, cpu.clone()).expect("a machine came to it");
        assert!(count > 5_000, "{count}");
        let tree = serde_json::to_value(&state).expect("a state is plain data");
        for case in tampered(&tree, 1, &mut random) {
            let Ok(state) = serde_json::from_value::<State>(case) else { continue };
            match go_on(&state, cpu.clone()) {
                Ok(_) => ran += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 50 && ran > 200, "{refused} refused, {ran} ran");
}

#[test]
fn a_tampered_processor_is_harmless() {
    let mut random = Random(2);
    let mut ran = 0;
    for (state, cpu) in honest() {
        let tree = serde_json::to_value(&cpu).expect("a processor is plain data");
        for case in tampered(&tree, 1, &mut random) {
            let Ok(cpu) = serde_json::from_value::<Cpu>(case) else { continue };
            go_on(&state, cpu).expect("the state is sound");
            ran += 1;
        }
    }
    assert!(ran > 200, "{ran} ran");
}
