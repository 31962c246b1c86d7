//! What a Job does next: whom to count, how many Pods to have, and whether it is over.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::indexes::Indexes;
use super::tally::{Tally, count};
use super::{per_index, pod, success};
use crate::pods;

/// The wait after the first failure; it doubles with each one in a row.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Most Pods made in one go.
const BURST_MAX: usize = 500;

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) succeeded: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl End {
    fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self { succeeded: false, reason: reason.to_owned(), message: message.into() }
    }

    fn complete(reason: &str, message: impl Into<String>) -> Self {
        Self { succeeded: true, reason: reason.to_owned(), message: message.into() }
    }
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

/// Whether the Job is over, by success or by failure.
pub(crate) fn end(job: &Job, tally: &Tally<'_>, now: Timestamp) -> Option<End> {
    let spec = job.spec.as_ref()?;
    if let Some(why) = &tally.fatal {
        return Some(End::failed("PodFailurePolicy", why));
    }
    let limit = spec.backoff_limit.unwrap_or(if spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 });
    if tally.failed > limit || restarts_exceed(spec, tally, limit) {
        return Some(End::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    if deadline(job).is_some_and(|deadline| deadline <= now) {
        return Some(End::failed("DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    if let Some(end) = failed_indexes(spec, tally) {
        return Some(end);
    }
    if let Some(rule) = success::satisfied(job, &tally.completed_indexes) {
        return Some(End::complete("SuccessPolicy", format!("Matched rules at index {rule}")));
    }
    let complete = match spec.completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0 && tally.active.is_empty(),
    };
    complete.then(|| End::complete("CompletionsReached", "Reached expected number of succeeded pods"))
}

/// Whether too many indexes have failed, or nothing is left to be done but some have.
fn failed_indexes(spec: &JobSpec, tally: &Tally<'_>) -> Option<End> {
    let failed = count(tally.failed_indexes.len());
    if spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::failed("MaxFailedIndexesExceeded", message));
    }
    let is_over = spec.completions.is_some_and(|completions| failed + tally.succeeded >= completions);
    (failed > 0 && is_over).then(|| End::failed("FailedIndexes", "Job has failed indexes"))
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
    let by_index = per_index::limit(job).is_some();
    if let Some(until) = backoff_until(tally).filter(|until| !by_index && *until > now) {
        return Change::Wait(until);
    }
    let missing = (wanted - taken).min(BURST_MAX);
    match pod::is_indexed(job) {
        true => fill(spec, tally, missing, now),
        false => Change::Create(vec![None; missing]),
    }
}

/// Pods for the lowest indexes that have none; an index that failed waits by itself.
fn fill<'a>(spec: &JobSpec, tally: &Tally<'a>, missing: usize, now: Timestamp) -> Change<'a> {
    let busy: Indexes = tally.active.iter().filter_map(|pod| pod::index(pod)).collect();
    let is_done = |index: &i32| tally.completed_indexes.contains(index) || tally.failed_indexes.contains(index);
    let open = (0..spec.completions.unwrap_or(0)).filter(|index| !busy.contains(index) && !is_done(index));
    let wait = |index: i32| {
        let failures = tally.failures_by_index.get(&index)?;
        failures.wait_until(backoff).filter(|until| *until > now)
    };
    let (waiting, free): (Vec<_>, Vec<_>) =
        open.map(|index| (index, wait(index))).partition(|(_, wait)| wait.is_some());
    match waiting.into_iter().filter_map(|(_, wait)| wait).min() {
        Some(until) if free.is_empty() => Change::Wait(until),
        _ => Change::Create(free.into_iter().take(missing).map(|(index, _)| Some(index)).collect()),
    }
}

fn wanted(spec: &JobSpec, tally: &Tally<'_>, active: usize) -> usize {
    let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
    match spec.completions {
        Some(completions) => {
            let left = completions - tally.succeeded - count(tally.failed_indexes.len());
            usize::try_from(left).unwrap_or(0).min(parallelism)
        }
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

fn backoff_until(tally: &Tally<'_>) -> Option<Timestamp> {
    let (failures, last) = tally.failures_in_a_row;
    last?.checked_add(backoff(Some(failures).filter(|failures| *failures > 0)?)).ok()
}

/// The wait after so many failures in a row.
fn backoff(failures: u32) -> SignedDuration {
    let factor = 1i32.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(i32::MAX);
    BACKOFF.checked_mul(factor).unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tally::tally;
    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    /// Pods as `name:state[:index[:failures before]]`, state being a(ctive), s(ucceeded), f(ailed just now), o(ld failure), t(erminating).
    fn pods(list: &str) -> Vec<Pod> {
        let pod = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let (phase, ended) = match parts[1] {
                "s" => ("Succeeded", Some("2026-01-01T00:00:00Z")),
                "f" => ("Failed", Some(NOW)),
                "o" => ("Failed", Some("2026-01-01T00:30:00Z")),
                _ => ("Running", None),
            };
            let failures = parts.get(3).copied().unwrap_or("0");
            let index = parts.get(2).map(|index| {
                json!({"batch.kubernetes.io/job-completion-index": index,
                "batch.kubernetes.io/job-index-failure-count": failures})
            });
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
            Some(end) => end.reason,
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
        check(five(), "a:s b:s c:s d:s e:s", "CompletionsReached");
        check(five(), "a:a b:a c:a", "-c");
        check(json!({"completions": 1, "suspend": true}), "a:a", "-a");
        check(json!({"completions": 1, "suspend": true}), "", "");
    }

    #[test]
    fn a_work_queue_ends_when_its_workers_do() {
        let queue = || json!({"parallelism": 3});
        check(queue(), "", "+x,x,x");
        check(queue(), "a:s b:a c:a", "");
        check(queue(), "a:s b:s c:s", "CompletionsReached");
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
        check(indexed(), "a:s:0 b:s:1 c:s:2 d:s:3", "CompletionsReached");
        check(indexed(), "a:s:0 b:s:0", "+1,2");
    }
    #[test]
    fn an_index_fails_by_itself() {
        let with = |more: Value| {
            let mut spec =
                json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
            more.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
            spec
        };
        check(with(json!({})), "a:f:0 b:a:1", "+2");
        check(with(json!({})), "a:f:0 b:a:1 c:a:2", "wait 10");
        check(with(json!({})), "a:o:0 b:a:1 c:a:2", "+0");
        check(with(json!({})), "a:o:0 d:f:0:1 b:a:1 c:a:2", "");
        check(with(json!({})), "d:f:0:1 b:s:1 c:s:2", "FailedIndexes");
        check(with(json!({"maxFailedIndexes": 0})), "d:f:0:1 b:a:1", "MaxFailedIndexesExceeded");
        let policy = |action: &str| {
            json!({"podFailurePolicy": {"rules": [
            {"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}})
        };
        check(with(policy("FailIndex")), "a:f:0 b:s:1 c:s:2", "FailedIndexes");
        check(with(policy("FailJob")), "a:f:0 b:a:1", "PodFailurePolicy");
        check(with(policy("Ignore")), "a:f:0 b:a:1 c:a:2", "+0");
    }

    #[test]
    fn success_can_come_early() {
        let spec = || {
            json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed",
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]}})
        };
        check(spec(), "a:a:0 b:s:1", "+2");
        check(spec(), "a:s:0 b:a:1", "SuccessPolicy");
    }
}
