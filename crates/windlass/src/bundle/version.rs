//! Versions and ranges of them, as catalogs write them.

use std::cmp::Ordering;

/// Whether a text is a version such as `1.2.3`, `1.2.3-rc.1` or `1.2.3+4`.
pub(crate) fn is_version(text: &str) -> bool {
    parse(text).is_some()
}

/// Which of two versions comes first; `None` if one is none.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (parse(one)?, parse(other)?);
    Some(one.numbers.cmp(&other.numbers).then_with(|| order(&one.before, &other.before)))
}

/// Whether a text is a range such as `>=1.0.0 <1.2.0 || 0.9.x`.
pub(super) fn is_range(text: &str) -> bool {
    let is_comparator = |word: &str| {
        let version = word.trim_start_matches(['<', '>', '=', '!']);
        let (operator, _) = word.split_at(word.len() - version.len());
        let parts: Vec<&str> = version.splitn(3, '.').collect();
        let is_wild =
            parts.len() <= 3 && parts.iter().all(|part| matches!(*part, "x" | "X" | "*") || number(part).is_some());
        matches!(operator, "" | "<" | "<=" | ">" | ">=" | "=" | "==" | "!" | "!=") && (is_version(version) || is_wild)
    };
    text.split("||").all(|all| all.split_whitespace().next().is_some() && all.split_whitespace().all(is_comparator))
}

struct Version<'a> {
    numbers: [u64; 3],
    before: Vec<&'a str>,
}

fn parse(text: &str) -> Option<Version<'_>> {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let numbers: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
    let before: Vec<&str> = before.map_or_else(Vec::new, |before| before.split('.').collect());
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
    let is_number = |word: &&str| word.chars().all(|it| it.is_ascii_digit());
    let is_canonical = before.iter().filter(|word| is_number(word)).all(|word| number(word).is_some());
    let words_are_fine =
        before.iter().all(|word| is_word(word)) && build.is_none_or(|build| build.split('.').all(is_word));
    (words_are_fine && is_canonical).then_some(Version { numbers: numbers.try_into().ok()?, before })
}

/// A number without a leading zero.
fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.chars().all(|it| it.is_ascii_digit());
    (is_digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

/// What is before a release comes before it; numbers come before words.
fn order(one: &[&str], other: &[&str]) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    for (one, other) in one.iter().zip(other) {
        let by_word = match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        if by_word != Ordering::Equal {
            return by_word;
        }
    }
    one.len().cmp(&other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_semver() {
        for text in ["0.1.0", "1.2.3-rc.1", "1.2.3-0a+b.01", "10.20.30"] {
            assert!(is_version(text), "{text}");
        }
        for text in
            ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3.4", "1.2.x"]
        {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn versions_have_an_order() {
        let all = ["1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0", "1.0.1", "1.10.0"];
        for pair in all.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Some(Ordering::Less), "{pair:?}");
        }
        assert_eq!(compare("1.0.0+1", "1.0.0+2"), Some(Ordering::Equal));
    }

    #[test]
    fn ranges_are_those_that_catalogs_read() {
        for text in [">=1.0.0 <1.2.0", "<2.0.0 || >=3.0.0-rc.1", "1.x", "!=1.0.0", "0.9.x"] {
            assert!(is_range(text), "{text}");
        }
        for text in ["", "||", ">=1.0.0 ||", "~1.0.0", "^1", ">>1.0.0", "latest"] {
            assert!(!is_range(text), "{text}");
        }
    }
}
