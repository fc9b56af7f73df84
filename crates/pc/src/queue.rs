//! A queue of bytes in fixed memory.

/// Holds at most `N` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Queue<const N: usize> {
    #[cfg_attr(feature = "serde", serde(with = "serde_big_array::BigArray"))]
    bytes: [u8; N],
    first: usize,
    len: usize,
}

impl<const N: usize> Queue<N> {
    pub(crate) const EMPTY: Self = Queue { bytes: [0; N], first: 0, len: 0 };

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `byte`. False if there was no room.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        if self.len >= N {
            return false;
        }
        self.bytes[(self.first + self.len) % N] = byte;
        self.len += 1;
        true
    }

    /// Takes the oldest byte.
    pub(crate) fn pop(&mut self) -> Option<u8> {
        let byte = self.front()?;
        self.first = (self.first + 1) % N;
        self.len -= 1;
        Some(byte)
    }

    /// The oldest byte.
    pub(crate) fn front(&self) -> Option<u8> {
        (self.len > 0).then(|| self.bytes[self.first % N])
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Can it have come about?
    pub(crate) fn is_sound(&self) -> bool {
        self.first < N && self.len <= N
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_around_the_end_of_the_memory() {
        let mut queue = Queue::<3>::EMPTY;
        assert!(queue.push(1) && queue.push(2) && queue.push(3) && !queue.push(4));
        assert_eq!((queue.pop(), queue.len()), (Some(1), 2));
        assert!(queue.push(5));
        assert_eq!([queue.pop(), queue.pop(), queue.pop(), queue.pop()], [2, 3, 5, 0].map(some));
        assert!(queue.is_empty());
    }

    fn some(byte: u8) -> Option<u8> {
        (byte != 0).then_some(byte)
    }
}
