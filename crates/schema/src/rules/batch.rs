//! Jobs and CronJobs.

use super::cursor::{At, immutable, not_negative, one_of, required};
use super::{pod, selector};
use crate::FieldError;

/// The name of a CronJob leaves room for the suffix of its Jobs.
const CRON_JOB_NAME_BYTES_MAX: usize = 52;

const MACROS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

pub(super) fn job(job: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = job.member("spec");
    job_spec(&spec, errors);
    selector::check(&spec.member("selector"), errors);
    let Some(old) = old else { return };
    let always = [
        "spec.selector",
        "spec.completionMode",
        "spec.podFailurePolicy",
        "spec.backoffLimitPerIndex",
        "spec.managedBy",
    ];
    immutable(job, old, &always, errors);
    // A Job that is suspended and has not started may still be scheduled elsewhere.
    let is_suspended = old.at("spec.suspend").is_true() && old.at("status.startTime").is_absent();
    if !is_suspended {
        immutable(job, old, &["spec.template"], errors);
    }
    if old.at("spec.completionMode").text() != "Indexed" {
        immutable(job, old, &["spec.completions"], errors);
    }
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
