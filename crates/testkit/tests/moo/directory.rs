//! A directory of temporary files.

use std::fs;
use std::path::PathBuf;

use realmode_testkit::moo::Suite;

/// A directory that is removed again.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str, files: &[(&str, &[u8])]) -> Directory {
        let path = std::env::temp_dir().join(format!("realmode-moo-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for temporary files");
        for (name, bytes) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().expect("inside")).expect("a directory");
            fs::write(file, bytes).expect("a temporary file");
        }
        Directory(path)
    }

    pub(crate) fn open(&self) -> Suite {
        Suite::open(&self.0).expect("a suite")
    }

    pub(crate) fn complaint(&self) -> String {
        Suite::open(&self.0).expect_err("no suite").to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
