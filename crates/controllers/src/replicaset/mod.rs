//! ReplicaSets (and ReplicationControllers) keep a number of Pods.

mod act;
mod decide;
mod kind;
mod rank;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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
    let sets = manager.informers().all::<K>();
    let controller = Controller::of(manager, Replicas { actor, pods: pods.clone(), sets: sets.clone() });
    let controller = controller.owns(&pods).on(&pods, move |change| adoption::wooers(change, &sets, K::selector));
    manager.add(controller);
}

struct Replicas<K: Replicated> {
    actor: Actor,
    pods: Informer<Pod>,
    sets: Informer<K>,
}

impl<K: Replicated> Reconcile for Replicas<K> {
    type Resource = K;

    async fn reconcile(&self, owner: Arc<K>, _context: &Context<K>) -> Result<Action, Error> {
        let selector = Selector::try_from(owner.selector()).map_err(|error| Error::Invalid(error.to_string()))?;
        let namespace = owner.namespace().unwrap_or_default();
        let nearby = self.pods.claimable(owner.meta().uid.as_deref().unwrap_or_default(), &namespace);
        let owned = adoption::settle(&self.actor, &*owner, &selector, nearby).await?;
        let failure = self.fill(&*owner, &owned).await?;
        self.report(&*owner, &selector, failure.as_ref()).await.and_then(|action| match failure {
            Some(failure) => Err(Error::failed(failure.message)),
            None => Ok(action),
        })
    }
}

impl<K: Replicated> Replicas<K> {
    /// Makes the number of Pods right; says what went wrong.
    async fn fill(&self, owner: &K, owned: &[Arc<Pod>]) -> Result<Option<Failure>, kube::Error> {
        if owner.meta().deletion_timestamp.is_some() {
            return Ok(None);
        }
        let references: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let change = decide::change(owner.wanted(), &references, || self.neighbours(owner), self.actor.clock.now());
        if change != Change::None {
            self.actor.check_current(owner).await?;
        }
        Ok(match (change, owner.template()) {
            (Change::Create(count), Some(template)) => act::create(&self.actor, owner, template, count).await,
            (Change::Delete(surplus), _) => act::delete(&self.actor, owner, &surplus).await,
            _ => None,
        })
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

    /// Active Pods per node of all sets under the same controller, so that crowded nodes give up Pods first.
    fn neighbours(&self, owner: &K) -> HashMap<String, usize> {
        let uid = |meta: &ObjectMeta| meta.uid.clone().unwrap_or_default();
        let family: Vec<String> = match owners::controller(owner.meta()) {
            Some(controller) => self.sets.owned_by(&controller.uid).iter().map(|set| uid(set.meta())).collect(),
            None => vec![uid(owner.meta())],
        };
        let mut counts = HashMap::new();
        for pod in family.iter().flat_map(|uid| self.pods.owned_by(uid)).filter(|pod| pods::is_active(pod)) {
            if let Some(node) = pods::node(&pod) {
                *counts.entry(node.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}
