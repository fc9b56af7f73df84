//! `--profile`: which processor is meant.

use realmode::Profile;

/// Parses the name of a profile.
pub(crate) fn parse(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("no such processor; there are {}", known.join(", "))
    })
}
