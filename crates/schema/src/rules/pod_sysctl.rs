//! Kernel parameters that Pods ask for.

use std::collections::HashSet;

use super::cursor::At;
use crate::FieldError;

const LENGTH_MAX: usize = 253;
/// The rule as clients know it, for the message.
const PATTERN: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks the names at `securityContext.sysctls` of the spec of a Pod.
pub(super) fn check(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for sysctl in spec.at("securityContext.sysctls").items() {
        let name = sysctl.member("name");
        if name.is_absent() {
            errors.push(name.missing(""));
        } else if !is_name(name.text()) {
            errors.push(name.invalid(format!("must have at most {LENGTH_MAX} characters and match regex {PATTERN}")));
        } else if seen.contains(name.text()) {
            errors.push(name.again());
        }
        seen.insert(name.text());
        let host = namespace(name.text()).filter(|namespace| spec.member(namespace).is_true());
        errors.extend(host.map(|host| name.invalid(format!("may not be specified when '{host}' is true"))));
    }
}

/// The field by which a Pod shares with the host what a parameter is about.
fn namespace(name: &str) -> Option<&'static str> {
    let name = name.replace('/', ".");
    let is_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match name.as_str() {
        "kernel.sem" => Some("hostIPC"),
        _ if is_of(&["kernel.shm", "kernel.msg", "fs.mqueue."]) => Some("hostIPC"),
        _ if is_of(&["net."]) => Some("hostNetwork"),
        _ => None,
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
        let list = json!([{"name": "a.b"}, {"name": "foo-"}, {"name": "a.b"}, {}, {"name": "net.core.somaxconn"}]);
        let spec = json!({"hostNetwork": true, "securityContext": {"sysctls": list}});
        let mut errors = Vec::new();
        check(&At { path: "spec".to_owned(), value: &spec }, &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[0].starts_with("spec.securityContext.sysctls[1].name: Invalid value: \"foo-\""), "{texts:?}");
        assert!(texts[3].ends_with("may not be specified when 'hostNetwork' is true"), "{texts:?}");
    }
}
