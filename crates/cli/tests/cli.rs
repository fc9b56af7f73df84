//! The command as its user meets it: exit codes, messages, files.

#[path = "cli/boot.rs"]
mod boot;
#[path = "cli/decode.rs"]
mod decode;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/disk.rs"]
mod disk;
#[path = "cli/firmware.rs"]
mod firmware;
#[path = "cli/kernel.rs"]
mod kernel;
#[path = "cli/live.rs"]
mod live;
#[path = "cli/misuse.rs"]
mod misuse;
#[path = "cli/record.rs"]
mod record;
#[path = "cli/run_image.rs"]
mod run_image;
#[path = "cli/snapshot.rs"]
mod snapshot;
#[path = "cli/vectors.rs"]
mod vectors;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// What the command said and returned.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `realmode` with arguments.
fn realmode(arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be started");
    Said::of(&output)
}

/// Starts `realmode` with pipes on all sides.
fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started")
}

/// Waits until it ends.
fn finish(child: Child) -> Said {
    Said::of(&child.wait_with_output().expect("its output can be read"))
}

/// Runs `realmode` with arguments and something to read.
fn with_input(arguments: &[&str], input: &[u8]) -> Said {
    let mut child = start(arguments);
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(input).expect("a pipe holds it");
    drop(stdin);
    finish(child)
}

/// What is in a file.
fn read(path: &str) -> Vec<u8> {
    fs::read(path).expect("the file is there")
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
    fn of(output: &Output) -> Said {
        Said {
            code: output.status.code().expect("the command was not killed by a signal"),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The object that `--json` printed.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("one JSON object")
    }

    /// There was nothing to say.
    fn is_silent(&self) {
        assert_eq!((self.stdout.as_str(), self.stderr.as_str()), ("", ""));
    }

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
