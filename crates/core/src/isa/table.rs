//! The table decode searches: every row, packed, and the chains of rows that each opcode has.
//!
//! Rows are written as [`Row`]s, which exist at compile time only. What is stored is an [`Entry`]
//! of 28 bytes: names, feature sets and handlers are kept once and referred to by number.

use crate::arch::cpuid::Features;
use crate::isa::FAMILIES;
use crate::isa::operand::{Operand, Plan};
use crate::isa::row::{
    Effect, Exec, Form, KEEPS, MAPS, Map, Modes, NO_DIGIT, Prefix, Row, Size64, Traits, Vector,
    VectorSet,
};
use crate::op::Handler;
use crate::profile::Generation;

/// How many rows there are.
pub(crate) const ROW_COUNT: usize = {
    let mut count = 0;
    let mut i = 0;
    while i < FAMILIES.len() {
        count += FAMILIES[i].rows.len();
        i += 1;
    }
    count
};

/// A row as it is stored.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    name: u16,
    action: u16,
    pub(crate) plan: Plan,
    name_len: u8,
    /// Number of its feature set; 0 is the empty one.
    features: u8,
    pub(crate) span: u8,
    pub(crate) digit: u8,
    pub(crate) form: Form,
    pub(crate) prefix: Prefix,
    pub(crate) modes: Modes,
    pub(crate) size64: Size64,
    pub(crate) vector: Vector,
    pub(crate) since: Generation,
    pub(crate) until: Generation,
    pub(crate) operands: [Operand; 4],
    traits: Traits,
}

const _: () = assert!(size_of::<Entry>() <= 28);

/// What executes a row. Rows that nothing executes share one.
#[derive(Clone, Copy)]
struct Action {
    exec: Exec,
    locked: Option<Handler>,
}

impl Action {
    const NONE: Action = Action { exec: Exec::Unimplemented, locked: None };
}

impl Entry {
    /// Its name, in capitals.
    pub(crate) fn name(&self) -> &'static str {
        let start = usize::from(self.name);
        NAMES.get(start..start + usize::from(self.name_len)).unwrap_or("?")
    }

    /// The CPUID features it needs, all of them.
    #[inline]
    pub(crate) fn features(&self) -> Features {
        FEATURES.get(usize::from(self.features)).copied().unwrap_or_default()
    }

    /// What executes it.
    #[inline]
    pub(crate) fn exec(&self) -> Exec {
        self.action().exec
    }

    /// The LOCK form, where LOCK is legal.
    #[inline]
    pub(crate) fn locked(&self) -> Option<Handler> {
        self.action().locked
    }

    /// Is LOCK legal before it?
    #[inline]
    pub(crate) fn takes_lock(&self, is_memory: bool) -> bool {
        // AMD's LOCK MOV CR0 is the one legal LOCK without a memory operand.
        self.locked().is_some() && (is_memory || self.plan.has(Plan::REGISTER_ONLY))
    }

    /// What it does to the flags.
    pub(crate) fn effect(&self) -> Effect {
        EFFECTS.get(usize::from(self.action)).copied().unwrap_or(KEEPS)
    }

    #[inline]
    fn action(&self) -> &'static Action {
        ACTIONS.get(usize::from(self.action)).unwrap_or(&ACTIONS[0])
    }

    /// Does a trait apply?
    pub(crate) const fn has(&self, t: u8) -> bool {
        self.traits.0 & t != 0
    }
}

/// Every row, by the number an `Op` carries.
pub(crate) static ROWS: [Entry; ROW_COUNT] = PACKED.rows;
static ACTIONS: [Action; ACTION_COUNT] = PACKED.actions;
/// Map and opcode of each row, for who lists them: decode comes from there.
static OPCODES: [(Map, u8); ROW_COUNT] = {
    let mut opcodes = [(Map::One, 0); ROW_COUNT];
    let mut at = 0;
    let mut i = 0;
    while i < FAMILIES.len() {
        let mut j = 0;
        while j < FAMILIES[i].rows.len() {
            let row = &FAMILIES[i].rows[j];
            opcodes[at] = (row.map, row.opcode);
            at += 1;
            j += 1;
        }
        i += 1;
    }
    opcodes
};
/// Apart from the actions, so that a program that never asks does not have them.
static EFFECTS: [Effect; ACTION_COUNT] = PACKED.effects;
static FEATURES: [Features; PACKED.feature_count] = head(&PACKED.features);
static NAMES: &str = {
    const BYTES: [u8; PACKED.name_bytes] = head(&PACKED.names);
    match core::str::from_utf8(&BYTES) {
        Ok(names) => names,
        Err(_) => panic!("names are ASCII"),
    }
};

const fn head<T: Copy, const N: usize>(all: &[T]) -> [T; N] {
    let mut part = [all[0]; N];
    let mut i = 0;
    while i < N {
        part[i] = all[i];
        i += 1;
    }
    part
}

const ACTION_COUNT: usize = {
    let mut count = SHARED;
    let mut i = 0;
    while i < FAMILIES.len() {
        let mut j = 0;
        while j < FAMILIES[i].rows.len() {
            count += !is_inert(&FAMILIES[i].rows[j]) as usize;
            j += 1;
        }
        i += 1;
    }
    count
};

/// The actions that rows share which nothing executes: one for each set of registers, behind that
/// of the others.
const SHARED: usize = 1 + VectorSet::ALL.len();

/// Does nothing execute it?
const fn is_inert(row: &Row) -> bool {
    row.locked.is_none() && matches!(row.exec, Exec::Unimplemented | Exec::NotExecuted(_))
}

const NAME_BYTES: usize = 24 << 10;
const NAME_SLOTS: usize = 4096;
const FEATURE_SETS: usize = 255;

/// The tables under construction.
struct Packed {
    rows: [Entry; ROW_COUNT],
    actions: [Action; ACTION_COUNT],
    /// By the number of the action.
    effects: [Effect; ACTION_COUNT],
    action_count: usize,
    names: [u8; NAME_BYTES],
    name_bytes: usize,
    /// Start and length of each name, by its hash.
    name_slots: [(u16, u8); NAME_SLOTS],
    features: [Features; FEATURE_SETS],
    feature_count: usize,
}

const PACKED: Packed = Packed::build();

impl Packed {
    const fn build() -> Packed {
        let mut packed = Packed {
            rows: [Packed::entry(&FAMILIES[0].rows[0], (0, 0), 0, 0); ROW_COUNT],
            actions: [Action::NONE; ACTION_COUNT],
            effects: [KEEPS; ACTION_COUNT],
            action_count: SHARED,
            names: [0; NAME_BYTES],
            name_bytes: 0,
            name_slots: [(0, 0); NAME_SLOTS],
            features: [Features::empty(); FEATURE_SETS],
            feature_count: 1,
        };
        let mut at = 0;
        let mut i = 0;
        while i < VectorSet::ALL.len() {
            packed.actions[1 + i].exec = Exec::NotExecuted(VectorSet::ALL[i]);
            i += 1;
        }
        i = 0;
        while i < FAMILIES.len() {
            let mut j = 0;
            while j < FAMILIES[i].rows.len() {
                let row = &FAMILIES[i].rows[j];
                let name = packed.name(row.name);
                let features = packed.features(row.features);
                let action = packed.action(row);
                packed.rows[at] = Packed::entry(row, name, features, action);
                at += 1;
                j += 1;
            }
            i += 1;
        }
        packed
    }

    const fn entry(row: &Row, name: (u16, u8), features: u8, action: u16) -> Entry {
        Entry {
            name: name.0,
            action,
            plan: row.plan,
            name_len: name.1,
            features,
            span: row.span,
            digit: row.digit,
            form: row.form,
            prefix: row.prefix,
            modes: row.modes,
            size64: row.size64,
            vector: row.vector,
            since: row.since,
            until: row.until,
            operands: row.operands,
            traits: row.traits,
        }
    }

    /// The place of a name in the text of all names.
    const fn name(&mut self, name: &str) -> (u16, u8) {
        let bytes = name.as_bytes();
        let mut hash = 0usize;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash * 31 + bytes[i] as usize) % NAME_SLOTS;
            i += 1;
        }
        loop {
            let (start, len) = self.name_slots[hash];
            if len == 0 {
                break;
            }
            if self.is_at(bytes, start as usize, len as usize) {
                return (start, len);
            }
            hash = (hash + 1) % NAME_SLOTS;
        }
        let start = self.name_bytes;
        i = 0;
        while i < bytes.len() {
            self.names[start + i] = bytes[i];
            i += 1;
        }
        self.name_bytes += bytes.len();
        self.name_slots[hash] = (start as u16, bytes.len() as u8);
        self.name_slots[hash]
    }

    const fn is_at(&self, bytes: &[u8], start: usize, len: usize) -> bool {
        let mut i = 0;
        while i < len && i < bytes.len() && self.names[start + i] == bytes[i] {
            i += 1;
        }
        i == len && i == bytes.len()
    }

    /// The number of a set of features.
    const fn features(&mut self, features: Features) -> u8 {
        if features.is_empty() {
            return 0;
        }
        // Backwards: rows of a feature stand together.
        let mut i = self.feature_count;
        while i > 1 {
            i -= 1;
            if self.features[i].bits() == features.bits() {
                return i as u8;
            }
        }
        let number = self.feature_count;
        self.features[number] = features;
        self.feature_count += 1;
        number as u8
    }

    /// The number of what executes a row.
    const fn action(&mut self, row: &Row) -> u16 {
        match row.exec {
            Exec::NotExecuted(set) => return 1 + set as u16,
            _ if is_inert(row) => return 0,
            _ => {}
        }
        let number = self.action_count;
        self.actions[number] = Action { exec: row.exec, locked: row.locked };
        self.effects[number] = row.effect;
        self.action_count += 1;
        number as u16
    }
}

/// The map and the first opcode of a row.
pub(crate) fn opcode(number: u16) -> (Map, u8) {
    OPCODES.get(usize::from(number)).copied().unwrap_or((Map::One, 0))
}

/// A link of an opcode's chain of rows.
#[derive(Clone, Copy)]
struct Link {
    row: u16,
    /// Index of the next link plus one; 0 ends the chain.
    next: u16,
}

/// Maps whose opcodes are also told apart by ModRM.reg when they are looked up.
const DIGIT_MAPS: usize = 2;

/// Opcode to rows.
struct Chains<const LINKS: usize> {
    /// First link plus one of the one-byte and 0F maps, by opcode and ModRM.reg.
    digits: [[[u16; 8]; 256]; DIGIT_MAPS],
    /// First link plus one of the other maps.
    opcodes: [[u16; 256]; MAPS - DIGIT_MAPS],
    links: [Link; LINKS],
    used: usize,
}

/// The chains, with room to spare at compile time and cut to size for the program.
const BUILT: Chains<16384> = Chains::build();
static CHAINS: Chains<{ BUILT.used }> = Chains {
    digits: BUILT.digits,
    opcodes: BUILT.opcodes,
    links: head(&BUILT.links),
    used: BUILT.used,
};

impl<const LINKS: usize> Chains<LINKS> {
    const fn build() -> Self {
        let mut chains = Chains {
            digits: [[[0; 8]; 256]; DIGIT_MAPS],
            opcodes: [[0; 256]; MAPS - DIGIT_MAPS],
            links: [Link { row: 0, next: 0 }; LINKS],
            used: 0,
        };
        // Backwards, so that each chain begins with the first row.
        let mut number = ROW_COUNT;
        let mut i = FAMILIES.len();
        while i > 0 {
            i -= 1;
            let mut j = FAMILIES[i].rows.len();
            while j > 0 {
                j -= 1;
                number -= 1;
                chains.add(number, &FAMILIES[i].rows[j]);
            }
        }
        chains
    }

    /// Puts a row before the chains of its opcodes.
    const fn add(&mut self, number: usize, row: &Row) {
        let map = row.map as usize;
        let digit = match row.form {
            Form::Exact(byte) => byte >> 3 & 7,
            _ => row.digit,
        };
        let mut k = 0;
        while k < row.span as usize {
            let opcode = row.opcode as usize + k;
            if map >= DIGIT_MAPS {
                let head = self.opcodes[map - DIGIT_MAPS][opcode];
                self.opcodes[map - DIGIT_MAPS][opcode] = self.link(number, head);
            } else if digit != NO_DIGIT {
                let head = self.digits[map][opcode][digit as usize];
                self.digits[map][opcode][digit as usize] = self.link(number, head);
            } else {
                self.add_to_all(number, map, opcode);
            }
            k += 1;
        }
    }

    const fn link(&mut self, number: usize, next: u16) -> u16 {
        self.links[self.used] = Link { row: number as u16, next };
        self.used += 1;
        self.used as u16
    }

    /// Puts a row before all eight chains of an opcode; those that are still one stay one.
    const fn add_to_all(&mut self, number: usize, map: usize, opcode: usize) {
        let mut d = 0;
        while d < 8 {
            let old = self.digits[map][opcode][d];
            let new = self.link(number, old);
            while d < 8 && self.digits[map][opcode][d] == old {
                self.digits[map][opcode][d] = new;
                d += 1;
            }
        }
    }
}

/// The rows of an opcode, first choice first. `digit` is ModRM.reg, or 0 where there is none.
pub(crate) fn candidates(map: usize, opcode: u8, digit: u8) -> Candidates {
    let next = if map < DIGIT_MAPS {
        CHAINS.digits[map][usize::from(opcode)][usize::from(digit & 7)]
    } else {
        CHAINS.opcodes.get(map - DIGIT_MAPS).map_or(0, |heads| heads[usize::from(opcode)])
    };
    Candidates { next }
}

/// An iterator over the rows of an opcode.
pub(crate) struct Candidates {
    next: u16,
}

impl Iterator for Candidates {
    type Item = (u16, &'static Entry);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let link = CHAINS.links.get(usize::from(self.next).checked_sub(1)?)?;
        self.next = link.next;
        Some((link.row, ROWS.get(usize::from(link.row))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_stay_small_enough_to_embed() {
        // Effects are there only for who asks for them.
        let bytes = size_of_val(&ROWS)
            + size_of_val(&ACTIONS)
            + size_of_val(&FEATURES)
            + size_of_val(&CHAINS)
            + NAMES.len();
        let (actions, links) = (ACTIONS.len(), CHAINS.used);
        assert!(
            bytes < 160 << 10,
            "{bytes} bytes for {ROW_COUNT} rows, {actions} actions, {links} links, {} of names",
            NAMES.len()
        );
    }

    #[test]
    fn names_survive_packing() {
        let rows = FAMILIES.iter().flat_map(|family| family.rows);
        for (row, entry) in rows.zip(&ROWS) {
            assert_eq!(row.name, entry.name());
            assert_eq!(row.features, entry.features());
        }
    }
}
