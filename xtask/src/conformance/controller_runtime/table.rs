//! The results as a table, for the terminal and for the documentation.

use std::fmt::Write;

use super::outcome::Outcome;

/// The results of one package: on Windlass, and on the real programs.
pub(super) struct Row {
    pub(super) package: String,
    pub(super) windlass: Option<Outcome>,
    pub(super) real: Option<Outcome>,
}

impl Row {
    /// What fails on Windlass and, as far as we know, only there.
    pub(super) fn regressions(&self) -> impl Iterator<Item = (&str, &str)> {
        let failures = self.windlass.iter().flat_map(Outcome::failures);
        failures.filter(|(name, _)| self.real.as_ref().is_none_or(|real| !real.fails(name)))
    }
}

/// The table in Markdown.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| package | Windlass: passed | failed | skipped | time | real: passed | failed | skipped | time |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let (windlass, real) = (cells(row.windlass.as_ref()), cells(row.real.as_ref()));
        writeln!(text, "| {} | {windlass} | {real} |", row.package).expect("a String takes everything");
    }
    let (windlass, real) = (sum(rows, |row| row.windlass.as_ref()), sum(rows, |row| row.real.as_ref()));
    writeln!(text, "| **all** | {windlass} | {real} |").expect("a String takes everything");
    text
}

/// What passed on a second or third try only, as a list in Markdown.
pub(super) fn unsteady(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (place, outcome) in [("Windlass", &row.windlass), ("the real one", &row.real)] {
            for name in outcome.iter().flat_map(|outcome| &outcome.unsteady) {
                writeln!(text, "- {} on {place}: {name}", row.package).expect("a String takes everything");
            }
        }
    }
    text
}

/// What failed, where and how, as a list in Markdown.
pub(super) fn failures(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (place, outcome) in [("Windlass", &row.windlass), ("the real one", &row.real)] {
            for (name, message) in outcome.iter().flat_map(Outcome::failures) {
                let first = message.lines().next().unwrap_or_default();
                writeln!(text, "- {} on {place}: {name}: {first}", row.package).expect("a String takes everything");
            }
        }
    }
    text
}

fn cells(outcome: Option<&Outcome>) -> String {
    let Some(outcome) = outcome else { return "| | |".to_owned() };
    let seconds = outcome.duration.as_secs_f64();
    format!("{} | {} | {} | {seconds:.1} s", outcome.passed(), outcome.failed(), outcome.skipped())
}

fn sum(rows: &[Row], side: impl Fn(&Row) -> Option<&Outcome>) -> String {
    let outcomes: Vec<&Outcome> = rows.iter().filter_map(side).collect();
    if outcomes.is_empty() {
        return cells(None);
    }
    let total = |count: fn(&Outcome) -> usize| outcomes.iter().map(|outcome| count(outcome)).sum::<usize>();
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.duration.as_secs_f64()).sum();
    let (passed, failed) = (total(Outcome::passed), total(Outcome::failed));
    format!("{passed} | {failed} | {} | {seconds:.1} s", total(Outcome::skipped))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Verdict;
    use super::*;

    fn outcome(tests: &[(&str, Option<&str>)]) -> Outcome {
        let mut outcome = Outcome::default();
        for (name, message) in tests {
            outcome.add(name, message.map_or(Verdict::Passed, |message| Verdict::Failed(message.to_owned())));
        }
        outcome
    }

    #[test]
    fn what_fails_on_both_is_no_regression() {
        let row = Row {
            package: "pkg/x".to_owned(),
            windlass: Some(outcome(&[("a", Some("one\ntwo")), ("b", Some("hm")), ("c", None)])),
            real: Some(outcome(&[("a", None), ("b", Some("hm")), ("c", None)])),
        };
        assert_eq!(row.regressions().collect::<Vec<_>>(), [("a", "one\ntwo")]);
        let rows = [row];
        assert!(table(&rows).contains("| pkg/x | 1 | 2 | 0 | 0.0 s | 2 | 1 | 0 | 0.0 s |"), "{}", table(&rows));
        assert!(failures(&rows).starts_with("- pkg/x on Windlass: a: one\n"), "{}", failures(&rows));
    }
}
