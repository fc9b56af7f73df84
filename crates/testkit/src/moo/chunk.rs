//! A place in a file's bytes, and the chunks that follow it.

use super::error::Damage;

/// Four bytes that say what a chunk holds.
pub(crate) type Tag = [u8; 4];

/// Bytes still to be read, and where they stand in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// One chunk: its tag, where it starts, and its payload.
pub(crate) struct Chunk<'a> {
    pub(crate) tag: Tag,
    pub(crate) offset: usize,
    pub(crate) payload: Cursor<'a>,
}

impl<'a> Cursor<'a> {
    /// The whole file.
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes, offset: 0 }
    }

    /// Where the next byte stands in the file.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], Damage> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            let left = self.rest.len();
            return Err(Damage::new(
                self.offset,
                format!("{what} needs {len} bytes, {left} are left"),
            ));
        };
        self.rest = tail;
        self.offset += len;
        Ok(head)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Damage> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N, what)?);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Damage> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Damage> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Damage> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// A u32 count of elements of `size` bytes, and their bytes.
    pub(crate) fn counted(&mut self, size: usize, what: &str) -> Result<&'a [u8], Damage> {
        let at = self.offset;
        let count = self.u32(what)? as usize;
        let Some(len) = count.checked_mul(size).filter(|len| *len <= self.rest.len()) else {
            let left = self.rest.len();
            return Err(Damage::new(
                at,
                format!("{what} counts {count} times {size} bytes, {left} are left"),
            ));
        };
        self.take(len, what)
    }

    /// The next chunk, or none at the end.
    pub(crate) fn chunk(&mut self) -> Result<Option<Chunk<'a>>, Damage> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let tag: Tag = self.array("a chunk's tag")?;
        let len = self.u32("a chunk's length")? as usize;
        let payload_offset = self.offset;
        let left = self.rest.len();
        if len > left {
            let tag = tag.escape_ascii();
            return Err(Damage::new(
                offset,
                format!("chunk \"{tag}\" is {len} bytes long, {left} are left"),
            ));
        }
        let payload = Cursor { rest: self.take(len, "a chunk")?, offset: payload_offset };
        Ok(Some(Chunk { tag, offset, payload }))
    }
}
