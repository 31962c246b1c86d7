//! Patterns for paths, and the file `.dockerignore` that is made of them.

use std::ops::RangeInclusive;

/// Patterns of one file.
const PATTERNS_MAX: usize = 10_000;

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// Any character but a slash.
    One,
    /// Any characters but slashes.
    Some,
    /// Anything.
    All,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// A pattern: `*`, `?`, `[a-z]`, `\` before a character, and `**` for any number of folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Piece>);

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            pieces.push(match c {
                '*' if rest.next_if_eq(&'*').is_some() => {
                    // `**/x` is also `x`.
                    if rest.next_if_eq(&'/').is_some() {
                        pieces.push(Piece::All);
                        continue;
                    }
                    Piece::All
                }
                '*' => Piece::Some,
                '?' => Piece::One,
                '[' => class(&mut rest).ok_or_else(|| format!("pattern {text:?}: a bracket is not closed"))?,
                '\\' => Piece::Char(rest.next().ok_or_else(|| format!("pattern {text:?} ends with a backslash"))?),
                c => Piece::Char(c),
            });
        }
        Ok(Self(pieces))
    }

    /// Whether the text has nothing special: it is then a path.
    pub(super) fn is_plain(text: &str) -> bool {
        !text.contains(['*', '?', '[', '\\'])
    }

    /// Whether a path fits.
    pub(super) fn matches(&self, path: &str) -> bool {
        // Which beginnings of the path fit the pieces so far.
        let text: Vec<char> = path.chars().collect();
        let mut fits = vec![false; text.len() + 1];
        fits[0] = true;
        for piece in &self.0 {
            let mut next = vec![false; text.len() + 1];
            for (index, _) in fits.iter().enumerate().filter(|(_, fits)| **fits) {
                if let Some(ends) = piece.ends(&text, index) {
                    next[ends].fill(true);
                }
            }
            fits = next;
        }
        fits[text.len()]
    }
}

impl Piece {
    /// Where it may end if it begins at `index`; none if it does not fit there.
    fn ends(&self, text: &[char], index: usize) -> Option<RangeInclusive<usize>> {
        match self {
            Self::All => Some(index..=text.len()),
            Self::Some => {
                let slash = text[index..].iter().position(|c| *c == '/');
                Some(index..=slash.map_or(text.len(), |more| index + more))
            }
            one => text.get(index).filter(|c| fits_one(one, **c)).map(|_| index + 1..=index + 1),
        }
    }
}

fn fits_one(piece: &Piece, c: char) -> bool {
    match piece {
        Piece::Char(wanted) => *wanted == c,
        Piece::One => c != '/',
        Piece::Class { negated, ranges } => {
            c != '/' && ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *negated
        }
        Piece::Some | Piece::All => false,
    }
}

fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Piece> {
    let negated = rest.next_if_eq(&'^').or_else(|| rest.next_if_eq(&'!')).is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next()? {
            ']' if !ranges.is_empty() => return Some(Piece::Class { negated, ranges }),
            '\\' => rest.next()?,
            c => c,
        };
        let last = match rest.next_if_eq(&'-') {
            Some(_) => rest.next()?,
            None => first,
        };
        ranges.push((first, last));
    }
}

/// Which files of a context are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Ignored {
    /// Patterns and whether they leave out; the last one that fits decides.
    rules: Vec<(Pattern, bool)>,
}

impl Ignored {
    /// Reads a `.dockerignore`; an error names the line.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if rules.len() == PATTERNS_MAX {
                return Err((index + 1, format!("more than {PATTERNS_MAX} patterns")));
            }
            let (text, out) = line.strip_prefix('!').map_or((line, true), |rest| (rest.trim(), false));
            let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
            if parts.is_empty() {
                continue;
            }
            rules.push((Pattern::parse(&parts.join("/")).map_err(|problem| (index + 1, problem))?, out));
        }
        Ok(Self { rules })
    }

    /// Whether a path is left out, by itself or with a folder that it is in.
    pub(super) fn has(&self, path: &str) -> bool {
        let mut out = false;
        for (pattern, leaves_out) in &self.rules {
            if *leaves_out != out && ancestors(path).any(|part| pattern.matches(part)) {
                out = *leaves_out;
            }
        }
        out
    }

    /// Whether a folder that is left out may still have files that are not.
    pub(super) fn has_exceptions(&self) -> bool {
        self.rules.iter().any(|(_, leaves_out)| !leaves_out)
    }
}

/// `a/b/c`, `a/b`, `a`.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths() {
        let check = |pattern: &str, path: &str, expect: bool| {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(path), expect, "{pattern} {path}");
        };
        check("*.txt", "a.txt", true);
        check("*.txt", "d/a.txt", false);
        check("**/*.txt", "d/e/a.txt", true);
        check("**/*.txt", "a.txt", true);
        check("a/**", "a/b/c", true);
        check("a?c", "abc", true);
        check("a?c", "a/c", false);
        check("[a-c]x", "bx", true);
        check("[^a-c]x", "bx", false);
        check(r"\*", "*", true);
        check(r"\*", "a", false);
        assert!(Pattern::parse("[a").is_err());
        let long = Pattern::parse(&"*a".repeat(500)).unwrap();
        assert!(!long.matches(&"a".repeat(499)), "no pattern takes long");
    }

    #[test]
    fn the_last_rule_decides() {
        let ignored = Ignored::parse("# comment\nnode_modules\n*.log\n!keep.log\n/target/\n**/tmp\n").unwrap();
        let check = |path: &str, expect: bool| assert_eq!(ignored.has(path), expect, "{path}");
        check("node_modules/a/b", true);
        check("a.log", true);
        check("keep.log", false);
        check("target/x", true);
        check("src/target", false);
        check("deep/tmp/x", true);
        check("src/main.rs", false);
        assert!(Ignored::parse("ok\n[a").is_err_and(|(line, _)| line == 2));
    }
}
