//! Pods spread evenly over the domains of a topology.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, Pod, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::ResourceExt;
use kube::core::SelectorExt;

use super::{affinity, taints, terms};
use crate::pods;

/// Why a node is wrong for an even spread.
pub(crate) const UNEVEN: &str = "node(s) didn't match pod topology spread constraints";
/// Why a node takes no part in it.
pub(crate) const UNLABELLED: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// The constraints of a Pod, with what is there already.
pub(crate) struct Spread<'a>(Vec<Count<'a>>);

struct Count<'a> {
    constraint: &'a TopologySpreadConstraint,
    by_domain: HashMap<String, i32>,
    /// What the Pod adds to the domain that it goes to.
    own: i32,
}

impl<'a> Spread<'a> {
    /// Counts the Pods that the constraints of `pod` are about.
    pub(crate) fn of<'b>(
        pod: &'a Pod,
        nodes: &[&'b Node],
        residents: impl Iterator<Item = (&'b str, &'b Pod)> + Clone,
    ) -> Self {
        let constraints = pod.spec.iter().flat_map(|spec| spec.topology_spread_constraints.iter().flatten());
        Self(constraints.map(|constraint| count(pod, constraint, nodes, residents.clone())).collect())
    }

    /// Why the node is wrong, if it is.
    pub(crate) fn refusal(&self, node: &Node) -> Option<&'static str> {
        for count in self.0.iter().filter(|count| count.constraint.when_unsatisfiable == "DoNotSchedule") {
            let Some(domain) = node.labels().get(&count.constraint.topology_key) else { return Some(UNLABELLED) };
            let there = count.by_domain.get(domain).copied().unwrap_or(0);
            if there + count.own - count.least() > count.constraint.max_skew {
                return Some(UNEVEN);
            }
        }
        None
    }

    /// How many Pods too many the domains of the node have, for constraints that are wishes.
    pub(crate) fn crowding(&self, node: &Node) -> i64 {
        let wishes = self.0.iter().filter(|count| count.constraint.when_unsatisfiable != "DoNotSchedule");
        let there = wishes.filter_map(|count| count.by_domain.get(node.labels().get(&count.constraint.topology_key)?));
        there.map(|count| i64::from(*count)).sum()
    }
}

impl Count<'_> {
    /// The count of the emptiest domain; with fewer domains than there should be, one that is still to come.
    fn least(&self) -> i32 {
        let domains = i32::try_from(self.by_domain.len()).unwrap_or(i32::MAX);
        if domains < self.constraint.min_domains.unwrap_or(1) {
            return 0;
        }
        self.by_domain.values().copied().min().unwrap_or(0)
    }
}

fn count<'a, 'b>(
    pod: &'a Pod,
    constraint: &'a TopologySpreadConstraint,
    nodes: &[&'b Node],
    residents: impl Iterator<Item = (&'b str, &'b Pod)>,
) -> Count<'a> {
    let domains: HashMap<String, &String> = nodes
        .iter()
        .filter(|node| takes_part(pod, constraint, node))
        .filter_map(|node| Some((node.name_any(), node.labels().get(&constraint.topology_key)?)))
        .collect();
    let mut by_domain: HashMap<String, i32> = domains.values().map(|domain| ((*domain).clone(), 0)).collect();
    let selector = terms::selector(Some(&selector(pod, constraint)));
    let matches = |other: &Pod| selector.as_ref().is_some_and(|selector| selector.matches(other.labels()));
    for (node, other) in residents {
        let counts = other.metadata.namespace == pod.metadata.namespace && !pods::is_terminating(other);
        let Some(domain) = domains.get(node).filter(|_| counts && matches(other)) else { continue };
        *by_domain.entry((*domain).clone()).or_default() += 1;
    }
    Count { constraint, by_domain, own: i32::from(matches(pod)) }
}

/// Nodes that the Pod may not go to are not domains to be filled.
fn takes_part(pod: &Pod, constraint: &TopologySpreadConstraint, node: &Node) -> bool {
    let Some(spec) = pod.spec.as_ref() else { return true };
    let affinity = constraint.node_affinity_policy.as_deref() == Some("Ignore") || affinity::admits(spec, node);
    let taints = constraint.node_taints_policy.as_deref() != Some("Honor") || taints::untolerated(spec, node).is_none();
    affinity && taints
}

/// The selector with the labels of the Pod that it names by key only.
fn selector(pod: &Pod, constraint: &TopologySpreadConstraint) -> LabelSelector {
    let mut selector = constraint.label_selector.clone().unwrap_or_default();
    for key in constraint.match_label_keys.iter().flatten() {
        let Some(value) = pod.labels().get(key) else { continue };
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: "In".to_owned(),
            values: Some(vec![value.clone()]),
        });
    }
    selector
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(constraint: Value) -> Pod {
        let mut all = json!({"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}});
        constraint.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        serde_json::from_value(json!({"metadata": {"name": "p", "labels": {"app": "web", "hash": "1"}},
            "spec": {"containers": [], "topologySpreadConstraints": [all]}}))
        .unwrap()
    }

    /// Nodes `a`, `b` and `none`; the last has no zone. `on` names the node of each Pod that is there.
    fn check(constraint: Value, on: &[&str], expect: [Option<&str>; 3]) {
        let node = |name: &str| -> Node {
            let labels = if name == "none" { json!({}) } else { json!({"zone": name}) };
            serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
        };
        let nodes = ["a", "b", "none"].map(node);
        let (pod, other) = (pod(constraint.clone()), pod(json!({})));
        let residents = on.iter().map(|node| (*node, &other));
        let spread = Spread::of(&pod, &nodes.iter().collect::<Vec<_>>(), residents);
        assert_eq!([0, 1, 2].map(|at: usize| spread.refusal(&nodes[at])), expect, "{constraint} {on:?}");
    }

    #[test]
    fn no_domain_gets_ahead_by_more_than_it_may() {
        let unlabelled = Some(UNLABELLED);
        check(json!({}), &[], [None, None, unlabelled]);
        check(json!({}), &["a"], [Some(UNEVEN), None, unlabelled]);
        check(json!({"maxSkew": 2}), &["a"], [None, None, unlabelled]);
        check(json!({}), &["a", "b"], [None, None, unlabelled]);
        check(json!({"minDomains": 3}), &["a", "b"], [Some(UNEVEN), Some(UNEVEN), unlabelled]);
        check(json!({"whenUnsatisfiable": "ScheduleAnyway"}), &["a", "a"], [None, None, None]);
        check(json!({"labelSelector": {"matchLabels": {"app": "db"}}}), &["a"], [None, None, unlabelled]);
        check(json!({"matchLabelKeys": ["hash"]}), &["a"], [Some(UNEVEN), None, unlabelled]);
    }
}
