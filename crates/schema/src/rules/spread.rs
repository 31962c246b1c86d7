//! How evenly Pods are spread over the parts of a cluster.

use super::cursor::{At, follows, set_one_of};
use super::selector;
use crate::{FieldError, names};

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

/// Checks the constraints of a Pod.
pub(super) fn check(constraints: &At<'_>, errors: &mut Vec<FieldError>) {
    let all: Vec<At<'_>> = constraints.items().collect();
    for (index, constraint) in all.iter().enumerate() {
        positive(&constraint.member("maxSkew"), errors);
        let (topology, action) = (constraint.member("topologyKey"), constraint.member("whenUnsatisfiable"));
        if topology.is_absent() {
            errors.push(topology.missing("can not be empty"));
        }
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.unsupported(&ACTIONS));
        }
        let pair = |constraint: &At<'_>| {
            let (topology, action) = (constraint.member("topologyKey"), constraint.member("whenUnsatisfiable"));
            format!("{{{}, {}}}", topology.text(), action.text())
        };
        if all[index + 1..].iter().any(|other| pair(other) == pair(constraint)) {
            let path = constraint.member("{topologyKey, whenUnsatisfiable}").path;
            errors.push(FieldError::duplicate(path, pair(constraint)));
        }
        min_domains(&constraint.member("minDomains"), action.text(), errors);
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            set_one_of(&constraint.member(name), &["Honor", "Ignore"], errors);
        }
        label_keys(constraint, errors);
        selector::check(&constraint.member("labelSelector"), errors);
    }
}

fn positive(at: &At<'_>, errors: &mut Vec<FieldError>) {
    if at.int().unwrap_or_default() <= 0 {
        errors.push(at.wrong_number("must be greater than zero"));
    }
}

fn min_domains(domains: &At<'_>, action: &str, errors: &mut Vec<FieldError>) {
    if !domains.is_set() {
        return;
    }
    positive(domains, errors);
    if action != "DoNotSchedule" {
        let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(domains.invalid(detail));
    }
}

/// Checks the labels by whose values of its own a Pod finds others, and those by which not.
pub(super) fn label_keys(term: &At<'_>, errors: &mut Vec<FieldError>) {
    let (matched, unmatched, selector) =
        (term.member("matchLabelKeys"), term.member("mismatchLabelKeys"), term.member("labelSelector"));
    for keys in [&matched, &unmatched] {
        if !keys.is_absent() && !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
        } else {
            keys.items().for_each(|key| follows(&key, names::qualified, errors));
        }
    }
    let mut selected: Vec<&str> = selector.member("matchLabels").entries().map(|(key, _)| key).collect();
    for expression in selector.member("matchExpressions").items() {
        let key = expression.member("key");
        // The server has added an expression for each: a second one is the user's.
        let place = matched.items().enumerate().filter(|(_, item)| item.text() == key.text()).last();
        if let Some((index, _)) = place.filter(|_| selected.contains(&key.text())) {
            let path = crate::field::item(&term.path, index);
            errors.push(FieldError::invalid(path, key.text(), "exists in both matchLabelKeys and labelSelector"));
        }
        selected.push(key.text());
    }
    for key in matched.items().filter(|key| unmatched.items().any(|other| other.text() == key.text())) {
        errors.push(key.wrong_text("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}
