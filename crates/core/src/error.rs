//! Misuse by the host: each message says what was wrong and what to change.

/// The host misused the API. Nothing was executed and nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `run` was given a `Cpu` that is not the one whose instruction is in flight.
    #[error(
        "an instruction is in flight at CS base {flight_cs_base:#x}, RIP {flight_rip:#x}, but the \
         Cpu given to run is at CS base {cs_base:#x}, RIP {rip:#x} or in another mode: give back \
         the Cpu that stopped, or call cancel() first"
    )]
    StaleInFlight {
        /// RIP of the instruction in flight.
        flight_rip: u64,
        /// CS base it ran with.
        flight_cs_base: u64,
        /// RIP of the `Cpu` that was given.
        rip: u64,
        /// CS base of the `Cpu` that was given.
        cs_base: u64,
    },
    /// `reply` was called, but nothing waits for one.
    #[error("no request waits for a reply: call reply() once, after run returned Mmio or Port")]
    NoRequest,
    /// The profile cannot be in the mode that the `Cpu` is in.
    #[error("the Cpu is in a mode that profile {profile} does not have: {what}")]
    ModeOutsideProfile {
        /// The profile's name.
        profile: &'static str,
        /// The part of the state that does not fit.
        what: &'static str,
    },
    /// A snapshot was made by another version of the library.
    #[error("in-flight record version {found}, this library reads version {expected}")]
    InFlightVersion {
        /// The version in the record.
        found: u32,
        /// The version this library writes.
        expected: u32,
    },
    /// A restored in-flight record contradicts itself.
    #[error("in-flight record is damaged: {what}")]
    InFlightDamaged {
        /// The field that is out of range.
        what: &'static str,
    },
    /// A host page was built from memory of the wrong size.
    #[error("a host page is {expected} bytes of memory, not {found}")]
    PageSize {
        /// The bytes given.
        found: usize,
        /// The bytes needed.
        expected: usize,
    },
}
