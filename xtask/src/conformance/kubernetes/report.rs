//! What a report tells of the conformance tests: what there is, what passed, and why not.

use std::time::Duration;

use super::super::ginkgo::{Node, Report};

/// The longest reason that is shown.
const REASON_LENGTH_MAX: usize = 240;

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    /// Its full name.
    pub(super) name: String,
    /// Whether it must run alone.
    pub(super) serial: bool,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Its full name.
    pub(super) name: String,
    /// Why it failed, in a line.
    pub(super) failure: Option<String>,
    /// How long it took.
    pub(super) time: Duration,
}

/// The tests that were chosen.
pub(super) fn chosen(report: &Report) -> Vec<Spec> {
    let mut specs: Vec<Spec> = report
        .nodes()
        .filter(|node| node.is_spec() && !matches!(node.state.as_str(), "skipped" | "pending"))
        .map(|node| Spec { name: node.name(), serial: node.has_label("Serial") })
        .collect();
    specs.sort_by(|one, other| one.name.cmp(&other.name));
    specs
}

/// How the test of this name ended: by itself, or because the suite could not be set up.
pub(super) fn outcome(report: &Report, name: &str) -> (Option<String>, Duration) {
    let node = report.nodes().find(|node| node.is_spec() && node.name() == name);
    let time = Duration::from_nanos(node.map_or(0, |node| node.run_time));
    if node.is_some_and(|node| node.state == "passed") {
        return (None, time);
    }
    let cause = node
        .filter(|node| node.failure.is_some())
        .or_else(|| report.nodes().find(|node| !node.is_spec() && node.failure.is_some() && node.state != "passed"));
    (Some(cause.map_or_else(|| "it did not run".to_owned(), reason)), time)
}

fn reason(node: &Node) -> String {
    let message = node.failure.as_ref().map_or("", |failure| failure.message.as_str());
    match node.state.as_str() {
        "failed" => first_sentence(message),
        state => format!("{state}: {}", first_sentence(message)),
    }
}

/// What Gomega begins with when it waited in vain. What it waited for comes after it.
const WAITED: &str = "Timed out after ";

/// The first line of a message; with the next one if the first only introduces it, and with all if it only says that it waited.
fn first_sentence(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut sentence = lines.next().unwrap_or_default().to_owned();
    let waited = sentence.starts_with(WAITED);
    if waited {
        // The time is another one each time.
        "timed out:".clone_into(&mut sentence);
    }
    for line in lines {
        if !waited && !sentence.ends_with(':') && sentence != "Expected" {
            break;
        }
        sentence = format!("{sentence} {line}");
    }
    match sentence.char_indices().nth(REASON_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"[{"SpecReports": [
        {"LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "", "State": "passed", "RunTime": 5},
        {"ContainerHierarchyTexts": ["[sig-a] Things"], "LeafNodeType": "It", "LeafNodeText": "work", "State": "passed",
         "RunTime": 2000000000},
        {"ContainerHierarchyTexts": ["[sig-a] Things"], "LeafNodeType": "It", "LeafNodeText": "end", "State": "failed",
         "RunTime": 1, "ContainerHierarchyLabels": [["sig-a", "Serial"]], "Failure": {"Message": "Unexpected error:\n    <*x>: \n    not found\nrest"}},
        {"ContainerHierarchyTexts": [], "LeafNodeType": "It", "LeafNodeText": "other", "State": "skipped"}
    ]}]"#;

    #[test]
    fn a_reason_says_what_was_expected() {
        let rows = [
            ("no pod\nat x.go:1", "no pod"),
            ("Expected\n    <int>: 1\nto equal\n    <int>: 2", "Expected <int>: 1"),
            (
                "Timed out after 60.002s.\nExpected\n    <string>: a\nto equal\n    <string>: b",
                "timed out: Expected <string>: a to equal <string>: b",
            ),
        ];
        for (message, expected) in rows {
            assert_eq!(first_sentence(message), expected);
        }
    }

    #[test]
    fn a_report_says_what_passed_and_why_not() {
        let report = Report::parse(REPORT.as_bytes()).expect("a report");
        let names: Vec<_> = chosen(&report).into_iter().map(|spec| (spec.name, spec.serial)).collect();
        assert_eq!(names, [("[sig-a] Things end".to_owned(), true), ("[sig-a] Things work".to_owned(), false)]);
        assert_eq!(outcome(&report, "[sig-a] Things work"), (None, Duration::from_secs(2)));
        let (failure, _) = outcome(&report, "[sig-a] Things end");
        assert_eq!(failure.as_deref(), Some("Unexpected error: <*x>: not found"));
        assert_eq!(outcome(&report, "absent").0.as_deref(), Some("it did not run"));
    }

    #[test]
    fn a_suite_that_cannot_be_set_up_is_the_reason() {
        let report = r#"[{"SpecReports": [
            {"LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "", "State": "failed",
             "Failure": {"Message": "no nodes"}},
            {"LeafNodeType": "It", "LeafNodeText": "work", "State": "skipped"}]}]"#;
        let report = Report::parse(report.as_bytes()).expect("a report");
        assert_eq!(outcome(&report, "work").0.as_deref(), Some("no nodes"));
    }
}
