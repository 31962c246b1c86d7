//! Deployments and what else keeps Pods running.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cursor::{At, count_or_percent, immutable, named, not_negative, one_of};
use super::{pod, selector, storage};
use crate::{FieldError, names};

/// What may change in the spec of a StatefulSet.
const STATEFUL_SET_MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn deployment(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    common(&spec, "deployment", errors);
    let strategy = spec.member("strategy");
    let bounds = strategy.member("rollingUpdate");
    match strategy.member("type").text() {
        "Recreate" if !bounds.value.is_null() => {
            errors.push(bounds.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "RollingUpdate" => rolling_update(&bounds, errors),
        "Recreate" => {}
        _ => errors.push(FieldError::not_supported(
            strategy.path.clone(),
            strategy.value.clone(),
            &["Recreate", "RollingUpdate"],
        )),
    }
    not_negative(&spec, &["progressDeadlineSeconds"], errors);
    let deadline = spec.member("progressDeadlineSeconds");
    if deadline.int().is_some_and(|seconds| seconds <= spec.member("minReadySeconds").int().unwrap_or_default()) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    keep_selector(object, old, errors);
}

pub(super) fn replica_set(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    common(&object.member("spec"), "deployment", errors);
    keep_selector(object, old, errors);
}

pub(super) fn daemon_set(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    common(&spec, "daemonset", errors);
    one_of(&spec.at("updateStrategy.type"), &["RollingUpdate", "OnDelete"], errors);
    if spec.at("updateStrategy.type").text() == "RollingUpdate" {
        rolling_update_of_daemons(&spec.at("updateStrategy.rollingUpdate"), errors);
    }
    keep_selector(object, old, errors);
}

pub(super) fn stateful_set(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    // What is wrong with the Pods of a set that is there stays as it is.
    let skips_pods = old.is_some_and(|old| {
        let mut wrong = Vec::new();
        stateful_set_spec(&old.member("spec"), false, &mut wrong);
        !wrong.is_empty()
    });
    stateful_set_spec(&spec, skips_pods, errors);
    if old.is_none() {
        named(&spec.member("serviceName"), names::label, errors);
        let claims = spec.member("volumeClaimTemplates");
        claims.items().for_each(|claim| storage::claim_spec(&claim.member("spec"), errors));
    }
    let Some(old) = old else { return };
    if frozen(spec.value) != frozen(old.member("spec").value) {
        errors.push(spec.forbidden(
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ));
    }
}

fn stateful_set_spec(spec: &At<'_>, skips_pods: bool, errors: &mut Vec<FieldError>) {
    if selector::of_workload(spec, "statefulset", errors) && !skips_pods {
        let template = pods_of_set(spec.value);
        pod::template(&At { path: spec.member("template").path, value: &template }, errors);
    }
    always_restarts(spec, "StatefulSet", errors);
    not_negative(spec, &["replicas", "minReadySeconds", "ordinals.start"], errors);
    let policy = spec.member("podManagementPolicy");
    if !policy.is_absent() && !["OrderedReady", "Parallel"].contains(&policy.text()) {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    update_of_stateful_set(&spec.member("updateStrategy"), errors);
    for name in ["whenDeleted", "whenScaled"] {
        let policy = spec.member("persistentVolumeClaimRetentionPolicy").member(name);
        one_of(&policy, &["Retain", "Delete"], errors);
    }
}

pub(super) fn replication_controller(object: &At<'_>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    not_negative(&spec, &["replicas", "minReadySeconds"], errors);
    let selector = spec.member("selector");
    if selector.is_absent() {
        errors.push(selector.missing(""));
    }
    let (template, labels) = (spec.member("template"), spec.at("template.metadata.labels"));
    if template.value.is_null() {
        return errors.push(template.missing(""));
    }
    if selector.entries().any(|(key, value)| labels.value.get(key) != Some(value.value)) {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    pod::template(&template, errors);
    always_restarts(&spec, "ReplicationController", errors);
}

pub(super) fn controller_revision(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    not_negative(object, &["revision"], errors);
    if let Some(old) = old {
        immutable(object, old, &["data"], errors);
    }
}

fn common(spec: &At<'_>, kind: &str, errors: &mut Vec<FieldError>) {
    not_negative(spec, &["replicas", "minReadySeconds", "revisionHistoryLimit"], errors);
    if selector::of_workload(spec, kind, errors) {
        pod::template(&spec.member("template"), errors);
        always_restarts(spec, if kind == "daemonset" { "DaemonSet" } else { "ReplicaSet" }, errors);
    }
}

fn always_restarts(spec: &At<'_>, kind: &str, errors: &mut Vec<FieldError>) {
    one_of(&spec.at("template.spec.restartPolicy"), &["Always"], errors);
    let deadline = spec.at("template.spec.activeDeadlineSeconds");
    if !deadline.value.is_null() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

fn update_of_stateful_set(strategy: &At<'_>, errors: &mut Vec<FieldError>) {
    let bounds = strategy.member("rollingUpdate");
    match strategy.member("type").text() {
        "RollingUpdate" => {
            not_negative(&bounds, &["partition"], errors);
            let unavailable = bounds.member("maxUnavailable");
            count_or_percent(&unavailable, errors);
            if is_none(&unavailable) && !unavailable.value.is_null() {
                errors.push(unavailable.invalid("cannot be 0"));
            }
        }
        "OnDelete" if !bounds.value.is_null() => {
            errors.push(bounds.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" | "" => {}
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
}

/// One of the two, since a Pod of a DaemonSet is either replaced before or after it went.
fn rolling_update_of_daemons(bounds: &At<'_>, errors: &mut Vec<FieldError>) {
    if bounds.value.is_null() {
        return errors.push(bounds.missing(""));
    }
    let (unavailable, surge) = (bounds.member("maxUnavailable"), bounds.member("maxSurge"));
    count_or_percent(&unavailable, errors);
    count_or_percent(&surge, errors);
    match (is_none(&unavailable), is_none(&surge)) {
        (false, false) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
        (true, true) => errors.push(unavailable.missing("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

/// Whether a count or percentage is none at all; one that cannot be read counts as none.
fn is_none(at: &At<'_>) -> bool {
    match at.value {
        Value::String(text) => text.strip_suffix('%').and_then(|percent| percent.parse::<u32>().ok()).unwrap_or(0) == 0,
        _ => at.int().unwrap_or_default() == 0,
    }
}

fn rolling_update(bounds: &At<'_>, errors: &mut Vec<FieldError>) {
    let (unavailable, surge) = (bounds.member("maxUnavailable"), bounds.member("maxSurge"));
    count_or_percent(&unavailable, errors);
    count_or_percent(&surge, errors);
    if is_none(&unavailable) && is_none(&surge) {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
}

fn keep_selector(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    if let Some(old) = old {
        immutable(object, old, &["spec.selector"], errors);
    }
}

fn frozen(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Value::Object(members) = &mut spec {
        members.retain(|name, value| !STATEFUL_SET_MUTABLE.contains(&name.as_str()) && !value.is_null());
    }
    spec
}

/// The template as its Pods will have it: claims are volumes ahead of the others, and the set gives the names.
fn pods_of_set(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    let names: BTreeSet<&str> = claims.map(|claim| claim["metadata"]["name"].as_str().unwrap_or_default()).collect();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.retain(|name, _| !["hostname", "subdomain"].contains(&name.as_str()));
    if names.is_empty() {
        return template;
    }
    if let Some(volumes) = pod.entry("volumes").or_insert_with(|| json!([])).as_array_mut() {
        volumes.retain(|volume| !names.contains(volume["name"].as_str().unwrap_or_default()));
        let claimed = names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        volumes.splice(..0, claimed);
    }
    template
}
