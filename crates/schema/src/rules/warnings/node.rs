//! Nodes, and what chooses them by labels.

use super::super::cursor::At;
use super::{Warnings, address};
use crate::names;

const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    ("failure-domain.beta.kubernetes.io/zone", r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#),
    ("beta.kubernetes.io/instance-type", r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];

/// What became of a label of nodes.
fn deprecated(label: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(name, _)| *name == label).map(|(_, sentence)| *sentence)
}

pub(super) fn node(node: &At<'_>, warnings: &mut Warnings) {
    let spec = node.member("spec");
    if spec.member("configSource").is_set() {
        warnings.add("spec.configSource: the feature is removed");
    }
    if !spec.member("externalID").is_absent() {
        warnings.add("spec.externalID: this field is deprecated, and is unused by Kubernetes");
    }
    spec.member("podCIDRs").items().for_each(|range| address::cidr(&range, warnings));
}

pub(super) fn runtime_class(class: &At<'_>, warnings: &mut Warnings) {
    let selector = class.at("scheduling.nodeSelector");
    for sentence in selector.entries().filter_map(|(label, _)| deprecated(label)) {
        warnings.about(&selector, sentence);
    }
}

/// Labels as the keys of a map.
pub(super) fn labels(selector: &At<'_>, warnings: &mut Warnings) {
    for (label, at) in selector.entries() {
        if let Some(sentence) = deprecated(label) {
            warnings.about(&at, sentence);
        }
    }
}

/// A label that is a value.
pub(super) fn named(label: &At<'_>, warnings: &mut Warnings) {
    if let Some(sentence) = deprecated(label.text()) {
        warnings.about(label, format!("{} is {sentence}", label.text()));
    }
}

/// A key that is told without being repeated.
pub(super) fn key(label: &At<'_>, warnings: &mut Warnings) {
    if let Some(sentence) = deprecated(label.text()) {
        warnings.about(label, sentence);
    }
}

pub(super) fn selector(selector: &At<'_>, warnings: &mut Warnings) {
    term(selector, warnings);
    let labels = selector.member("matchLabels");
    for (label, _) in labels.entries() {
        key(&At { path: crate::field::child(&labels.path, label), value: &label.into() }, warnings);
    }
}

pub(super) fn term(term: &At<'_>, warnings: &mut Warnings) {
    for expression in term.member("matchExpressions").items() {
        named(&expression.member("key"), warnings);
    }
}

/// A term that only weighs may have values that no label can have.
pub(super) fn preferred_term(term: &At<'_>, warnings: &mut Warnings) {
    for expression in term.member("matchExpressions").items() {
        named(&expression.member("key"), warnings);
        for value in expression.member("values").items() {
            for wrong in names::label_value(value.text()) {
                warnings.about(&value, format!("{} is invalid, {wrong}", value.text()));
            }
        }
    }
}
