//! One outcome as bytes: what changed, and nothing else.

use super::RecordError;
use crate::proof::case::{Case, Mode};
use crate::proof::outcome::{End, Outcome};

/// A word of memory that a case changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its offset in the arena.
    pub(super) at: u32,
    pub(super) value: u64,
}

/// What is recorded of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) outcome: Outcome,
    pub(super) words: Vec<Word>,
}

const UNFIT: u8 = 0;
const RETURNED: u8 = 1;
const EXCEPTION: u8 = 2;

/// A case that is not recorded.
pub(super) fn put_unfit(bytes: &mut Vec<u8>) {
    bytes.push(UNFIT);
}

/// What a case started with, in the terms of an outcome.
pub(super) fn start(case: &Case) -> Outcome {
    let mut gpr = case.gpr;
    if case.mode != Mode::Bits64 {
        gpr[..8].iter_mut().for_each(|register| *register &= 0xFFFF_FFFF);
        gpr[8..].fill(0);
    }
    Outcome {
        end: End::Returned,
        gpr,
        rflags: case.rflags,
        selectors: case.cpu().seg.map(|segment| segment.selector),
        cr2: 0,
    }
}

/// Appends an entry.
pub(super) fn put(bytes: &mut Vec<u8>, case: &Case, entry: &Entry) {
    let Entry { outcome, words } = entry;
    match outcome.end {
        End::Returned | End::Hung => bytes.push(RETURNED),
        End::Exception { vector, error, rip } => {
            bytes.extend([EXCEPTION, vector]);
            put_number(bytes, u64::from(error));
            put_number(bytes, rip.wrapping_sub(case.cpu().rip));
            if vector == 14 {
                put_number(bytes, outcome.cr2);
            }
        }
    }
    let before = start(case);
    let registers = changed(&before.gpr, &outcome.gpr);
    put_number(bytes, registers);
    for number in (0..16).filter(|number| registers >> number & 1 != 0) {
        put_number(bytes, outcome.gpr[number]);
    }
    put_number(bytes, before.rflags ^ outcome.rflags);
    let segments = changed(&before.selectors, &outcome.selectors);
    bytes.push(segments as u8);
    for number in (0..6).filter(|number| segments >> number & 1 != 0) {
        put_number(bytes, u64::from(outcome.selectors[number]));
    }
    put_number(bytes, words.len() as u64);
    let mut last = 0;
    for word in words {
        put_number(bytes, u64::from(word.at / 8 - last));
        last = word.at / 8;
        bytes.extend(word.value.to_le_bytes());
    }
}

/// Takes an entry; nothing if the case was not recorded.
pub(super) fn take(bytes: &mut &[u8], case: &Case) -> Result<Option<Entry>, RecordError> {
    let mut outcome = start(case);
    match byte(bytes)? {
        UNFIT => return Ok(None),
        RETURNED => {}
        EXCEPTION => {
            let vector = byte(bytes)?;
            let error = number(bytes)? as u32;
            let rip = case.cpu().rip.wrapping_add(number(bytes)?);
            outcome.end = End::Exception { vector, error, rip };
            outcome.cr2 = if vector == 14 { number(bytes)? } else { 0 };
        }
        _ => return Err(RecordError::Damaged("an outcome is of no known kind")),
    }
    let registers = number(bytes)?;
    for i in (0..16).filter(|i| registers >> i & 1 != 0) {
        outcome.gpr[i] = number(bytes)?;
    }
    outcome.rflags ^= number(bytes)?;
    let segments = byte(bytes)?;
    for i in (0..6).filter(|i| segments >> i & 1 != 0) {
        outcome.selectors[i] = number(bytes)? as u16;
    }
    let count = number(bytes)?;
    let mut words = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        at += number(bytes)? as u32 * 8;
        let mut value = [0; 8];
        for place in &mut value {
            *place = byte(bytes)?;
        }
        words.push(Word { at, value: u64::from_le_bytes(value) });
    }
    Ok(Some(Entry { outcome, words }))
}

/// Bit i for an element i that changed.
fn changed<T: PartialEq>(before: &[T], after: &[T]) -> u64 {
    let pairs = before.iter().zip(after).enumerate();
    pairs.fold(0, |mask, (i, (a, b))| mask | u64::from(a != b) << i)
}

/// Seven bits a byte, lowest first; the last one has bit 7 clear.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn byte(bytes: &mut &[u8]) -> Result<u8, RecordError> {
    let (first, rest) = bytes.split_first().ok_or(RecordError::Damaged("an outcome is cut off"))?;
    *bytes = rest;
    Ok(*first)
}

fn number(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(RecordError::Damaged("a number in it is too long"))
}
