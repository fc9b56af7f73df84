//! QEMU's firmware configuration device, without DMA: what the machine is, and files for it.

/// The selector; the data port follows.
pub(crate) const FIRMWARE_CONFIG: u16 = 0x510;

const SIGNATURE: u16 = 0x00;
const ID: u16 = 0x01;
const RAM_SIZE: u16 = 0x03;
const PROCESSORS: u16 = 0x05;
const BOOT_MENU: u16 = 0x0E;
const MOST_PROCESSORS: u16 = 0x0F;
const DIRECTORY: u16 = 0x19;
const FIRST_FILE: u16 = 0x20;

/// The most files.
pub(crate) const MOST_FILES: usize = 32;
/// The longest name; a zero follows.
pub(crate) const MOST_NAME: usize = 55;
/// A directory entry: size, selector, two bytes of nothing, name.
const ENTRY: usize = 64;

/// A file's contents.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents<'m> {
    /// The caller's.
    Long(&'m [u8]),
    /// A few bytes of our own.
    Short([u8; 64], usize),
}

impl<'m> Contents<'m> {
    pub(crate) fn short(bytes: &[u8]) -> Contents<'m> {
        let mut copy = [0; 64];
        let len = bytes.len().min(copy.len());
        copy[..len].copy_from_slice(&bytes[..len]);
        Contents::Short(copy, len)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Contents::Long(bytes) => bytes,
            Contents::Short(bytes, len) => &bytes[..*len],
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct File<'m> {
    name: &'m str,
    contents: Contents<'m>,
}

/// The device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirmwareConfig<'m> {
    ram: u64,
    files: [Option<File<'m>>; MOST_FILES],
    count: usize,
    selected: u16,
    offset: usize,
}

impl<'m> FirmwareConfig<'m> {
    pub(crate) const fn new(ram: u64) -> Self {
        FirmwareConfig { ram, files: [None; MOST_FILES], count: 0, selected: 0, offset: 0 }
    }

    /// Adds a file, or replaces the one of that name. False if there is no room or the name is
    /// too long.
    pub(crate) fn add(&mut self, name: &'m str, contents: Contents<'m>) -> bool {
        if name.is_empty() || name.len() > MOST_NAME {
            return false;
        }
        let known = |file: &Option<File<'_>>| file.is_some_and(|file| file.name == name);
        let place = self.files.iter().position(known).unwrap_or(self.count);
        let Some(slot) = self.files.get_mut(place) else { return false };
        *slot = Some(File { name, contents });
        self.count = self.count.max(place + 1);
        true
    }

    /// Is there a file of this name?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.iter().flatten().any(|file| file.name == name)
    }

    /// OUT of a word to the selector.
    pub(crate) fn select(&mut self, key: u16) {
        (self.selected, self.offset) = (key, 0);
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> usize {
        self.count
    }

    /// What is selected, and how far it has been read.
    pub(crate) fn selection(&self) -> (u16, u64) {
        (self.selected, self.offset as u64)
    }

    /// Goes on where another one was.
    pub(crate) fn go_on(&mut self, (selected, offset): (u16, u64)) {
        (self.selected, self.offset) = (selected, usize::try_from(offset).unwrap_or(usize::MAX));
    }

    /// IN of the data port, as many bytes as `data` has. Zeros follow the end.
    pub(crate) fn read(&mut self, data: &mut [u8]) {
        let start = self.offset;
        self.offset = start.saturating_add(data.len());
        data.fill(0);
        match self.selected {
            DIRECTORY => {
                for (at, byte) in data.iter_mut().enumerate() {
                    *byte = self.directory_byte(start.saturating_add(at));
                }
            }
            SIGNATURE => copy(b"QEMU", start, data),
            // The traditional interface; no DMA.
            ID => copy(&1u32.to_le_bytes(), start, data),
            RAM_SIZE => copy(&self.ram.to_le_bytes(), start, data),
            PROCESSORS | MOST_PROCESSORS => copy(&1u16.to_le_bytes(), start, data),
            BOOT_MENU => copy(&0u16.to_le_bytes(), start, data),
            key => {
                let file = key.checked_sub(FIRST_FILE).map(usize::from);
                if let Some(Some(file)) = file.and_then(|file| self.files.get(file)) {
                    copy(file.contents.bytes(), start, data);
                }
            }
        }
    }

    /// The directory: a count, then the entries; numbers are big endian.
    fn directory_byte(&self, at: usize) -> u8 {
        let Some(at) = at.checked_sub(4) else {
            return (self.count as u32).to_be_bytes()[at];
        };
        let Some(Some(file)) = self.files.get(at / ENTRY) else { return 0 };
        let size = file.contents.bytes().len() as u32;
        let key = FIRST_FILE + (at / ENTRY) as u16;
        match at % ENTRY {
            at @ 0..=3 => size.to_be_bytes()[at],
            at @ 4..=5 => key.to_be_bytes()[at - 4],
            6 | 7 => 0,
            at => file.name.as_bytes().get(at - 8).copied().unwrap_or(0),
        }
    }
}

fn copy(from: &[u8], start: usize, data: &mut [u8]) {
    let rest = from.get(start..).unwrap_or(&[]);
    for (to, byte) in data.iter_mut().zip(rest) {
        *to = *byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(config: &mut FirmwareConfig<'_>, key: u16) -> [u8; N] {
        config.select(key);
        let mut data = [0xEE; N];
        config.read(&mut data);
        data
    }

    #[test]
    fn keys_tell_what_the_machine_is() {
        let mut config = FirmwareConfig::new(0x0100_0000);
        assert_eq!(read(&mut config, 0x00), *b"QEMU\0");
        assert_eq!(read(&mut config, 0x01), [1, 0, 0, 0]);
        assert_eq!(read(&mut config, 0x03), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(read(&mut config, 0x05), [1, 0]);
        assert_eq!(read(&mut config, 0x8003), [0; 4]);
    }

    #[test]
    fn files_are_found_by_the_directory() {
        let mut config = FirmwareConfig::new(0);
        assert!(config.add("etc/one", Contents::short(&[1, 2, 3])));
        assert!(config.add("vgaroms/two", Contents::Long(&[9; 300])));
        let directory: [u8; 4 + 2 * ENTRY + 1] = read(&mut config, DIRECTORY);
        assert_eq!(directory[..12], [0, 0, 0, 2, 0, 0, 0, 3, 0, 0x20, 0, 0]);
        assert_eq!(directory[12..20], *b"etc/one\0");
        assert_eq!(directory[68..76], [0, 0, 1, 44, 0, 0x21, 0, 0]);
        assert_eq!(read(&mut config, 0x20), [1, 2, 3, 0]);
        assert_eq!(read(&mut config, 0x21), [9; 300]);
    }

    #[test]
    fn a_byte_follows_the_last_one_read() {
        let mut config = FirmwareConfig::new(0);
        assert_eq!(read(&mut config, 0x00), *b"QE");
        let mut rest = [0; 3];
        config.read(&mut rest);
        assert_eq!(rest, *b"MU\0");
    }

    #[test]
    fn a_file_of_the_same_name_is_replaced_and_what_has_no_room_is_refused() {
        const NAMES: [&str; 33] = {
            let digits = "abcdefghijklmnopqrstuvwxyz0123456";
            let mut names = [""; 33];
            let mut i = 0;
            while i < 33 {
                names[i] = digits.split_at(i).1.split_at(1).0;
                i += 1;
            }
            names
        };
        let mut config = FirmwareConfig::new(0);
        let added = NAMES.iter().filter(|name| config.add(name, Contents::short(&[1]))).count();
        assert_eq!(added, MOST_FILES);
        assert!(config.add("b", Contents::short(&[7, 8])) && config.has("b"));
        assert_eq!(read(&mut config, 0x21), [7, 8]);
        assert!(!config.add("", Contents::short(&[])));
    }
}
