//! One test: the state before, what changed, and what it is called.

use std::borrow::Cow;
use std::fmt;

use super::chunk::Cursor;
use super::error::Damage;
use super::registers::{Register, RegisterFile, RegisterWidth};

/// More bytes of memory than one instruction can touch; a longer list is damage.
pub const MAX_RAM_ENTRIES: usize = 1 << 20;

/// Names a test for good, over every version of a suite.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TestHash(pub [u8; 20]);

impl TestHash {
    /// Reads forty hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<TestHash> {
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return None;
        }
        let mut hash = [0; 20];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(TestHash(hash))
    }
}

impl fmt::Display for TestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Bytes of memory, by physical address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ram<'a> {
    entries: &'a [u8],
}

impl<'a> Ram<'a> {
    const ENTRY: usize = 5;

    fn read(payload: &mut Cursor<'a>) -> Result<Ram<'a>, Damage> {
        let at = payload.offset();
        let entries = payload.counted(Ram::ENTRY, "a memory list")?;
        if entries.len() / Ram::ENTRY > MAX_RAM_ENTRIES {
            return Err(Damage::new(
                at,
                format!("a memory list of more than {MAX_RAM_ENTRIES} bytes"),
            ));
        }
        Ok(Ram { entries })
    }

    /// How many bytes are listed.
    pub fn len(&self) -> usize {
        self.entries.len() / Ram::ENTRY
    }

    /// Is none listed?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u8)> + 'a {
        self.entries
            .chunks_exact(Ram::ENTRY)
            .map(|entry| (u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]), entry[4]))
    }
}

/// Registers and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct State<'a> {
    /// The registers that are given.
    pub registers: RegisterFile,
    /// The bytes of memory that are given.
    pub ram: Ram<'a>,
    /// `RMSK` or `RM32`: the bits that are defined, of registers that are not wholly so.
    pub mask: RegisterFile,
}

impl<'a> State<'a> {
    fn read(payload: &mut Cursor<'a>) -> Result<State<'a>, Damage> {
        let mut state = State::default();
        while let Some(mut chunk) = payload.chunk()? {
            let body = &mut chunk.payload;
            match &chunk.tag {
                b"REGS" => state.registers = RegisterFile::read(body, RegisterWidth::Word)?,
                b"RG32" => state.registers = RegisterFile::read(body, RegisterWidth::Dword)?,
                b"RMSK" => state.mask = RegisterFile::read(body, RegisterWidth::Word)?,
                b"RM32" => state.mask = RegisterFile::read(body, RegisterWidth::Dword)?,
                b"RAM " => state.ram = Ram::read(body)?,
                _ => {}
            }
        }
        Ok(state)
    }
}

/// The interrupt or exception that the processor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedException {
    /// The vector.
    pub vector: u8,
    /// The address of the word on the bus with which FLAGS were pushed: where SP is odd, FLAGS
    /// are one byte above it.
    pub flags_at: u32,
}

/// One test.
#[derive(Clone, Copy, Debug)]
pub struct Test<'a> {
    /// Its number in the file.
    pub index: u32,
    /// What the instruction is, for people.
    pub name: &'a [u8],
    /// The instruction's bytes, HLT included.
    pub bytes: &'a [u8],
    /// The state to start from.
    pub initial: State<'a>,
    /// What differs afterwards.
    pub expected: State<'a>,
    /// The interrupt or exception taken, if one was.
    pub exception: Option<CapturedException>,
    /// Its name for good.
    pub hash: Option<TestHash>,
}

impl<'a> Test<'a> {
    /// Reads the payload of the `TEST` chunk that starts at `offset`.
    pub(crate) fn read(payload: &mut Cursor<'a>, offset: usize) -> Result<Test<'a>, Damage> {
        let mut test = Test {
            index: payload.u32("a test's index")?,
            name: &[],
            bytes: &[],
            initial: State::default(),
            expected: State::default(),
            exception: None,
            hash: None,
        };
        let (mut has_initial, mut has_expected) = (false, false);
        while let Some(mut chunk) = payload.chunk()? {
            let body = &mut chunk.payload;
            match &chunk.tag {
                b"NAME" => test.name = body.counted(1, "a test's name")?,
                b"BYTS" => test.bytes = body.counted(1, "an instruction")?,
                b"INIT" => {
                    test.initial = State::read(body)?;
                    has_initial = true;
                }
                b"FINA" => {
                    test.expected = State::read(body)?;
                    has_expected = true;
                }
                b"EXCP" => {
                    let vector = body.u8("an exception's vector")?;
                    let flags_at = body.u32("an exception's FLAGS address")?;
                    test.exception = Some(CapturedException { vector, flags_at });
                }
                b"HASH" => test.hash = Some(TestHash(body.array("a test's hash")?)),
                _ => {}
            }
        }
        if !has_initial || !has_expected {
            let index = test.index;
            return Err(Damage::new(offset, format!("test {index} lacks INIT or FINA")));
        }
        for register in [Register::Cs, Register::Eip, Register::Eflags] {
            if test.initial.registers.get(register).is_none() {
                let name = register.name(test.initial.registers.width());
                let index = test.index;
                return Err(Damage::new(offset, format!("test {index} does not set {name}")));
            }
        }
        Ok(test)
    }

    /// Its name as text.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }
}
