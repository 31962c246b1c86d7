//! How long containers get to end.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::eviction;
use super::plan;
use super::worker::Worker;

/// How long a Pod that never asked for a period gets to end.
pub(super) const GRACE_DEFAULT: Duration = Duration::from_secs(30);
/// What containers get at least that run beside the others and end after them.
const GRACE_LAST_MIN: Duration = Duration::from_secs(2);

impl Worker {
    /// How long the Pod's containers get to end.
    pub(super) fn grace(&self) -> Duration {
        let wanted = self.pod.metadata.deletion_grace_period_seconds;
        let spec = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = wanted.or(spec).and_then(|seconds| u64::try_from(seconds).ok());
        let grace = seconds.map_or(GRACE_DEFAULT, Duration::from_secs);
        let evicted = self.observed.failed.as_ref().is_some_and(|(reason, _)| reason == eviction::EVICTED);
        if evicted { grace.min(eviction::GRACE) } else { grace }
    }

    /// How long a container gets that failed a probe: the probe may say.
    pub(super) fn grace_of_probe(&self, name: &str, probe: &str) -> Duration {
        let container = self.container(name);
        let probe = container.as_ref().and_then(|container| match probe {
            "startup" => container.startup_probe.as_ref(),
            _ => container.liveness_probe.as_ref(),
        });
        let own = probe.and_then(|probe| probe.termination_grace_period_seconds);
        let own = own.and_then(|seconds| u64::try_from(seconds).ok());
        own.map_or_else(|| self.grace(), Duration::from_secs)
    }

    /// How much of that is left for a container that runs beside the others and ends after them.
    pub(super) fn grace_left(&self, name: &str) -> Duration {
        let (grace, end) = (self.grace(), self.pod.metadata.deletion_timestamp.as_ref());
        let is_last = self.container(name).is_some_and(|container| plan::is_sidecar(&container));
        let Some(end) = end.filter(|_| is_last) else { return grace };
        let left = Duration::try_from(end.0.duration_since(Timestamp::now())).unwrap_or_default();
        grace.min(left.max(GRACE_LAST_MIN))
    }
}
