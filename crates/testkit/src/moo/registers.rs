//! The register chunks: a bit mask, then a value for each set bit.

use super::chunk::Cursor;
use super::error::Damage;

/// A register of a suite, in the order of the 32-bit chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the manual's names say it
pub enum Register {
    Cr0,
    Cr3,
    Eax,
    Ebx,
    Ecx,
    Edx,
    Esi,
    Edi,
    Ebp,
    Esp,
    Cs,
    Ds,
    Es,
    Fs,
    Gs,
    Ss,
    Eip,
    Eflags,
    Dr6,
    Dr7,
}

/// The names, by register; a 16-bit suite's are without the leading `e`.
const NAMES: [&str; Register::COUNT] = [
    "cr0", "cr3", "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp", "cs", "ds", "es", "fs",
    "gs", "ss", "eip", "eflags", "dr6", "dr7",
];

/// The order of the 16-bit chunk.
const WORD_ORDER: [Register; 14] = [
    Register::Eax,
    Register::Ebx,
    Register::Ecx,
    Register::Edx,
    Register::Cs,
    Register::Ss,
    Register::Ds,
    Register::Es,
    Register::Esp,
    Register::Ebp,
    Register::Esi,
    Register::Edi,
    Register::Eip,
    Register::Eflags,
];

impl Register {
    const COUNT: usize = 20;

    /// All of them, in the order of the 32-bit chunk.
    pub const ALL: [Register; Register::COUNT] = [
        Register::Cr0,
        Register::Cr3,
        Register::Eax,
        Register::Ebx,
        Register::Ecx,
        Register::Edx,
        Register::Esi,
        Register::Edi,
        Register::Ebp,
        Register::Esp,
        Register::Cs,
        Register::Ds,
        Register::Es,
        Register::Fs,
        Register::Gs,
        Register::Ss,
        Register::Eip,
        Register::Eflags,
        Register::Dr6,
        Register::Dr7,
    ];

    /// Its name in a suite of this width: `ax` or `eax`.
    pub fn name(self, width: RegisterWidth) -> &'static str {
        let name = NAMES[self as usize];
        match (width, self) {
            (RegisterWidth::Word, Register::Es) | (RegisterWidth::Dword, _) => name,
            (RegisterWidth::Word, _) => name.strip_prefix('e').unwrap_or(name),
        }
    }
}

/// How wide a suite's registers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RegisterWidth {
    /// `REGS` and `RMSK`.
    #[default]
    Word,
    /// `RG32` and `RM32`.
    Dword,
}

/// Values for some of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterFile {
    width: RegisterWidth,
    present: u32,
    values: [u32; Register::COUNT],
}

impl RegisterFile {
    /// Reads a register chunk's payload.
    pub(crate) fn read(
        payload: &mut Cursor<'_>,
        width: RegisterWidth,
    ) -> Result<RegisterFile, Damage> {
        let at = payload.offset();
        let (mask, order): (u32, &[Register]) = match width {
            RegisterWidth::Word => (payload.u16("a register mask")?.into(), &WORD_ORDER),
            RegisterWidth::Dword => (payload.u32("a register mask")?, &Register::ALL),
        };
        let known = order.len();
        if mask >> known != 0 {
            return Err(Damage::new(
                at,
                format!("register mask {mask:#x} names registers past the {known} known ones"),
            ));
        }
        let mut file = RegisterFile { width, ..RegisterFile::default() };
        for (bit, register) in order.iter().enumerate() {
            if mask >> bit & 1 != 0 {
                let value = match width {
                    RegisterWidth::Word => payload.u16("a register")?.into(),
                    RegisterWidth::Dword => payload.u32("a register")?,
                };
                file.set(*register, value);
            }
        }
        Ok(file)
    }

    /// The width of the chunk it was read from.
    pub fn width(&self) -> RegisterWidth {
        self.width
    }

    /// The value that was given for `register`.
    pub fn get(&self, register: Register) -> Option<u32> {
        (self.present >> register as u32 & 1 != 0).then(|| self.values[register as usize])
    }

    /// Gives a value for `register`.
    pub fn set(&mut self, register: Register, value: u32) {
        self.present |= 1 << register as u32;
        self.values[register as usize] = value;
    }

    /// The registers a value was given for.
    pub fn iter(&self) -> impl Iterator<Item = (Register, u32)> + '_ {
        Register::ALL.into_iter().filter_map(|register| Some((register, self.get(register)?)))
    }
}

/// Which bits of each register count. The others were left undefined by the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterMasks([u32; Register::COUNT]);

impl RegisterMasks {
    /// All of them.
    pub const ALL: RegisterMasks = RegisterMasks([u32::MAX; Register::COUNT]);

    /// The bits of `register` that count.
    pub fn get(&self, register: Register) -> u32 {
        self.0[register as usize]
    }

    /// Only `mask` counts of `register`, and only where it did before.
    pub fn narrow(&mut self, register: Register, mask: u32) {
        self.0[register as usize] &= mask;
    }

    /// Only what a mask chunk lets pass. A 16-bit one says nothing of the upper halves.
    pub fn narrow_all(&mut self, chunk: &RegisterFile) {
        let upper = match chunk.width {
            RegisterWidth::Word => 0xFFFF_0000,
            RegisterWidth::Dword => 0,
        };
        for (register, mask) in chunk.iter() {
            self.narrow(register, mask | upper);
        }
    }
}
