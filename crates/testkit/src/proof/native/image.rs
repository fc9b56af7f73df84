//! The x87, MMX and SSE registers as FXSAVE writes them.

use core::fmt;

/// The 512 bytes of FXSAVE64 (SDM vol. 1, 10.5.1). The last 48 are zero: FXSAVE leaves them to
/// software.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct FpuImage(pub [u8; 512]);

impl FpuImage {
    /// As FNINIT leaves it: empty, all exceptions masked, registers zero, MXCSR 1F80h.
    pub const CLEAN: FpuImage = {
        let mut image = [0; 512];
        [image[0], image[1]] = 0x037F_u16.to_le_bytes();
        [image[24], image[25]] = 0x1F80_u16.to_le_bytes();
        FpuImage(image)
    };
}

impl fmt::Debug for FpuImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, bytes) in self.0.chunks(16).enumerate().filter(|(_, b)| b.iter().any(|&x| x != 0))
        {
            write!(f, "{:03x}:", row * 16)?;
            bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
