//! Decoding alone: any bytes, for every processor and every kind of code.

use std::iter::repeat_n;

use realmode::{CodeSize, DecodeError, Features, Instruction, Profile, Segmentation, decode_one};

use crate::Reached;

/// The longest instruction of a modern processor.
const LONGEST: usize = 15;
/// Bytes of an input that are looked at: decoding does not look further than one instruction.
const LOOKED_AT: usize = 20;
/// Bytes that may complete an instruction: one alone, ModRM bytes with and without an address
/// that ends there, the second byte of an opcode without operands.
const ENDS: [u8; 8] = [0x90, 0x00, 0xA2, 0xC0, 0xD0, 0x77, 0x40, 0x80];

/// How bytes are decoded.
#[derive(Clone, Copy)]
struct Decoder<'p> {
    profile: &'p Profile,
    size: CodeSize,
    segmentation: Segmentation,
}

/// The bytes behind the first as an instruction of the processor that the first chooses, in every
/// kind of code: its length, whether it needs more bytes, and its text.
pub fn decode(data: &[u8]) -> Reached {
    let Some((choice, data)) = data.split_first() else { return Reached::default() };
    let data = &data[..data.len().min(LOOKED_AT)];
    let with_all = Profile { features: Features::all(), ..Profile::INTEL };
    let profiles = Profile::ALL.into_iter().chain([&with_all]).collect::<Vec<_>>();
    let profile = profiles[usize::from(*choice) % profiles.len()];
    let mut reached = Reached::default();
    for size in [CodeSize::Bits16, CodeSize::Bits32, CodeSize::Bits64] {
        for segmentation in [Segmentation::Real, Segmentation::Protected] {
            reached.add(&Decoder { profile, size, segmentation }.check(data));
        }
    }
    reached
}

impl Decoder<'_> {
    fn decode(self, bytes: &[u8]) -> Result<Instruction, DecodeError> {
        decode_one(bytes, self.size, self.profile, self.segmentation)
    }

    fn check(self, bytes: &[u8]) -> Reached {
        match self.decode(bytes) {
            Ok(instruction) => self.check_instruction(bytes, &instruction),
            Err(DecodeError::Short { missing }) => self.check_short(bytes, missing),
            Err(DecodeError::TooLong) => {
                assert!(!self.can_end(bytes), "{bytes:02x?} are said to be too long, and are not");
                Reached { refused: 1, ..Reached::default() }
            }
            Err(other) => panic!("an error that nobody knows: {other}"),
        }
    }

    fn check_instruction(self, bytes: &[u8], instruction: &Instruction) -> Reached {
        let len = instruction.len();
        assert!((1..=LONGEST.min(bytes.len())).contains(&len), "{len} bytes of {bytes:02x?}");
        let text = instruction.at(0x1234).to_string();
        assert!(!text.is_empty() && !text.contains('?'), "{bytes:02x?} are {text}");
        assert!(matches!(instruction.operand_size(), 1 | 2 | 4 | 8), "{text}");
        assert!(matches!(instruction.address_size(), 2 | 4 | 8), "{text}");
        assert_eq!(instruction.is_undefined(), instruction.mnemonic() == "undefined", "{text}");
        for tail in [0, 0xFF] {
            let mut other = [tail; LOOKED_AT];
            other[..len].copy_from_slice(&bytes[..len]);
            for end in [len, LOOKED_AT] {
                let again = self.decode(&other[..end]);
                let again = again.map(|it| (it.len(), it.at(0x1234).to_string()));
                assert_eq!(again.as_ref(), Ok(&(len, text.clone())), "{:02x?}", &other[..end]);
            }
        }
        for short in 0..len {
            match self.decode(&bytes[..short]) {
                Err(DecodeError::Short { missing }) => {
                    assert!(short + missing <= len, "{missing} missing at {short} of {bytes:02x?}");
                }
                other => panic!("{short} of {len} bytes, {bytes:02x?}, are {other:?}"),
            }
        }
        Reached { instructions: 1, accepted: 1, ..Reached::default() }
    }

    /// Some bytes complete it, and fewer than are missing do not.
    fn check_short(self, bytes: &[u8], missing: usize) -> Reached {
        assert!(missing > 0, "{bytes:02x?}");
        assert!(self.can_end(bytes), "{bytes:02x?} are said to be too short, and nothing helps");
        for more in 1..missing {
            let ends = ENDS.iter().any(|end| self.is_ended(bytes, *end, more));
            assert!(!ends, "{missing} missing of {bytes:02x?}, and {more} are enough");
        }
        Reached { refused: 1, ..Reached::default() }
    }

    fn can_end(self, bytes: &[u8]) -> bool {
        let most = LONGEST.saturating_sub(bytes.len());
        ENDS.iter().any(|end| (0..=most).any(|more| self.is_ended(bytes, *end, more)))
    }

    /// Are the bytes an instruction with `more` bytes behind them?
    fn is_ended(self, bytes: &[u8], end: u8, more: usize) -> bool {
        let longer: Vec<u8> = bytes.iter().copied().chain(repeat_n(end, more)).collect();
        self.decode(&longer).is_ok()
    }
}
