//! VEX, EVEX and XOP: the prefixes, and what else has to hold before an encoding with one of them
//! is defined (SDM vol. 2A, "Instruction Prefixes" and "Intel AVX-512 Encoding"; APM vol. 3,
//! "XOP").

use super::{Cursor, Decoder, Incomplete, Place, Prefixes, REX_B, REX_R, REX_W, REX_X};
use crate::arch::registers::ZERO_SLOT;
use crate::isa::operand::{Operand, Plan};
use crate::isa::row::{Map, Vector};
use crate::isa::table::Entry;
use crate::op::VEX_L;

/// EVEX's third byte: zeroing, L'L, b, V' (inverted), mask register.
pub(crate) const EVEX_Z: u8 = 0x80;
pub(crate) const EVEX_B: u8 = 0x10;
const EVEX_V: u8 = 8;
pub(crate) const EVEX_AAA: u8 = 7;

/// Takes the prefix that begins with `lead`: the map, and the opcode in it.
pub(super) fn take_vector(
    cursor: &mut Cursor<'_>,
    prefixes: &mut Prefixes,
    lead: u8,
    long: bool,
) -> Result<(Map, u8), Incomplete> {
    let first = cursor.take()?;
    // 66, F2, F3, LOCK or REX before it are #UD.
    prefixes.malformed |=
        prefixes.operand_size | prefixes.lock | (prefixes.repeat != 0) | (prefixes.rex != 0);
    prefixes.is_vector = true;
    // R, X, B are stored inverted.
    let mut rex = !first >> 5 & 7;
    let (selector, last) = match lead {
        0xC5 => {
            rex = !first >> 5 & REX_R;
            (1, first & 0x7F)
        }
        0x62 => take_evex(cursor, prefixes, first, long)?,
        _ => (first & 0x1F, cursor.take()?),
    };
    prefixes.wide = last & 0x80 != 0;
    prefixes.vvvv |= !last >> 3 & 15;
    if lead != 0x62 {
        prefixes.length = last >> 2 & 1;
    }
    (prefixes.operand_size, prefixes.repeat) = match last & 3 {
        0 => (false, 0),
        1 => (true, 0),
        2 => (false, 0xF3),
        _ => (false, 0xF2),
    };
    let rex_w = if prefixes.wide { REX_W } else { 0 };
    prefixes.rex = if long { 0x40 | rex | rex_w } else { 0 };
    let map = match (lead, selector) {
        (0x62, 1) => Map::Evex1,
        (0x62, 2) => Map::Evex2,
        (0x62, 3) => Map::Evex3,
        (0x62, 5) => Map::Evex5,
        (0x62, 6) => Map::Evex6,
        (0x8F, 8) => Map::Xop8,
        (0x8F, 9) => Map::Xop9,
        (0x8F, 10) => Map::XopA,
        (0xC4 | 0xC5, 1) => Map::Vex1,
        (0xC4, 2) => Map::Vex2,
        (0xC4, 3) => Map::Vex3,
        (0xC4, 7) => Map::Vex7,
        _ => {
            prefixes.malformed = true;
            Map::One
        }
    };
    Ok((map, cursor.take()?))
}

/// The rest of an EVEX prefix: its map number, and the byte it shares with VEX.
fn take_evex(
    cursor: &mut Cursor<'_>,
    prefixes: &mut Prefixes,
    first: u8,
    long: bool,
) -> Result<(u8, u8), Incomplete> {
    let second = cursor.take()?;
    let third = cursor.take()?;
    // Bit 3 of the first byte is fixed to zero, bit 2 of the second to one; outside 64-bit code
    // V' is too.
    prefixes.malformed |= first & 8 != 0 || second & 4 == 0 || !long && third & EVEX_V == 0;
    prefixes.is_evex = true;
    prefixes.evex = third;
    prefixes.length = third >> 5 & 3;
    if long {
        prefixes.vvvv = (!third & EVEX_V) << 1;
        prefixes.high_reg = first & 0x10 == 0;
    }
    Ok((first & 7, second))
}

impl Decoder<'_> {
    /// Are L and W what the row asks for?
    pub(super) fn vector_fits(&self, row: &Entry, is_register: bool) -> bool {
        let prefixes = &self.prefixes;
        // Where b in the register form stands for rounding or SAE, L is no length.
        let length = if prefixes.is_evex && is_register && prefixes.evex & EVEX_B != 0 {
            2
        } else {
            prefixes.length
        };
        row.vector.lengths >> length & 1 != 0
    }

    /// VEX.vvvv and VEX.L, as an op without an immediate keeps them.
    pub(super) fn vector_fields(&self) -> u64 {
        let prefixes = &self.prefixes;
        let vvvv = if self.is_long() { prefixes.vvvv } else { prefixes.vvvv & 7 };
        u64::from(vvvv) | if prefixes.length & 1 != 0 { VEX_L } else { 0 }
    }

    /// Is the instruction defined? Called where a row has been found for it.
    pub(super) fn vector_is_defined(&self, row: &Entry, modrm: u8, place: &Place) -> bool {
        let prefixes = &self.prefixes;
        let plan = row.plan;
        let mut vvvv = prefixes.vvvv;
        if plan.has(Plan::SIB) {
            // V' extends the index.
            vvvv &= 15;
            let has_sib = modrm & 7 == 4 && place.is_memory && self.address_size() != 2;
            if !has_sib {
                return false;
            }
        }
        // An unused vvvv is 1111b; there are only eight mask, tile and bound registers.
        let eight = row.operands.iter().any(|o| matches!(o, Operand::Kv | Operand::Tv));
        let vvvv_fits =
            if plan.has(Plan::VVVV) { !eight || vvvv < 8 || !self.is_long() } else { vvvv == 0 };
        let high_reg = prefixes.rex & REX_R != 0 || prefixes.high_reg;
        // EVEX.R' is no part of the number of a general register.
        let is_general = |o: &Operand| matches!(o, Operand::Gd | Operand::Gv | Operand::Gy);
        let no_reg = plan.has(Plan::EIGHT_REGS) && high_reg
            || prefixes.high_reg && row.operands.iter().any(is_general);
        let high_rm =
            prefixes.rex & REX_B != 0 && row.operands.iter().any(|o| matches!(o, Operand::Te));
        vvvv_fits
            && !no_reg
            && !high_rm
            && self.evex_is_defined(row, place.is_memory)
            && (row.vector.evex & Vector::DISTINCT == 0 || self.are_distinct(row, modrm, place))
    }

    /// What EVEX multiplies an 8-bit displacement by: the size of what is accessed (SDM vol. 2A,
    /// "Compressed Displacement (disp8*N) Support in EVEX").
    pub(super) fn displacement_unit(&self, row: &Entry, modrm: u8) -> i32 {
        let prefixes = &self.prefixes;
        if !prefixes.is_evex || modrm >> 6 != 1 {
            return 1;
        }
        if prefixes.evex & EVEX_B != 0 {
            return 1 << ((row.vector.evex & Vector::BROADCAST) >> 5);
        }
        let Some(operand) = row.operands.iter().find(|operand| operand.is_rm()) else {
            return 1;
        };
        // An element where elements are accessed one by one.
        let element = if prefixes.wide { 8 } else { 4 };
        match operand {
            // VPEXPANDB and W, VPCOMPRESSB and W are 62 and 63; the others have larger elements.
            Operand::Wn if matches!(self.opcode, 0x62 | 0x63) => element / 4,
            Operand::Wn => element,
            operand if operand.is_vsib() => element,
            operand => {
                let size = if self.is_long() { element as u16 } else { 4 };
                i32::from(operand.memory_bytes(16 << prefixes.length.min(2), size))
            }
        }
    }

    fn evex_is_defined(&self, row: &Entry, is_memory: bool) -> bool {
        if !self.prefixes.is_evex {
            return true;
        }
        let (evex, allowed) = (self.prefixes.evex, row.vector.evex);
        let mask = evex & EVEX_AAA;
        let mask_fits = if mask == 0 {
            allowed & Vector::MASK_REQUIRED == 0
        } else {
            allowed & Vector::MASK != 0
        };
        // Zeroing needs a mask, and no store zeroes.
        let stores = is_memory && row.operands[0].is_rm();
        let zeroing_fits =
            evex & EVEX_Z == 0 || mask != 0 && allowed & Vector::ZEROING != 0 && !stores;
        let b = if is_memory { Vector::BROADCAST } else { Vector::ROUNDING | Vector::SAE };
        mask_fits && zeroing_fits && (evex & EVEX_B == 0 || allowed & b != 0)
    }

    /// Does the destination differ from every source, as gathers, tiles and complex products
    /// require, and for the first two the sources from each other?
    fn are_distinct(&self, row: &Entry, modrm: u8, place: &Place) -> bool {
        let prefixes = &self.prefixes;
        let rex = prefixes.rex;
        let high = |is_high: bool| if is_high { 16 } else { 0 };
        let reg = modrm >> 3 & 7 | (rex & REX_R) << 1 | high(prefixes.high_reg);
        let vvvv = if self.is_long() { prefixes.vvvv } else { prefixes.vvvv & 7 };
        if !row.plan.has(Plan::SIB) {
            let wide = prefixes.is_evex && rex & REX_X != 0;
            let rm = place.rm | high(wide);
            let is_tile = row.operands[0] == Operand::Tile;
            return (place.is_memory || reg != rm)
                && reg != vvvv
                && !(is_tile && !place.is_memory && rm == vvvv);
        }
        let index = if place.index == ZERO_SLOT { 4 } else { place.index };
        if prefixes.is_evex {
            // Scatters, which store, may index with their source.
            return row.operands[0].is_vsib() || reg != index | vvvv & 16;
        }
        reg != index && reg != vvvv && index != vvvv
    }
}
