//! Jobs and CronJobs.

use serde_json::Value;

use super::cursor::{At, immutable, not_negative, one_of};
use super::{job_policy, pod, pod_update, schedule, selector};
use crate::{FieldError, names};

/// The name of a CronJob leaves room for the suffix of its Jobs.
const CRON_JOB_NAME_BYTES_MAX: usize = 52;

/// What a Job is made with.
const FIXED: [&str; 5] = [
    "spec.completionMode",
    "spec.podFailurePolicy",
    "spec.backoffLimitPerIndex",
    "spec.managedBy",
    "spec.successPolicy",
];

pub(super) fn job(job: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = job.member("spec");
    generated_selector(job, errors);
    job_spec(&spec, errors);
    selector::matching(&spec, errors);
    let Some(old) = old else { return last_hostname(job, errors) };
    keep_completions(&spec, &old.member("spec"), errors);
    immutable(job, old, &["spec.selector"], errors);
    keep_template(job, old, errors);
    immutable(job, old, &FIXED, errors);
}

/// The Pods of a Job with indexes are called after it and their index.
fn last_hostname(job: &At<'_>, errors: &mut Vec<FieldError>) {
    let (name, spec) = (job.at("metadata.name"), job.member("spec"));
    let count = spec.member("completions").int().filter(|count| *count > 0);
    let Some(count) = count.filter(|_| spec.member("completionMode").text() == "Indexed") else { return };
    let hostname = format!("{}-{}", name.text(), count - 1);
    if !names::is_label(&hostname) {
        errors.push(name.wrong_text(format!("will not able to create pod with invalid DNS label: {hostname}")));
    }
}

/// Unless told otherwise, a Job finds its Pods by labels that only they have.
fn generated_selector(job: &At<'_>, errors: &mut Vec<FieldError>) {
    let (spec, uid, name) = (job.member("spec"), job.at("metadata.uid").text(), job.at("metadata.name").text());
    let selector = spec.member("selector");
    if spec.member("manualSelector").is_true() || selector.value.is_null() {
        return;
    }
    let labels = spec.at("template.metadata.labels");
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        let (path, detail) = (crate::field::key(&labels.path, key), format!("must be '{value}'"));
        match labels.value.get(key) {
            None => errors.push(FieldError::required(path, detail)),
            Some(found) if found != value => {
                errors.push(FieldError::invalid(path, labels.value.clone(), detail));
            }
            Some(_) => {}
        }
    }
    let expected = expected.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    if !selector::matches(selector.value, &Value::Object(expected)) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn keep_completions(spec: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if spec.member("completionMode").text() != "Indexed" {
        return immutable(spec, old, &["completions"], errors);
    }
    let completions = spec.member("completions");
    let is_changed = !completions.value.is_null() && completions.value != old.member("completions").value;
    if is_changed && completions.value != spec.member("parallelism").value {
        errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// A Job that is suspended and runs nothing may still change where its Pods run and what they may use.
fn keep_template(job: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let status = old.member("status");
    let is_told = |condition: At<'_>| {
        condition.member("type").text() == "Suspended" && condition.member("status").text() == "True"
    };
    let rests = status.member("startTime").is_absent() || status.member("conditions").items().any(is_told);
    let runs = status.member("active").int().is_some_and(|active| active > 0);
    if !old.at("spec.suspend").is_true() || !rests || runs {
        return immutable(job, old, &["spec.template"], errors);
    }
    let spec = job.at("spec.template.spec");
    if settled(spec.value) != settled(old.at("spec.template.spec").value) {
        errors.push(spec.invalid("field is immutable"));
    }
}

/// What stays in the Pods of a suspended Job.
fn settled(spec: &Value) -> Value {
    let mut spec = spec.clone();
    pod_update::remove_node_affinity(&mut spec);
    if let Value::Object(members) = &mut spec {
        ["nodeSelector", "tolerations", "schedulingGates"].iter().for_each(|name| drop(members.remove(*name)));
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.as_object_mut().map(|container| container.remove("resources"));
        }
    }
    spec
}

pub(super) fn cron_job(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let (name, spec) = (object.at("metadata.name"), object.member("spec"));
    if old.is_none() && name.text().len() > CRON_JOB_NAME_BYTES_MAX {
        errors.push(name.invalid(format!("must be no more than {CRON_JOB_NAME_BYTES_MAX} characters")));
    }
    let zone = spec.member("timeZone");
    let old_spec = old.map(|old| old.member("spec"));
    let had_zone = old_spec.as_ref().is_some_and(|old| old.member("schedule").text().contains("TZ"));
    schedule::check(&spec.member("schedule"), had_zone, &zone, errors);
    not_negative(&spec, &["startingDeadlineSeconds"], errors);
    if old_spec.is_none_or(|old| old.member("timeZone").value != zone.value) {
        schedule::zone(&zone, errors);
    }
    one_of(&spec.member("concurrencyPolicy"), &["Allow", "Forbid", "Replace"], errors);
    let template = spec.at("jobTemplate.spec");
    job_spec(&template, errors);
    let (selector, is_manual) = (template.member("selector"), template.member("manualSelector"));
    if selector.is_set() {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    if is_manual.is_true() {
        errors.push(FieldError::not_supported(is_manual.path, true, &["nil", "false"]));
    }
    not_negative(&spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
}

fn job_spec(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    not_negative(
        spec,
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
        errors,
    );
    job_policy::indexes(spec, errors);
    job_policy::managed_by(&spec.member("managedBy"), errors);
    job_policy::failure(spec, errors);
    job_policy::success(spec, errors);
    job_policy::replacement(spec, errors);
    pod::template(&spec.member("template"), errors);
    let restart_policy = spec.at("template.spec.restartPolicy");
    match restart_policy.text() {
        "OnFailure" if spec.member("podFailurePolicy").is_set() => {
            errors.push(restart_policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.push(restart_policy.missing("valid values: \"OnFailure\", \"Never\"")),
        _ => one_of(&restart_policy, &["OnFailure", "Never"], errors),
    }
}
