//! Names of projects, domains and groups, with the rules of the places where they end up.

use crate::failure::Failure;

/// The longest name of a project: the names of its objects have a few words more, and at most 63 characters.
const PROJECT_LENGTH_MAX: usize = 48;
/// The longest domain that leaves room for a group and a plural.
const DOMAIN_LENGTH_MAX: usize = 150;
/// Names that Cargo, the compiler or the project itself use for something else.
const TAKEN: [&str; 14] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "serde",
    "std",
    "test",
    "tests",
    "tokio",
    "windlass",
    "windlass-testkit",
];
/// The words of Rust; a module or a crate cannot have such a name.
const WORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Whether a module or a crate cannot be called this.
pub(crate) fn is_word_of_rust(name: &str) -> bool {
    WORDS.contains(&name)
}

/// A project's name: that of its crate, its program, its Deployment and its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectName(String);

impl ProjectName {
    /// Checks a name.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            let failure = Failure::new(format!("{text:?} cannot be the name of a project: {why}"));
            match suggestion(text) {
                Some(better) => failure.advice(format!("write `windlass init {better} --domain …`")),
                None => failure.advice("write a name such as shop or web-shop"),
            }
        };
        if !is_label(text) || text.contains("--") || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(wrong("it must be of small letters, digits and single -, and begin with a letter"));
        }
        if text.len() > PROJECT_LENGTH_MAX {
            return Err(wrong(&format!("it is longer than {PROJECT_LENGTH_MAX} characters")));
        }
        if is_word_of_rust(text) || TAKEN.contains(&text) {
            return Err(wrong("the word means something else to Rust or Cargo"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it is written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a person who wrote `text` may have meant.
fn suggestion(text: &str) -> Option<String> {
    let spell = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let spelled: String = text.chars().map(spell).collect();
    let words: Vec<&str> = spelled.split('-').filter(|word| !word.is_empty()).collect();
    let better = words.join("-");
    let better = better.trim_start_matches(|first: char| !first.is_ascii_lowercase());
    let better: String = better.chars().take(PROJECT_LENGTH_MAX).collect();
    let better = better.trim_end_matches('-');
    let is_taken = is_word_of_rust(better) || TAKEN.contains(&better);
    let better = if is_taken { format!("{better}-operator") } else { better.to_owned() };
    (!better.is_empty() && better != text).then_some(better)
}

/// Checks the domain that groups end with.
pub(crate) fn parse_domain(text: &str) -> Result<String, Failure> {
    let is_domain = text.contains('.') && text.split('.').all(is_label) && text.len() <= DOMAIN_LENGTH_MAX;
    if is_domain {
        return Ok(text.to_owned());
    }
    Err(Failure::new(format!("{text:?} is not a domain: small letters, digits and -, with at least one dot"))
        .advice("write one that is yours, such as --domain example.com: groups of kinds end with it"))
}

/// The whole group: a word is completed by the domain of the project, a name with dots is complete.
pub(crate) fn parse_group(text: &str, domain: &str) -> Result<String, Failure> {
    let group = if text.contains('.') { text.to_owned() } else { format!("{text}.{domain}") };
    if !text.is_empty() && group.split('.').all(is_label) && group.len() <= DOMAIN_LENGTH_MAX {
        return Ok(group);
    }
    Err(Failure::new(format!("{text:?} is not a group: small letters, digits and -"))
        .advice(format!("write a word such as --group web, which means web.{domain}, or a whole name with dots")))
}

/// A label of RFC 1123: small letters, digits and `-`, no `-` at the ends, at most 63 characters.
fn is_label(text: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=63).contains(&text.len()) && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_be_is_answered_with_one_that_can() {
        let rows = [
            ("shop", Ok(())),
            ("web-shop2", Ok(())),
            ("Web_Shop", Err("windlass init web-shop --domain")),
            ("web--shop", Err("windlass init web-shop --domain")),
            ("-shop-", Err("windlass init shop --domain")),
            ("2fast", Err("windlass init fast --domain")),
            ("test", Err("windlass init test-operator --domain")),
            ("match", Err("windlass init match-operator --domain")),
            ("상점", Err("a name such as shop")),
            ("", Err("a name such as shop")),
            (&"a".repeat(49), Err("longer than 48")),
        ];
        for (text, expect) in rows {
            let failure = ProjectName::parse(text).err().map(|failure| failure.as_json().to_string());
            match expect {
                Ok(()) => assert_eq!(failure, None, "{text}"),
                Err(words) => assert!(failure.as_ref().is_some_and(|it| it.contains(words)), "{text}: {failure:?}"),
            }
        }
    }

    #[test]
    fn groups_end_with_the_domain_unless_they_are_whole() {
        let rows = [
            ("web", Some("web.example.com")),
            ("web.other.org", Some("web.other.org")),
            ("Web", None),
            ("", None),
            ("web.", None),
            ("a b", None),
        ];
        for (text, expect) in rows {
            assert_eq!(parse_group(text, "example.com").ok().as_deref(), expect, "{text}");
        }
        for (text, is_domain) in [("example.com", true), ("example", false), ("Example.com", false), ("a..b", false)] {
            assert_eq!(parse_domain(text).is_ok(), is_domain, "{text}");
        }
    }
}
