//! The specs of a Ginkgo report among the tests of a package.

use anyhow::Result;

use super::super::ginkgo::{Node, Report};
use super::outcome::{Outcome, Verdict};

/// Adds the specs of a report; what runs around specs counts when it fails.
pub(super) fn add(report: &str, outcome: &mut Outcome) -> Result<()> {
    for node in Report::parse(report.as_bytes())?.nodes() {
        let name = name(node);
        match node.state.as_str() {
            "passed" if node.is_spec() => {
                outcome.add(&name, Verdict::Passed);
                if node.num_attempts > 1 {
                    outcome.unsteady.push(name);
                }
            }
            "skipped" | "pending" if node.is_spec() => outcome.add(&name, Verdict::Skipped),
            "passed" | "skipped" | "pending" => {}
            state => {
                let message = node.failure.as_ref().map_or(state, |failure| &failure.message);
                outcome.add(&name, Verdict::Failed(message.to_owned()));
            }
        }
    }
    Ok(())
}

/// What runs around specs is named by what it is.
fn name(node: &Node) -> String {
    if node.is_spec() {
        node.name()
    } else {
        format!("[{}] {}", node.leaf_node_type, node.name()).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_count_and_what_runs_around_them_when_it_fails() {
        let report = r#"[{"SpecReports": [
            {"ContainerHierarchyTexts": null, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
            {"ContainerHierarchyTexts": ["A", "b"], "LeafNodeType": "It", "LeafNodeText": "works", "State": "passed",
             "NumAttempts": 2},
            {"ContainerHierarchyTexts": ["A"], "LeafNodeType": "It", "LeafNodeText": "breaks", "State": "failed",
             "Failure": {"Message": "expected"}},
            {"ContainerHierarchyTexts": ["A"], "LeafNodeType": "It", "LeafNodeText": "later", "State": "pending"},
            {"ContainerHierarchyTexts": null, "LeafNodeType": "AfterSuite", "LeafNodeText": "", "State": "timedout"}
        ]}]"#;
        let mut outcome = Outcome::default();
        add(report, &mut outcome).unwrap();
        assert_eq!((outcome.passed(), outcome.skipped()), (1, 1));
        assert_eq!(outcome.unsteady, ["A b works"]);
        let failures: Vec<_> = outcome.failures().collect();
        assert_eq!(failures, [("A breaks", "expected"), ("[AfterSuite]", "timedout")]);
    }
}
