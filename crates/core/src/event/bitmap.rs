//! The bitmaps of a TSS: ports that a program may use (SDM vol. 1, "I/O Permission Bit Map"), and
//! software interrupts of virtual-8086 mode that its monitor handles.

use crate::fault::Fault;
use crate::machine::{Leave, Machine};

/// Where a 32- or 64-bit TSS says where its port bitmap begins.
const BITMAP_BASE: u32 = 0x66;
/// The bytes of the redirection bitmap, which ends where the port bitmap begins.
const REDIRECTION: u32 = 32;

impl Machine<'_, '_> {
    /// Is a program below IOPL denied one of the bytes of a port? A clear bit allows it. Two bytes
    /// of the bitmap are read whatever the port, and both must lie in the TSS.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_port_denied(&mut self, port: u16, size: usize) -> Result<bool, Leave> {
        let at = u32::from(self.bitmap_base()?) + u32::from(port >> 3);
        if at + 1 > self.cpu.tr.limit {
            return Err(Fault::GP.into());
        }
        Ok(self.read_tss_word(at)? >> (port & 7) & ((1 << size) - 1) != 0)
    }

    /// Does INT n go to the monitor? Its bit in the redirection bitmap of the TSS says so.
    pub(crate) fn is_monitored(&mut self, vector: u8) -> Result<bool, Leave> {
        let at = u32::from(self.bitmap_base()?) + u32::from(vector >> 3);
        let Some(at) = at.checked_sub(REDIRECTION).filter(|at| *at <= self.cpu.tr.limit) else {
            return Err(Fault::GP.into());
        };
        let mut byte = [0; 1];
        self.read_linear(self.cpu.tr.base.wrapping_add(u64::from(at)), &mut byte)?;
        Ok(byte[0] >> (vector & 7) & 1 != 0)
    }

    /// Where the bitmap begins in the TSS, which must be a 32- or 64-bit one that says so.
    fn bitmap_base(&mut self) -> Result<u16, Leave> {
        let tr = self.cpu.tr;
        let is_wide = tr.attributes.segment_type() & 8 != 0;
        if !is_wide || !tr.attributes.is_usable() || tr.limit < BITMAP_BASE + 1 {
            return Err(Fault::GP.into());
        }
        self.read_tss_word(BITMAP_BASE)
    }

    fn read_tss_word(&mut self, at: u32) -> Result<u16, Leave> {
        let mut bytes = [0; 2];
        self.read_linear(self.cpu.tr.base.wrapping_add(u64::from(at)), &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }
}
