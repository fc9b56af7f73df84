//! The arguments of `boot` that are more than a word or a number.

use std::path::PathBuf;

/// `FILE@SEG:OFF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageAt {
    pub(super) path: PathBuf,
    pub(super) segment: u16,
    pub(super) offset: u16,
}

/// What becomes of the screen at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScreenTo {
    /// Nothing.
    None,
    /// Printed.
    Text,
    /// Drawn to a file.
    Png(PathBuf),
}

/// Parses `FILE@SEG:OFF`; the last `@` counts, so that a file's name may hold others.
pub(super) fn image(text: &str) -> Result<ImageAt, String> {
    let (path, place) = text
        .rsplit_once('@')
        .ok_or("where to load it is missing: append @SEG:OFF, for example @0000:7C00")?;
    if path.is_empty() {
        return Err("the file's name is missing before the @".to_owned());
    }
    let (segment, offset) = place
        .split_once(':')
        .ok_or_else(|| format!("`{place}` is not SEG:OFF; an example is 0000:7C00"))?;
    Ok(ImageAt { path: path.into(), segment: word(segment)?, offset: word(offset)? })
}

fn word(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16)
        .ok()
        .filter(|_| is_hex)
        .ok_or_else(|| format!("`{text}` is not a number from 0 to FFFF in hexadecimal"))
}

/// Parses a size of RAM in MiB.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|size| (1..=3072).contains(size)).ok_or_else(|| {
        "a whole number of MiB from 1 to 3072 is expected, without a unit".to_owned()
    })
}

/// Parses a count of instructions: `5000`, `5_000`, `5k`, `5M`, `5G`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit() || digit == b'_');
    let number = digits.replace('_', "").parse::<u64>().ok().filter(|_| is_number);
    match number.and_then(|number| number.checked_mul(unit)) {
        None => Err("not a count; examples are 5000, 20k, 3M, 1G".to_owned()),
        Some(0) => Err("at least one instruction has to run".to_owned()),
        Some(count) => Ok(count),
    }
}

/// Parses `none`, `text` or `png:FILE`.
pub(super) fn screen(text: &str) -> Result<ScreenTo, String> {
    match (text, text.strip_prefix("png:")) {
        ("none", _) => Ok(ScreenTo::None),
        ("text", _) => Ok(ScreenTo::Text),
        (_, Some("")) => Err("the file's name is missing after png:".to_owned()),
        (_, Some(path)) => Ok(ScreenTo::Png(path.into())),
        _ => Err("expected text, png:FILE or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_file_and_a_place_in_hexadecimal() {
        let parsed = image("a@b.bin@07C0:0x10").expect("well formed");
        let expected = ImageAt { path: "a@b.bin".into(), segment: 0x7C0, offset: 0x10 };
        assert_eq!(parsed, expected);
        for bad in ["a.bin", "a.bin@7C00", "@0:0", "a@0:", "a@:0", "a@0:10000", "a@0:+1", "a@g:0"] {
            assert!(image(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_has_units_and_is_not_zero() {
        assert_eq!(
            ["5000", "5_000", "2k", "3M", "1G"].map(|text| count(text).ok()),
            [Some(5000), Some(5000), Some(2000), Some(3_000_000), Some(1_000_000_000)]
        );
        for bad in ["", "0", "k", "-1", "+1", "1.5", "1T", "99999999999999G", "ä"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_screen_goes_nowhere_to_the_terminal_or_to_a_picture() {
        assert_eq!(screen("text"), Ok(ScreenTo::Text));
        assert_eq!(screen("none"), Ok(ScreenTo::None));
        assert_eq!(screen("png:a.png"), Ok(ScreenTo::Png("a.png".into())));
        assert!(screen("png:").is_err() && screen("jpg:a").is_err());
    }
}
