//! The text of an expression, and what is wrong with it where.

use std::fmt::Write as _;

/// How many issues are told; the others are counted.
const ISSUES_MAX: usize = 100;
/// The longest line that is shown.
const LINE_BYTES_MAX: usize = 16384;

/// Something that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    /// Where, in letters from the beginning; none if it is wrong as a whole.
    pub(super) offset: Option<usize>,
    pub(super) message: String,
}

impl Issue {
    /// Something wrong with the expression as a whole.
    pub(super) fn of_all(message: String) -> Self {
        Self { offset: None, message }
    }
}

/// All issues of an expression, as they are shown: by their places, each with its line and a mark under it.
pub(super) fn describe(text: &str, mut issues: Vec<Issue>) -> String {
    issues.sort_by_key(|issue| issue.offset.map_or(0, |offset| offset + 1));
    let mut all: Vec<String> = issues.iter().take(ISSUES_MAX).map(|issue| shown(text, issue)).collect();
    if let Some(more) = issues.len().checked_sub(ISSUES_MAX).filter(|more| *more > 0) {
        all.push(format!("{more} more errors were truncated"));
    }
    all.join("\n")
}

fn shown(text: &str, issue: &Issue) -> String {
    let Some(offset) = issue.offset else { return format!("ERROR: <input>:-1:0: {}", issue.message) };
    let before: String = text.chars().take(offset).collect();
    let number = before.matches('\n').count();
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count();
    let mut shown = format!("ERROR: <input>:{}:{}: {}", number + 1, column + 1, issue.message);
    let line = text.split('\n').nth(number).unwrap_or_default().replace('\t', " ");
    if line.len() <= LINE_BYTES_MAX {
        let mut letters = line.chars();
        // Wide letters get wide marks, so that the columns stay below each other.
        let under: String =
            letters.by_ref().take(column).map(|letter| if letter.is_ascii() { '.' } else { '\u{ff0e}' }).collect();
        let mark = if letters.next().is_some_and(|letter| !letter.is_ascii()) { '\u{ff3e}' } else { '^' };
        let _ = write!(shown, "\n | {line}\n | {under}{mark}");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_stand_where_they_are() {
        let issue = |offset, message: &str| Issue { offset, message: message.to_owned() };
        let text = "self.a &&\n\té + b";
        let shown = describe(text, vec![issue(Some(13), "no"), issue(Some(4), "field"), issue(None, "all")]);
        let lines = [
            "ERROR: <input>:-1:0: all",
            "ERROR: <input>:1:5: field",
            " | self.a &&",
            " | ....^",
            "ERROR: <input>:2:4: no",
            " |  é + b",
            " | .．.^",
        ];
        assert_eq!(shown, lines.join("\n"));
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let issues = (0..102).map(|offset| Issue { offset: Some(offset), message: "no".to_owned() }).collect();
        assert!(describe("", issues).ends_with("\n2 more errors were truncated"));
    }
}
