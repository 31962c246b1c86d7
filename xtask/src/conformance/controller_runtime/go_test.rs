//! What a Go test program prints with `-test.v`.

use super::outcome::{Outcome, Verdict};

/// Adds the tests that have no tests within; one that runs a Ginkgo suite is left to the suite's report.
pub(super) fn read(output: &str, outcome: &mut Outcome) {
    let mut running = "";
    let mut suites = Vec::new();
    let mut ended = Vec::new();
    for line in output.lines() {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("=== RUN ") {
            running = name.trim();
        } else if line.starts_with("Running Suite: ") {
            suites.push(running);
        } else if let Some((verdict, name)) = end(line) {
            ended.push((name, verdict));
        }
    }
    for (name, verdict) in &ended {
        let has_within =
            ended.iter().any(|(other, _)| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
        if !has_within && !suites.contains(name) {
            outcome.add(name, verdict.clone());
        }
    }
}

/// A line such as `--- PASS: TestName (0.00s)`.
fn end(line: &str) -> Option<(Verdict, &str)> {
    let (word, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
    let verdict = match word {
        "PASS" => Verdict::Passed,
        "SKIP" => Verdict::Skipped,
        "FAIL" => Verdict::Failed("see the log".to_owned()),
        _ => return None,
    };
    Some((verdict, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_without_tests_within_count() {
        let output = "=== RUN   TestSuite\nRunning Suite: X - /a\n--- PASS: TestSuite (1.00s)\n\
            === RUN   TestTable\n=== RUN   TestTable/one\n=== RUN   TestTable/two\n--- FAIL: TestTable (0.00s)\n\
            \u{20}   --- PASS: TestTable/one (0.00s)\n    --- FAIL: TestTable/two (0.00s)\n--- SKIP: TestOther (0.0s)\n";
        let mut outcome = Outcome::default();
        read(output, &mut outcome);
        assert_eq!((outcome.passed(), outcome.failed(), outcome.skipped()), (1, 1, 1));
        assert_eq!(outcome.failures().next(), Some(("TestTable/two", "see the log")));
    }
}
