//! Near which nodes and Pods a Pod wants to be, and near which not.

use super::cursor::{At, follows};
use super::{selector, spread};
use crate::{FieldError, names};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the affinity of a Pod.
pub(super) fn check(affinity: &At<'_>, errors: &mut Vec<FieldError>) {
    let nodes = affinity.member("nodeAffinity");
    let required = nodes.member(REQUIRED);
    if required.is_set() {
        node_selector(&required, errors);
    }
    for term in nodes.member(PREFERRED).items() {
        weight(&term, errors);
        node_term(&term.member("preference"), false, errors);
    }
    for pods in ["podAffinity", "podAntiAffinity"].map(|name| affinity.member(name)) {
        pods.member(REQUIRED).items().for_each(|term| pod_term(&term, errors));
        for term in pods.member(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.member("podAffinityTerm"), errors);
        }
    }
}

/// Checks which nodes are meant.
pub(super) fn node_selector(selector: &At<'_>, errors: &mut Vec<FieldError>) {
    let terms = selector.member("nodeSelectorTerms");
    if terms.is_absent() {
        errors.push(terms.missing("must have at least one node selector term"));
    }
    terms.items().for_each(|term| node_term(&term, true, errors));
}

fn weight(term: &At<'_>, errors: &mut Vec<FieldError>) {
    let weight = term.member("weight");
    if !(1..=100).contains(&weight.int().unwrap_or_default()) {
        errors.push(weight.wrong_number("must be in the range 1-100"));
    }
}

/// A wish may name values that no node can have; a condition may not.
fn node_term(term: &At<'_>, is_condition: bool, errors: &mut Vec<FieldError>) {
    for requirement in term.member("matchExpressions").items() {
        node_label(&requirement, errors);
        if is_condition {
            requirement.member("values").items().for_each(|value| follows(&value, names::label_value, errors));
        }
    }
    term.member("matchFields").items().for_each(|requirement| node_field(&requirement, errors));
}

fn node_label(requirement: &At<'_>, errors: &mut Vec<FieldError>) {
    let (operator, values) = (requirement.member("operator"), requirement.member("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_absent() => {
            errors.push(values.missing("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_absent() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if values.items().count() != 1 => {
            errors.push(values.missing("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(operator.wrong_text("not a valid selector operator")),
    }
    follows(&requirement.member("key"), names::qualified, errors);
}

fn node_field(requirement: &At<'_>, errors: &mut Vec<FieldError>) {
    let (key, operator, values) =
        (requirement.member("key"), requirement.member("operator"), requirement.member("values"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.items().count() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(values.missing(detail));
            }
        }
        _ => errors.push(operator.wrong_text("not a valid selector operator")),
    }
    match key.text() {
        "metadata.name" => values.items().for_each(|value| follows(&value, names::subdomain, errors)),
        _ => errors.push(key.wrong_text("not a valid field selector key")),
    }
}

fn pod_term(term: &At<'_>, errors: &mut Vec<FieldError>) {
    selector::check(&term.member("labelSelector"), errors);
    selector::check(&term.member("namespaceSelector"), errors);
    for namespace in term.member("namespaces").items() {
        // The member is named in the singular.
        follows(&namespace.renamed(term.member("namespace").path), names::label, errors);
    }
    spread::label_keys(term, errors);
    let topology = term.member("topologyKey");
    if topology.is_absent() {
        errors.push(topology.missing("can not be empty"));
    }
    follows(&topology, names::qualified, errors);
}
