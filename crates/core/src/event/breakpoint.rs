//! Breakpoints of DR0 to DR3 (SDM vol. 3B, "Debug Registers"): on instructions, which fault before
//! they execute, and on data and ports, which trap after the instruction.

use crate::arch::control::{CR4_DE, DR6_RTM, DR7_ENABLE};
use crate::arch::registers::SegReg;
use crate::arch::rflags::RF;
use crate::bus::Access;
use crate::machine::Machine;
use crate::profile::Vendor;

/// DR7's R/W field of a breakpoint.
const EXECUTE: u64 = 0;
const WRITE: u64 = 1;
const PORT: u64 = 2;
const READ_WRITE: u64 = 3;

impl Machine<'_, '_> {
    /// Is any breakpoint enabled?
    pub(crate) fn has_breakpoints(&self) -> bool {
        self.cpu.dr7 & DR7_ENABLE != 0
    }

    /// Notes in DR6 why there is a #DB: it was in no transaction.
    pub(crate) fn note_debug(&mut self, conditions: u64) {
        self.cpu.dr6 |= DR6_RTM | conditions;
    }

    /// DR6's bits of the enabled breakpoints whose R/W field is in `kinds` (a bit each) and whose
    /// range meets `len` bytes at `address`.
    fn hits(&self, kinds: u8, address: u64, len: usize) -> u32 {
        let mut hits = 0;
        for (i, base) in self.cpu.dr.iter().enumerate() {
            let enabled = self.cpu.dr7 >> (2 * i) & 3 != 0;
            let kind = self.cpu.dr7 >> (16 + 4 * i) & 3;
            if !enabled || kinds >> kind & 1 == 0 {
                continue;
            }
            // LEN: 1, 2, 8 and 4 bytes; the address is aligned to it.
            let size = [1u64, 2, 8, 4][(self.cpu.dr7 >> (18 + 4 * i) & 3) as usize];
            let first = base & !(size - 1);
            let starts_inside = address.wrapping_sub(first) < size;
            let reaches_in = first.wrapping_sub(address) < len as u64;
            if starts_inside || reaches_in {
                hits |= 1 << i;
            }
        }
        hits
    }

    /// The breakpoints on the instruction at RIP. RF holds them off; so does the shadow of MOV SS
    /// on Intel processors, and not on AMD's.
    pub(crate) fn code_breakpoints(&self) -> u32 {
        let shadowed = self.cpu.shadow.mov_ss && self.profile.vendor == Vendor::Intel;
        if !self.has_breakpoints() || self.cpu.rflags & RF != 0 || shadowed {
            return 0;
        }
        let base = if self.cpu.is_64_bit_code() { 0 } else { self.cpu.segment(SegReg::Cs).base };
        self.hits(1 << EXECUTE, base.wrapping_add(self.cpu.rip) & self.linear_mask, 1)
    }

    /// Notes a data access of the current instruction.
    pub(crate) fn watch_data(&mut self, linear: u64, len: usize, access: Access) {
        if self.has_breakpoints() && len != 0 {
            let kinds = match access {
                Access::Write => 1 << WRITE | 1 << READ_WRITE,
                Access::Read | Access::Execute => 1 << READ_WRITE,
            };
            self.watched |= self.hits(kinds, linear, len);
        }
    }

    /// Notes a port access of the current instruction; only with CR4.DE.
    pub(crate) fn watch_port(&mut self, port: u16, size: u8) {
        if self.has_breakpoints() && self.cpu.cr4 & CR4_DE != 0 {
            self.watched |= self.hits(1 << PORT, u64::from(port), usize::from(size));
        }
    }
}
