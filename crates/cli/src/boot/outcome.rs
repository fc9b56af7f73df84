//! How a run ended, and what the process says and returns for it.

use realmode::{Stop, Unimplemented, UnimplementedReason};
use realmode_pc::{Channel, Ending};

/// The exit codes that are not the guest's own. Those of port 501h are odd.
const IDLE: u8 = 4;
const LIMIT: u8 = 6;
const NOWHERE: u8 = 8;
const NOT_SEEN: u8 = 10;

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The guest ended it.
    Ended(Ending),
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
    /// A stop this machine does not expect.
    Other(Stop),
}

impl Outcome {
    /// The process's exit code; `awaited` is whether `--until` was given.
    pub(super) fn exit_code(self, awaited: bool) -> u8 {
        match self {
            Outcome::SeenOn(_) | Outcome::SeenOnScreen => 0,
            Outcome::Ended(Ending::PowerOff) if awaited => NOT_SEEN,
            Outcome::Ended(ending) => ending.process_status().unwrap_or(NOWHERE),
            Outcome::Idle => IDLE,
            Outcome::Limit(_) => LIMIT,
            _ => NOWHERE,
        }
    }

    /// Its name in `--json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Outcome::Ended(Ending::Exit(_)) => "exit",
            Outcome::Ended(Ending::PowerOff) => "power-off",
            Outcome::Ended(Ending::Reset) => "reset",
            Outcome::SeenOn(_) | Outcome::SeenOnScreen => "text-seen",
            Outcome::Limit(_) => "limit",
            Outcome::Idle => "idle",
            Outcome::Shutdown => "shutdown",
            Outcome::MissingHandler(_) => "missing-handler",
            Outcome::Loop => "loop",
            Outcome::FaultLoop => "fault-loop",
            Outcome::EmptyMemory => "empty-memory",
            Outcome::Unimplemented(_) => "unimplemented",
            Outcome::Other(_) => "stopped",
        }
    }

    /// What happened, and that the text of `--until` is missing if the guest ended without it.
    pub(super) fn message(self, until: Option<&str>) -> String {
        match (self, until) {
            (Outcome::Ended(_), Some(text)) => format!("{self}, but `{text}` had not appeared"),
            _ => self.to_string(),
        }
    }

    /// Did the guest come to no end of its own?
    pub(super) fn is_nowhere(self) -> bool {
        !matches!(
            self,
            Outcome::Ended(Ending::Exit(_) | Ending::PowerOff)
                | Outcome::SeenOn(_)
                | Outcome::SeenOnScreen
        )
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Ended(Ending::Exit(value)) => {
                write!(f, "the guest ended the run through port 501h with value {value:#x}")
            }
            Outcome::Ended(Ending::PowerOff) => f.write_str("the guest powered off"),
            Outcome::Ended(Ending::Reset) => {
                f.write_str("reset: the guest asked for a reset through port 92h")
            }
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
                 there is no BIOS"
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
            (Outcome::Ended(Ending::PowerOff), false, 0),
            (Outcome::Ended(Ending::PowerOff), true, 10),
            (Outcome::Ended(Ending::Exit(0)), false, 1),
            (Outcome::Ended(Ending::Exit(3)), true, 7),
            (Outcome::Ended(Ending::Reset), false, 8),
            (Outcome::SeenOn(Channel::Debug), true, 0),
            (Outcome::SeenOnScreen, true, 0),
            (Outcome::Idle, false, 4),
            (Outcome::Idle, true, 4),
            (Outcome::Limit(1), false, 6),
            (Outcome::Shutdown, false, 8),
            (Outcome::Loop, false, 8),
        ] {
            assert_eq!(outcome.exit_code(awaited), code, "{outcome:?}");
        }
    }

    #[test]
    fn a_missing_vector_is_an_exception_or_a_bios_call() {
        let text = |vector| Outcome::MissingHandler(vector).to_string();
        assert!(text(6).contains("exception 6 (#UD, invalid opcode)"));
        assert!(text(0x13).contains("INT 13h"));
    }
}
