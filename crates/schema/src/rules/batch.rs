//! Jobs and CronJobs.

use serde_json::Value;

use super::cursor::{At, immutable, not_negative, one_of, required};
use super::{pod, pod_update, selector};
use crate::FieldError;

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

const MACROS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

pub(super) fn job(job: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = job.member("spec");
    generated_selector(job, errors);
    job_spec(&spec, errors);
    selector::matching(&spec, errors);
    let Some(old) = old else { return };
    keep_completions(&spec, &old.member("spec"), errors);
    immutable(job, old, &["spec.selector"], errors);
    keep_template(job, old, errors);
    immutable(job, old, &FIXED, errors);
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
    let schedule = spec.member("schedule");
    required(&schedule, errors);
    if !schedule.is_absent() {
        errors.extend(wrong_schedule(schedule.text()).map(|detail| schedule.invalid(detail)));
    }
    not_negative(&spec, &["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
    one_of(&spec.member("concurrencyPolicy"), &["Allow", "Forbid", "Replace"], errors);
    job_spec(&spec.at("jobTemplate.spec"), errors);
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
    one_of(&spec.member("completionMode"), &["NonIndexed", "Indexed"], errors);
    let completions = spec.member("completions");
    if spec.member("completionMode").text() == "Indexed" && completions.value.is_null() {
        errors.push(completions.missing("when completion mode is Indexed"));
    }
    pod::template(&spec.member("template"), errors);
    let restart_policy = spec.at("template.spec.restartPolicy");
    match restart_policy.text() {
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.push(restart_policy.missing("valid values: \"OnFailure\", \"Never\"")),
        _ => one_of(&restart_policy, &["OnFailure", "Never"], errors),
    }
}

/// What is wrong with a schedule, as far as its form tells.
fn wrong_schedule(schedule: &str) -> Option<String> {
    if schedule.contains("TZ=") {
        return Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    if MACROS.contains(&schedule) || schedule.starts_with("@every ") {
        return None;
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.starts_with('@') {
        return Some(format!("unrecognized descriptor: {schedule}"));
    }
    if fields.len() != 5 {
        let found = fields.len();
        return Some(format!("expected exactly 5 fields, found {found}: [{}]", fields.join(" ")));
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    fields.iter().zip(bounds).find_map(|(field, (min, max))| wrong_field(field, min, max))
}

fn wrong_field(field: &str, min: u32, max: u32) -> Option<String> {
    field.split(',').find_map(|part| {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        if step.is_some_and(|step| step.parse::<u32>().is_ok_and(|step| step == 0)) {
            return Some(format!("step of range should be a positive number: {part}"));
        }
        range.split('-').find_map(|bound| match bound.parse::<u32>() {
            Ok(number) if number < min => Some(format!("beginning of range ({number}) below minimum ({min}): {part}")),
            Ok(number) if number > max => Some(format!("end of range ({number}) above maximum ({max}): {part}")),
            Ok(_) => None,
            // Names of months and days, and the wildcards.
            Err(_) if matches!(bound, "*" | "?") || (bound.len() == 3 && max <= 12) => None,
            Err(_) => {
                Some(format!("failed to parse int from {bound}: strconv.Atoi: parsing \"{bound}\": invalid syntax"))
            }
        })
    })
}
