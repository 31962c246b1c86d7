//! The leases of the shards: a lease says who works on a shard, and one per replica says who is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use tokio_util::sync::CancellationToken;

use super::assign::assign;
use super::{Division, ShardConfig};
use crate::leader::{Bid, LeaderConfig, Sighting};
use crate::metrics::Metrics;
use crate::reconcile::Handle;

/// The label of all leases of one division.
const LABEL: &str = "windlass.dev/shards-of";
/// The annotation with the number of shards that a replica counts with.
const COUNT: &str = "windlass.dev/shards";

/// Takes, renews and gives back leases.
pub(crate) struct Keeper {
    config: ShardConfig,
    api: Api<Lease>,
    handle: Handle,
    metrics: Metrics,
    division: Arc<Division>,
    sightings: HashMap<String, Sighting>,
}

/// What was found at one look.
struct Look {
    leases: BTreeMap<String, Lease>,
    /// When it was begun.
    at: Duration,
}

impl Keeper {
    pub(crate) fn new(handle: Handle, config: ShardConfig, division: Arc<Division>, metrics: Metrics) -> Self {
        let api = Api::namespaced(handle.client.clone(), &config.lease.namespace);
        Self { config, api, handle, metrics, division, sightings: HashMap::new() }
    }

    /// Works until `stop`, then gives everything back.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.turn().await {
                tracing::warn!(%error, "Cannot keep the leases of shards");
            }
            self.metrics.shards(&self.config.lease.name, self.division.held().len());
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.handle.clock.sleep(self.config.lease.retry) => {}
            }
        }
        for number in self.division.held().into_keys() {
            self.division.drop_shard(number);
            self.release(number).await;
        }
        let _ = self.api.delete(&self.member_name(&self.config.lease.identity), &DeleteParams::default()).await;
        self.metrics.shards(&self.config.lease.name, 0);
    }

    /// Looks once, and does what follows from it.
    async fn turn(&mut self) -> Result<(), kube::Error> {
        let look = self.look().await?;
        let me = self.member_name(&self.config.lease.identity);
        self.take(&look, &me).await?;
        let mine = self.mine(&look).await;
        for number in 0..self.config.count {
            let is_mine = mine.contains(&number);
            let held = self.division.held();
            match held.get(&number) {
                Some(_) if is_mine => self.division.set_leaving(number, false),
                // What is in progress ends first; meanwhile the lease is renewed.
                Some(true) => self.division.set_leaving(number, true),
                Some(false) => {
                    self.division.set_leaving(number, true);
                    self.give_up(number).await;
                    continue;
                }
                None if !is_mine => continue,
                None => {}
            }
            match self.take(&look, &self.shard_name(number)).await {
                Ok(true) => self.division.hold(number, look.at.saturating_add(self.config.lease.renew)),
                Ok(false) => self.division.drop_shard(number),
                Err(error) => tracing::warn!(shard = number, %error, "Cannot take or renew the lease of a shard"),
            }
        }
        Ok(())
    }

    /// Gives an idle shard to whoever is to have it.
    async fn give_up(&mut self, number: u32) {
        // A run may have begun since it was found idle.
        if self.division.held().get(&number) == Some(&false) {
            self.division.drop_shard(number);
            self.release(number).await;
        }
    }

    async fn look(&self) -> Result<Look, kube::Error> {
        let at = self.handle.clock.elapsed();
        let all = ListParams::default().labels(&format!("{LABEL}={}", self.config.lease.name));
        let leases = self.api.list(&all).await?.items;
        let named = leases.into_iter().filter_map(|lease| Some((lease.metadata.name.clone()?, lease)));
        Ok(Look { leases: named.collect(), at })
    }

    /// The shards that are to be this replica's.
    async fn mine(&mut self, look: &Look) -> BTreeSet<u32> {
        let own = self.member_name(&self.config.lease.identity);
        let prefix = self.member_name("");
        let mut members = BTreeSet::from([own.clone()]);
        for (name, lease) in look.leases.iter().filter(|(name, _)| name.starts_with(&prefix) && **name != own) {
            if self.bid(name, lease.spec.clone(), look.at) != Bid::Wait {
                self.bury(name, lease).await;
            } else if self.is_incompatible(lease, look.leases.get(&own)) {
                tracing::warn!(replica = %name, "An older replica divides into another number of shards: waiting for its end");
                return BTreeSet::new();
            } else {
                members.insert(name.clone());
            }
        }
        let assigned = assign(&members, self.config.count);
        assigned.into_iter().filter(|(_, member)| *member == own).map(|(number, _)| number).collect()
    }

    /// Whether another replica, which was here first, counts differently: the two might both work on one key.
    fn is_incompatible(&self, other: &Lease, own: Option<&Lease>) -> bool {
        let annotations = other.metadata.annotations.as_ref();
        let count = annotations.and_then(|annotations| annotations.get(COUNT));
        let since = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone()).map(|time| time.0);
        count.is_some_and(|count| *count != self.config.count.to_string())
            && own.is_none_or(|own| since(other) <= since(own))
    }

    /// Removes what is left of a replica that was silent for too long.
    async fn bury(&mut self, name: &str, lease: &Lease) {
        let only = Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        };
        if self.api.delete(name, &DeleteParams::default().preconditions(only)).await.is_ok() {
            self.sightings.remove(name);
        }
    }

    fn bid(&mut self, name: &str, spec: Option<LeaseSpec>, at: Duration) -> Bid {
        let sighting = self.sightings.entry(name.to_owned()).or_default();
        sighting.bid(&self.config.lease, spec, self.handle.clock.now(), at)
    }

    /// Takes or renews a lease; whether it is this replica's now.
    async fn take(&mut self, look: &Look, name: &str) -> Result<bool, kube::Error> {
        let lease = look.leases.get(name);
        let spec = lease.map(|lease| lease.spec.clone().unwrap_or_default());
        let taken = match self.bid(name, spec, look.at) {
            Bid::Wait => return Ok(false),
            Bid::Create(spec) => {
                let lease = Lease { metadata: self.metadata(name), spec: Some(spec) };
                self.api.create(&PostParams::default(), &lease).await
            }
            Bid::Take(spec) => {
                // The resource version that was read goes with it: of two who bid, one gets a conflict.
                let lease = Lease { spec: Some(spec), ..lease.cloned().unwrap_or_default() };
                self.api.replace(name, &PostParams::default(), &lease).await
            }
        };
        match taken {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn release(&self, number: u32) {
        let name = self.shard_name(number);
        let Ok(Some(mut lease)) = self.api.get_opt(&name).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.config.lease.identity) {
            return;
        }
        spec.holder_identity = None;
        if let Err(error) = self.api.replace(&name, &PostParams::default(), &lease).await {
            tracing::warn!(shard = number, %error, "Lease not released");
        }
    }

    fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(LABEL.to_owned(), self.config.lease.name.clone())].into()),
            annotations: Some([(COUNT.to_owned(), self.config.count.to_string())].into()),
            ..ObjectMeta::default()
        }
    }

    fn shard_name(&self, number: u32) -> String {
        format!("{}-shard-{number}-of-{}", self.config.lease.name, self.config.count)
    }

    fn member_name(&self, identity: &str) -> String {
        // An identity is the name of a Pod and chance; underscores have no place in the names of objects.
        format!("{}-replica-{}", self.config.lease.name, identity.replace('_', "-").to_lowercase())
    }
}

impl ShardConfig {
    /// `count` shards, whose leases are in `namespace` and have names that begin with `name`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, count: u32) -> Self {
        Self { count: count.max(1), lease: LeaderConfig::new(namespace, name) }
    }
}
