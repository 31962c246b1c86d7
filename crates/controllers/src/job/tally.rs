//! The Pods of a Job, counted by what became of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::failure::{self, Verdict};
use super::indexes::{self, Indexes};
use super::per_index::{self, Failures};
use super::pod::{self, Fate};
use crate::pods;

/// Pods of the Job, sorted by fate, and what was counted so far.
pub(crate) struct Tally<'a> {
    pub(crate) active: Vec<&'a Pod>,
    pub(crate) ready: usize,
    /// Leaving, and not at their end.
    pub(crate) terminating: usize,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    pub(crate) completed_indexes: Indexes,
    /// Indexes that have failed for good.
    pub(crate) failed_indexes: Indexes,
    /// The failures of each index, for Jobs that count them so.
    pub(crate) failures_by_index: BTreeMap<i32, Failures>,
    /// Why a failure ends the whole Job.
    pub(super) fatal: Option<String>,
    /// Ends in a row without a success, and the last of them.
    pub(super) failures_in_a_row: (u32, Option<Timestamp>),
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
        failed_indexes: indexes::parse(status.failed_indexes.as_deref().unwrap_or_default()),
        failures_by_index: per_index::limit(job).map(|_| per_index::failures(job, owned)).unwrap_or_default(),
        fatal: None,
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
                let verdict = failure::judge(job, pod);
                tally.failed += i32::from(fresh && verdict != Verdict::Ignore);
                if per_index::ends_index(job, pod) {
                    tally.failed_indexes.extend(pod::index(pod));
                }
                if let Verdict::FailJob(why) = verdict {
                    tally.fatal.get_or_insert(why);
                }
                tally.terminating += usize::from(pods::is_terminating(pod) && !pods::is_finished(pod));
            }
        }
    }
    if pod::is_indexed(job) {
        tally.failed_indexes.retain(|index| !tally.completed_indexes.contains(index));
        tally.succeeded = count(tally.completed_indexes.len());
    }
    tally
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

/// A number as the API has them.
pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
