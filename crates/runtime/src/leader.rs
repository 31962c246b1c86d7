//! One at a time: leader election by a Lease.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event as Seen};
use tokio_util::sync::CancellationToken;
use windlass_core::Event;

use crate::metrics::Metrics;
use crate::reconcile::Handle;

/// Which lease, and how long it lasts.
#[derive(Clone, Debug)]
pub struct LeaderConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who this process is; must differ between replicas.
    pub identity: String,
    /// Others wait this long after the last sign of life.
    pub lease: Duration,
    /// The leader gives up when it could not renew for this long; shorter than `lease`.
    pub renew: Duration,
    /// Between attempts.
    pub retry: Duration,
}

impl LeaderConfig {
    /// 15 s lease, 10 s to renew, 2 s between attempts; an identity from the host name and chance.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".into());
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: format!("{host}_{:016x}", rand::random::<u64>()),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// What to do about a Lease that was seen.
#[derive(Debug, PartialEq)]
pub(crate) enum Bid {
    Create(LeaseSpec),
    Take(LeaseSpec),
    Wait,
}

/// The state of another holder and when this process first saw it. Clocks of others are not trusted.
#[derive(Debug, Default)]
pub(crate) struct Sighting(Option<(LeaseSpec, Duration)>);

/// Holds, or tries to hold, a Lease.
pub(crate) struct Elector {
    config: LeaderConfig,
    api: Api<Lease>,
    handle: Handle,
    metrics: Metrics,
    sighting: Sighting,
}

impl Elector {
    pub(crate) fn new(handle: Handle, config: LeaderConfig, metrics: Metrics) -> Self {
        let api = Api::namespaced(handle.client.clone(), &config.namespace);
        metrics.leading(&config.name, false);
        Self { config, api, handle, metrics, sighting: Sighting::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// Waits until this process leads; `false` if it was stopped before.
    pub(crate) async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        tracing::info!(lease = %self.config.name, "Waiting to lead");
        let only = watcher::Config::default().fields(&format!("metadata.name={}", self.config.name));
        let mut changes = watcher::watcher(self.api.clone(), only).default_backoff().boxed();
        loop {
            let asked = self.handle.clock.elapsed();
            if self.attempt().await == Some(true) {
                tracing::info!(lease = %self.config.name, identity = %self.config.identity, "Leading");
                self.leads_since(asked);
                self.metrics.leading(&self.config.name, true);
                self.announce("became leader");
                return true;
            }
            // A lease that is let go is taken at once; where it may not be watched, at the next look.
            let freed = freed(&mut changes);
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.handle.clock.sleep(self.config.retry.mul_f64(self.handle.clock.spread(1.0..1.2))) => {}
                () = freed => {}
            }
        }
    }

    /// Renews until `stop`; if that fails for too long, cancels `stop` and returns `true`.
    pub(crate) async fn keep(&mut self, stop: &CancellationToken) -> bool {
        let mut renewed_at = self.handle.clock.elapsed();
        loop {
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.handle.clock.sleep(self.config.retry) => {}
            }
            // What counts is when the renewal was sent: when it took effect is not known here.
            let asked = self.handle.clock.elapsed();
            let left = self.config.renew.saturating_sub(asked.saturating_sub(renewed_at));
            let renewed = tokio::time::timeout(left.max(self.config.retry), self.attempt()).await.unwrap_or(None);
            if renewed == Some(true) {
                renewed_at = asked;
                self.leads_since(asked);
                continue;
            }
            self.metrics.slow_renewal(&self.config.name);
            let is_late = self.handle.clock.elapsed().saturating_sub(renewed_at) >= self.config.renew;
            if renewed == Some(false) || is_late {
                self.metrics.leading(&self.config.name, false);
                stop.cancel();
                return true;
            }
        }
    }

    /// Allows writes until the lease must have been renewed again: a process that was frozen in between does not get
    /// one through, whatever it wakes up in.
    fn leads_since(&self, asked: Duration) {
        self.handle.tap.write_until(asked.saturating_add(self.config.renew));
    }

    /// Lets the next one lead at once.
    pub(crate) async fn release(&mut self) {
        self.metrics.leading(&self.config.name, false);
        let Ok(Some(mut lease)) = self.api.get_opt(&self.config.name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.config.identity) {
            return;
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        match self.api.replace(&self.config.name, &PostParams::default(), &lease).await {
            Ok(_) => self.announce("stopped leading"),
            Err(error) => tracing::warn!(%error, "Lease not released"),
        }
    }

    /// Whether this process leads; `None` if that is not known.
    async fn attempt(&mut self) -> Option<bool> {
        match self.try_attempt().await {
            Ok(leads) => Some(leads),
            Err(error) => {
                tracing::warn!(lease = %self.config.name, %error, "Cannot get or renew the lease");
                None
            }
        }
    }

    async fn try_attempt(&mut self) -> Result<bool, kube::Error> {
        let lease = self.api.get_opt(&self.config.name).await?;
        let (now, elapsed) = (self.handle.clock.now(), self.handle.clock.elapsed());
        let params = PostParams::default();
        let current = lease.as_ref().map(|lease| lease.spec.clone().unwrap_or_default());
        match self.sighting.bid(&self.config, current, now, elapsed) {
            Bid::Wait => Ok(false),
            Bid::Create(spec) => {
                let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
                self.api.create(&params, &Lease { metadata, spec: Some(spec) }).await?;
                Ok(true)
            }
            Bid::Take(spec) => {
                // The resource version that was read goes with it: of two who bid, one gets a conflict.
                let lease = Lease { spec: Some(spec), ..lease.unwrap_or_default() };
                self.api.replace(&self.config.name, &params, &lease).await?;
                Ok(true)
            }
        }
    }

    fn announce(&self, what: &str) {
        let mut lease = Lease::default();
        lease.metadata.name = Some(self.config.name.clone());
        lease.metadata.namespace = Some(self.config.namespace.clone());
        let event = Event::normal("LeaderElection", format!("{} {what}", self.config.identity));
        self.handle.events.record(&lease, &(), event);
    }
}

/// Waits until a lease is let go.
async fn freed(changes: &mut BoxStream<'_, watcher::Result<Seen<Lease>>>) {
    while let Some(change) = changes.next().await {
        if change.is_ok_and(|change| is_free(&change)) {
            return;
        }
    }
    std::future::pending().await
}

/// Whether a lease was let go.
fn is_free(change: &Seen<Lease>) -> bool {
    match change {
        Seen::Apply(lease) => {
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
            holder.unwrap_or_default().is_empty()
        }
        Seen::Delete(_) => true,
        Seen::Init | Seen::InitApply(_) | Seen::InitDone => false,
    }
}

impl Sighting {
    /// What to do about the Lease as it is.
    pub(crate) fn bid(
        &mut self,
        config: &LeaderConfig,
        current: Option<LeaseSpec>,
        now: Timestamp,
        elapsed: Duration,
    ) -> Bid {
        let mine = LeaseSpec {
            holder_identity: Some(config.identity.clone()),
            lease_duration_seconds: i32::try_from(config.lease.as_secs()).ok(),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let Some(current) = current else { return Bid::Create(mine) };
        let transitions = current.lease_transitions.unwrap_or_default();
        if current.holder_identity == mine.holder_identity {
            let acquire_time = current.acquire_time.clone();
            return Bid::Take(LeaseSpec { acquire_time, lease_transitions: Some(transitions), ..mine });
        }
        let next = LeaseSpec { lease_transitions: Some(transitions + 1), ..mine };
        if current.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return Bid::Take(next);
        }
        let seen_at = match &self.0 {
            Some((seen, at)) if *seen == current => *at,
            _ => {
                self.0 = Some((current.clone(), elapsed));
                elapsed
            }
        };
        let theirs = current.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let lease = theirs.map_or(config.lease, Duration::from_secs);
        if elapsed.saturating_sub(seen_at) >= lease { Bid::Take(next) } else { Bid::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One look at a lease: after how many seconds, who holds it, when they renewed it, and what follows.
    type Look = (u64, Option<&'static str>, i64, &'static str);

    fn check(looks: &[Look]) {
        let config = LeaderConfig { identity: "me".into(), ..LeaderConfig::new("ns", "lease") };
        let mut sighting = Sighting::default();
        for (elapsed, holder, renewed, expected) in looks {
            let current = holder.map(|holder| LeaseSpec {
                holder_identity: Some(holder.into()).filter(|holder: &String| !holder.is_empty()),
                renew_time: Some(MicroTime(Timestamp::from_second(*renewed).unwrap())),
                lease_duration_seconds: Some(15),
                lease_transitions: Some(3),
                ..LeaseSpec::default()
            });
            let elapsed = Duration::from_secs(*elapsed);
            let bid = match sighting.bid(&config, current, Timestamp::UNIX_EPOCH, elapsed) {
                Bid::Wait => "wait".to_owned(),
                Bid::Create(spec) => format!("create {}", spec.lease_transitions.unwrap()),
                Bid::Take(spec) => format!("take {}", spec.lease_transitions.unwrap()),
            };
            assert_eq!(bid, *expected, "after {elapsed:?} of {looks:?}");
        }
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_its_holder_was_silent_for_long_enough() {
        check(&[(0, None, 0, "create 0")]);
        check(&[(0, Some("me"), 0, "take 3")]);
        check(&[(0, Some(""), 0, "take 4")]);
        check(&[(0, Some("other"), 0, "wait"), (14, Some("other"), 0, "wait"), (15, Some("other"), 0, "take 4")]);
        check(&[(0, Some("other"), 0, "wait"), (14, Some("other"), 1, "wait"), (28, Some("other"), 1, "wait")]);
        check(&[(0, Some("other"), 0, "wait"), (14, Some("third"), 0, "wait"), (29, Some("third"), 0, "take 4")]);
    }
}
