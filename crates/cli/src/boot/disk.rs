//! A disk image. Sectors the guest writes stay in memory, or go to the image if the user said so.
//! What stays in memory can be saved.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use realmode_pc::{Disk, DiskError, SECTOR};
use serde::{Deserialize, Serialize};

use super::files;

/// What becomes of sectors that the guest writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// They stay in memory.
    Kept,
    /// They go to the image.
    Through,
}

/// The image as a disk.
pub(super) struct ImageDisk {
    file: File,
    path: PathBuf,
    sectors: u64,
    /// What was written, if it stays in memory.
    overlay: Option<Rc<Overlay>>,
    errors: Rc<DiskErrors>,
}

/// The sectors that were written.
type Overlay = RefCell<BTreeMap<u64, Box<[u8; SECTOR]>>>;

/// A disk as a machine that uses it can be asked for it.
pub(super) struct DiskInUse {
    path: PathBuf,
    sectors: u64,
    overlay: Option<Rc<Overlay>>,
}

/// A disk in a snapshot: which image it was, and what the guest has written.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedDisk {
    path: PathBuf,
    sectors: u64,
    /// The CRC-32 of the image.
    sum: u32,
    /// Which sectors were written, in order, and what, one after the other.
    written: Vec<u64>,
    #[serde(with = "serde_bytes")]
    contents: Vec<u8>,
}

impl DiskInUse {
    /// The image's name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What a snapshot needs to know.
    pub(super) fn saved(&self) -> Result<SavedDisk, String> {
        let failed = |error: io::Error| format!("cannot read {}: {error}", self.path.display());
        let overlay = self.overlay.as_ref().map(|overlay| overlay.borrow());
        let sectors = || overlay.iter().flat_map(|overlay| overlay.iter());
        Ok(SavedDisk {
            path: fs::canonicalize(&self.path).map_err(failed)?,
            sectors: self.sectors,
            sum: files::sum(&self.path)?.1,
            written: sectors().map(|(lba, _)| *lba).collect(),
            contents: sectors().flat_map(|(_, sector)| sector.iter().copied()).collect(),
        })
    }
}

impl SavedDisk {
    /// Where the image was.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the image, which is to be the same as it was, with what the guest has written.
    pub(super) fn open(&self, path: &Path) -> Result<ImageDisk, String> {
        let advice = "give the disk of the snapshot, as it was then, with --disk";
        let disk = ImageDisk::open(path, Writes::Kept);
        let disk = disk.map_err(|error| format!("{error}; {advice}"))?;
        let shown = path.display();
        if disk.sectors != self.sectors {
            return Err(format!(
                "{shown} is not the disk of the snapshot: it has {} sectors, and that had {}; \
                 {advice}",
                disk.sectors, self.sectors
            ));
        }
        if files::sum(path)?.1 != self.sum {
            return Err(format!(
                "{shown} is not the disk of the snapshot, or has been written to since: its \
                 checksum is another; {advice}"
            ));
        }
        let sectors =
            self.contents.chunks_exact(SECTOR).filter_map(|sector| sector.try_into().ok());
        let written = self.written.iter().copied().zip(sectors.map(Box::new)).collect();
        Ok(ImageDisk { overlay: Some(Rc::new(RefCell::new(written))), ..disk })
    }

    /// Can it have been saved?
    pub(super) fn is_sound(&self) -> bool {
        self.contents.len() == self.written.len() * SECTOR
            && self.written.iter().all(|lba| *lba < self.sectors)
    }
}

/// What went wrong with the image while the guest used it.
#[derive(Default)]
pub(super) struct DiskErrors {
    count: Cell<u64>,
    /// The first, until it is told.
    first: RefCell<Option<String>>,
}

impl DiskErrors {
    /// How many sectors could not be read or written.
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    /// What to tell the user, once.
    pub(super) fn take(&self) -> Option<String> {
        self.first.take()
    }

    fn note(&self, message: impl FnOnce() -> String) {
        if self.count.replace(self.count.get().saturating_add(1)) == 0 {
            self.first.replace(Some(message()));
        }
    }
}

impl ImageDisk {
    /// Opens the image and checks its size.
    pub(super) fn open(path: &Path, writes: Writes) -> Result<ImageDisk, String> {
        let shown = path.display();
        let failed = |error: io::Error| match writes {
            Writes::Kept => format!("cannot read {shown}: {error}"),
            Writes::Through => format!("cannot open {shown} for writing: {error}"),
        };
        if fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(format!("cannot read {shown}: it is a directory"));
        }
        let is_written = writes == Writes::Through;
        let mut file =
            OpenOptions::new().read(true).write(is_written).open(path).map_err(failed)?;
        // Its length is 0 for a device, so ask where its end is.
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let sector = SECTOR as u64;
        if len == 0 {
            return Err(format!("{shown} is empty; a disk has one sector of 512 bytes at least"));
        }
        if !len.is_multiple_of(sector) {
            let whole = len.next_multiple_of(sector);
            return Err(format!(
                "{shown} is {len} bytes, which is no multiple of the sector's 512: cut off? \
                 If not, pad it to {whole} bytes: truncate -s {whole} {shown}"
            ));
        }
        let overlay = (writes == Writes::Kept).then(Rc::default);
        let errors = Rc::default();
        Ok(ImageDisk { file, path: path.to_owned(), sectors: len / sector, overlay, errors })
    }

    /// What will have gone wrong.
    pub(super) fn errors(&self) -> Rc<DiskErrors> {
        Rc::clone(&self.errors)
    }

    /// What can be asked while the machine has it.
    pub(super) fn in_use(&self) -> DiskInUse {
        let (path, overlay) = (self.path.clone(), self.overlay.clone());
        DiskInUse { path, sectors: self.sectors, overlay }
    }

    fn seek(&mut self, lba: u64) -> io::Result<&mut File> {
        let offset = lba.checked_mul(SECTOR as u64).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(&mut self.file)
    }

    fn check(&self, verb: &str, lba: u64, result: io::Result<()>) -> Result<(), DiskError> {
        result.map_err(|error| {
            self.errors.note(|| {
                let path = self.path.display();
                let what = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "the file has become shorter".to_owned(),
                    _ => error.to_string(),
                };
                format!(
                    "cannot {verb} sector {lba} of {path}: {what}; \
                     the guest sees a bad sector, and the run goes on"
                )
            });
            DiskError
        })
    }
}

impl Disk for ImageDisk {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, lba: u64, sector: &mut [u8; SECTOR]) -> Result<(), DiskError> {
        let overlay = self.overlay.as_ref().map(|overlay| overlay.borrow());
        if let Some(written) = overlay.as_ref().and_then(|overlay| overlay.get(&lba)) {
            sector.copy_from_slice(written.as_slice());
            return Ok(());
        }
        drop(overlay);
        let result = self.seek(lba).and_then(|file| file.read_exact(sector));
        self.check("read", lba, result)
    }

    fn write(&mut self, lba: u64, sector: &[u8; SECTOR]) -> Result<(), DiskError> {
        if let Some(overlay) = &self.overlay {
            overlay.borrow_mut().insert(lba, Box::new(*sector));
            return Ok(());
        }
        let result = self.seek(lba).and_then(|file| file.write_all(sector));
        self.check("write", lba, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        let bytes: Vec<u8> = (0..4 * SECTOR).map(|i| (i / SECTOR) as u8).collect();
        fs::write(&path, bytes).expect("the temporary directory can be written");
        path
    }

    #[test]
    fn what_is_written_stays_in_memory_or_goes_to_the_image() {
        for (writes, expected) in [(Writes::Kept, 2), (Writes::Through, 7)] {
            let path = image(&format!("{writes:?}"));
            let mut disk = ImageDisk::open(&path, writes).expect("four sectors");
            assert_eq!(disk.sectors(), 4);
            assert_eq!(disk.write(2, &[7; SECTOR]), Ok(()));
            let mut sector = [0; SECTOR];
            for (lba, byte) in [(2, 7), (3, 3)] {
                assert_eq!(disk.read(lba, &mut sector), Ok(()));
                assert_eq!(sector, [byte; SECTOR]);
            }
            let bytes = fs::read(&path).expect("still there");
            assert_eq!((bytes.len(), bytes[2 * SECTOR]), (4 * SECTOR, expected));
            fs::remove_file(&path).expect("it was ours");
        }
    }

    #[test]
    fn an_image_that_shrinks_is_told_of_once() {
        let path = image("shrinks");
        let mut disk = ImageDisk::open(&path, Writes::Kept).expect("four sectors");
        let errors = disk.errors();
        let file = OpenOptions::new().write(true).open(&path).expect("it was ours");
        file.set_len(2 * SECTOR as u64).expect("a file can be cut off");
        assert_eq!(disk.read(1, &mut [0; SECTOR]), Ok(()));
        assert_eq!(errors.take(), None);
        assert_eq!(disk.read(2, &mut [0; SECTOR]), Err(DiskError));
        assert_eq!(disk.read(3, &mut [0; SECTOR]), Err(DiskError));
        let told = errors.take().expect("two sectors cannot be read");
        assert!(told.contains("sector 2 of") && told.contains("shorter"), "{told}");
        assert_eq!((errors.take(), errors.count()), (None, 2));
        fs::remove_file(&path).expect("it was ours");
    }
}
