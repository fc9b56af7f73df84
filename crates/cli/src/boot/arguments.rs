//! The arguments of `boot` that are more than a word or a number.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use realmode_pc::has_key;
use serde::{Deserialize, Serialize};

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

/// What COM1 is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SerialTo {
    /// stdin and stdout.
    Stdio,
    /// A file takes its output.
    File(PathBuf),
}

/// `N|TEXT`: where a snapshot is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// After so many instructions.
    Instruction(u64),
    /// Once the text has appeared.
    Text(String),
}

/// `TEXT@TRIGGER`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Typing {
    pub(super) text: String,
    /// COM1 receives it, and not the keyboard.
    pub(super) is_serial: bool,
    pub(super) trigger: String,
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

/// Refuses a file's name without an option, and says what to do with it.
pub(super) fn stray(_: &str) -> Result<Infallible, String> {
    Err("what it is has to be said: --bios, --floppy, --disk, --kernel or --load before it, or \
         --image FILE@SEG:OFF"
        .to_owned())
}

/// Parses the number of a port.
pub(super) fn port(text: &str) -> Result<u16, String> {
    word(text.strip_suffix(['h', 'H']).unwrap_or(text))
}

/// Parses `stdio` or a file's name.
pub(super) fn serial(text: &str) -> Result<SerialTo, String> {
    match text {
        "" => Err("expected stdio or a file's name".to_owned()),
        "stdio" => Ok(SerialTo::Stdio),
        file => Ok(SerialTo::File(file.into())),
    }
}

/// Parses `TEXT@TRIGGER`; the last `@` counts, so that the text may hold others.
pub(super) fn typing(argument: &str) -> Result<Typing, String> {
    let (text, trigger) = argument
        .rsplit_once('@')
        .ok_or("what to wait for is missing: append @TRIGGER, for example @login:")?;
    let (is_serial, text) = match text.strip_prefix("com1:") {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (text, trigger) = (unescaped(text)?, unescaped(trigger)?);
    if trigger.is_empty() {
        return Err("what to wait for is missing after the @".to_owned());
    }
    if text.is_empty() {
        return Err("what to type is missing before the @".to_owned());
    }
    match text.chars().find(|character| !is_serial && !has_key(*character)) {
        Some(other) => Err(format!("`{other}` has no key on a US keyboard; com1:TEXT has all")),
        None => Ok(Typing { text, is_serial, trigger }),
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('e') => '\x1B',
                Some('\\') => '\\',
                Some(other) => return Err(format!("`\\{other}` is none of \\n \\r \\t \\e \\\\")),
                None => return Err("a single \\ at the end; a backslash is \\\\".to_owned()),
            },
            plain => plain,
        });
    }
    Ok(plain)
}

/// Parses a date in UTC, or `now`, to seconds since 1970.
pub(super) fn date(text: &str) -> Result<i64, String> {
    let time = match text {
        "now" => Ok(SystemTime::now()),
        day if day.len() == "2026-01-31".len() => {
            humantime::parse_rfc3339_weak(&format!("{day} 00:00:00"))
        }
        time => humantime::parse_rfc3339_weak(time),
    };
    time.ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .ok_or_else(|| "not a date from 1970 on; an example is 2026-01-31 12:00:00".to_owned())
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

/// Parses a count of instructions, or else a text.
pub(super) fn at(text: &str) -> Result<At, String> {
    match count(text) {
        Ok(count) => Ok(At::Instruction(count)),
        Err(error) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => Err(error),
        Err(_) => Ok(At::Text(text.to_owned())),
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
    fn a_snapshot_is_saved_at_a_count_or_a_text() {
        assert_eq!(at("5M"), Ok(At::Instruction(5_000_000)));
        assert_eq!(at("5 M"), Ok(At::Text("5 M".to_owned())));
        assert!(at("").is_err() && at("0").is_err() && at("99999999999999999999").is_err());
    }

    #[test]
    fn a_screen_goes_nowhere_to_the_terminal_or_to_a_picture() {
        assert_eq!(screen("text"), Ok(ScreenTo::Text));
        assert_eq!(screen("none"), Ok(ScreenTo::None));
        assert_eq!(screen("png:a.png"), Ok(ScreenTo::Png("a.png".into())));
        assert!(screen("png:").is_err() && screen("jpg:a").is_err());
    }

    #[test]
    fn a_text_to_type_has_escapes_and_a_trigger() {
        let parsed = typing(r"a@b\n\e\t\\@grub>").expect("well formed");
        let text = "a@b\n\x1B\t\\".to_owned();
        assert_eq!(parsed, Typing { text, is_serial: false, trigger: "grub>".to_owned() });
        let parsed = typing("com1:é@x").expect("well formed");
        assert_eq!((parsed.text.as_str(), parsed.is_serial), ("é", true));
        for bad in ["abc", "abc@", "@abc", "com1:@x", r"\q@x", r"a\@x", "é@x"] {
            assert!(typing(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_date_is_seconds_since_1970() {
        assert_eq!(date("2026-01-01 00:00:00"), Ok(1_767_225_600));
        assert_eq!(date("2026-01-01"), date("2026-01-01T00:00:00Z"));
        assert!(date("now").is_ok_and(|now| now > 1_767_225_600));
        for bad in ["", "yesterday", "2026-13-01", "1969-12-31"] {
            assert!(date(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_port_is_hexadecimal() {
        assert_eq!([port("501"), port("F4h"), port("0xf4")], [Ok(0x501), Ok(0xF4), Ok(0xF4)]);
        assert!(port("").is_err() && port("10000").is_err() && port("-1").is_err());
    }
}
