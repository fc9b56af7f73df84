//! How a guest ends the run: the debug-exit port, the power-off port, a reset.

/// isa-debug-exit, as test kernels for QEMU expect it, unless the owner chose another port.
pub(crate) const DEBUG_EXIT: u16 = 0x501;

/// The ACPI PM1a control register, where test kernels for QEMU's PC expect it.
pub(crate) const PM1_CONTROL: u16 = 0x604;

/// The guest ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Ending {
    /// It wrote this value to the exit port, 501h if no other was set.
    Exit(u32),
    /// It powered off through port 604h: the clean ending.
    PowerOff,
    /// It asked for a reset.
    Reset,
}

impl Ending {
    /// The status a process that stands for the machine ends with: `(v << 1) | 1` after a
    /// write of v to the exit port (so never 0), 0 after a power-off; a reset has none.
    ///
    /// ```
    /// use realmode_pc::Ending;
    /// assert_eq!(Ending::Exit(0x10).process_status(), Some(0x21));
    /// assert_eq!(Ending::PowerOff.process_status(), Some(0));
    /// assert_eq!(Ending::Reset.process_status(), None);
    /// ```
    pub fn process_status(self) -> Option<u8> {
        match self {
            Ending::Exit(value) => Some((value << 1 | 1) as u8),
            Ending::PowerOff => Some(0),
            Ending::Reset => None,
        }
    }
}

/// Does a word written to PM1 control turn the power off? SLP_EN is bit 13, SLP_TYP bits 10-12,
/// and this machine's soft-off type is 0 (ACPI, "PM1 Control Registers").
pub(crate) fn is_power_off(word: u16) -> bool {
    const SLP_EN: u16 = 1 << 13;
    const SLP_TYP: u16 = 7 << 10;
    word & (SLP_EN | SLP_TYP) == SLP_EN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sleep_enable_with_the_soft_off_type_powers_off() {
        assert!(is_power_off(0x2000));
        assert!(is_power_off(0x2001));
        assert!(!is_power_off(0x0000));
        assert!(!is_power_off(0x3400));
    }

    #[test]
    fn an_exit_status_keeps_the_low_seven_bits_of_the_value() {
        assert_eq!(Ending::Exit(0).process_status(), Some(1));
        assert_eq!(Ending::Exit(0xFFFF_FFFF).process_status(), Some(0xFF));
    }
}
