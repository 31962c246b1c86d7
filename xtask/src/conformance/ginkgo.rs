//! Reports that Ginkgo writes with `-ginkgo.json-report`, as far as we read them.

use anyhow::{Context, Result};
use serde::Deserialize;

/// A report.
#[derive(Deserialize)]
pub(super) struct Report(Vec<Suite>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    spec_reports: Option<Vec<Node>>,
}

/// A spec, or what runs around specs.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Node {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    #[serde(default)]
    container_hierarchy_labels: Option<Vec<Vec<String>>>,
    /// What it is: a spec is an `It`.
    pub(super) leaf_node_type: String,
    leaf_node_text: String,
    #[serde(default)]
    leaf_node_labels: Option<Vec<String>>,
    /// How it ended.
    pub(super) state: String,
    /// How long it took, in nanoseconds.
    #[serde(default)]
    pub(super) run_time: u64,
    /// How often it was tried.
    #[serde(default)]
    pub(super) num_attempts: u32,
    /// Why it failed.
    #[serde(default)]
    pub(super) failure: Option<Failure>,
}

/// Why something failed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) message: String,
}

impl Report {
    /// Reads a report.
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).context("the report is not as Ginkgo writes it")
    }

    /// Everything in it, in its order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().filter_map(|suite| suite.spec_reports.as_ref()).flatten()
    }
}

impl Node {
    /// Whether it is a spec, not something around specs.
    pub(super) fn is_spec(&self) -> bool {
        self.leaf_node_type == "It"
    }

    /// Its own text after those of its containers.
    pub(super) fn name(&self) -> String {
        let containers = self.container_hierarchy_texts.iter().flatten().map(String::as_str);
        let words = containers.chain([self.leaf_node_text.as_str()]).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether it or one of its containers has a label.
    pub(super) fn has_label(&self, label: &str) -> bool {
        let outer = self.container_hierarchy_labels.iter().flatten().flatten();
        outer.chain(self.leaf_node_labels.iter().flatten()).any(|known| known == label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_far_as_it_is_used() {
        let text = r#"[{"SpecReports": null}, {"SpecReports": [
            {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
            {"ContainerHierarchyTexts": ["A", ""], "ContainerHierarchyLabels": [["slow"], []], "LeafNodeType": "It",
             "LeafNodeText": "works", "State": "failed", "Failure": {"Message": "no"}}
        ]}]"#;
        let report = Report::parse(text.as_bytes()).expect("a report");
        let nodes: Vec<&Node> = report.nodes().collect();
        assert_eq!(nodes.iter().map(|node| node.is_spec()).collect::<Vec<_>>(), [false, true]);
        assert_eq!((nodes[1].name().as_str(), nodes[1].has_label("slow")), ("A works", true));
        assert!(Report::parse(b"{}").is_err());
    }
}
