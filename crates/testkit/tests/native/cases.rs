//! Cases of these tests: the same registers and segments, but for what a test is about.

use std::sync::atomic::{AtomicU16, Ordering};

use realmode_testkit::proof::*;

/// Where the code begins.
pub(crate) const ENTRY: u32 = 0x100;
/// A stack pointer in the middle of the stack, in 16- and 32-bit code.
pub(crate) const SP: u64 = 0x8000;

/// All modes of the oracle.
pub(crate) const MODES: [Mode; 3] = [Mode::Bits16, Mode::Bits32, Mode::Bits64];

/// An oracle with an arena of its own, or a line that says why there is none.
pub(crate) fn native() -> Option<Native> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    match Native::new(NEXT.fetch_add(1, Ordering::Relaxed)) {
        Ok(native) => Some(native),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// A case with these bytes as its code.
pub(crate) fn case(native: &Native, mode: Mode, bytes: &[u8]) -> Case {
    let layout = native.layout();
    let mut code = Code::default();
    bytes.iter().for_each(|&byte| code.push(byte));
    let (cs, ss) = match mode {
        Mode::Bits16 => (Kind::Code16, Kind::Stack16),
        _ => (Kind::Code32, Kind::Stack32),
    };
    let mut case = Case {
        mode,
        layout,
        code,
        entry: ENTRY,
        gpr: [0; 16],
        rflags: 0x202,
        segments: [Kind::Extra, cs, ss, Kind::Data, Kind::Fs, Kind::Gs],
        pokes: [Poke::default(); 3],
        paging: Paging::Off,
    };
    case.gpr[4] = match mode {
        Mode::Bits64 => u64::from(layout.base + STACK) + SP,
        _ => SP,
    };
    case
}

/// Bytes to put at an offset of the arena.
pub(crate) fn poke(at: u32, bytes: &[u8]) -> Poke {
    let mut poke = Poke { at, len: bytes.len() as u8, ..Poke::default() };
    poke.bytes[..bytes.len()].copy_from_slice(bytes);
    poke
}

/// The linear address of a place in the code, as it is saved by an exception.
pub(crate) fn ip(native: &Native, mode: Mode, offset: u32) -> u64 {
    match mode {
        Mode::Bits64 => u64::from(native.layout().base + CODE + offset),
        _ => u64::from(offset),
    }
}

/// Vector, error code, and instruction pointer relative to the entry.
pub(crate) fn exception(native: &Native, case: &Case, outcome: &Outcome) -> (u8, u32, i64) {
    match outcome.end {
        End::Exception { vector, error, rip } => {
            let entry = ip(native, case.mode, case.entry);
            (vector, error, rip.wrapping_sub(entry) as i64)
        }
        end => panic!("{case:x?}\nended as {end:?}"),
    }
}

/// Eight bytes of the arena.
pub(crate) fn peek(native: &Native, at: u32) -> u64 {
    native.page(at as usize / 4096)[at as usize % 4096 / 8].get()
}
