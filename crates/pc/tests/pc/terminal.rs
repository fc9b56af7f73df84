//! COM1 as a terminal, since programs place their text with the cursor, and a conversation with
//! what is on it or on the text screen.

use core::num::NonZero;
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU8;

use realmode::{CacheLine, Emulator, Profile, Stop};
use realmode_pc::{Channel, Console, Pc, Screen};

/// Instructions between two looks at the screen.
const SLICE: u64 = 100_000;

/// What COM1 shows.
pub(super) struct Terminal(vt100::Parser);

impl Terminal {
    pub(super) fn new() -> Terminal {
        let [rows, columns] = [Screen::ROWS, Screen::COLUMNS]
            .map(|count| NonZero::new(count as u16).expect("a screen has room"));
        Terminal(vt100::Parser::new(rows, columns, 0))
    }

    pub(super) fn text(&self) -> String {
        self.0.screen().contents()
    }
}

impl Console for Terminal {
    fn byte(&mut self, channel: Channel, byte: u8) -> ControlFlow<()> {
        if channel == Channel::Serial {
            self.0.process(&[byte]);
        }
        ControlFlow::Continue(())
    }
}

/// All that is shown: the terminal, then the text screen.
fn shown(pc: &Pc<'_, Terminal>) -> String {
    let mut text = pc.console().text();
    let screen = pc.screen().expect("RAM reaches past text memory");
    for row in 0..Screen::ROWS {
        text.push('\n');
        text.extend(screen.row(row).map(|cell| char::from(cell.code)));
    }
    text
}

/// Boots; then, for each step, waits until the text is shown and sends the keys. Returns the
/// instructions it took, of which there may be at most `most`.
pub(super) fn converse<'m>(
    pc: &mut Pc<'m, Terminal>,
    bios: &'m [AtomicU8],
    profile: &Profile,
    most: u64,
    steps: &[(&str, &str)],
) -> u64 {
    // The cache is borrowed for as long as the memory is.
    let lines = vec![CacheLine::EMPTY; 4096].leak();
    let mut emulator = Emulator::new(profile, lines);
    let mut cpu = pc.boot_bios(bios).expect("a whole BIOS");
    for (text, keys) in steps {
        while !shown(pc).contains(text) {
            let is_over = pc.ending().is_some() || emulator.counters().instructions > most;
            assert!(!is_over, "no {text:?} on\n{}", shown(pc));
            let stop = pc.run(&mut emulator, &mut cpu, SLICE).expect("nothing is in flight");
            let goes_on = matches!(stop, Stop::Budget | Stop::Requested);
            assert!(goes_on, "{stop:?} before {text:?}, on\n{}", shown(pc));
        }
        assert_eq!(pc.send_serial(keys.as_bytes()), keys.len());
    }
    emulator.counters().instructions
}
