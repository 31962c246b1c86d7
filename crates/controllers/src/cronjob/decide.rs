//! When a CronJob is due, and which of its Jobs are history.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use windlass_core::schedule::{Due, Schedule};

use crate::owners;

/// The last unserved moment that is not too late, and the next one.
pub(crate) fn due(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Due {
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let served = last.or(cron.metadata.creation_timestamp.as_ref()).map_or(now, |time| time.0);
    schedule.due(served, cron.spec.starting_deadline_seconds.map(SignedDuration::from_secs), now)
}

/// The Job for a moment. Its name follows from the moment, so that it cannot be made twice.
pub(crate) fn job(cron: &CronJob, schedule: &Schedule, moment: Timestamp) -> Job {
    let template = cron.spec.job_template.clone();
    let meta = template.metadata.unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert("batch.kubernetes.io/cronjob-scheduled-timestamp".to_owned(), schedule.local(moment));
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron.name_any(), moment.as_second() / 60)),
            namespace: cron.namespace(),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owners::controller_reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.unwrap_or_default()),
        status: None,
    }
}

/// Whether a Job has ended with that condition.
pub(crate) fn ended(job: &Job, type_: &str) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Ended Jobs beyond the limits of history, oldest first.
pub(crate) fn beyond_history<'a>(cron: &CronJob, jobs: &[&'a Job]) -> Vec<&'a Job> {
    let limits = [
        ("Complete", cron.spec.successful_jobs_history_limit.unwrap_or(3)),
        ("Failed", cron.spec.failed_jobs_history_limit.unwrap_or(1)),
    ];
    let mut surplus = vec![];
    for (type_, limit) in limits {
        let mut of_type: Vec<&Job> = jobs.iter().copied().filter(|job| ended(job, type_)).collect();
        of_type.sort_by_key(|job| (job.creation_timestamp(), job.name_any()));
        let count = of_type.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        surplus.extend(of_type.into_iter().take(count));
    }
    surplus
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_missed_moment_is_served_unless_it_is_too_late() {
        let check = |last: &str, deadline: Option<i64>, now: &str, due_now: &str, next: &str| {
            let cron: CronJob = serde_json::from_value(json!({
                "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"schedule": "", "jobTemplate": {}, "startingDeadlineSeconds": deadline},
                "status": {"lastScheduleTime": last}}))
            .unwrap();
            let schedule = Schedule::parse("*/10 * * * *", None).unwrap();
            let due = due(&cron, &schedule, now.parse().unwrap());
            let text = |moment: Option<Timestamp>| moment.map(|moment| moment.to_string()).unwrap_or_default();
            assert_eq!((text(due.now), text(due.next)), (due_now.to_owned(), next.to_owned()), "{now}");
        };
        let day = |time: &str| format!("2026-01-01T{time}Z");
        check(&day("00:00:00"), None, &day("00:09:59"), "", &day("00:10:00"));
        check(&day("00:00:00"), None, &day("00:10:00"), &day("00:10:00"), &day("00:20:00"));
        check(&day("00:00:00"), None, &day("00:35:00"), &day("00:30:00"), &day("00:40:00"));
        check(&day("00:00:00"), Some(60), &day("00:35:00"), "", &day("00:40:00"));
        check(&day("00:00:00"), None, "2027-01-01T00:05:00Z", "2027-01-01T00:00:00Z", "2027-01-01T00:10:00Z");
    }

    #[test]
    fn the_last_of_very_many_missed_moments_counts_and_they_are_told() {
        let check = |schedule: &str, now: &str, expect: (&str, bool)| {
            let cron: CronJob = serde_json::from_value(json!({
                "metadata": {"name": "c", "creationTimestamp": "2020-01-01T00:00:00Z"},
                "spec": {"schedule": "", "jobTemplate": {}}}))
            .unwrap();
            let due = due(&cron, &Schedule::parse(schedule, None).unwrap(), now.parse().unwrap());
            assert_eq!((due.now.unwrap().to_string().as_str(), due.many_missed), expect, "{schedule}");
        };
        check("0 3 * * *", "2026-06-01T20:00:00Z", ("2026-06-01T03:00:00Z", true));
        check("0 0 1 1 *", "2026-06-01T20:00:00Z", ("2026-01-01T00:00:00Z", false));
        check("* * * * *", "2026-06-01T20:00:30Z", ("2026-06-01T20:00:00Z", true));
        check("0 0 29 2 *", "2026-06-01T20:00:00Z", ("2024-02-29T00:00:00Z", false));
    }
}
