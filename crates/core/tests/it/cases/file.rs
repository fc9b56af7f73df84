//! The case format of `testdata/cases`: its README says what a line means, this reads it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cases::deliver::Raised;
use crate::cases::names::{Assign, parse_assign};
use crate::cases::tables::{GDT, IDT, LDT, code_of, descriptor, stack_of};
use crate::guest::Seen;
use realmode::arch::{rflags, vector};
use realmode::{PAGE_SIZE, Profile, UnimplementedReason};

/// One case, of one row.
#[derive(Clone, Debug)]
pub struct Case {
    /// File and line, for people.
    pub place: String,
    /// The FACTS lines it covers.
    pub ids: Vec<String>,
    pub title: String,
    pub profiles: Vec<&'static Profile>,
    /// The privilege level, if it begins in protected mode.
    pub protected: Option<u8>,
    /// CS and IP of the code.
    pub at: (u16, u64),
    pub code: Vec<u8>,
    pub set: Vec<Assign>,
    pub pages: Vec<Page>,
    /// What IN from a port returns, in order.
    pub ports: Vec<(u16, Vec<u64>)>,
    pub budget: u64,
    pub want: Want,
}

/// A page that is not RAM.
#[derive(Clone, Debug)]
pub struct Page {
    pub start: u64,
    pub kind: PageKind,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Device,
    Rom,
    Unmapped,
}

/// What a case expects.
#[derive(Clone, Debug, Default)]
pub struct Want {
    pub assigns: Vec<Assign>,
    /// Flags that are not compared.
    pub undefined: u64,
    /// Registers that are not compared, each assigned zeros in the bits it has.
    pub any: Vec<Assign>,
    /// The event that is delivered last, from the state that `assigns` describes.
    pub event: Option<Raised>,
    pub seen: Vec<Seen>,
    pub stop: StopIs,
}

/// Why `run` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopIs {
    #[default]
    Budget,
    Halt,
    Idle,
    Shutdown,
    Hypercall,
    Unimplemented(UnimplementedReason),
}

/// A line that does not say what a line can say.
#[derive(Debug)]
pub struct Malformed {
    pub path: PathBuf,
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

/// Reads the cases of a file.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Case>, Malformed> {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut cases = Vec::new();
    let mut draft: Option<Draft> = None;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let said = line.split(';').next().unwrap_or("").trim();
        if said.is_empty() {
            continue;
        }
        let (keyword, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let (rest, place) = (rest.trim(), format!("{name}:{line_number}"));
        let result = match (keyword, &mut draft) {
            ("case", _) => {
                if let Some(done) = draft.take() {
                    done.finish(&mut cases);
                }
                Draft::begin(place, rest).map(|new| draft = Some(new))
            }
            (_, None) => Err("a file begins with a `case` line".into()),
            (_, Some(draft)) => draft.line(place, keyword, rest),
        };
        result.map_err(|what| Malformed { path: path.into(), line: line_number, what })?;
    }
    if let Some(done) = draft.take() {
        done.finish(&mut cases);
    }
    Ok(cases)
}

/// A case while its lines are read, and its rows.
struct Draft {
    case: Case,
    rows: Vec<Case>,
}

impl Draft {
    fn begin(place: String, rest: &str) -> Result<Draft, String> {
        let mut ids = Vec::new();
        let mut title = rest.trim();
        while let Some((word, after)) = title.split_once(' ')
            && is_id(word)
        {
            ids.push(word.to_owned());
            title = after.trim_start();
        }
        if title.is_empty() || is_id(title) {
            return Err("a case has a title".into());
        }
        let case = Case {
            place,
            ids,
            title: title.to_owned(),
            profiles: vec![&Profile::INTEL],
            protected: None,
            at: (0, 0x1000),
            code: Vec::new(),
            set: Vec::new(),
            pages: Vec::new(),
            ports: Vec::new(),
            budget: 1,
            want: Want::default(),
        };
        Ok(Draft { case, rows: Vec::new() })
    }

    fn finish(self, cases: &mut Vec<Case>) {
        if self.rows.is_empty() {
            cases.push(self.case);
        } else {
            cases.extend(self.rows);
        }
    }

    fn line(&mut self, place: String, keyword: &str, rest: &str) -> Result<(), String> {
        if keyword == "row" {
            return self.row(place, rest);
        }
        if !self.rows.is_empty() {
            return Err("rows come last in a case".into());
        }
        let case = &mut self.case;
        match keyword {
            "profile" => {
                case.profiles = rest.split_whitespace().map(profile).collect::<Result<_, _>>()?;
            }
            "protected" => {
                let level = if rest.is_empty() { 0 } else { hex(rest)? };
                let level = u8::try_from(level).ok().filter(|level| *level < 4);
                let level = level.ok_or("`protected` takes a level from 0 to 3")?;
                (case.protected, case.at.0) = (Some(level), code_of(level));
                case.profiles =
                    vec![&Profile::I80386, &Profile::I80486, &Profile::INTEL, &Profile::AMD];
            }
            "gdt" | "ldt" | "idt" | "stack" => case.set.push(table_line(keyword, rest)?),
            "at" => {
                let (cs, ip) = rest.split_once(':').ok_or("`at` takes SEGMENT:OFFSET")?;
                case.at = (hex(cs)? as u16, hex(ip)?);
            }
            "code" => case.code.extend(bytes(rest)?),
            "set" => case.take_sets(rest)?,
            "mem" => case.set.push(memory(rest)?),
            "device" => case.pages.extend(pages(PageKind::Device, rest)?),
            "rom" => case.pages.extend(pages(PageKind::Rom, rest)?),
            "unmapped" => case.pages.extend(pages(PageKind::Unmapped, rest)?),
            "port" => {
                let mut words = rest.split_whitespace();
                let port = hex(words.next().ok_or("`port` takes a number and values")?)? as u16;
                case.ports.push((port, words.map(hex).collect::<Result<_, _>>()?));
            }
            "run" => case.budget = hex(rest)?,
            "want" => case.take_wants(rest)?,
            "writes" => case.want.assigns.push(memory(rest)?),
            "sees" => {
                for word in rest.split_whitespace() {
                    case.want.seen.push(seen(word)?);
                }
            }
            "stop" => case.want.stop = stop(rest)?,
            _ => return Err(format!("no line begins with `{keyword}`")),
        }
        Ok(())
    }

    /// `row BYTES SETS -> WANTS`: the case once more, with these added.
    fn row(&mut self, place: String, rest: &str) -> Result<(), String> {
        let (before, wants) = rest.split_once("->").unwrap_or((rest, ""));
        let mut case = Case { place, ..self.case.clone() };
        for word in before.split_whitespace() {
            if word.contains('=') {
                case.take_sets(word)?;
            } else {
                case.code.extend(bytes(word)?);
            }
        }
        case.take_wants(wants)?;
        self.rows.push(case);
        Ok(())
    }
}

impl Case {
    fn take_sets(&mut self, text: &str) -> Result<(), String> {
        for word in text.split_whitespace() {
            self.set.push(parse_assign(word)?);
        }
        Ok(())
    }

    fn take_wants(&mut self, text: &str) -> Result<(), String> {
        for word in text.split_whitespace() {
            if let Some(name) = word.strip_prefix('#') {
                self.want.event = Some(raised(name, self.protected.is_some())?);
            } else if let Some(list) = word.strip_prefix("undefined=") {
                self.want.undefined |= flags(list)?;
            } else if let Some(name) = word.strip_prefix("any=") {
                self.want.any.push(parse_assign(&format!("{name}=0"))?);
            } else if is_access(word) {
                self.want.seen.push(seen(word)?);
            } else {
                self.want.assigns.push(parse_assign(word)?);
            }
        }
        Ok(())
    }
}

/// A letter and two digits.
fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 3 && bytes[0].is_ascii_uppercase() && bytes[1..].iter().all(u8::is_ascii_digit)
}

fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| format!("no profile is called `{name}`"))
}

/// A hexadecimal number.
pub fn hex(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text.trim(), 16).map_err(|_| format!("`{text}` is not hexadecimal"))
}

/// Bytes, with or without blanks between them.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        if word.len() % 2 != 0 || !word.is_ascii() {
            return Err(format!("`{word}` is not whole bytes"));
        }
        for at in (0..word.len()).step_by(2) {
            all.push(hex(&word[at..at + 2])? as u8);
        }
    }
    Ok(all)
}

/// A physical address, or SEGMENT:OFFSET.
pub fn address(text: &str) -> Result<u64, String> {
    match text.split_once(':') {
        Some((segment, offset)) => Ok((hex(segment)? << 4) + hex(offset)?),
        None => hex(text),
    }
}

fn memory(rest: &str) -> Result<Assign, String> {
    let (at, rest) = rest.split_once(' ').ok_or("an address and bytes")?;
    Ok(Assign::Memory(address(at)?, bytes(rest)?))
}

/// `gdt SELECTOR DESCRIPTOR`, `ldt SELECTOR DESCRIPTOR`, `idt VECTOR GATE`, `stack LEVEL SS:ESP`.
fn table_line(keyword: &str, rest: &str) -> Result<Assign, String> {
    let (number, rest) = rest.split_once(' ').ok_or("a table entry is a number and its content")?;
    let number = hex(number)?;
    let at = match keyword {
        "gdt" => GDT + (number & 0x7F8),
        "ldt" => LDT + (number & 0xF8),
        "idt" => IDT + (number & 0xFF) * 8,
        _ => {
            let (ss, esp) = rest.split_once(':').ok_or("a stack is SS:ESP")?;
            let raw = hex(esp)? & 0xFFFF_FFFF | hex(ss)? << 32;
            let level = u8::try_from(number).ok().filter(|level| *level < 3);
            let level = level.ok_or("the TSS has stacks of levels 0 to 2")?;
            return Ok(Assign::Memory(stack_of(level), raw.to_le_bytes()[..6].to_vec()));
        }
    };
    Ok(Assign::Memory(at, descriptor(rest)?.to_le_bytes().to_vec()))
}

fn pages(kind: PageKind, rest: &str) -> Result<Vec<Page>, String> {
    let (start, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let start = address(start)?;
    if start % PAGE_SIZE as u64 != 0 {
        return Err(format!("{start:X} does not begin a page"));
    }
    Ok(vec![Page { start, kind, bytes: bytes(rest)? }])
}

/// Does a word say what a device sees?
fn is_access(word: &str) -> bool {
    let verb = word.split(':').next().unwrap_or("");
    let verb = verb.trim_end_matches(|c: char| c.is_ascii_digit());
    word.contains(':') && matches!(verb, "read" | "write" | "in" | "out")
}

/// `read2:B8000`, `write1:B8000=41`, `in1:60`, `out4:CF8=80000000`.
fn seen(word: &str) -> Result<Seen, String> {
    let bad = || format!("`{word}` is not read2:B8000, write2:B8000=41, in1:60 or out1:60=41");
    let (verb, rest) = word.split_once(':').ok_or_else(bad)?;
    let (address, data) = match rest.split_once('=') {
        Some((address, data)) => (hex(address)?, Some(hex(data)?)),
        None => (hex(rest)?, None),
    };
    let size = verb.bytes().last().ok_or_else(bad)?.wrapping_sub(b'0');
    match (&verb[..verb.len() - 1], data) {
        ("read", None) => Ok(Seen::Read(address, size)),
        ("write", Some(data)) => Ok(Seen::Write(address, size, data)),
        ("in", None) => Ok(Seen::In(address as u16, size)),
        ("out", Some(data)) => Ok(Seen::Out(address as u16, size, data)),
        _ => Err(bad()),
    }
}

fn stop(rest: &str) -> Result<StopIs, String> {
    Ok(match rest {
        "budget" => StopIs::Budget,
        "halt" => StopIs::Halt,
        "idle" => StopIs::Idle,
        "shutdown" => StopIs::Shutdown,
        "hypercall" => StopIs::Hypercall,
        "unimplemented" => StopIs::Unimplemented(UnimplementedReason::Instruction),
        "fetch" => StopIs::Unimplemented(UnimplementedReason::FetchFromMmio),
        "mode" => StopIs::Unimplemented(UnimplementedReason::Mode),
        "delivery" => StopIs::Unimplemented(UnimplementedReason::Delivery),
        _ => return Err(format!("no stop is called `{rest}`")),
    })
}

/// `GP`, `GP(80)`, `21`, `D(0)`. An exception that has an error code has 0 if none is given; an
/// interrupt has none.
fn raised(word: &str, is_protected: bool) -> Result<Raised, String> {
    let (name, code) = match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((name, code)) if is_protected => (name, Some(hex(code)? as u16)),
        Some(_) => return Err("real mode pushes no error code".into()),
        None => (word, None),
    };
    let vector = vector_named(name)?;
    let is_exception = hex(name).map_or(true, |number| number as u8 != vector);
    let has_code = is_exception && matches!(vector, 8 | 10..=14 | 17 | 21);
    Ok(Raised {
        vector,
        code: code.or(has_code.then_some(0)),
        // #DB, NMI, #BP and #OF are reported after an instruction.
        is_fault: is_exception && !(1..=4).contains(&vector),
    })
}

/// An exception's mnemonic without its `#`, or a vector.
fn vector_named(name: &str) -> Result<u8, String> {
    (0..32)
        .find(|v| vector::name(*v).is_some_and(|n| n.trim_start_matches('#') == name))
        .map_or_else(|| hex(name).map(|v| v as u8), Ok)
}

/// A list of flags; `-` is none.
pub fn flags(list: &str) -> Result<u64, String> {
    let mut mask = 0;
    for name in list.split(',').filter(|name| *name != "-") {
        mask |= flag(name).ok_or_else(|| format!("no flag is called `{name}`"))?;
    }
    Ok(mask)
}

/// A flag by its name in either case.
pub fn flag(name: &str) -> Option<u64> {
    rflags::NAMES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(mask, _)| *mask)
}

#[test]
fn a_malformed_line_is_named_by_file_and_line() {
    let bad = [
        "code 90",
        "case",
        "case W05",
        "case x\ncode 9",
        "case x\ncode GG",
        "case x\nset ax=12345",
        "case x\nset ey=1",
        "case x\nset ax",
        "case x\nset cf=2",
        "case x\nset flags=CF,QF",
        "case x\nprofile z80",
        "case x\nat 1000",
        "case x\ndevice B8001",
        "case x\nmem 2000",
        "case x\nsees read2",
        "case x\nsees peek1:0",
        "case x\nsees write2:B8000",
        "case x\nwant #XY",
        "case x\nwant #GP(8)",
        "case x\nprotected 4",
        "case x\ngdt 80",
        "case x\ngdt 80 data",
        "case x\ngdt 80 data32 to=8:0",
        "case x\ngdt 80 data32 limit=FFFFF000",
        "case x\nidt 20 int32 base=0",
        "case x\nstack 3 10:0",
        "case x\nwant [2000=12",
        "case x\nstop never",
        "case x\nrun ten",
        "case x\njump 5",
        "case x\nrow 90\ncode 90",
    ];
    for text in bad {
        let line = text.lines().count();
        let error = parse(Path::new("some/bad.case"), text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("some/bad.case:{line}: ")), "{text:?}: {error}");
    }
}
