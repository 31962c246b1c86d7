//! ReplicaSets (and ReplicationControllers) keep a number of Pods.

mod act;
mod decide;
mod kind;
mod rank;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use windlass_runtime::{Action, Context, Controller, Error, Informer, Manager, Reconcile};

pub(crate) use decide::REPLICA_FAILURE;
use decide::{Change, Failure};
use kind::Replicated;

use crate::actor::Actor;
use crate::{adoption, owners, pods, recheck};

/// Adds the controller of `K` to the manager.
pub(crate) fn add<K: Replicated>(manager: &mut Manager) {
    let pods = manager.informers().all::<Pod>();
    let actor = Actor::new(manager, K::CONTROLLER);
    let controller = Controller::of(manager, Replicas::<K> { actor, pods: pods.clone(), kind: PhantomData });
    let sets = controller.informer();
    let controller = controller.owns(&pods).on(&pods, move |change| adoption::wooers(change, &sets, K::selector));
    manager.add(controller);
}

struct Replicas<K> {
    actor: Actor,
    pods: Informer<Pod>,
    kind: PhantomData<K>,
}

impl<K: Replicated> Reconcile for Replicas<K> {
    type Resource = K;

    async fn reconcile(&self, owner: Arc<K>, _context: &Context<K>) -> Result<Action, Error> {
        let selector = Selector::try_from(owner.selector()).map_err(|error| Error::Invalid(error.to_string()))?;
        let namespace = owner.namespace().unwrap_or_default();
        let nearby = self.pods.in_namespace(&namespace);
        let owned = adoption::settle(&self.actor, &*owner, &selector, nearby.clone()).await?;
        let failure = self.fill(&*owner, &owned, &nearby).await;
        self.report(&*owner, &selector, failure.as_ref()).await.and_then(|action| match failure {
            Some(failure) => Err(Error::failed(failure.message)),
            None => Ok(action),
        })
    }
}

impl<K: Replicated> Replicas<K> {
    /// Makes the number of Pods right; says what went wrong.
    async fn fill(&self, owner: &K, owned: &[Arc<Pod>], nearby: &[Arc<Pod>]) -> Option<Failure> {
        if owner.meta().deletion_timestamp.is_some() {
            return None;
        }
        let references: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let neighbours = neighbours(owner, nearby);
        match decide::change(owner.wanted(), &references, &neighbours, self.actor.clock.now()) {
            Change::None => None,
            Change::Create(count) => act::create(&self.actor, owner, owner.template()?, count).await,
            Change::Delete(surplus) => act::delete(&self.actor, owner, &surplus).await,
        }
    }

    /// Writes the status if it changed. The cache knows the Pods that were just made and deleted.
    async fn report(&self, owner: &K, selector: &Selector, failure: Option<&Failure>) -> Result<Action, Error> {
        let uid = owner.meta().uid.clone().unwrap_or_default();
        let mut owned = self.pods.owned_by(&uid);
        owned.retain(|pod| owners::is_controlled_by(&pod.metadata, &uid) && selector.matches(pod.labels()));
        let references: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let labels = owner.template().and_then(|template| template.metadata.as_ref()?.labels.clone());
        let now = self.actor.clock.now();
        let (mut status, again) = decide::status(owner.wanted(), &references, &labels.unwrap_or_default(), now);
        let before = owner.status();
        status.conditions = decide::conditions(before.conditions.as_ref(), failure, now);
        let updated = owner.with_status(status);
        if updated.status() != before {
            self.actor.replace_status(&updated).await?;
        }
        Ok(recheck::at(again, now))
    }
}

/// Ready Pods per node of all sets under the same controller, so that crowded nodes give up Pods first.
fn neighbours<K: Replicated>(owner: &K, nearby: &[Arc<Pod>]) -> HashMap<String, usize> {
    let selector = Selector::try_from(owner.selector()).unwrap_or_default();
    let mut counts = HashMap::new();
    for pod in nearby.iter().filter(|pod| pods::is_ready(pod) && selector.matches(pod.labels())) {
        if let Some(node) = pods::node(pod) {
            *counts.entry(node.to_owned()).or_default() += 1;
        }
    }
    counts
}
