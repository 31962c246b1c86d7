//! The little that may change in a Pod.

use serde_json::Value;

use super::cursor::At;
use crate::FieldError;

const FROZEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const NODE_TERMS: &str = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
const DEADLINE_MAX: i64 = i32::MAX as i64;

/// Checks what changed in the spec of a Pod.
pub(super) fn check(spec: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    for list in ["containers", "initContainers"] {
        let (new, old) = (spec.member(list), old.member(list));
        if new.items().count() != old.items().count() {
            return errors.push(new.forbidden("pod updates may not add or remove containers"));
        }
    }
    if !deadline(&spec.member("activeDeadlineSeconds"), &old.member("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(&spec.member("tolerations"), &old.member("tolerations"), errors);
    gates(&spec.member("schedulingGates"), &old.member("schedulingGates"), errors);
    let is_gated = !old.member("schedulingGates").is_absent();
    if is_gated {
        node_selector(&spec.member("nodeSelector"), &old.member("nodeSelector"), errors);
        node_terms(&spec.at(NODE_TERMS), &old.at(NODE_TERMS), errors);
    }
    let grace = |spec: &At<'_>| spec.member("terminationGracePeriodSeconds").int();
    let mends_grace = grace(old).is_some_and(|seconds| seconds < 0) && grace(spec) == Some(1);
    let mut open = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    open.extend(mends_grace.then_some("terminationGracePeriodSeconds"));
    open.extend(is_gated.then_some("nodeSelector"));
    let still = |spec: &Value| {
        let mut spec = still(spec, &open);
        if is_gated {
            remove_node_affinity(&mut spec);
        }
        spec
    };
    if still(spec.value) != still(old.value) {
        errors.push(spec.forbidden(FROZEN));
    }
}

/// A deadline may come, and come closer; whether there is more to say.
fn deadline(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) -> bool {
    match (new.int(), old.int()) {
        (Some(seconds), _) if !(0..=DEADLINE_MAX).contains(&seconds) => {
            errors.push(new.invalid(format!("must be between 0 and {DEADLINE_MAX}, inclusive")));
            return false;
        }
        (Some(new_seconds), Some(old_seconds)) if old_seconds < new_seconds => {
            errors.push(new.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => errors.push(new.invalid("must not update from a positive integer to nil value")),
        _ => {}
    }
    true
}

fn tolerations(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let timeless = |at: At<'_>| {
        let mut toleration = at.value.clone();
        toleration.as_object_mut().map(|members| members.remove("tolerationSeconds"));
        toleration
    };
    let kept: Vec<Value> = new.items().map(timeless).collect();
    if old.items().map(timeless).any(|toleration| !kept.contains(&toleration)) {
        errors.push(new.forbidden("existing toleration can not be modified except its tolerationSeconds"));
    }
}

fn gates(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let known: Vec<&str> = old.items().map(|gate| gate.member("name").text()).collect();
    let added = new.items().map(|gate| gate.member("name")).filter(|name| !known.contains(&name.text()));
    errors.extend(added.map(|name| {
        name.forbidden(format!("only deletion is allowed, but found new scheduling gate '{}'", name.text()))
    }));
}

/// A Pod that waits at a gate may still narrow where it runs.
fn node_selector(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if old.entries().any(|(key, value)| new.value.get(key) != Some(value.value)) {
        errors.push(new.invalid("only additions to spec.nodeSelector are allowed (no mutations or deletions)"));
    }
}

/// Conditions about nodes may only get more.
fn node_terms(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if old.is_absent() {
        return;
    }
    if new.items().count() != old.items().count() {
        return errors.push(new.invalid("no additions/deletions to non-empty NodeSelectorTerms list are allowed"));
    }
    for (new, old) in new.items().zip(old.items()) {
        let lists = ["matchExpressions", "matchFields"].map(|list| (new.member(list), old.member(list)));
        let was_empty = lists.iter().all(|(_, old)| old.is_absent());
        let begins_alike = |new: &At<'_>, old: &At<'_>| {
            let values = |list: &At<'_>| list.items().map(|item| item.value.clone()).collect::<Vec<_>>();
            values(new).starts_with(&values(old))
        };
        let is_kept = lists.iter().all(|(new, old)| begins_alike(new, old));
        if !is_kept || (was_empty && lists.iter().any(|(new, _)| !new.is_absent())) {
            errors.push(new.invalid("only additions are allowed (no mutations or deletions)"));
        }
    }
}

/// The part of a spec that may not change: all but images and the fields that are `open`.
fn still(spec: &Value, open: &[&str]) -> Value {
    let mut spec = spec.clone();
    let Some(members) = spec.as_object_mut() else { return spec };
    open.iter().for_each(|name| drop(members.remove(*name)));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.as_object_mut().map(|container| container.remove("image"));
        }
    }
    spec
}

/// Takes the wishes about nodes from the spec of a Pod.
pub(super) fn remove_node_affinity(spec: &mut Value) {
    let Some(members) = spec.as_object_mut() else { return };
    let Some(affinity) = members.get_mut("affinity").and_then(Value::as_object_mut) else { return };
    affinity.remove("nodeAffinity");
    if affinity.is_empty() {
        members.remove("affinity");
    }
}
