//! The instruction set: one family a file, each with its rows and its handlers.
//!
//! Nothing outside a family names its instructions: decode finds rows through [`table`].

pub(crate) mod alu;
pub(crate) mod bcd;
pub(crate) mod bits;
pub(crate) mod bmi;
pub(crate) mod branch;
pub(crate) mod condition;
pub(crate) mod control;
pub(crate) mod divide_286;
pub(crate) mod exchange;
pub(crate) mod far;
pub(crate) mod far_long;
pub(crate) mod far_protected;
pub(crate) mod fast_call;
pub(crate) mod flag;
pub(crate) mod fpu;
pub(crate) mod hint;
pub(crate) mod mov;
pub(crate) mod msr;
pub(crate) mod muldiv;
pub(crate) mod operand;
pub(crate) mod port;
pub(crate) mod protected;
pub(crate) mod repeat;
pub(crate) mod row;
pub(crate) mod segment;
pub(crate) mod segment_base;
pub(crate) mod shift;
pub(crate) mod simd;
pub(crate) mod stack;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod table;
pub(crate) mod undefined;
pub(crate) mod virtual_8086;
pub(crate) mod vmx;

use crate::isa::row::Row;

/// Rows that stand in one file.
pub(crate) struct Family {
    /// The file's name.
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row],
}

/// Every family. Within an opcode the first row that fits wins, so a family that refines another
/// one's encoding by a prefix comes first.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "simd", rows: simd::state::ROWS },
    Family { name: "fxsave", rows: simd::fxsave::ROWS },
    Family { name: "xsave", rows: simd::xsave::ROWS },
    Family { name: "moves", rows: simd::moves::ROWS },
    Family { name: "mmx_moves", rows: simd::mmx_moves::ROWS },
    Family { name: "avx_moves", rows: simd::avx_moves::ROWS },
    Family { name: "sse_0f", rows: simd::sse_0f::ROWS },
    Family { name: "sse_0f38", rows: simd::sse_0f38::ROWS },
    Family { name: "vex_0f", rows: simd::vex_0f::ROWS },
    Family { name: "vex_0f38", rows: simd::vex_0f38::ROWS },
    Family { name: "vex_0f3a", rows: simd::vex_0f3a::ROWS },
    Family { name: "evex_0f", rows: simd::evex_0f::ROWS },
    Family { name: "evex_0f38", rows: simd::evex_0f38::ROWS },
    Family { name: "evex_0f3a", rows: simd::evex_0f3a::ROWS },
    Family { name: "evex_fp16", rows: simd::evex_fp16::ROWS },
    Family { name: "xop", rows: simd::xop::ROWS },
    Family { name: "now3d", rows: simd::now3d::ROWS },
    Family { name: "alu", rows: alu::ROWS },
    Family { name: "hint", rows: hint::ROWS },
    Family { name: "mov", rows: mov::ROWS },
    Family { name: "segment", rows: segment::ROWS },
    Family { name: "segment_base", rows: segment_base::ROWS },
    Family { name: "condition", rows: condition::ROWS },
    Family { name: "exchange", rows: exchange::ROWS },
    Family { name: "stack", rows: stack::ROWS },
    Family { name: "branch", rows: branch::ROWS },
    Family { name: "far", rows: far::ROWS },
    Family { name: "shift", rows: shift::ROWS },
    Family { name: "muldiv", rows: muldiv::ROWS },
    Family { name: "bits", rows: bits::ROWS },
    Family { name: "bmi", rows: bmi::ROWS },
    Family { name: "bcd", rows: bcd::ROWS },
    Family { name: "string", rows: string::ROWS },
    Family { name: "port", rows: port::ROWS },
    Family { name: "flag", rows: flag::ROWS },
    Family { name: "system", rows: system::ROWS },
    Family { name: "fast_call", rows: fast_call::ROWS },
    Family { name: "msr", rows: msr::ROWS },
    Family { name: "vmx", rows: vmx::ROWS },
    Family { name: "control", rows: control::ROWS },
    Family { name: "protected", rows: protected::ROWS },
    Family { name: "fpu", rows: fpu::ROWS },
];

#[cfg(test)]
mod tests {
    use super::FAMILIES;
    use super::operand::Plan;
    use super::row::{Form, KEEPS, Row, Traits};

    fn every_row() -> impl Iterator<Item = &'static Row> {
        FAMILIES.iter().flat_map(|family| family.rows)
    }

    #[test]
    fn every_row_stays_within_its_map() {
        for row in every_row() {
            assert!(row.span > 0, "{}", row.name);
            assert!(u16::from(row.opcode) + u16::from(row.span) <= 256, "{}", row.name);
        }
    }

    #[test]
    fn every_row_has_its_name_in_capitals() {
        for row in every_row() {
            // One row for sixteen conditions.
            let name = match row.name.split_once("cc") {
                Some((before, _)) if row.span == 16 => before,
                _ => row.name,
            };
            let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            assert!(!name.is_empty() && name.chars().all(is_capital), "{}", row.name);
        }
    }

    #[test]
    fn every_lockable_row_has_a_memory_form() {
        for row in every_row().filter(|row| row.locked.is_some()) {
            // AMD's LOCK MOV CR0 has a register that ModRM.mod does not make one.
            let has_memory =
                !matches!(row.form, Form::Register | Form::Exact(0xC0..) | Form::RegisterZero);
            assert!(row.plan.has(Plan::MODRM) && has_memory, "{}", row.name);
        }
    }

    #[test]
    fn every_row_defines_no_flag_that_it_leaves_undefined() {
        for row in every_row() {
            assert_eq!(row.effect.changes & row.effect.undefined, KEEPS.changes, "{}", row.name);
        }
    }

    #[test]
    fn every_row_is_there_once() {
        for (i, a) in every_row().enumerate() {
            for b in every_row().skip(i + 1).filter(|b| overlap(a, b)) {
                let same = (a.digit, a.form, a.prefix, a.modes, a.vector)
                    == (b.digit, b.form, b.prefix, b.modes, b.vector)
                    && a.features == b.features;
                let makers = Traits::INTEL | Traits::AMD;
                let together = a.since <= b.until
                    && b.since <= a.until
                    && (a.traits.0 | b.traits.0) & makers != makers;
                assert!(!(same && together), "{} and {}", a.name, b.name);
            }
        }
    }

    /// Do two rows share an opcode?
    fn overlap(a: &Row, b: &Row) -> bool {
        let (first, second) = if a.opcode <= b.opcode { (a, b) } else { (b, a) };
        a.map == b.map && second.opcode - first.opcode < first.span
    }
}
