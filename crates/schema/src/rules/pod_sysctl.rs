//! Kernel parameters that Pods ask for.

use std::collections::HashSet;

use super::cursor::At;
use crate::FieldError;

const LENGTH_MAX: usize = 253;
/// The rule as clients know it, for the message.
const PATTERN: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks the names at `spec.securityContext.sysctls`.
pub(super) fn check(sysctls: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.member("name");
        if name.is_absent() {
            errors.push(name.missing(""));
        } else if !is_name(name.text()) {
            errors.push(name.invalid(format!("must have at most {LENGTH_MAX} characters and match regex {PATTERN}")));
        } else if !seen.insert(name.text()) {
            errors.push(FieldError::duplicate(name.path.clone(), name.value.clone()));
        }
    }
}

/// Parts of small letters, digits, dashes and underscores, between dots or slashes.
fn is_name(name: &str) -> bool {
    let is_inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|end| end.is_some_and(|letter| is_inner(*letter)))
            && bytes.iter().all(|letter| is_inner(*letter) || matches!(letter, b'-' | b'_'))
    };
    name.len() <= LENGTH_MAX && name.split(['.', '/']).all(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_parameters_are_checked() {
        for name in ["kernel.shmmax", "net/ipv4/ip_forward", "a", "safe-and-unsafe"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["foo-", "bar..", "", ".a", "A", "a b"] {
            assert!(!is_name(name), "{name}");
        }
        let list = json!([{"name": "a.b"}, {"name": "foo-"}, {"name": "a.b"}, {}]);
        let mut errors = Vec::new();
        check(&At { path: "sysctls".to_owned(), value: &list }, &mut errors);
        let paths: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(paths.len(), 3, "{paths:?}");
        assert!(paths[0].starts_with("sysctls[1].name: Invalid value: \"foo-\""), "{paths:?}");
    }
}
