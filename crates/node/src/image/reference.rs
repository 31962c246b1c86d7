//! Image names: `memcached:1.6`, `docker.io/library/memcached`, `registry.example.com/team/app@sha256:…`.

use std::fmt;
use std::str::FromStr;

/// Longest image name accepted, as registries do.
const NAME_BYTES_MAX: usize = 255;

/// The name of an image, without registry where that is the usual one, with its tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    name: String,
    tag: String,
}

/// Why a text is no image name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("couldn't parse image name {text:?}: {problem}")]
pub struct ReferenceError {
    text: String,
    problem: &'static str,
}

impl Reference {
    /// The name: `memcached` for `docker.io/library/memcached:1.6`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tag, or the digest with its algorithm; `latest` if none was given.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The name as one path component.
    pub(crate) fn file_name(&self) -> String {
        format!("{}@{}", self.name.replace('/', "%2F"), self.tag)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.tag.starts_with("sha256:") { '@' } else { ':' };
        write!(formatter, "{}{separator}{}", self.name, self.tag)
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let fail = |problem| Err(ReferenceError { text: text.to_owned(), problem });
        let (rest, tag) = match text.split_once('@') {
            Some((rest, digest)) => {
                (rest.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(rest, |r| r.0), digest)
            }
            None => match text.rsplit_once(':') {
                Some((rest, tag)) if !tag.contains('/') => (rest, tag),
                _ => (text, "latest"),
            },
        };
        let name = rest.strip_prefix("docker.io/").or_else(|| rest.strip_prefix("index.docker.io/")).unwrap_or(rest);
        let name = name.strip_prefix("library/").unwrap_or(name);
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/:".contains(c);
        if name.is_empty() || tag.is_empty() {
            return fail("name and tag must not be empty");
        }
        if name.len() > NAME_BYTES_MAX
            || !name.chars().all(allowed)
            || name.split('/').any(|p| p.is_empty() || p == "..")
        {
            return fail("a name has lowercase letters, digits, '.', '_', '-' and single '/'");
        }
        if !tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c)) || tag.starts_with('.') {
            return fail("a tag has letters, digits, '.', '_' and '-'");
        }
        Ok(Self { name: name.to_owned(), tag: tag.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised() {
        let check = |text: &str, expect: &str| assert_eq!(text.parse::<Reference>().unwrap().to_string(), expect);
        check("memcached", "memcached:latest");
        check("docker.io/library/memcached:1.6-alpine", "memcached:1.6-alpine");
        check("localhost:5000/team/app:v1", "localhost:5000/team/app:v1");
        check("localhost:5000/team/app", "localhost:5000/team/app:latest");
        check("app:v1@sha256:0a", "app@sha256:0a");
    }

    #[test]
    fn bad_names_are_refused() {
        for text in ["", "UPPER", "a//b", "a/../b", "a:", "a b", ":1", "a:.."] {
            assert!(text.parse::<Reference>().is_err(), "{text:?}");
        }
    }
}
