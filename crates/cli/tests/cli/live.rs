//! The live screen, under a pseudo terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::{file, path};

/// Shows the scan codes that come from the keyboard on the screen, yellow on blue.
const KEYBOARD: [u8; 20] = [
    0xB8, 0x00, 0xB8, 0x8E, 0xC0, 0x31, 0xFF, 0xB4, 0x1E, // mov es, B800h; di = 0; ah = 1Eh
    0xE4, 0x64, 0xA8, 0x01, 0x74, 0xFA, // until in(64h) & 1
    0xE4, 0x60, 0xAB, 0xEB, 0xF5, // stosw in(60h); again
];

/// Sends back what it receives on COM1.
const ECHO: [u8; 15] = [
    0xBA, 0xFD, 0x03, 0xEC, 0xA8, 0x01, 0x74, 0xFB, // until in(3FDh) & 1
    0xBA, 0xF8, 0x03, 0xEC, 0xEE, 0xEB, 0xF1, // out(3F8h, in(3F8h)); again
];

/// As long as anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command on a terminal of its own.
struct Terminal {
    master: Box<dyn MasterPty + Send>,
    /// Its settings before the command was started.
    before: String,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    all: Vec<u8>,
}

impl Terminal {
    fn start(rows: u16, arguments: &[&str]) -> Terminal {
        let size = PtySize { rows, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_realmode"));
        command.env_remove("NO_COLOR");
        command.args(arguments);
        let settings = pair.master.get_termios().expect("a terminal has settings");
        let before = format!("{settings:?}");
        let child = pair.slave.spawn_command(command).expect("the command can be started");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (to, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error is how the end of a terminal is told.
            while let Ok(len @ 1..) = reader.read(&mut buffer) {
                if to.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pair.master.take_writer().expect("a writer");
        let size = |number| std::num::NonZeroU16::new(number).expect("not 0");
        let screen = vt100::Parser::new(size(rows), size(80), 0);
        Terminal { master: pair.master, before, keys, child, output, screen, all: Vec::new() }
    }

    fn settings(&self) -> String {
        format!("{:?}", self.master.get_termios().expect("a terminal has settings"))
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys
            .write_all(keys)
            .and_then(|()| self.keys.flush())
            .expect("the terminal takes keys");
    }

    /// Waits until the terminal shows `text`.
    fn expect(&mut self, text: &str) {
        let started = Instant::now();
        while !self.screen.screen().contents().contains(text) {
            let left = PATIENCE.saturating_sub(started.elapsed());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("no {text:?} on the terminal:\n{}", self.screen.screen().contents());
            };
            self.screen.process(&bytes);
            self.all.extend(bytes);
        }
    }

    /// Waits for the end, and returns the exit code.
    fn wait(&mut self) -> u32 {
        let started = Instant::now();
        // The output ends with the process.
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE.saturating_sub(started.elapsed())) {
            self.screen.process(&bytes);
            self.all.extend(bytes);
        }
        let ended = self.child.try_wait().expect("it can be waited for");
        if ended.is_none() && started.elapsed() >= PATIENCE {
            let _ = self.child.kill();
        }
        self.child.wait().expect("it ends").exit_code()
    }

    /// What it printed after the live screen, without colours, and a space before every end of
    /// a line.
    fn after(&self) -> String {
        let all = String::from_utf8_lossy(&self.all);
        let after = all.rsplit("\x1b[?1049l").next().expect("it has left the alternate screen");
        let plain = after.split('\x1b').map(|part| part.trim_start_matches("[0m"));
        let plain = plain.map(|part| part.trim_start_matches("[0;37;40m")).collect::<String>();
        plain.replace("\r\n", " \r\n")
    }

    fn signal(&self, name: &str) {
        signal(name, self.child.process_id().expect("it runs"));
    }
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(status.expect("there is a kill").success());
}

/// Starts a guest at 0000:7C00 and waits for its screen.
fn start(name: &str, guest: &[u8], more: &[&str]) -> Terminal {
    let image = format!("{}@0000:7C00", file(name, guest));
    Terminal::start(26, &[&["boot", "--image", &image], more].concat())
}

#[test]
fn keys_reach_the_guest_and_ctrl_c_leaves_the_terminal_as_it_was() {
    let mut terminal = start("live-keys.bin", &KEYBOARD, &[]);
    terminal.expect("^C ends");
    assert!(terminal.screen.screen().alternate_screen());
    assert_ne!(terminal.settings(), terminal.before, "keys come one by one");
    // x is 2D and AD; F1 3B and BB; CP437 has these characters there.
    terminal.press(b"x");
    terminal.expect("-¡");
    terminal.press(b"\x1bOP");
    terminal.expect("-¡;╗");
    let cell = terminal.screen.screen().cell(0, 0).expect("it has a first cell");
    assert_eq!((cell.fgcolor(), cell.bgcolor()), (vt100::Color::Idx(11), vt100::Color::Idx(4)));
    // Escaped, Ctrl-C is the guest's: 1D 2E AE 9D.
    terminal.press(b"\x1d\x03");
    terminal.expect("-¡;╗↔.«¥");
    terminal.press(b"\x03");
    assert_eq!(terminal.wait(), 130);
    assert_eq!(terminal.settings(), terminal.before);
    let screen = terminal.screen.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    assert!(screen.contents().contains("interrupted"));
    assert!(terminal.after().contains("-¡;╗↔.«¥"), "the last screen stays to be seen");
}

#[test]
fn com1_is_shown_while_the_screen_is_blank_and_nothing_of_it_is_lost() {
    let mut terminal = start("live-echo.bin", &ECHO, &[]);
    terminal.expect("^C ends");
    // Nothing has come yet, so keys go to the keyboard.
    terminal.press(b"\x1ds");
    terminal.expect("s shows the screen");
    terminal.press(b"\x1b[D");
    terminal.press(b"\x1b[A\rone\n\r\x0a");
    for line in 0..30 {
        terminal.press(format!("line {line}\r\x0a").as_bytes());
    }
    terminal.expect("line 29");
    assert!(!terminal.screen.screen().contents().contains("line 2\n"), "it has scrolled away");
    terminal.press(b"\x03");
    assert_eq!(terminal.wait(), 130);
    let after = terminal.after();
    for line in 0..30 {
        assert_eq!(after.matches(&format!("line {line} ")).count(), 1, "line {line} of {after}");
    }
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    for (name, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let mut terminal = start("live-signal.bin", &KEYBOARD, &[]);
        terminal.expect("^C ends");
        terminal.signal(name);
        assert_eq!(terminal.wait(), code, "{name}");
        assert_eq!(terminal.settings(), terminal.before, "{name}");
        assert!(!terminal.screen.screen().alternate_screen(), "{name}");
    }
}

#[test]
fn a_terminal_that_changes_its_size_is_drawn_anew() {
    let mut terminal = start("live-size.bin", &KEYBOARD, &[]);
    terminal.expect("^C ends");
    terminal.press(b"x");
    terminal.expect("-¡");
    let cleared = terminal.all.windows(4).filter(|bytes| *bytes == b"\x1b[2J").count();
    let size = PtySize { rows: 10, cols: 40, pixel_width: 0, pixel_height: 0 };
    terminal.master.resize(size).expect("a size to be set");
    terminal.screen = vt100::Parser::new(
        std::num::NonZeroU16::new(10).expect("not 0"),
        std::num::NonZeroU16::new(40).expect("not 0"),
        0,
    );
    terminal.expect("-¡");
    let again = terminal.all.windows(4).filter(|bytes| *bytes == b"\x1b[2J").count();
    assert_eq!(again, cleared + 1);
    terminal.press(b"\x03");
    assert_eq!(terminal.wait(), 130);
}

#[test]
fn a_run_that_is_not_live_ends_in_good_order_too() {
    // inc ax; jmp back
    let image = format!("{}@0000:7C00", file("interrupted.bin", &[0x40, 0xEB, 0xFD]));
    let trace = path("interrupted.trace");
    let _ = fs::remove_file(&trace);
    let mut child = Command::new(env!("CARGO_BIN_EXE_realmode"))
        .args(["boot", "--json", "--image", &image, "--trace"])
        .arg(&trace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    while fs::metadata(&trace).map_or(0, |trace| trace.len()) == 0 {
        std::thread::yield_now();
    }
    signal("-INT", child.id());
    let mut stdout = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut stdout).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!((&json["result"], &json["exit_code"]), (&"interrupted".into(), &130.into()));
    let trace = fs::read_to_string(&trace).expect("a trace");
    let lines = trace.lines().count() as u64;
    assert!(trace.ends_with('\n') && json["instructions"] == lines, "{lines}");
}
