//! What is wrong with an expression that does not follow the grammar.
//!
//! Upstream's parser is made from the grammar by ANTLR, and so is that of the `cel` crate: its words are used.

use kube_cel::cel::parser::Parser;

use super::{depth, source::Issue};

/// The issues of a text that does not follow the grammar, with those that were found before.
pub(super) fn issues(text: &str, mut known: Vec<Issue>) -> Vec<Issue> {
    if let Err(message) = depth::check(text) {
        return vec![Issue::of_all(message)];
    }
    if let Err(errors) = Parser::new().enable_optional_syntax(true).parse(text) {
        let syntax = errors.errors.iter().filter(|error| error.msg.starts_with("Syntax error: "));
        known.extend(syntax.map(|error| Issue { offset: offset(text, error.pos), message: reworded(&error.msg) }));
    }
    if known.is_empty() {
        known.push(Issue::of_all("Syntax error: the expression does not follow the grammar".to_owned()));
    }
    known
}

/// The letter at a line and a column, which are counted from one.
fn offset(text: &str, (line, column): (isize, isize)) -> Option<usize> {
    let (line, column) = (usize::try_from(line).ok()?.checked_sub(1)?, usize::try_from(column).ok()?.checked_sub(1)?);
    let before: usize = text.split('\n').take(line).map(|line| line.chars().count() + 1).sum();
    Some(before + column)
}

/// A constant where a name is wanted is told in other words.
fn reworded(message: &str) -> String {
    for word in ["true", "false", "null"] {
        if message.contains("no viable alternative") && message.contains(&format!("{word}'")) {
            return format!("Syntax error: mismatched input '{word}' expecting IDENTIFIER");
        }
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_word_is_named() {
        let issues = issues("self.a +\n", Vec::new());
        assert_eq!(issues[0].offset, Some(9), "{issues:?}");
        assert!(issues[0].message.starts_with("Syntax error: mismatched input '<EOF>' expecting"), "{issues:?}");
    }
}
