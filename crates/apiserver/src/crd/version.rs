//! The order of version names: stable before beta before alpha, higher before lower.

use std::cmp::Ordering;

/// Compares two versions; the greater one is preferred.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    match (parse(left), parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Names that follow no rule come in the order of the alphabet.
        (None, None) => right.cmp(left),
    }
}

/// `v1beta2` as (stability, 1, 2).
fn parse(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    let (stability, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        _ if rest.is_empty() => return Some((2, major, 0)),
        (Some(minor), _) => (0, minor),
        (_, Some(minor)) => (1, minor),
        _ => return None,
    };
    let minor = if minor.is_empty() { 0 } else { minor.parse().ok()? };
    Some((stability, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_are_preferred() {
        let mut versions = [
            "foo10",
            "v1alpha1",
            "v11beta2",
            "v10",
            "v3beta1",
            "v2",
            "v12alpha1",
            "foo1",
            "v1",
            "v10beta3",
            "v11alpha2",
            "v11",
        ];
        versions.sort_by(|left, right| compare(right, left));
        assert_eq!(
            versions,
            [
                "v11",
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }
}
