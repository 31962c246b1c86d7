//! The formats of strings that custom schemas may ask for; a format that is not known allows everything.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// Formats that a pattern describes.
const PATTERNS: [(&str, &str); 11] = [
    ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
    ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "rgbcolor",
        r"^rgb\(\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*\)$",
    ),
    ("mac", r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5,19}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,9})$"),
    ("email", r"^(.+\s)?<?[^\s@<>]+@[^\s@<>]+>?$"),
    (
        "duration",
        r"^[+-]?((\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s|m|h|d|w|nanos?|micros?|millis?|seconds?|minutes?|hours?|days?|weeks?)\s*)+$|^0$",
    ),
];

static COMPILED: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let compile =
        |(name, pattern): (&'static str, &str)| (name, Regex::new(pattern).expect("a pattern of ours compiles"));
    PATTERNS.into_iter().map(compile).collect()
});

/// Whether `text` has the format `name`.
pub(super) fn is_valid(name: &str, text: &str) -> bool {
    // `date-time` and `datetime` are the same format.
    match name.replace('-', "").as_str() {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "hostname" => is_hostname(text),
        "uri" => is_uri(text),
        "k8sshortname" => crate::names::is_label(text),
        "k8slongname" => crate::names::is_subdomain(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_card(text),
        other => COMPILED.iter().find(|(name, _)| *name == other).is_none_or(|(_, pattern)| pattern.is_match(text)),
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32) || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|character| character.is_alphanumeric() || character == '-')
    };
    text.len() <= 255 && text.trim_end_matches('.').split('.').all(is_label)
}

/// An absolute path, or a scheme with something after it.
fn is_uri(text: &str) -> bool {
    let has_scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
            && !rest.is_empty()
    });
    (text.starts_with('/') || has_scheme)
        && !text.chars().any(|character| character.is_whitespace() || character.is_control())
}

fn digits(text: &str) -> Vec<u32> {
    text.chars()
        .filter(|character| !matches!(character, '-' | ' '))
        .map(|character| match character {
            'X' | 'x' => 10,
            other => other.to_digit(10).unwrap_or(u32::MAX),
        })
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = digits(text);
    let is_numeric = digits.iter().enumerate().all(|(index, digit)| *digit < 10 || (*digit == 10 && index == 9));
    let sum: u32 = if is_numeric { digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum() } else { 1 };
    digits.len() == 10 && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = digits(text);
    let is_numeric = digits.iter().all(|digit| *digit < 10);
    let sum: u32 = if is_numeric {
        digits.iter().zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum()
    } else {
        1
    };
    digits.len() == 13 && sum.is_multiple_of(10)
}

/// The check digit of a card number.
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|character| character.to_digit(10)).collect();
    let doubled = |(index, digit): (usize, &u32)| match index % 2 {
        0 => *digit,
        _ if *digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    };
    (13..=19).contains(&digits.len()) && digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn formats_tell_right_from_wrong() {
        let check = |format: &str, right: &str, wrong: &str| {
            assert!(is_valid(format, right), "{format}: {right}");
            assert!(!is_valid(format, wrong), "{format}: {wrong}");
        };
        check("date-time", "2026-01-02T03:04:05Z", "2026-01-02");
        check("date", "2026-01-02", "2026-01-32");
        check("ipv4", "10.0.0.1", "10.0.0.256");
        check("ipv6", "::1", "10.0.0.1");
        check("cidr", "10.0.0.0/8", "10.0.0.0/33");
        check("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567");
        check("uri", "https://example.com/a", "no uri");
        check("hostname", "a.example.com", "-a.example.com");
        check("email", "a@example.com", "example.com");
        check("byte", "YQ==", "?");
        check("duration", "1h30m", "1 fortnight");
        check("mac", "00:11:22:33:44:55", "00:11");
        check("isbn10", "0321751043", "0321751044");
        check("isbn13", "978-0321751041", "978-0321751042");
        check("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112");
        check("k8s-short-name", "a-b", "a.b");
        check("k8s-long-name", "a.b", "A.b");
        assert!(is_valid("something-else", "x"));
    }
}
