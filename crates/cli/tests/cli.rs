//! The command as its user meets it: exit codes, messages, files.

#[path = "cli/boot.rs"]
mod boot;
#[path = "cli/decode.rs"]
mod decode;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/misuse.rs"]
mod misuse;
#[path = "cli/run_image.rs"]
mod run_image;
#[path = "cli/vectors.rs"]
mod vectors;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// What the command said and returned.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `realmode` with arguments.
fn realmode(arguments: &[&str]) -> Said {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(arguments)
        .output()
        .expect("the command can be started");
    Said {
        code: status.code().expect("the command was not killed by a signal"),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A path for a test's own file; tests do not share names.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes a test's own file and returns its path.
fn file(name: &str, bytes: &[u8]) -> String {
    let path = path(name);
    fs::write(&path, bytes).expect("the target directory can be written");
    path.to_str().expect("the target directory's name is UTF-8").to_owned()
}

impl Said {
    /// The exit code was `code`, and stderr holds each of `words`.
    fn expect(self, code: i32, words: &[&str]) -> Said {
        let all = format!("stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert_eq!(self.code, code, "{all}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {all}");
        }
        self
    }
}
