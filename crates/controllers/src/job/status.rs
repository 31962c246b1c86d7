//! The status of a Job: exact counts, and the conditions on the way to its end.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decide::{self, End};
use super::failure::{self, Verdict};
use super::pod::{self, Fate};
use super::tally::Tally;
use super::{indexes, per_index};
use crate::pods;

/// The status after this look. Ended Pods pass through `uncountedTerminatedPods` before they lose their finalizer and
/// are counted after, so that none is counted twice or not at all, whenever this process ends.
pub(crate) fn status(job: &Job, owned: &[&Pod], tally: &Tally<'_>, end: Option<&End>, now: Timestamp) -> JobStatus {
    let mut status = job.status.clone().unwrap_or_default();
    count_ended(job, owned, &mut status);
    let stays = tally.active.iter().filter(|pod| !pods::is_terminating(pod)).count();
    status.active = nonzero(stays);
    status.ready = Some(i32::try_from(tally.ready).unwrap_or(i32::MAX));
    status.terminating = Some(i32::try_from(tally.terminating).unwrap_or(i32::MAX));
    if pod::is_indexed(job) {
        let completed = indexes::format(&tally.completed_indexes);
        status.completed_indexes = (!completed.is_empty()).then_some(completed);
        status.succeeded = nonzero(tally.completed_indexes.len());
        if per_index::limit(job).is_some() {
            status.failed_indexes = Some(indexes::format(&tally.failed_indexes));
        }
    }
    rest(job, &mut status, now);
    if let Some(end) = end {
        let is_quiet = tally.active.is_empty() && tally.terminating == 0 && is_counted(&status);
        conclude(&mut status, end, is_quiet, now);
    }
    status
}

/// Whether the Job has come to its end.
pub(crate) fn is_finished(job: &Job) -> bool {
    finished_at(job).is_some()
}

/// Whether the Job says that it rests.
pub(crate) fn is_resting(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| has(status, "Suspended"))
}

/// When a finished Job is to be deleted.
pub(crate) fn expires_at(job: &Job) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    finished_at(job)?.checked_add(SignedDuration::from_secs(i64::from(seconds))).ok()
}

/// How a Job that has met its criterion ends; remembered in its conditions.
pub(crate) fn decided(job: &Job) -> Option<End> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let holds = |type_: &str| conditions.iter().find(|known| known.type_ == type_ && known.status == "True");
    let (target, succeeded) = match (holds("SuccessCriteriaMet"), holds("FailureTarget")) {
        (Some(target), _) => (target, true),
        (None, target) => (target?, false),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(End { succeeded, reason: text(&target.reason), message: text(&target.message) })
}

fn finished_at(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_final =
        |known: &&JobCondition| matches!(known.type_.as_str(), "Complete" | "Failed") && known.status == "True";
    conditions.iter().find(is_final)?.last_transition_time.as_ref().map(|time| time.0)
}

fn count_ended(job: &Job, owned: &[&Pod], status: &mut JobStatus) {
    let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
    let is_tracked =
        |uid: &str| owned.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid) && pod::is_tracked(pod));
    let flush = |list: &mut Option<Vec<String>>, total: &mut Option<i32>| {
        let list = list.get_or_insert_default();
        let before = list.len();
        list.retain(|uid| is_tracked(uid));
        let counted = i32::try_from(before - list.len()).unwrap_or(0);
        *total = Some(total.unwrap_or(0) + counted).filter(|total| *total > 0);
    };
    flush(&mut uncounted.succeeded, &mut status.succeeded);
    flush(&mut uncounted.failed, &mut status.failed);
    for pod in owned.iter().filter(|pod| pod::is_tracked(pod) && !per_index::is_bearer(job, pod, owned)) {
        let list = match pod::fate(job, pod) {
            Fate::Active => continue,
            Fate::Failed if failure::judge(job, pod) == Verdict::Ignore => continue,
            Fate::Succeeded => uncounted.succeeded.get_or_insert_default(),
            Fate::Failed => uncounted.failed.get_or_insert_default(),
        };
        let Some(uid) = pod.metadata.uid.clone().filter(|uid| !list.contains(uid)) else { continue };
        list.push(uid);
    }
    uncounted.succeeded.take_if(|list| list.is_empty());
    uncounted.failed.take_if(|list| list.is_empty());
    status.uncounted_terminated_pods = Some(uncounted);
}

fn is_counted(status: &JobStatus) -> bool {
    status.uncounted_terminated_pods.as_ref().is_none_or(|uncounted| *uncounted == UncountedTerminatedPods::default())
}

/// A suspended Job has no start; its time counts from when it is resumed.
fn rest(job: &Job, status: &mut JobStatus, now: Timestamp) {
    let was_suspended = has(status, "Suspended");
    if decide::is_suspended(job) {
        if !was_suspended {
            set(status, ("Suspended", "True"), "JobSuspended", "Job suspended", now);
        }
        status.start_time = None;
        return;
    }
    if was_suspended {
        set(status, ("Suspended", "False"), "JobResumed", "Job resumed", now);
    }
    status.start_time.get_or_insert(Time(now));
}

fn conclude(status: &mut JobStatus, end: &End, is_quiet: bool, now: Timestamp) {
    let (target, last) = match end.succeeded {
        true => ("SuccessCriteriaMet", "Complete"),
        false => ("FailureTarget", "Failed"),
    };
    let (reason, message) = (end.reason.as_str(), end.message.as_str());
    if !has(status, target) {
        set(status, (target, "True"), reason, message, now);
    }
    if is_quiet && !has(status, last) {
        set(status, (last, "True"), reason, message, now);
        if end.succeeded {
            status.completion_time = Some(Time(now));
        }
    }
}

fn has(status: &JobStatus, type_: &str) -> bool {
    status.conditions.iter().flatten().any(|known| known.type_ == type_ && known.status == "True")
}

fn set(status: &mut JobStatus, (type_, value): (&str, &str), reason: &str, message: &str, now: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|known| known.type_ != type_);
    conditions.push(JobCondition {
        type_: type_.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
}

fn nonzero(number: usize) -> Option<i32> {
    (number > 0).then(|| i32::try_from(number).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tally;
    use super::*;

    fn pod(tracked: Option<&str>) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u", "finalizers": tracked.map(|name| [name])},
            "status": {"phase": "Succeeded"}}))
        .unwrap()
    }

    #[test]
    fn a_pod_is_counted_once_in_three_writes() {
        let mut job: Job =
            serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": {"completions": 1, "template": {}}}))
                .unwrap();
        let mut step = |pod: Option<Pod>| {
            let owned: Vec<&Pod> = pod.iter().collect();
            let tally = tally::tally(&job, &owned);
            let end = decide::end(&job, &tally, Timestamp::now());
            let status = status(&job, &owned, &tally, end.as_ref(), Timestamp::now());
            job.status = Some(status.clone());
            let uncounted = status.uncounted_terminated_pods.and_then(|list| list.succeeded).unwrap_or_default().len();
            (uncounted, status.succeeded, is_finished(&job))
        };
        assert_eq!(step(Some(pod(Some(pod::TRACKING)))), (1, None, false));
        assert_eq!(step(Some(pod(Some(pod::TRACKING)))), (1, None, false), "a crash here changes nothing");
        assert_eq!(step(Some(pod(None))), (0, Some(1), true));
        assert_eq!(step(None), (0, Some(1), true));
    }
}
