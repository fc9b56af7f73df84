//! Files of snapshots, whole and damaged.

use super::*;

const VERSION: u32 = 7;

fn ram(pages: usize) -> Vec<AtomicU8> {
    (0..pages * PAGE_SIZE).map(|_| AtomicU8::new(0)).collect()
}

fn bytes(ram: &[AtomicU8]) -> Vec<u8> {
    ram.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
}

/// Contents and RAM, the second page of which is not zeros, in a file.
fn saved(folder: &Path) -> (PathBuf, Vec<AtomicU8>) {
    let ram = ram(3);
    for (i, cell) in ram[PAGE_SIZE..][..64].iter().enumerate() {
        cell.store((i * 31 / 8) as u8, Ordering::Relaxed);
    }
    let path = folder.join("saved.snap");
    let target = Target::new(&path, &[]).expect("a new file");
    target.write(VERSION, &("contents".to_owned(), 5u32), &ram).expect("it can be written");
    (path, ram)
}

fn open(path: &Path) -> Result<Source<(String, u32)>, String> {
    Source::open(path, VERSION)
}

/// The error of a file of these bytes.
fn error(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("other.snap");
    fs::write(&path, bytes).expect("it can be written");
    let into = ram(3);
    let result = open(&path).and_then(|source| source.fill(&into));
    let error = result.expect_err("it is no snapshot");
    assert!(error.contains("other.snap"), "{error}");
    error
}

/// A file that is whole, with this in its stream.
fn forged(stream: &[u8]) -> Vec<u8> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflated.write_all(stream).expect("memory takes all");
    let deflated = deflated.finish().expect("memory takes all");
    let mut file = [&MAGIC, VERSION.to_le_bytes().as_slice(), &[0; 4]].concat();
    file.extend((deflated.len() as u64).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&deflated);
    let sum = with_header(sum, &file);
    file[12..16].copy_from_slice(&sum.to_le_bytes());
    [file, deflated].concat()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (path, ram_saved) = saved(folder.path());
    let source = open(&path).expect("it is whole");
    assert_eq!(source.contents, ("contents".to_owned(), 5));
    // What was there before is overwritten, with zeros too.
    let into = ram(3);
    into.iter().for_each(|cell| cell.store(0xEE, Ordering::Relaxed));
    source.fill(&into).expect("as much RAM");
    assert_eq!(bytes(&into), bytes(&ram_saved));
    let names = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(names, 1, "no temporary file is left");
}

#[test]
fn every_changed_byte_and_every_length_is_found() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let good = fs::read(saved(folder.path()).0).expect("it was written");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        let told = error(folder.path(), &bad);
        let expected = match at {
            0..8 => "no snapshot",
            8..12 => "version",
            _ => "damaged",
        };
        assert!(told.contains(expected), "byte {at}: {told}");
    }
    for len in 0..good.len() {
        let told = error(folder.path(), &good[..len]);
        let expected = match len {
            0 => "empty",
            1..HEADER => "no snapshot",
            _ => "damaged",
        };
        assert!(told.contains(expected), "{len} bytes: {told}");
    }
    let longer = [good.as_slice(), &[0]].concat();
    assert!(error(folder.path(), &longer).contains("damaged"));
}

#[test]
fn a_whole_file_of_nonsense_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let contents = postcard::to_stdvec(&("contents", 5u32)).expect("plain data");
    let len = (contents.len() as u64).to_le_bytes();
    let good = [len.as_slice(), &contents, &[0; 3]].concat();
    let path = folder.path().join("good.snap");
    fs::write(&path, forged(&good)).expect("it can be written");
    open(&path).and_then(|source| source.fill(&ram(3))).expect("this one is whole");
    // A length of its own, then a text of its own, which is longer than the file.
    let huge = [&u64::MAX.to_le_bytes(), &contents[..]].concat();
    let text = [&10u64.to_le_bytes()[..], &[0xFF, 0xFF, 0xFF, 0xFF, 0x7F], &[0; 5]].concat();
    let short = &good[..good.len() - 1];
    let long = [good.as_slice(), &[0]].concat();
    let kind = [&good[..good.len() - 1], &[2]].concat();
    for stream in [&huge, &text, short, &long, &kind, &[]] {
        assert!(error(folder.path(), &forged(stream)).contains("contradicts itself"));
    }
    let mut no_stream = forged(&good);
    no_stream.truncate(HEADER);
    no_stream[16..].fill(0);
    let sum = with_header(crc32fast::Hasher::new(), &no_stream);
    no_stream[12..16].copy_from_slice(&sum.to_le_bytes());
    assert!(error(folder.path(), &no_stream).contains("contradicts itself"));
}

#[test]
fn a_bomb_fills_no_more_than_the_machine_has() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let contents = postcard::to_stdvec(&("contents", 5u32)).expect("plain data");
    let mut stream = (contents.len() as u64).to_le_bytes().to_vec();
    stream.extend(&contents);
    stream.resize(64 << 20, 0);
    let file = forged(&stream);
    assert!(file.len() < 1 << 20);
    assert!(error(folder.path(), &file).contains("contradicts itself"));
}

#[test]
fn a_file_is_replaced_only_by_a_whole_one_and_an_input_never() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (path, _) = saved(folder.path());
    let before = fs::read(&path).expect("it was written");
    let refused = Target::new(&path, &[&path]).err().expect("it is an input");
    assert!(refused.contains("same file"), "{refused}");
    let refused = Target::new(folder.path(), &[]).err().expect("a directory");
    assert!(refused.contains("directory"), "{refused}");
    let nowhere = folder.path().join("none/saved.snap");
    assert!(Target::new(&nowhere, &[]).is_err());
    assert_eq!(fs::read(&path).expect("still there"), before);
    let target = Target::new(&path, &[]).expect("a file to replace");
    target.write(VERSION, &("other".to_owned(), 6u32), &[]).expect("it can be written");
    assert_eq!(open(&path).expect("it is whole").contents, ("other".to_owned(), 6));
}
