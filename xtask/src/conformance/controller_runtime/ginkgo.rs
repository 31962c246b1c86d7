//! Reports that Ginkgo writes with `-ginkgo.json-report`.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::outcome::{Outcome, Verdict};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    num_attempts: u32,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

/// Adds the specs of a report; what runs around specs counts when it fails.
pub(super) fn read(report: &str, outcome: &mut Outcome) -> Result<()> {
    let suites: Vec<Suite> = serde_json::from_str(report).context("a Ginkgo report cannot be read")?;
    for spec in suites.into_iter().flat_map(|suite| suite.spec_reports.unwrap_or_default()) {
        let is_spec = spec.leaf_node_type == "It";
        match spec.state.as_str() {
            "passed" if is_spec => {
                outcome.add(&name(&spec), Verdict::Passed);
                if spec.num_attempts > 1 {
                    outcome.unsteady.push(name(&spec));
                }
            }
            "skipped" | "pending" if is_spec => outcome.add(&name(&spec), Verdict::Skipped),
            "passed" | "skipped" | "pending" => {}
            state => {
                let message = spec.failure.as_ref().map_or(state, |failure| &failure.message);
                outcome.add(&name(&spec), Verdict::Failed(message.to_owned()));
            }
        }
    }
    Ok(())
}

fn name(spec: &Spec) -> String {
    let kind = (spec.leaf_node_type != "It").then_some(format!("[{}]", spec.leaf_node_type));
    let containers = spec.container_hierarchy_texts.clone().unwrap_or_default();
    let parts = kind.into_iter().chain(containers).chain([spec.leaf_node_text.clone()]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
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
        read(report, &mut outcome).unwrap();
        assert_eq!((outcome.passed(), outcome.skipped()), (1, 1));
        assert_eq!(outcome.unsteady, ["A b works"]);
        let failures: Vec<_> = outcome.failures().collect();
        assert_eq!(failures, [("A breaks", "expected"), ("[AfterSuite]", "timedout")]);
    }
}
