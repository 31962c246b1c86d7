//! What a Job does next: whom to count, how many Pods to have, and whether it is over.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::indexes::{self, Indexes};
use super::pod::{self, Fate};
use crate::pods;

/// The wait after the first failure; it doubles with each one in a row.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Most Pods made in one go.
const BURST_MAX: usize = 500;

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Failed { reason: &'static str, message: String },
}

/// Pods of the Job, sorted by fate, and what was counted so far.
pub(crate) struct Tally<'a> {
    pub(crate) active: Vec<&'a Pod>,
    pub(crate) ready: usize,
    /// Leaving, and not at their end.
    pub(crate) terminating: usize,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    pub(crate) completed_indexes: Indexes,
    /// Ends in a row without a success, and the last of them.
    failures_in_a_row: (u32, Option<Timestamp>),
}

/// What to do about the Pods.
#[derive(Debug, PartialEq)]
pub(crate) enum Change<'a> {
    None,
    Create(Vec<Option<i32>>),
    Delete(Vec<&'a Pod>),
    /// Pods are missing, but failures ask for a wait until then.
    Wait(Timestamp),
}

/// Counts: ended Pods that are still tracked, on top of those that the status holds.
pub(crate) fn tally<'a>(job: &Job, owned: &[&'a Pod]) -> Tally<'a> {
    let status = job.status.clone().unwrap_or_default();
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let pending = |list: &Option<Vec<String>>| list.as_ref().map_or(0, |list| count(list.len()));
    let mut tally = Tally {
        active: vec![],
        ready: 0,
        terminating: 0,
        succeeded: status.succeeded.unwrap_or(0) + pending(&uncounted.succeeded),
        failed: status.failed.unwrap_or(0) + pending(&uncounted.failed),
        completed_indexes: indexes::parse(status.completed_indexes.as_deref().unwrap_or_default()),
        failures_in_a_row: failures_in_a_row(job, owned),
    };
    let listed =
        |list: &Option<Vec<String>>, pod: &Pod| list.iter().flatten().any(|uid| Some(uid) == pod.metadata.uid.as_ref());
    for pod in owned.iter().copied() {
        let fresh = pod::is_tracked(pod) && !listed(&uncounted.succeeded, pod) && !listed(&uncounted.failed, pod);
        match pod::fate(job, pod) {
            Fate::Active => {
                tally.ready += usize::from(pods::is_ready(pod));
                tally.terminating += usize::from(pods::is_terminating(pod));
                tally.active.push(pod);
            }
            Fate::Succeeded => {
                tally.succeeded += i32::from(fresh);
                tally.completed_indexes.extend(pod::index(pod));
            }
            Fate::Failed => {
                tally.failed += i32::from(fresh);
                tally.terminating += usize::from(pods::is_terminating(pod) && !pods::is_finished(pod));
            }
        }
    }
    if pod::is_indexed(job) {
        tally.succeeded = count(tally.completed_indexes.len());
    }
    tally
}

/// Whether the Job is over, by success or by failure.
pub(crate) fn end(job: &Job, tally: &Tally<'_>, now: Timestamp) -> Option<End> {
    let spec = job.spec.as_ref()?;
    let failed = |reason, message: &str| Some(End::Failed { reason, message: message.to_owned() });
    let limit = spec.backoff_limit.unwrap_or(6);
    if tally.failed > limit || restarts_exceed(spec, tally, limit) {
        return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline(job).is_some_and(|deadline| deadline <= now) {
        return failed("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let complete = match spec.completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    complete.then_some(End::Complete)
}

/// When the Job runs out of time; never while it is suspended.
pub(crate) fn deadline(job: &Job) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.active_deadline_seconds.filter(|_| !is_suspended(job))?;
    let start = job.status.as_ref()?.start_time.as_ref()?.0;
    start.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Whether the Job is told to rest.
pub(crate) fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or(false)
}

/// The Pods to make or delete while the Job goes on.
pub(crate) fn change<'a>(job: &Job, tally: &Tally<'a>, now: Timestamp) -> Change<'a> {
    let Some(spec) = job.spec.as_ref() else { return Change::None };
    let stays: Vec<&'a Pod> = tally.active.iter().copied().filter(|pod| !pods::is_terminating(pod)).collect();
    if is_suspended(job) {
        return if stays.is_empty() { Change::None } else { Change::Delete(stays) };
    }
    // With the policy `Failed`, a Pod that leaves still takes its place.
    let taken = if pod::replaces_failed_only(job) { tally.active.len() } else { stays.len() };
    let wanted = wanted(spec, tally, taken);
    if taken > wanted {
        let surplus = (taken - wanted).min(stays.len());
        let newest_first = stays.into_iter().rev().take(surplus).collect();
        return Change::Delete(newest_first);
    }
    if taken == wanted {
        return Change::None;
    }
    if let Some(until) = backoff_until(tally).filter(|until| *until > now) {
        return Change::Wait(until);
    }
    let missing = (wanted - taken).min(BURST_MAX);
    if !pod::is_indexed(job) {
        return Change::Create(vec![None; missing]);
    }
    let busy: Indexes = tally.active.iter().filter_map(|pod| pod::index(pod)).collect();
    let free = (0..spec.completions.unwrap_or(0))
        .filter(|index| !busy.contains(index) && !tally.completed_indexes.contains(index));
    Change::Create(free.take(missing).map(Some).collect())
}

fn wanted(spec: &JobSpec, tally: &Tally<'_>, active: usize) -> usize {
    let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
    match spec.completions {
        Some(completions) => usize::try_from(completions - tally.succeeded).unwrap_or(0).min(parallelism),
        // A work queue: after the first success no more are made, and those at work end by themselves.
        None if tally.succeeded > 0 => active.min(parallelism),
        None => parallelism,
    }
}

fn restarts_exceed(spec: &JobSpec, tally: &Tally<'_>, limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let statuses = tally.active.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
    let restarts: i32 = statuses.flatten().map(|container| container.restart_count).sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

fn failures_in_a_row(job: &Job, owned: &[&Pod]) -> (u32, Option<Timestamp>) {
    let ended = |fate: Fate| {
        let pods = owned.iter().filter(move |pod| pod::fate(job, pod) == fate);
        pods.filter_map(|pod| pod::finished_at(pod).or(pod.metadata.deletion_timestamp.as_ref().map(|time| time.0)))
    };
    let last_success = ended(Fate::Succeeded).max();
    let failures: Vec<Timestamp> = ended(Fate::Failed).filter(|at| Some(*at) > last_success).collect();
    (u32::try_from(failures.len()).unwrap_or(u32::MAX), failures.into_iter().max())
}

fn backoff_until(tally: &Tally<'_>) -> Option<Timestamp> {
    let (failures, last) = tally.failures_in_a_row;
    let factor = 1i32.checked_shl(failures.checked_sub(1)?.min(16))?;
    let wait = BACKOFF.checked_mul(factor).unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX);
    last?.checked_add(wait).ok()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    /// Pods as `name:state[:index]`, state being a(ctive), s(ucceeded), f(ailed just now), o(ld failure), t(erminating).
    fn pods(list: &str) -> Vec<Pod> {
        let pod = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let (phase, ended) = match parts[1] {
                "s" => ("Succeeded", Some("2026-01-01T00:00:00Z")),
                "f" => ("Failed", Some(NOW)),
                "o" => ("Failed", Some("2026-01-01T00:30:00Z")),
                _ => ("Running", None),
            };
            let index = parts.get(2).map(|index| json!({"batch.kubernetes.io/job-completion-index": index}));
            serde_json::from_value(json!({
                "metadata": {"name": parts[0], "uid": parts[0], "annotations": index, "finalizers": [pod::TRACKING],
                    "deletionTimestamp": (parts[1] == "t").then_some("2026-01-01T00:00:00Z")},
                "status": {"phase": phase, "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false,
                    "restartCount": 0, "state": {"terminated": ended.map(|at| json!({"exitCode": 1, "finishedAt": at}))}}]}}))
            .unwrap()
        };
        list.split_whitespace().map(pod).collect()
    }

    fn check(spec: Value, list: &str, expect: &str) {
        let mut all = json!({"template": {}, "parallelism": 1});
        spec.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        let job: Job = serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": all,
            "status": {"startTime": "2026-01-01T00:00:00Z"}}))
        .unwrap();
        let pods = pods(list);
        let tally = tally(&job, &pods.iter().collect::<Vec<_>>());
        let now = NOW.parse().unwrap();
        let told = match end(&job, &tally, now) {
            Some(End::Complete) => "complete".to_owned(),
            Some(End::Failed { reason, .. }) => reason.to_owned(),
            None => match change(&job, &tally, now) {
                Change::None => String::new(),
                Change::Create(list) => format!(
                    "+{}",
                    list.iter().map(|i| i.map_or("x".into(), |i| i.to_string())).collect::<Vec<_>>().join(",")
                ),
                Change::Delete(pods) => format!(
                    "-{}",
                    pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>().join(",")
                ),
                Change::Wait(until) => format!("wait {}", until.duration_since(now).as_secs()),
            },
        };
        assert_eq!(told, expect, "{spec} {list}");
    }

    #[test]
    fn pods_are_made_until_enough_have_succeeded() {
        let five = || json!({"completions": 5, "parallelism": 2});
        check(five(), "", "+x,x");
        check(five(), "a:a", "+x");
        check(five(), "a:a b:a", "");
        check(five(), "a:s b:s c:s d:s", "+x");
        check(five(), "a:s b:s c:s d:s e:s", "complete");
        check(five(), "a:a b:a c:a", "-c");
        check(json!({"completions": 1, "suspend": true}), "a:a", "-a");
        check(json!({"completions": 1, "suspend": true}), "", "");
    }

    #[test]
    fn a_work_queue_ends_when_its_workers_do() {
        let queue = || json!({"parallelism": 3});
        check(queue(), "", "+x,x,x");
        check(queue(), "a:s b:a c:a", "");
        check(queue(), "a:s b:s c:s", "complete");
    }

    #[test]
    fn failures_are_waited_for_and_then_too_many() {
        let one = || json!({"completions": 1, "backoffLimit": 2});
        check(one(), "a:f", "wait 10");
        check(one(), "a:f b:f", "wait 20");
        check(one(), "a:o", "+x");
        check(one(), "a:f b:f c:f", "BackoffLimitExceeded");
        check(json!({"completions": 1, "activeDeadlineSeconds": 3600}), "a:a", "DeadlineExceeded");
    }

    #[test]
    fn a_leaving_pod_is_replaced_as_the_policy_says() {
        check(json!({"completions": 1}), "a:t", "+x");
        check(json!({"completions": 1, "podReplacementPolicy": "Failed"}), "a:t", "");
    }

    #[test]
    fn indexes_are_filled_from_below() {
        let indexed = || json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
        check(indexed(), "", "+0,1");
        check(indexed(), "a:s:0 b:a:2", "+1");
        check(indexed(), "a:s:0 b:s:1 c:s:2 d:s:3", "complete");
        check(indexed(), "a:s:0 b:s:0", "+1,2");
    }
}
