//! Forms: an encoding in one mode, with register or memory operand, at one operand size.

use core::fmt;

use realmode::encodings::{self, Encoding, Form as ModForm, Map, Modes, Prefix};
use realmode::{CodeSize, Generation, Profile};

use super::case::Mode;
use crate::prng::mix;

/// What ModRM.rm names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// There is no ModRM byte.
    Implied,
    /// A register.
    Register,
    /// Memory.
    Memory,
}

/// What says the operand size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Nothing: the size of the code decides.
    Default,
    /// The prefix 66.
    Prefixed,
    /// REX.W.
    Wide,
}

/// Where cases of a form happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Setting {
    /// Mostly where nothing is special. Recordings have these alone.
    #[default]
    Usual,
    /// In segments of every kind that the local table can have, at their edges; in 64-bit code, at
    /// the edges of the canonical addresses. Selectors of every kind are loaded.
    Segments,
    /// At the edges of pages, of which one is absent or cannot be written.
    Pages,
}

impl Setting {
    /// Every one.
    pub const ALL: [Setting; 3] = [Setting::Usual, Setting::Segments, Setting::Pages];
}

/// What a case is an instance of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// The mode.
    pub mode: Mode,
    /// The encoding.
    pub encoding: Encoding,
    /// Register or memory.
    pub operand: Operand,
    /// The operand size.
    pub size: Size,
    /// Where its cases happen.
    pub setting: Setting,
    /// The encoding's family.
    pub family: &'static str,
    /// Its name.
    pub name: &'static str,
    /// A number that this form has in every version.
    hash: u64,
}

impl Form {
    fn new(mode: Mode, encoding: Encoding, operand: Operand, size: Size) -> Form {
        let (family, name) = (encoding.family(), encoding.name());
        let setting = Setting::Usual;
        Form { mode, encoding, operand, size, setting, family, name, hash: 0 }.within(setting)
    }

    /// The form with its cases in another setting.
    pub fn within(mut self, setting: Setting) -> Form {
        self.setting = setting;
        self.hash = self.to_string().bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        self
    }

    /// Does the setting make a difference to it? It does if it accesses memory, loads or asks for
    /// segments, or goes elsewhere.
    fn differs_within(&self, setting: Setting) -> bool {
        const OTHERS: [&str; 7] =
            ["stack", "string", "far", "branch", "segment", "protected", "segment_base"];
        let has_offset = |o| matches!(o, encodings::Operand::Ob | encodings::Operand::Ov);
        setting == Setting::Usual
            || self.operand == Operand::Memory
            || OTHERS.contains(&self.family)
            || matches!(self.name, "XLATB" | "MASKMOVQ" | "MASKMOVDQU")
            || self.encoding.operands().any(has_offset)
    }

    /// Every form of a mode that the processor has and the emulator executes.
    pub fn all(mode: Mode, profile: &Profile) -> Vec<Form> {
        let mut forms = Vec::new();
        for encoding in encodings::all() {
            if !encoding.is_implemented() || !exists(&encoding, mode, profile) {
                continue;
            }
            for &operand in operands(&encoding) {
                for &size in sizes(&encoding, mode) {
                    let form = Form::new(mode, encoding, operand, size);
                    // Later rows of an opcode can be hidden by earlier ones.
                    if form.is_reachable(profile) {
                        forms.push(form);
                    }
                }
            }
        }
        forms
    }

    /// Those of [`Form::all`] to which a setting makes a difference.
    pub fn all_within(setting: Setting, mode: Mode, profile: &Profile) -> Vec<Form> {
        let mut forms = Form::all(mode, profile);
        forms.retain(|form| form.differs_within(setting));
        forms.iter_mut().for_each(|form| *form = form.within(setting));
        forms
    }

    /// The form with a key, as `Display` writes it.
    pub fn find(key: &str, profile: &Profile) -> Option<Form> {
        [Mode::Real, Mode::Bits16, Mode::Bits32, Mode::Bits64]
            .into_iter()
            .flat_map(|mode| Setting::ALL.map(|setting| (setting, mode)))
            .flat_map(|(setting, mode)| Form::all_within(setting, mode, profile))
            .find(|form| form.to_string() == key)
    }

    /// Does it use the x87, MMX or SSE registers?
    pub(super) fn has_fpu(&self) -> bool {
        const FAMILIES: [&str; 8] =
            ["fpu", "simd", "fxsave", "moves", "mmx_moves", "avx_moves", "sse_", "vex_"];
        FAMILIES.iter().any(|family| self.family.starts_with(family))
    }

    /// Does it begin with VEX?
    pub(super) fn is_vex(&self) -> bool {
        matches!(self.encoding.map(), Map::Vex1 | Map::Vex2 | Map::Vex3 | Map::Vex7)
    }

    /// Does it store several words, of which silicon may have stored some when it faults?
    pub(super) fn moves_several(&self) -> bool {
        matches!(self.name, "PUSHA" | "POPA" | "ENTER" | "CALL" | "INT" | "INTO")
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Do the plainest bytes of this form decode to it?
    fn is_reachable(&self, profile: &Profile) -> bool {
        let (mut bytes, len) = super::generate::plain(self);
        bytes[len..].fill(0);
        super::generate::decoded(&bytes, self.mode, profile)
            .is_some_and(|instruction| instruction.encoding() == Some(self.encoding))
    }
}

/// Does the processor have it in this mode?
fn exists(encoding: &Encoding, mode: Mode, profile: &Profile) -> bool {
    let is_long = mode.code_size() == CodeSize::Bits64;
    let in_mode = match encoding.modes() {
        Modes::All => true,
        Modes::Not64 => !is_long,
        Modes::Only64 => is_long,
        Modes::Protected => mode != Mode::Real,
        Modes::Protected32 => mode != Mode::Real && !is_long,
    };
    // 3DNow!, EVEX and XOP have no instruction that the emulator executes.
    let in_map = !matches!(
        encoding.map(),
        Map::Now3d
            | Map::Evex1
            | Map::Evex2
            | Map::Evex3
            | Map::Evex5
            | Map::Evex6
            | Map::Xop8
            | Map::Xop9
            | Map::XopA
    );
    let vex = matches!(encoding.map(), Map::Vex1 | Map::Vex2 | Map::Vex3 | Map::Vex7);
    in_mode
        && in_map
        && !(vex && mode == Mode::Real)
        && encoding.vendor().is_none_or(|vendor| vendor == profile.vendor)
        && encoding.generations().contains(&Generation::Modern)
        && profile.has(encoding.features())
}

fn operands(encoding: &Encoding) -> &'static [Operand] {
    if !encoding.has_modrm() {
        return &[Operand::Implied];
    }
    match encoding.form() {
        ModForm::Any => &[Operand::Register, Operand::Memory],
        ModForm::Memory | ModForm::Exact(0..0xC0) => &[Operand::Memory],
        ModForm::Register | ModForm::RegisterZero | ModForm::Exact(_) => &[Operand::Register],
    }
}

fn sizes(encoding: &Encoding, mode: Mode) -> &'static [Size] {
    use encodings::Operand as O;
    let has_size = !encoding.operands().any(|o| {
        matches!(o, O::Eb | O::Gb | O::Zb | O::Ob | O::Xb | O::Yb | O::Al)
            && !matches!(encoding.operands().next(), Some(O::Gv | O::Gy))
    });
    let is_vex = matches!(encoding.map(), Map::Vex1 | Map::Vex2 | Map::Vex3 | Map::Vex7);
    let may_have_66 = matches!(encoding.prefix(), Prefix::Any | Prefix::NotRepeat)
        || matches!(encoding.prefix(), Prefix::F2 | Prefix::F3 | Prefix::F3WithoutB);
    match (has_size, mode) {
        (false, _) => &[Size::Default],
        (true, Mode::Bits64) if may_have_66 && !is_vex => {
            &[Size::Default, Size::Prefixed, Size::Wide]
        }
        (true, Mode::Bits64) => &[Size::Default, Size::Wide],
        (true, _) if may_have_66 && !is_vex => &[Size::Default, Size::Prefixed],
        (true, _) => &[Size::Default],
    }
}

/// A key: mode, operand size, setting, register or memory, encoding.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Real => "real",
            Mode::Bits16 => "16",
            Mode::Bits32 => "32",
            Mode::Bits64 => "64",
        };
        let size = match self.size {
            Size::Default => "",
            Size::Prefixed => "+66",
            Size::Wide => "+W",
        };
        let operand = match self.operand {
            Operand::Implied => "",
            Operand::Register => " reg",
            Operand::Memory => " mem",
        };
        let setting = match self.setting {
            Setting::Usual => "",
            Setting::Segments => " segments",
            Setting::Pages => " pages",
        };
        write!(f, "{mode}{size}{setting}{operand} {}", self.encoding)
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Form({self})")
    }
}
