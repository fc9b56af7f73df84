//! Guest exceptions: small values, raised with `?`, delivered only by `run`.

use crate::arch::vector;

/// A guest exception (SDM vol. 3A, "Exception and Interrupt Reference").
///
/// Not a Rust error: it belongs to the guest, and `run` delivers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Fault {
    /// The vector.
    pub vector: u8,
    /// The error code, meaningful where the vector has one and the mode pushes it.
    pub error_code: u16,
}

impl Fault {
    /// #DE.
    pub const DE: Fault = Fault::new(vector::DE);
    /// #BR.
    pub const BR: Fault = Fault::new(vector::BR);
    /// #UD.
    pub const UD: Fault = Fault::new(vector::UD);
    /// #NM.
    pub const NM: Fault = Fault::new(vector::NM);
    /// #MF.
    pub const MF: Fault = Fault::new(vector::MF);
    /// #GP(0).
    pub const GP: Fault = Fault::new(vector::GP);
    /// #SS(0).
    pub const SS: Fault = Fault::new(vector::SS);

    /// An exception with a zero error code, or none.
    pub const fn new(vector: u8) -> Fault {
        Fault { vector, error_code: 0 }
    }

    /// An exception with an error code.
    pub const fn with_code(vector: u8, error_code: u16) -> Fault {
        Fault { vector, error_code }
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match vector::name(self.vector) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "vector {:#04x}", self.vector)?,
        }
        if vector::has_error_code(self.vector) {
            write!(f, "({:x})", self.error_code)?;
        }
        Ok(())
    }
}

impl core::fmt::Debug for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// Where an event comes from: it decides what is saved and what a fault during delivery means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum Event {
    /// A maskable interrupt with its vector, already acknowledged.
    Interrupt(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// An exception.
    Exception(Fault),
}
