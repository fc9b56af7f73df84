//! `--profile` and `--cpu`: which processor is meant.

use realmode::{Features, Profile};

/// Parses the name of a profile.
pub(crate) fn parse(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("no such processor; there are {}", known.join(", "))
    })
}

/// Ids of profiles below are the library's.
const FIRST_ID: u8 = 128;

/// Parses the name of a profile and the features it is to be without: `intel,-pae,-tsc`.
pub(crate) fn with_features(text: &str) -> Result<Profile, String> {
    let mut parts = text.split(',');
    let base = parse(parts.next().unwrap_or_default())?;
    let mut features = base.features;
    for part in parts {
        let name = part
            .strip_prefix('-')
            .ok_or_else(|| format!("`{part}` is not -FEATURE; an example is intel,-pae,-tsc"))?;
        let feature = Features::from_name(&name.to_ascii_uppercase())
            .ok_or_else(|| format!("`{name}` is no feature; there are {}", names(base)))?;
        features.remove(feature);
    }
    if features == base.features {
        return Ok(base.clone());
    }
    Ok(Profile { id: FIRST_ID, features, ..base.clone() })
}

/// What [`with_features`] makes this processor from.
pub(crate) fn text(profile: &Profile) -> String {
    let all = Profile::by_name(profile.name).map_or(profile.features, |base| base.features);
    let gone = all.difference(profile.features);
    let gone = gone.iter_names().map(|(name, _)| format!(",-{}", name.to_ascii_lowercase()));
    std::iter::once(profile.name.to_owned()).chain(gone).collect()
}

fn names(profile: &Profile) -> String {
    let names: Vec<String> =
        profile.features.iter_names().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_taken_away_by_name() {
        let profile = with_features("intel,-pae,-TSC").expect("both are features");
        let gone = Profile::INTEL.features.difference(profile.features);
        assert_eq!(gone, Features::PAE | Features::TSC);
        assert_ne!(profile.id, Profile::INTEL.id);
        assert_eq!(text(&profile), "intel,-tsc,-pae");
        assert_eq!(with_features("286"), Ok(Profile::I80286));
        for profile in Profile::ALL {
            assert_eq!(with_features(&text(profile)).as_ref(), Ok(profile));
        }
        for bad in ["", "z80", "intel,pae", "intel,-nonsense", "intel,"] {
            assert!(with_features(bad).is_err(), "{bad}");
        }
    }
}
