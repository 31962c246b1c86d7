//! How the tests of one package went.

use std::collections::BTreeMap;
use std::time::Duration;

/// How one test went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Skipped,
    /// With what it said.
    Failed(String),
}

/// How the tests of one package went, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    tests: BTreeMap<String, Verdict>,
    /// Tests that passed, but not at the first try.
    pub(super) unsteady: Vec<String>,
    pub(super) duration: Duration,
}

impl Outcome {
    /// No tests yet, in this time.
    pub(super) fn lasting(duration: Duration) -> Self {
        Outcome { duration, ..Outcome::default() }
    }

    /// Adds a test. Of several with one name each counts.
    pub(super) fn add(&mut self, name: &str, verdict: Verdict) {
        let mut unique = name.to_owned();
        let mut count = 1;
        while self.tests.contains_key(&unique) {
            count += 1;
            unique = format!("{name} ({count})");
        }
        self.tests.insert(unique, verdict);
    }

    pub(super) fn passed(&self) -> usize {
        self.count(|verdict| *verdict == Verdict::Passed)
    }

    pub(super) fn skipped(&self) -> usize {
        self.count(|verdict| *verdict == Verdict::Skipped)
    }

    pub(super) fn failed(&self) -> usize {
        self.failures().count()
    }

    /// The tests that failed, and what they said.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tests.iter().filter_map(|(name, verdict)| match verdict {
            Verdict::Failed(message) => Some((name.as_str(), message.as_str())),
            _ => None,
        })
    }

    /// Whether a test failed here; one that did not run at all did, too.
    pub(super) fn fails(&self, name: &str) -> bool {
        !matches!(self.tests.get(name), Some(Verdict::Passed | Verdict::Skipped))
    }

    fn count(&self, like: impl Fn(&Verdict) -> bool) -> usize {
        self.tests.values().filter(|verdict| like(verdict)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_one_name_count_each() {
        let mut outcome = Outcome::default();
        outcome.add("a", Verdict::Passed);
        outcome.add("a", Verdict::Failed("no".to_owned()));
        outcome.add("b", Verdict::Skipped);
        assert_eq!((outcome.passed(), outcome.failed(), outcome.skipped()), (1, 1, 1));
        assert_eq!(outcome.failures().collect::<Vec<_>>(), [("a (2)", "no")]);
        assert!(!outcome.fails("a") && outcome.fails("a (2)") && outcome.fails("never ran"));
    }
}
