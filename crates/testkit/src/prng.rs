//! A small generator of random numbers (SplitMix64), so that a seed means the same cases on every
//! machine and with every version of every dependency. Or a tape: bytes that a fuzzer made, each
//! of which decides something.

/// The generator.
#[derive(Clone, Debug)]
pub(crate) struct Prng {
    state: u64,
    tape: Option<Tape>,
}

/// Bytes to take decisions from, the last one first.
#[derive(Clone, Debug)]
struct Tape(Vec<u8>);

impl Tape {
    /// The next byte; zeros at the end.
    fn byte(&mut self) -> u8 {
        self.0.pop().unwrap_or(0)
    }

    /// A number of one, two, four or eight bytes, whose sign is extended.
    fn number(&mut self) -> u64 {
        let len = 1 << (self.byte() & 3);
        let number = (0..len).fold(0, |number, _| number << 8 | u64::from(self.byte()));
        let shift = 64 - 8 * len;
        ((number << shift) as i64 >> shift) as u64
    }

    /// A number below `end`. At the end of the tape the last one there is, so that nothing which
    /// happens once in n times goes on happening.
    fn below(&mut self, end: u64) -> u64 {
        let mut left = end - 1;
        let mut number = 0;
        while left > 0 {
            let Some(byte) = self.0.pop() else { return end - 1 };
            number = number << 8 | u64::from(byte);
            left >>= 8;
        }
        number % end
    }
}

/// A number that looks unrelated to `value`, but is always the same.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

impl Prng {
    pub(crate) fn new(seed: u64) -> Prng {
        Prng { state: seed, tape: None }
    }

    /// Takes every decision from `bytes`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Prng {
        Prng { state: 0, tape: Some(Tape(bytes.iter().rev().copied().collect())) }
    }

    /// Is there nothing left to take decisions from?
    pub(crate) fn is_at_end(&self) -> bool {
        self.tape.as_ref().is_some_and(|tape| tape.0.is_empty())
    }

    /// Sixty-four random bits.
    pub(crate) fn next(&mut self) -> u64 {
        if let Some(tape) = &mut self.tape {
            return tape.number();
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// Eight random bits.
    pub(crate) fn byte(&mut self) -> u8 {
        match &mut self.tape {
            Some(tape) => tape.byte(),
            None => self.next() as u8,
        }
    }

    /// A number below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        debug_assert!(end > 0, "there is no number below 0");
        if let Some(tape) = &mut self.tape {
            return tape.below(end);
        }
        // The high half of a product: no division, and a bias nobody here can see.
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
