//! Whether the labels of a node are those that a Pod asks for.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, TopologySelectorTerm,
};
use kube::ResourceExt;

/// Whether `nodeSelector` and the required terms of the node affinity admit the node.
pub(crate) fn admits(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.labels();
    let selected = spec.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|required| selects(required, node))
}

/// Whether one of the terms admits the node.
pub(crate) fn selects(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| term_admits(term, node))
}

/// Whether the node has one of the values of every label that the term names.
pub(crate) fn has_labels(term: &TopologySelectorTerm, node: &Node) -> bool {
    let mut wanted = term.match_label_expressions.iter().flatten();
    wanted.all(|wanted| node.labels().get(&wanted.key).is_some_and(|value| wanted.values.contains(value)))
}

/// How much the preferred terms like the node.
pub(crate) fn preference(spec: &PodSpec, node: &Node) -> i64 {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let preferred =
        affinity.and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let liked = preferred.into_iter().flatten().filter(|term| term_admits(&term.preference, node));
    liked.map(|term| i64::from(term.weight)).sum()
}

/// Terms are alternatives, the requirements within one all hold; an empty term admits nothing.
fn term_admits(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = node.name_any();
    let field = |key: &str| (key == "metadata.name").then_some(name.as_str());
    expressions.iter().all(|wanted| holds(wanted, node.labels().get(&wanted.key).map(String::as_str)))
        && fields.iter().all(|wanted| holds(wanted, field(&wanted.key)))
}

fn holds(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(actual, bound)| actual > bound),
        "Lt" => numbers().is_some_and(|(actual, bound)| actual < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn terms_are_alternatives_and_requirements_add_up() {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": "n1", "labels": {"disk": "ssd", "cores": "8"}}}))
                .unwrap();
        let check = |spec: Value, expect| {
            let mut spec = spec;
            spec["containers"] = json!([]);
            assert_eq!(admits(&serde_json::from_value(spec.clone()).unwrap(), &node), expect, "{spec}");
        };
        let terms = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check(json!({}), true);
        check(json!({"nodeSelector": {"disk": "ssd"}}), true);
        check(json!({"nodeSelector": {"disk": "hdd"}}), false);
        check(terms(json!([expression("disk", "In", &["ssd", "nvme"])])), true);
        check(terms(json!([expression("disk", "NotIn", &["ssd"])])), false);
        check(terms(json!([expression("gpu", "NotIn", &["a"])])), true);
        check(terms(json!([expression("gpu", "Exists", &[])])), false);
        check(terms(json!([expression("gpu", "DoesNotExist", &[])])), true);
        check(terms(json!([expression("cores", "Gt", &["4"])])), true);
        check(terms(json!([expression("cores", "Lt", &["8"])])), false);
        check(terms(json!([expression("disk", "In", &["hdd"]), expression("cores", "Gt", &["4"])])), true);
        check(terms(json!([{}])), false);
        check(terms(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}])), true);
        check(terms(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}])), false);
    }
}
