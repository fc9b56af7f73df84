//! What a damaged or hostile file does: an error that names the place, and nothing else.

use std::path::Path;

use realmode_testkit::moo::{MAX_FILE_BYTES, MooError, MooFile};

use crate::builder::*;

/// Reads all there is; the first error ends it.
fn read_all(bytes: Vec<u8>) -> Result<usize, MooError> {
    let file = MooFile::from_bytes(Path::new("bad.MOO"), bytes)?;
    let mut sum = 0;
    for test in file.tests() {
        let test = test?;
        sum += test.name().len() + test.bytes.len();
        for state in [test.initial, test.expected] {
            sum += state.registers.iter().count() + state.ram.iter().count();
            assert_eq!(state.ram.iter().count(), state.ram.len());
        }
    }
    Ok(sum)
}

fn complaint(bytes: Vec<u8>) -> String {
    read_all(bytes).expect_err("a damaged file").to_string()
}

/// A small generator of numbers (xorshift), so that every run is the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = sample();
    for len in 0..whole.len() {
        let message = complaint(whole[..len].to_vec());
        assert!(message.starts_with("bad.MOO: byte 0x"), "{message}");
    }
}

#[test]
fn a_compressed_file_cut_anywhere_is_an_error() {
    let whole = gzip(&sample());
    for len in 0..whole.len() {
        complaint(whole[..len].to_vec());
    }
}

#[test]
fn random_corruption_never_panics() {
    let whole = sample();
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=numbers.below(6) {
            let at = numbers.below(bytes.len());
            bytes[at] = match numbers.below(4) {
                0 => 0,
                1 => 0xFF,
                2 => bytes[at] ^ 1 << numbers.below(8),
                _ => numbers.below(256) as u8,
            };
        }
        let _ = read_all(bytes);
    }
}

#[test]
fn random_corruption_of_compressed_data_never_panics() {
    let whole = gzip(&sample());
    let mut numbers = Numbers(88_172_645_463_325_252);
    for _ in 0..5_000 {
        let mut bytes = whole.clone();
        let at = numbers.below(bytes.len());
        bytes[at] = numbers.below(256) as u8;
        let _ = read_all(bytes);
    }
}

#[test]
fn every_length_and_count_may_be_huge() {
    let whole = sample();
    for at in 0..whole.len() - 4 {
        for huge in [u32::MAX, 0x8000_0000, 0x3333_3334, 0] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&huge.to_le_bytes());
            let _ = read_all(bytes);
        }
    }
}

#[test]
fn an_error_names_file_and_byte() {
    let mut bytes = sample();
    let test = bytes.windows(4).position(|tag| tag == b"TEST").unwrap();
    bytes[test + 4..test + 8].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    let message = complaint(bytes);
    let place = format!("bad.MOO: byte {test:#x}: chunk \"TEST\" is 2147483647 bytes long");
    assert!(message.starts_with(&place), "{message}");
}

#[test]
fn an_error_in_compressed_data_says_which_bytes_it_counts() {
    let mut bytes = sample();
    bytes[0] = b'N';
    let message = complaint(gzip(&bytes));
    assert!(message.starts_with("bad.MOO: byte 0x0 of the unpacked data: not a MOO"), "{message}");
}

#[test]
fn a_file_of_something_else_is_not_a_moo_file() {
    for bytes in [&b""[..], b"MOO", b"GIF89a", b"MOO\0\x0C\0\0\0"] {
        assert!(complaint(bytes.to_vec()).contains("not a MOO file"));
    }
    let newer = [&[2, 0, 0, 0, 0, 0, 0, 0][..], b"C286"].concat();
    assert!(complaint(chunk(b"MOO ", &newer)).contains("version 2"));
    assert!(complaint(chunk(b"MOO ", &[1, 1, 0, 0])).contains("test count"));
}

#[test]
fn a_header_that_promises_more_tests_than_follow_is_an_error() {
    let one = test(0, &[0xF4], &[initial_words()], &[]);
    let message = complaint(file(b"C286", u32::MAX, std::slice::from_ref(&one)));
    assert!(message.ends_with("ends after 1 tests, its header promises 4294967295"), "{message}");
    assert!(read_all(file(b"C286", 0, &[one])).is_ok(), "more tests than promised are run");
}

#[test]
fn a_test_without_its_states_is_an_error() {
    let bare = chunk(b"TEST", &5_u32.to_le_bytes());
    assert!(complaint(file(b"C286", 1, &[bare])).contains("test 5 lacks INIT or FINA"));
    let blind = test(6, &[0xF4], &[words(b"REGS", &[(4, 1), (13, 2)])], &[]);
    assert!(complaint(file(b"C286", 1, &[blind])).contains("test 6 does not set ip"));
}

#[test]
fn registers_that_do_not_exist_are_an_error() {
    let odd = test(0, &[0xF4], &[words(b"REGS", &[(14, 1)])], &[]);
    assert!(complaint(file(b"C286", 1, &[odd])).contains("names registers past the 14"));
    let odd = test(0, &[0xF4], &[dwords(b"RG32", &[(20, 1)])], &[]);
    assert!(complaint(file(b"386E", 1, &[odd])).contains("names registers past the 20"));
}

#[test]
fn chunks_of_length_zero_lead_nowhere() {
    let empty: Vec<u8> = chunk(b"TEST", &[]).repeat(3);
    assert!(complaint(file(b"C286", 3, &[empty])).contains("a test's index needs 4 bytes"));
    let skipped = chunk(b"WHAT", &[]).repeat(1000);
    assert!(read_all(file(b"C286", 0, &[skipped])).is_ok());
}

#[test]
fn after_an_error_there_are_no_more_tests() {
    let bytes = file(b"C286", 2, &[chunk(b"TEST", &[]), chunk(b"TEST", &[])]);
    let file = MooFile::from_bytes(Path::new("bad.MOO"), bytes).unwrap();
    let mut tests = file.tests();
    assert!(tests.next().unwrap().is_err());
    assert!(tests.next().is_none());
}

#[test]
fn a_gzip_bomb_is_stopped() {
    // Gzip members may be strung together: 17 that hold 16 MiB each make 272 MiB of 270 KiB.
    let member = gzip(&vec![0; 16 << 20]);
    let message = complaint(member.repeat(MAX_FILE_BYTES / (16 << 20) + 1));
    assert!(message.contains("at most 256 MiB are read"), "{message}");
}
