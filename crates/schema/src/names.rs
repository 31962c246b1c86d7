//! The rules for names, label keys and label values, each answered with what is wrong, as Kubernetes words it.

/// Words that CEL reserves: no variable may bear them, fields may all the same.
pub const CEL_RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_FORMAT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL_1035_FORMAT: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const QUALIFIED_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_RULE: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const VALUE_FORMAT: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const UNDERSCORED_FORMAT: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const UNDERSCORED_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
const HEADER_FORMAT: &str = "[-A-Za-z0-9]+";
const HEADER_RULE: &str = "a valid HTTP header must consist of alphanumeric characters or '-'";
const VARIABLE_RULE: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const CONFIG_KEY_FORMAT: &str = "[-._a-zA-Z0-9]+";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;
const PORT_NAME_BYTES_MAX: usize = 15;

/// Whether `text` is a DNS label: lowercase letters, digits and dashes.
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_BYTES_MAX && has_label_form(text)
}

/// Whether `text` is a DNS subdomain: labels joined by dots.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_BYTES_MAX && text.split('.').all(has_label_form)
}

/// What is wrong with `text` as a DNS label (RFC 1123).
pub fn label(text: &str) -> Vec<String> {
    let mut errors = too_long(text, LABEL_BYTES_MAX);
    if !has_label_form(text) {
        errors.push(if text.split('.').all(has_label_form) {
            "must not contain dots".to_owned()
        } else {
            rule(LABEL_RULE, LABEL_FORMAT, &["my-name", "123-abc"])
        });
    }
    errors
}

/// What is wrong with `text` as a DNS subdomain (RFC 1123).
pub fn subdomain(text: &str) -> Vec<String> {
    let mut errors = too_long(text, SUBDOMAIN_BYTES_MAX);
    if !text.split('.').all(has_label_form) {
        errors.push(rule(SUBDOMAIN_RULE, SUBDOMAIN_FORMAT, &["example.com"]));
    }
    errors
}

/// What is wrong with `text` as a DNS label (RFC 1035): one that starts with a letter.
pub fn label_1035(text: &str) -> Vec<String> {
    let mut errors = too_long(text, LABEL_BYTES_MAX);
    if !has_label_form(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        errors.push(rule(LABEL_1035_RULE, LABEL_1035_FORMAT, &["my-name", "abc-123"]));
    }
    errors
}

/// What is wrong with `text` as a segment of a path.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let found = ['/', '%'].into_iter().filter(|forbidden| text.contains(*forbidden));
    found.map(|forbidden| format!("may not contain '{forbidden}'")).collect()
}

/// What is wrong with `text` as the key of a label: an optional prefix and a name.
pub fn qualified(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let rule = rule(
                &format!("a valid label key {QUALIFIED_RULE}"),
                QUALIFIED_FORMAT,
                &["MyName", "my.name", "123-abc"],
            );
            return vec![format!("{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        errors.push(format!("name part must be no more than {LABEL_BYTES_MAX} bytes"));
    }
    if !has_value_form(name) || name.is_empty() {
        errors.push(format!("name part {}", rule(QUALIFIED_RULE, QUALIFIED_FORMAT, &["MyName", "my.name", "123-abc"])));
    }
    errors
}

/// What is wrong with `text` as the value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        errors.push(format!("must be no more than {LABEL_BYTES_MAX} bytes"));
    }
    if !has_value_form(text) {
        errors.push(rule(VALUE_RULE, VALUE_FORMAT, &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// What is wrong with `text` as a key of a ConfigMap or a Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut errors = too_long(text, SUBDOMAIN_BYTES_MAX);
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
    if text.is_empty() || !text.chars().all(is_plain) {
        errors.push(rule(CONFIG_KEY_RULE, CONFIG_KEY_FORMAT, &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." => errors.push("must not be '.'".to_owned()),
        ".." => errors.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// What is wrong with `text` as the name of a port.
pub fn port_name(text: &str) -> Vec<String> {
    let mut errors = too_long(text, PORT_NAME_BYTES_MAX);
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if text.is_empty() || !text.chars().all(is_plain) {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.contains(|character: char| character.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// What is wrong with `text` as a domain that is searched: underscores are fine.
pub fn subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut errors = too_long(text, SUBDOMAIN_BYTES_MAX);
    let has_form = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        !part.starts_with('_') && !part.ends_with('_') && has_label_form(&part.replace('_', "-"))
    };
    if !text.split('.').all(has_form) {
        errors.push(rule(UNDERSCORED_RULE, UNDERSCORED_FORMAT, &["example.com"]));
    }
    errors
}

/// What is wrong with `text` as the name of a header.
pub fn header(text: &str) -> Vec<String> {
    let is_fine = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_fine { Vec::new() } else { vec![rule(HEADER_RULE, HEADER_FORMAT, &["X-Header-Name"])] }
}

/// What is wrong with `text` as the name of an environment variable.
pub fn variable(text: &str) -> Vec<String> {
    let is_fine = text.bytes().all(|byte| (byte.is_ascii_graphic() || byte == b' ') && byte != b'=');
    if is_fine { Vec::new() } else { vec![VARIABLE_RULE.to_owned()] }
}

fn has_label_form(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            is_edge(first) && is_edge(last) && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        }
        _ => false,
    }
}

/// The form of the value of a label; the empty one included.
fn has_value_form(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(is_inner)
        }
        _ => true,
    }
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    if text.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}

fn rule(sentence: &str, format: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    let examples = examples.join(",  or ");
    format!("{sentence} (e.g. {examples}, regex used for validation is '{format}')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rules() {
        assert!(label("a-1").is_empty() && subdomain("a.b-1").is_empty() && label_1035("a-1").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        for wrong in ["", "-a", "a-", "A", "a_b", "a..b"] {
            assert!(!subdomain(wrong).is_empty(), "{wrong}");
            assert!(!label(wrong).is_empty(), "{wrong}");
        }
        assert!(!label_1035("1a").is_empty());
        assert_eq!(label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(
            subdomain("A"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
    }

    #[test]
    fn labels_follow_their_rules() {
        assert!(qualified("app.kubernetes.io/name").is_empty() && label_value("").is_empty());
        assert!(label_value("v1.2_3-x").is_empty());
        for wrong in ["", "/a", "a/", "a/b/c", "A!/b", "-a"] {
            assert!(!qualified(wrong).is_empty(), "{wrong}");
        }
        assert!(!label_value("a b").is_empty() && !label_value("-a").is_empty());
        assert!(!config_key("a/b").is_empty() && !config_key("..").is_empty() && config_key(".a").is_empty());
        assert!(port_name("http-1").is_empty() && !port_name("1").is_empty() && !port_name("a--b").is_empty());
    }
}
