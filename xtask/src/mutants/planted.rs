//! Faults planted on purpose: `xtask/planted.toml`.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::copy::{Copy, Tested};

/// Seconds for building with a fault and testing: ten times what it takes without one.
const LONGEST: u32 = 300;

/// The list.
#[derive(Deserialize)]
struct List {
    fault: Vec<Fault>,
}

/// A fault: text that stands once in a file, and what is put in its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// What goes wrong.
    pub(super) name: String,
    /// The file, below the repository's root.
    pub(super) file: String,
    from: String,
    to: String,
}

/// Where a fault was found.
pub(super) enum Found {
    /// This test failed.
    By(String),
    /// No test failed.
    Nowhere,
}

impl Found {
    /// The test's name.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Found::By(test) => Some(test),
            Found::Nowhere => None,
        }
    }
}

/// Every fault on the list.
pub(super) fn all() -> Result<Vec<Fault>, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted.toml");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let list: List = toml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(list.fault)
}

impl Fault {
    /// The file's text with the fault in it.
    fn break_text(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.from).count() {
            1 => Ok(text.replacen(&self.from, &self.to, 1)),
            n => Err(format!(
                "'{}': what is to be replaced stands {n} times in {}, not once: {}",
                self.name, self.file, self.from
            )),
        }
    }

    /// Plants it in the copy, tests, and takes it out again.
    pub(super) fn plant(&self, copy: &Copy) -> Result<Found, String> {
        let file = copy.root.join(&self.file);
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let put = |text: &str| fs::write(&file, text).map_err(|e| format!("{}: {e}", self.file));
        put(&self.break_text(&text)?)?;
        let tested = copy.test(LONGEST);
        put(&text)?;
        match tested? {
            Tested::Passed => Ok(Found::Nowhere),
            Tested::Failed(test) => Ok(Found::By(test)),
            Tested::Broken(why) => Err(format!("'{}' does not compile: {why}", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_fault_can_be_planted() {
        let faults = all().expect("the list can be read");
        assert!(faults.len() >= 10);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for fault in faults {
            let text = fs::read_to_string(root.join(&fault.file)).expect("the file is there");
            let broken = fault.break_text(&text).unwrap_or_else(|e| panic!("{e}"));
            assert_ne!(broken, text, "{}", fault.name);
        }
    }
}
