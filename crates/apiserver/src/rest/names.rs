//! Names of objects: rules, and names that the server makes.

use rand::Rng;
use windlass_schema::Kind;

/// Letters and digits that make no words and are not mistaken for one another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const GENERATED_LENGTH_MAX: usize = 63;

/// A name that begins with `base`.
pub(crate) fn generate(base: &str) -> String {
    let length = base.len().min(GENERATED_LENGTH_MAX - SUFFIX_LENGTH);
    let mut name = base.get(..length).unwrap_or(base).to_owned();
    let mut random = rand::rng();
    name.extend((0..SUFFIX_LENGTH).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])));
    name
}

/// What is wrong with `name` for an object of `kind`.
pub(crate) fn problems(kind: &Kind, name: &str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) | ("flowcontrol.apiserver.k8s.io", _) => path_segment(name),
        ("", "Namespace") => label(name),
        ("", "Service") => service_label(name),
        _ => subdomain(name),
    }
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn length(name: &str, max: usize) -> Option<String> {
    (name.len() > max).then(|| format!("must be no more than {max} bytes"))
}

fn subdomain(name: &str) -> Vec<String> {
    let wrong = (!name.split('.').all(is_label)).then(|| SUBDOMAIN.to_owned());
    length(name, 253).into_iter().chain(wrong).collect()
}

/// What is wrong with `name` as a DNS label.
pub(crate) fn label(name: &str) -> Vec<String> {
    length(name, 63).into_iter().chain((!is_label(name)).then(|| LABEL.to_owned())).collect()
}

fn service_label(name: &str) -> Vec<String> {
    let wrong = !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase());
    length(name, 63).into_iter().chain(wrong.then(|| SERVICE_LABEL.to_owned())).collect()
}

fn path_segment(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if matches!(name, "." | "..") {
        problems.push(format!("may not be '{name}'"));
    }
    problems
        .extend(['/', '%'].iter().filter(|part| name.contains(**part)).map(|part| format!("may not contain '{part}'")));
    problems
}

#[cfg(test)]
mod tests {
    use windlass_schema::builtin;

    use super::*;

    #[test]
    fn generated_names_begin_with_their_base_and_fit() {
        let name = generate("web-");
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(80)).len(), GENERATED_LENGTH_MAX);
    }

    #[test]
    fn every_kind_has_its_rule() {
        let check = |group, plural, name: &str| problems(builtin().find(group, "v1", plural).unwrap(), name).is_empty();
        assert!(check("", "pods", "a.b-c"));
        assert!(!check("", "pods", "A"));
        assert!(!check("", "pods", "a..b"));
        assert!(!check("", "pods", &"x".repeat(254)));
        assert!(!check("", "namespaces", "a.b"));
        assert!(!check("", "services", "1a"));
        assert!(check("rbac.authorization.k8s.io", "clusterroles", "system:node"));
        assert!(!check("rbac.authorization.k8s.io", "clusterroles", "a/b"));
    }
}
