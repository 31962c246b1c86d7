//! The Pod of a DaemonSet for one node, and whether a node gets one.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use kube::ResourceExt;

use crate::revisions::HASH_LABEL;
use crate::scheduler::{admits, untolerated};
use crate::template;

/// Taints that a DaemonSet's Pods bear everywhere: it is part of the node, and goes on where others are sent away.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Whether a node is one for the DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suit {
    /// It gets a Pod.
    Runs,
    /// It gets none, but one that is there stays.
    Stays,
    /// It must not have one.
    Never,
}

/// Judges a node.
pub(crate) fn suit(set: &DaemonSet, node: &Node) -> Suit {
    let spec = pod_spec(set);
    let elsewhere = spec.node_name.as_ref().is_some_and(|name| *name != node.name_any());
    if elsewhere || !admits(&spec, node) {
        return Suit::Never;
    }
    match untolerated(&spec, node) {
        None => Suit::Runs,
        Some(taint) if taint.effect == "NoExecute" => Suit::Never,
        Some(_) => Suit::Stays,
    }
}

/// The Pod for `node`, after the current template.
pub(crate) fn make(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let mut pod = template::pod(set, &template);
    pod.labels_mut().insert(HASH_LABEL.to_owned(), hash.to_owned());
    let mut spec = pod_spec(set);
    bind(&mut spec, node);
    pod.spec = Some(spec);
    pod
}

/// The node that a Pod is for: the one it is on, or the one it asks for.
pub(crate) fn target(pod: &Pod) -> Option<String> {
    if let Some(node) = crate::pods::node(pod) {
        return Some(node.to_owned());
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let mut fields = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    fields.find(|field| field.key == "metadata.name")?.values.as_ref()?.first().cloned()
}

fn pod_spec(set: &DaemonSet) -> PodSpec {
    let mut spec = set.spec.as_ref().and_then(|spec| spec.template.spec.clone()).unwrap_or_default();
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    spec
}

/// Asks for exactly that node, in every alternative that the template has.
fn bind(spec: &mut PodSpec, node: &str) {
    let field = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(|| NodeSelector { node_selector_terms: vec![NodeSelectorTerm::default()] });
    for term in &mut required.node_selector_terms {
        term.match_fields = Some(vec![field.clone()]);
    }
}
