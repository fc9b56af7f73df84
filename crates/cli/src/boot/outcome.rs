//! How a run ended, and what the process says and returns for it.

use realmode::{Stop, Unimplemented, UnimplementedReason};
use realmode_pc::{Channel, Ending};

/// The exit codes that are not the guest's own. Those are odd.
const IDLE: u8 = 4;
const LIMIT: u8 = 6;
const NOWHERE: u8 = 8;
const NOT_SEEN: u8 = 10;

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The guest wrote this value to the exit port.
    Exit { port: u16, value: u32 },
    /// The guest powered off.
    PowerOff,
    /// The guest asked for a reset, and there is no BIOS to start again.
    Reset,
    /// `--until`'s text came out of a port.
    SeenOn(Channel),
    /// `--until`'s text is on the screen.
    SeenOnScreen,
    /// `--limit` instructions were executed.
    Limit(u64),
    /// HLT, and nothing can wake the processor.
    Idle,
    /// Triple fault.
    Shutdown,
    /// A vector that nobody set was called.
    MissingHandler(u8),
    /// A jump to itself.
    Loop,
    /// The handler of an exception raises the next, for ever.
    FaultLoop,
    /// The guest runs through zeros.
    EmptyMemory,
    /// The emulator does not execute what comes next.
    Unimplemented(Unimplemented),
    /// Nobody reads the output any more.
    OutputClosed,
    /// A snapshot was saved after so many instructions.
    Saved(u64),
    /// The user or a signal ended it; this is the exit code.
    Interrupted(u8),
    /// A stop this machine does not expect.
    Other(Stop),
}

impl Outcome {
    /// How the guest ended it, `port` being the exit port.
    pub(super) fn of_ending(ending: Ending, port: u16) -> Outcome {
        match ending {
            Ending::Exit(value) => Outcome::Exit { port, value },
            Ending::PowerOff => Outcome::PowerOff,
            Ending::Reset => Outcome::Reset,
        }
    }

    /// The process's exit code; `awaited` is whether `--until` was given, `saving` whether `--save`
    /// was.
    pub(super) fn exit_code(self, awaited: bool, saving: bool) -> u8 {
        match self {
            Outcome::SeenOn(_) | Outcome::SeenOnScreen | Outcome::PowerOff if saving => NOT_SEEN,
            Outcome::SeenOn(_) | Outcome::SeenOnScreen => 0,
            Outcome::OutputClosed | Outcome::Saved(_) => 0,
            Outcome::PowerOff if awaited => NOT_SEEN,
            Outcome::PowerOff => 0,
            Outcome::Exit { value, .. } => Ending::Exit(value).process_status().unwrap_or(NOWHERE),
            Outcome::Idle => IDLE,
            Outcome::Limit(_) => LIMIT,
            Outcome::Interrupted(code) => code,
            _ => NOWHERE,
        }
    }

    /// Its name in `--json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Outcome::Exit { .. } => "exit",
            Outcome::PowerOff => "power-off",
            Outcome::Reset => "reset",
            Outcome::SeenOn(_) | Outcome::SeenOnScreen => "text-seen",
            Outcome::Limit(_) => "limit",
            Outcome::Idle => "idle",
            Outcome::Shutdown => "shutdown",
            Outcome::MissingHandler(_) => "missing-handler",
            Outcome::Loop => "loop",
            Outcome::FaultLoop => "fault-loop",
            Outcome::EmptyMemory => "empty-memory",
            Outcome::Unimplemented(_) => "unimplemented",
            Outcome::OutputClosed => "output-closed",
            Outcome::Saved(_) => "saved",
            Outcome::Interrupted(_) => "interrupted",
            Outcome::Other(_) => "stopped",
        }
    }

    /// What happened, and which text did not appear that `--type` or `--until` waited for.
    pub(super) fn message(self, awaited: Option<&str>) -> String {
        match (self, awaited) {
            (Outcome::SeenOn(_) | Outcome::SeenOnScreen | Outcome::Saved(_), _) | (_, None) => {
                self.to_string()
            }
            (_, Some(text)) => format!("{self}, but `{text}` had not appeared"),
        }
    }

    /// Did the guest come to no end of its own?
    pub(super) fn is_nowhere(self) -> bool {
        !matches!(
            self,
            Outcome::Exit { .. }
                | Outcome::PowerOff
                | Outcome::SeenOn(_)
                | Outcome::SeenOnScreen
                | Outcome::OutputClosed
                | Outcome::Saved(_)
        )
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Exit { port, value } => {
                write!(f, "the guest ended the run through port {port:X}h with value {value:#x}")
            }
            Outcome::PowerOff => f.write_str("the guest powered off"),
            Outcome::Reset => f.write_str("reset: the guest asked for one, and there is no BIOS"),
            Outcome::SeenOn(Channel::Serial) => f.write_str("the text appeared on COM1"),
            Outcome::SeenOn(Channel::Debug) => f.write_str("the text appeared on the debug port"),
            Outcome::SeenOnScreen => f.write_str("the text appeared on the screen"),
            Outcome::Limit(limit) => {
                write!(f, "limit reached: {limit} instructions executed, the guest goes on")
            }
            Outcome::Idle => {
                f.write_str("idle: the guest halted, and nothing on this machine can wake it")
            }
            Outcome::Shutdown => f.write_str(
                "shutdown: an exception could not be delivered, nor the double fault it became",
            ),
            Outcome::MissingHandler(vector) => missing_handler(*vector, f),
            Outcome::Loop => f.write_str("loop: an instruction jumps to itself"),
            Outcome::FaultLoop => f.write_str(
                "loop: a handler of exceptions begins with an instruction that raises one",
            ),
            Outcome::EmptyMemory => {
                f.write_str("lost: the guest executes memory that holds nothing but zeros")
            }
            Outcome::Unimplemented(what) => unimplemented(what, f),
            Outcome::OutputClosed => f.write_str("nobody reads the output any more"),
            Outcome::Interrupted(_) => f.write_str("interrupted: the guest was still running"),
            Outcome::Saved(count) => write!(f, "saved at instruction {count}"),
            Outcome::Other(stop) => write!(f, "stopped: {stop:?}"),
        }
    }
}

fn missing_handler(vector: u8, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let exception = match vector {
        0 => "#DE, divide error",
        1 => "#DB, debug",
        3 => "#BP, breakpoint",
        4 => "#OF, overflow",
        5 => "#BR, bound range exceeded",
        6 => "#UD, invalid opcode",
        7 => "#NM, no coprocessor",
        0x0C => "#SS, stack segment",
        0x0D => "#GP, general protection",
        _ => {
            return write!(
                f,
                "no handler: the guest called INT {vector:02X}h, which it has not set, and \
                 there is no BIOS (see --bios)"
            );
        }
    };
    write!(f, "no handler: exception {vector} ({exception}), whose vector the guest has not set")
}

fn unimplemented(what: &Unimplemented, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    match what.reason {
        UnimplementedReason::FetchFromMmio => {
            write!(f, "lost: there is no memory to execute at {:#x}", what.address)
        }
        reason => write!(f, "unimplemented: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_success_idle_limit_and_nowhere_apart() {
        for (outcome, awaited, code) in [
            (Outcome::PowerOff, false, 0),
            (Outcome::PowerOff, true, 10),
            (Outcome::of_ending(Ending::Exit(0), 0x501), false, 1),
            (Outcome::of_ending(Ending::Exit(3), 0xF4), true, 7),
            (Outcome::Reset, false, 8),
            (Outcome::SeenOn(Channel::Debug), true, 0),
            (Outcome::SeenOnScreen, true, 0),
            (Outcome::OutputClosed, true, 0),
            (Outcome::Saved(1), true, 0),
            (Outcome::Interrupted(130), true, 130),
            (Outcome::Idle, false, 4),
            (Outcome::Idle, true, 4),
            (Outcome::Limit(1), false, 6),
            (Outcome::Shutdown, false, 8),
            (Outcome::Loop, false, 8),
        ] {
            assert_eq!(outcome.exit_code(awaited, false), code, "{outcome:?}");
        }
        let saving = |outcome: Outcome| outcome.exit_code(false, true);
        assert_eq!(
            [Outcome::PowerOff, Outcome::SeenOnScreen, Outcome::Idle].map(saving),
            [10, 10, 4]
        );
        assert_eq!(saving(Outcome::Saved(1)), 0);
    }

    #[test]
    fn a_missing_vector_is_an_exception_or_a_bios_call() {
        let text = |vector| Outcome::MissingHandler(vector).to_string();
        assert!(text(6).contains("exception 6 (#UD, invalid opcode)"));
        assert!(text(0x13).contains("INT 13h"));
    }
}
