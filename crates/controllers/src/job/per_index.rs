//! Failures counted index by index, for Jobs that give each index its own limit.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::failure::{Verdict, judge};
use super::pod::{self, Fate};

const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// What is known of the failures of one index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Those that count.
    pub(crate) counted: i32,
    /// Those that the policy ignores.
    pub(crate) ignored: i32,
    /// When the last one was.
    last: Option<Timestamp>,
}

impl Failures {
    /// When a Pod may be made for the index again.
    pub(crate) fn wait_until(self, backoff: impl Fn(u32) -> SignedDuration) -> Option<Timestamp> {
        let failures = u32::try_from(self.counted).ok().filter(|failures| *failures > 0)?;
        self.last?.checked_add(backoff(failures)).ok()
    }
}

/// How many failures an index may have; `None` for Jobs without such a limit.
pub(crate) fn limit(job: &Job) -> Option<i32> {
    job.spec.as_ref()?.backoff_limit_per_index.filter(|_| pod::is_indexed(job))
}

/// The failures of each index that has had any. Each Pod carries the count of those before it.
pub(crate) fn failures(job: &Job, owned: &[&Pod]) -> BTreeMap<i32, Failures> {
    let mut all: BTreeMap<i32, Failures> = BTreeMap::new();
    for pod in owned.iter().filter(|pod| pod::fate(job, pod) == Fate::Failed) {
        let Some(index) = pod::index(pod) else { continue };
        let is_ignored = judge(job, pod) == Verdict::Ignore;
        let entry = all.entry(index).or_default();
        entry.counted = entry.counted.max(carried(pod, FAILURES) + i32::from(!is_ignored));
        entry.ignored = entry.ignored.max(carried(pod, IGNORED) + i32::from(is_ignored));
        entry.last = entry.last.max(pod::finished_at(pod));
    }
    all
}

/// Whether the failed Pod ends its index.
pub(crate) fn ends_index(job: &Job, pod: &Pod) -> bool {
    let Some(limit) = limit(job) else { return false };
    match judge(job, pod) {
        Verdict::FailIndex => true,
        Verdict::Ignore => false,
        Verdict::Count | Verdict::FailJob(_) => carried(pod, FAILURES) + 1 > limit,
    }
}

/// Whether the failed Pod still has to stay: it carries the count that the next one of its index takes over.
pub(crate) fn is_bearer(job: &Job, pod: &Pod, owned: &[&Pod]) -> bool {
    let is_open = limit(job).is_some() && pod::fate(job, pod) == Fate::Failed && !ends_index(job, pod);
    let Some(index) = pod::index(pod).filter(|_| is_open) else { return false };
    let total = |pod: &Pod| carried(pod, FAILURES) + carried(pod, IGNORED);
    let mut others = owned.iter().filter(|other| pod::index(other) == Some(index));
    !others.any(|other| pod::fate(job, other) != Fate::Failed || total(other) > total(pod))
}

/// Writes the counts on a new Pod.
pub(crate) fn carry(pod: &mut Pod, failures: Failures) {
    let annotations = pod.annotations_mut();
    annotations.insert(FAILURES.to_owned(), failures.counted.to_string());
    if failures.ignored > 0 {
        annotations.insert(IGNORED.to_owned(), failures.ignored.to_string());
    }
}

fn carried(pod: &Pod, key: &str) -> i32 {
    pod.annotations().get(key).and_then(|count| count.parse().ok()).unwrap_or(0)
}
