//! PodDisruptionBudgets say how many Pods may be evicted.

mod decide;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use windlass_runtime::{Action, Change, Context, Controller, Error, Informer, Manager, Object, ObjectKey, Reconcile};

use crate::actor::Actor;
use crate::{owners, recheck};

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let scales = Scales {
        deployments: manager.informers().all(),
        replica_sets: manager.informers().all(),
        stateful_sets: manager.informers().all(),
        controllers: manager.informers().all(),
    };
    let pods = manager.informers().all::<Pod>();
    let actor = Actor::new(manager, "disruption-controller");
    let controller = Controller::of(manager, Budgets { actor, pods: pods.clone(), scales: scales.clone() });
    let budgets = controller.informer();
    let controller = controller.on(&pods, {
        let budgets = budgets.clone();
        move |change| selecting(change, &budgets)
    });
    let controller = controller
        .on(&scales.deployments, resized(&budgets, |one: &Deployment| one.spec.as_ref().and_then(|spec| spec.replicas)))
        .on(
            &scales.replica_sets,
            resized(&budgets, |one: &ReplicaSet| one.spec.as_ref().and_then(|spec| spec.replicas)),
        )
        .on(
            &scales.stateful_sets,
            resized(&budgets, |one: &StatefulSet| one.spec.as_ref().and_then(|spec| spec.replicas)),
        )
        .on(
            &scales.controllers,
            resized(&budgets, |one: &ReplicationController| one.spec.as_ref().and_then(|spec| spec.replicas)),
        );
    manager.add(controller);
}

/// The kinds that say how many Pods there should be.
#[derive(Clone)]
struct Scales {
    deployments: Informer<Deployment>,
    replica_sets: Informer<ReplicaSet>,
    stateful_sets: Informer<StatefulSet>,
    controllers: Informer<ReplicationController>,
}

impl Scales {
    /// The UID of the topmost controller, and how many Pods it wants.
    fn of(&self, owner: &OwnerReference) -> Option<(String, i32)> {
        let uid = owner.uid.clone();
        if let Some(set) = self.replica_sets.by_uid(&uid) {
            let above = owners::controller(&set.metadata).and_then(|above| self.deployments.by_uid(&above.uid));
            if let Some(above) = above {
                return Some((above.uid()?, above.spec.as_ref()?.replicas.unwrap_or(1)));
            }
            return Some((uid, set.spec.as_ref()?.replicas.unwrap_or(1)));
        }
        if let Some(set) = self.stateful_sets.by_uid(&uid) {
            return Some((uid, set.spec.as_ref()?.replicas.unwrap_or(1)));
        }
        let controller = self.controllers.by_uid(&uid)?;
        Some((uid, controller.spec.as_ref()?.replicas.unwrap_or(1)))
    }

    /// How many Pods the controllers of `pods` want in all; Pods without one count for themselves.
    fn total(&self, pods: &[Arc<Pod>]) -> i32 {
        let mut wanted = BTreeMap::new();
        for pod in pods {
            let scale = owners::controller(&pod.metadata).and_then(|owner| self.of(owner));
            let (uid, replicas) = scale.unwrap_or_else(|| (pod.uid().unwrap_or_default(), 1));
            wanted.insert(uid, replicas);
        }
        wanted.values().sum()
    }
}

struct Budgets {
    actor: Actor,
    pods: Informer<Pod>,
    scales: Scales,
}

impl Reconcile for Budgets {
    type Resource = PodDisruptionBudget;

    async fn reconcile(
        &self,
        budget: Arc<PodDisruptionBudget>,
        _: &Context<PodDisruptionBudget>,
    ) -> Result<Action, Error> {
        if budget.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Await);
        }
        let pods = match selector(&budget) {
            Some(selector) => self
                .pods
                .filter(|pod| pod.metadata.namespace == budget.metadata.namespace && selector.matches(pod.labels())),
            None => vec![],
        };
        let now = self.actor.clock.now();
        let references: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let (status, again) = decide::status(&budget, &references, self.scales.total(&pods), now);
        if budget.status.as_ref() != Some(&status) {
            let updated = PodDisruptionBudget { status: Some(status), ..PodDisruptionBudget::clone(&budget) };
            self.actor.replace_status(&updated).await?;
        }
        Ok(recheck::at(again, now))
    }
}

/// The Pods of a budget: none without a selector, all with an empty one.
fn selector(budget: &PodDisruptionBudget) -> Option<Selector> {
    Selector::try_from(budget.spec.as_ref()?.selector.clone()?).ok()
}

fn selecting(change: &Change<Pod>, budgets: &Informer<PodDisruptionBudget>) -> Vec<ObjectKey> {
    let namespace = &change.object().metadata.namespace;
    let selects = |budget: &PodDisruptionBudget| {
        &budget.metadata.namespace == namespace
            && selector(budget).is_some_and(|selector| change.states().any(|pod| selector.matches(pod.labels())))
    };
    budgets.filter(selects).iter().map(|budget| ObjectKey::of(&**budget)).collect()
}

/// All budgets of a namespace, when a controller in it changed its size.
fn resized<K: Object>(
    budgets: &Informer<PodDisruptionBudget>,
    replicas: fn(&K) -> Option<i32>,
) -> impl Fn(&Change<K>) -> Vec<ObjectKey> + Send + Sync + 'static {
    let budgets = budgets.clone();
    move |change| {
        if change.old.as_deref().map(replicas) == change.new.as_deref().map(replicas) {
            return vec![];
        }
        let namespace = change.key().namespace.unwrap_or_default();
        budgets.in_namespace(&namespace).iter().map(|budget| ObjectKey::of(&**budget)).collect()
    }
}
