//! What a disk is made of: the caller's, since this crate knows no file.

/// Bytes in a sector.
pub const SECTOR: usize = 512;

/// A disk. The guest is told of a failure as of a bad sector, and the run goes on.
///
/// ```
/// use realmode_pc::{Disk, DiskError, SECTOR};
/// struct InMemory(Vec<u8>);
/// impl Disk for InMemory {
///     fn sectors(&self) -> u64 {
///         (self.0.len() / SECTOR) as u64
///     }
///     fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
///         let at = lba as usize * SECTOR;
///         sector.copy_from_slice(self.0.get(at..at + SECTOR).ok_or(DiskError)?);
///         Ok(())
///     }
///     fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError> {
///         let at = lba as usize * SECTOR;
///         self.0.get_mut(at..at + SECTOR).ok_or(DiskError)?.copy_from_slice(sector);
///         Ok(())
///     }
/// }
/// let mut disk = InMemory(vec![0; 4 * SECTOR]);
/// assert_eq!(disk.write(3, &[7; SECTOR]), Ok(()));
/// assert_eq!(disk.read(4, &mut [0; SECTOR]), Err(DiskError));
/// ```
pub trait Disk {
    /// How many sectors it has. This is asked when the disk is attached, and again by the guest.
    fn sectors(&self) -> u64;

    /// Reads a sector.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError>;

    /// Writes a sector.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError>;
}

/// A sector that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sector cannot be read or written")]
pub struct DiskError;
