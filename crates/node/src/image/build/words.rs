//! The words of an instruction: quotes, escapes, variables, and lists in JSON.

/// Variables by name; none if there is no such.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Braces in each other, before they are taken for a mistake.
const DEPTH_MAX: usize = 16;

/// Splits a text into words, with quotes and escapes undone and variables replaced.
pub(super) fn split(text: &str, lookup: Lookup<'_>) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = word(rest, lookup, 0, |c| c.is_whitespace())?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

/// A text as one word, spaces included.
pub(super) fn whole(text: &str, lookup: Lookup<'_>) -> Result<String, String> {
    Ok(word(text.trim(), lookup, 0, |_| false)?.0)
}

/// `NAME=VALUE …`, or the old `NAME VALUE`.
pub(super) fn pairs(text: &str, lookup: Lookup<'_>) -> Result<Vec<(String, String)>, String> {
    let first = text.split_whitespace().next().unwrap_or_default();
    if !first.contains('=') {
        let (name, value) = text.trim().split_once(char::is_whitespace).ok_or("a name without a value")?;
        return Ok(vec![(name.to_owned(), whole(value, lookup)?)]);
    }
    let pair = |word: String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{word:?} is not NAME=VALUE")),
    };
    split(text, lookup)?.into_iter().map(pair).collect()
}

/// A list in JSON, if the text is meant as one.
pub(super) fn list(text: &str) -> Result<Option<Vec<String>>, String> {
    let text = text.trim();
    if !text.starts_with('[') {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|error| {
        format!("this begins like a list, but is none: {error}. The strings of a list are in double quotes")
    })
}

/// One word, up to a character that ends it, and what comes after.
fn word<'t>(
    text: &'t str,
    lookup: Lookup<'_>,
    depth: usize,
    ends: impl Fn(char) -> bool,
) -> Result<(String, &'t str), String> {
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match (quote, c) {
            (None, c) if ends(c) => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None | Some('"'), '\\') => {
                let Some(next) = after.chars().next() else { return Err("a backslash at the end".to_owned()) };
                if quote.is_some() && !matches!(next, '"' | '\\' | '$') {
                    word.push('\\');
                }
                word.push(next);
                rest = &after[next.len_utf8()..];
                continue;
            }
            (None | Some('"'), '$') => {
                let (value, after) = variable(after, lookup, depth)?;
                word.push_str(&value);
                rest = after;
                continue;
            }
            (_, c) => word.push(c),
        }
        rest = after;
    }
    match quote {
        Some(open) => Err(format!("a quote {open} that is not closed")),
        None => Ok((word, rest)),
    }
}

/// What follows a dollar sign: `NAME`, `{NAME}`, `{NAME:-default}` or `{NAME:+instead}`.
fn variable<'t>(text: &'t str, lookup: Lookup<'_>, depth: usize) -> Result<(String, &'t str), String> {
    let name_end = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(inner) = text.strip_prefix('{') else {
        let end = name_end(text);
        let value = if end == 0 { "$".to_owned() } else { lookup(&text[..end]).unwrap_or_default() };
        return Ok((value, &text[end..]));
    };
    if depth == DEPTH_MAX {
        return Err("variables nest too deep".to_owned());
    }
    let (name, rest) = inner.split_at(name_end(inner));
    let value = lookup(name).filter(|value| !value.is_empty());
    if name.is_empty() {
        return Err("`${` without a name".to_owned());
    }
    let (value, rest) = if let Some(default) = rest.strip_prefix(":-") {
        let (default, rest) = word(default, lookup, depth + 1, |c| c == '}')?;
        (value.unwrap_or(default), rest)
    } else if let Some(instead) = rest.strip_prefix(":+") {
        let (instead, rest) = word(instead, lookup, depth + 1, |c| c == '}')?;
        (value.map(|_| instead).unwrap_or_default(), rest)
    } else {
        (value.unwrap_or_default(), rest)
    };
    let rest = rest.strip_prefix('}').ok_or_else(|| format!("`${{{name}` is not closed or has an unknown form"))?;
    Ok((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "V").then(|| "1 2".to_owned())
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        let check = |text: &str, expect: &[&str]| assert_eq!(split(text, &lookup).unwrap(), expect, "{text}");
        check("a  b\tc", &["a", "b", "c"]);
        check(r#""a b" 'c $V' "$V" x$V"#, &["a b", "c $V", "1 2", "x1 2"]);
        check(r"a\ b \$V", &["a b", "$V"]);
        check("${V}x ${N:-no ne} ${V:+yes}${N:+no}", &["1 2x", "no ne", "yes"]);
        check("$ $N.", &["$", "."]);
        assert!(split("'open", &lookup).is_err() && split("${V", &lookup).is_err());
    }

    #[test]
    fn pairs_have_two_forms() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(pairs("A=1 B=\"x y\"", &lookup).unwrap(), [pair("A", "1"), pair("B", "x y")]);
        assert_eq!(pairs("A some words", &lookup).unwrap(), [pair("A", "some words")]);
        assert!(pairs("A=1 b", &lookup).is_err());
    }

    #[test]
    fn a_list_is_json_or_an_error() {
        assert_eq!(list(r#"["a", "b c"]"#).unwrap(), Some(vec!["a".to_owned(), "b c".to_owned()]));
        assert_eq!(list("a b").unwrap(), None);
        assert!(list("['a']").unwrap_err().contains("double quotes"));
    }
}
