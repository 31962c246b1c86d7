//! The leadership of an application: a Lease that its members hold in turn, with what they have to remember together.
//!
//! [`LeaderConfig`] on a manager is for the replicas of an operator. A [`Tenure`] is for the members of what an operator
//! runs, such as the servers of a database that has no election of its own. It differs in three ways:
//! - a member decides by itself whether it may lead, and bids only then;
//! - marks (annotations of the Lease) change hands with it, in the same write: who reads the holder reads them, too;
//! - [`Tenure::held_until`] is a promise to be kept by others: what leads must have stopped by then, whatever happens.
//!
//! Nobody else can hold the Lease before `lease` has passed since the last renewal was *sent*, by the clock of whoever waits;
//! the holder counts `renew`, which is shorter, by its own. Neither looks at the clock of the other.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use windlass_clock::Clock;

use crate::leader::{Bid, LeaderConfig, Sighting};

/// What the members remember together.
pub type Marks = BTreeMap<String, String>;

/// Who leads, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The Lease was not seen yet.
    Unknown,
    /// This member.
    Me,
    /// This member, but in an earlier life, or too long ago: nobody led since. It may take the Lease again.
    Lapsed,
    /// Another one, who gave a sign of life not long ago.
    Other(String),
    /// Nobody, or somebody who was silent for too long.
    Nobody,
}

/// Why the Lease was not taken, renewed or let go.
#[derive(Debug, thiserror::Error)]
pub enum TenureError {
    /// The Lease does not exist, or was not seen yet.
    #[error("the lease {0} was not seen yet: it is made by the operator")]
    Missing(String),
    /// Somebody else was faster.
    #[error("the lease {0} is somebody else's")]
    Taken(String),
    /// The API refused or could not be reached.
    #[error("the lease {name} cannot be written: {source}")]
    Api {
        /// The Lease.
        name: String,
        /// The answer.
        #[source]
        source: kube::Error,
    },
    /// The API did not answer in time.
    #[error("the lease {0} cannot be written: the API does not answer")]
    Silent(String),
}

/// A member's view of the leadership, and its own bid for it.
pub struct Tenure {
    config: LeaderConfig,
    api: Api<Lease>,
    clock: Clock,
    sighting: Sighting,
    seen: Option<Lease>,
    held_until: Option<Duration>,
}

impl Tenure {
    /// Nothing was seen yet.
    pub fn new(client: Client, config: LeaderConfig, clock: Clock) -> Self {
        let api = Api::namespaced(client, &config.namespace);
        Self { config, api, clock, sighting: Sighting::default(), seen: None, held_until: None }
    }

    /// The states of the Lease as they come, to be passed to [`Tenure::see`]; never ends.
    pub fn watch(&self) -> impl Stream<Item = Option<Lease>> + Send + 'static {
        let only = watcher::watch_object(self.api.clone(), &self.config.name);
        only.default_backoff().filter_map(|seen| std::future::ready(seen.ok()))
    }

    /// Takes note of a state of the Lease. An older one than is known is left out.
    pub fn see(&mut self, lease: Option<Lease>) {
        let version = |lease: &Lease| lease.metadata.resource_version.as_deref().and_then(|it| it.parse::<u64>().ok());
        let (known, new) = (self.seen.as_ref().and_then(version), lease.as_ref().and_then(version));
        let is_older = known.zip(new).is_some_and(|(known, new)| new < known);
        if !is_older {
            self.seen = lease;
        }
    }

    /// Who leads now.
    pub fn holder(&mut self) -> Holder {
        let Some(lease) = &self.seen else { return Holder::Unknown };
        let spec = lease.spec.clone().unwrap_or_default();
        let name = spec.holder_identity.clone().unwrap_or_default();
        let bid = self.sighting.bid(&self.config, Some(spec), self.clock.now(), self.clock.elapsed());
        match bid {
            Bid::Wait => Holder::Other(name),
            _ if name != self.config.identity => Holder::Nobody,
            _ if self.is_held() => Holder::Me,
            _ => Holder::Lapsed,
        }
    }

    /// What the members remember.
    pub fn marks(&self) -> Marks {
        self.seen.iter().flat_map(|lease| lease.metadata.annotations.clone()).flatten().collect()
    }

    /// When this member must have stopped to lead, by [`Clock::elapsed`].
    pub fn held_until(&self) -> Option<Duration> {
        self.held_until
    }

    fn is_held(&self) -> bool {
        self.held_until.is_some_and(|until| self.clock.elapsed() < until)
    }

    /// Takes the Lease, or renews it, with these marks beside those that are there.
    ///
    /// # Errors
    /// When it is not there, somebody else's, or the API does not answer. Then nothing is known of what is stored, and
    /// [`Tenure::held_until`] stays what it was.
    pub async fn hold(&mut self, marks: &Marks) -> Result<(), TenureError> {
        let asked = self.clock.elapsed();
        let current = self.seen.as_ref().map(|lease| lease.spec.clone().unwrap_or_default());
        let spec = match self.sighting.bid(&self.config, current, self.clock.now(), asked) {
            Bid::Create(_) => return Err(TenureError::Missing(self.config.name.clone())),
            Bid::Wait => return Err(TenureError::Taken(self.config.name.clone())),
            Bid::Take(spec) => spec,
        };
        self.write(spec, marks).await?;
        // What counts is when it was asked for: when it took effect is not known here.
        self.held_until = Some(asked.saturating_add(self.config.renew));
        Ok(())
    }

    /// Lets the next one lead at once. What led must have stopped before.
    ///
    /// # Errors
    /// As [`Tenure::hold`]; the Lease then runs out by itself.
    pub async fn release(&mut self, marks: &Marks) -> Result<(), TenureError> {
        self.held_until = None;
        let Some(lease) = &self.seen else { return Ok(()) };
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(&self.config.identity) {
            return Ok(());
        }
        let spec = LeaseSpec { holder_identity: None, lease_duration_seconds: Some(1), ..spec };
        self.write(spec, marks).await
    }

    async fn write(&mut self, spec: LeaseSpec, marks: &Marks) -> Result<(), TenureError> {
        let name = self.config.name.clone();
        let Some(mut lease) = self.seen.clone() else { return Err(TenureError::Missing(name)) };
        lease.spec = Some(spec);
        lease.metadata.annotations.get_or_insert_default().extend(marks.clone());
        lease.metadata.managed_fields = None;
        // The resource version that was seen goes with it: of two who bid, one gets a conflict.
        let params = PostParams::default();
        let written = tokio::time::timeout(self.config.retry.max(MIN_WAIT), self.api.replace(&name, &params, &lease));
        match written.await {
            Ok(Ok(lease)) => {
                self.see(Some(lease));
                Ok(())
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                // The watch may be behind: what is there now decides the next attempt.
                if let Ok(Ok(lease)) = tokio::time::timeout(MIN_WAIT, self.api.get_opt(&name)).await {
                    self.see(lease);
                }
                Err(TenureError::Taken(name))
            }
            Ok(Err(source)) => Err(TenureError::Api { name, source }),
            Err(_) => Err(TenureError::Silent(name)),
        }
    }
}

/// An answer of the API is waited for at least this long.
const MIN_WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use jiff::Timestamp;
    use kube::client::Body;

    use super::*;

    /// A client that nobody answers.
    fn nobody() -> Client {
        let silent =
            tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, tower::BoxError>>());
        Client::new(silent, "default")
    }

    fn tenure(clock: &Clock) -> Tenure {
        let times = (Duration::from_secs(6), Duration::from_secs(4), Duration::from_secs(1));
        let config = LeaderConfig { identity: "me".into(), ..LeaderConfig::new("default", "l") };
        Tenure::new(nobody(), LeaderConfig { lease: times.0, renew: times.1, retry: times.2, ..config }, clock.clone())
    }

    fn lease(version: u64, holder: &str) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.resource_version = Some(version.to_string());
        let holder_identity = (!holder.is_empty()).then(|| holder.to_owned());
        lease.spec = Some(LeaseSpec { holder_identity, lease_duration_seconds: Some(6), ..LeaseSpec::default() });
        lease
    }

    #[tokio::test]
    async fn a_holder_counts_until_it_was_silent_for_the_length_of_the_lease() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut tenure = tenure(&clock);
        assert_eq!(tenure.holder(), Holder::Unknown);
        tenure.see(Some(lease(1, "")));
        assert_eq!(tenure.holder(), Holder::Nobody);
        tenure.see(Some(lease(2, "other")));
        tenure.see(Some(lease(1, "")));
        assert_eq!(tenure.holder(), Holder::Other("other".into()), "what is older is not believed");
        clock.advance(Duration::from_millis(5_900));
        assert_eq!(tenure.holder(), Holder::Other("other".into()));
        clock.advance(Duration::from_millis(100));
        assert_eq!(tenure.holder(), Holder::Nobody);
    }

    #[tokio::test]
    async fn a_lease_of_an_earlier_life_is_not_held() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut tenure = tenure(&clock);
        tenure.see(Some(lease(1, "me")));
        assert_eq!((tenure.holder(), tenure.held_until()), (Holder::Lapsed, None));
    }

    #[tokio::test]
    async fn an_api_that_does_not_answer_makes_nobody_lead() {
        let clock = Clock::system();
        let mut tenure = tenure(&clock);
        assert!(matches!(tenure.hold(&Marks::new()).await, Err(TenureError::Missing(_))));
        tenure.see(Some(lease(1, "")));
        assert!(matches!(tenure.hold(&Marks::new()).await, Err(TenureError::Silent(_))));
        assert_eq!(tenure.held_until(), None);
    }
}
