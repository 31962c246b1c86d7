//! Deployments roll out Pod templates.

mod act;
mod plan;
mod revision;
mod scale;
mod status;
mod template;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::Selector;
use windlass_runtime::{Action, Change, Context, Controller, Error, Informer, Manager, ObjectKey, Reconcile};

use crate::actor::Actor;
use crate::{adoption, owners, recheck};
use plan::Observed;

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let sets = manager.informers().all::<ReplicaSet>();
    let pods = manager.informers().all::<Pod>();
    let actor = Actor::new(manager, "deployment-controller");
    let controller = Controller::of(manager, Deployments { actor, sets: sets.clone(), pods: pods.clone() });
    let deployments = controller.informer();
    let controller = controller
        .owns(&sets)
        .on(&sets.clone(), move |change| adoption::wooers(change, &deployments, selector))
        .on(&pods, move |change| left_by(change, &sets));
    manager.add(controller);
}

struct Deployments {
    actor: Actor,
    sets: Informer<ReplicaSet>,
    pods: Informer<Pod>,
}

impl Reconcile for Deployments {
    type Resource = Deployment;

    async fn reconcile(&self, deployment: Arc<Deployment>, _: &Context<Deployment>) -> Result<Action, Error> {
        let selector = Selector::try_from(selector(&deployment)).map_err(|error| Error::Invalid(error.to_string()))?;
        let namespace = deployment.namespace().unwrap_or_default();
        let nearby = self.sets.claimable(&deployment.uid().unwrap_or_default(), &namespace);
        let sets = adoption::settle(&self.actor, &*deployment, &selector, nearby).await?;
        let pods: Vec<Arc<Pod>> =
            sets.iter().flat_map(|set| self.pods.owned_by(&set.uid().unwrap_or_default())).collect();
        let now = self.actor.clock.now();
        let plan = plan::plan(Observed {
            deployment: &deployment,
            sets: &sets.iter().map(|set| &**set).collect::<Vec<_>>(),
            pods: &pods.iter().map(|pod| &**pod).collect::<Vec<_>>(),
            now,
        });
        let again = plan.again;
        act::act(&self.actor, &deployment, &sets, plan).await?;
        Ok(recheck::at(again, now))
    }
}

fn selector(deployment: &Deployment) -> LabelSelector {
    deployment.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default()
}

/// The Deployment that a Pod which is gone belonged to: one of type Recreate may wait for that.
fn left_by(change: &Change<Pod>, sets: &Informer<ReplicaSet>) -> Vec<ObjectKey> {
    let gone = change.new.is_none().then_some(change.old.as_ref()).flatten();
    let set = gone.and_then(|pod| owners::controller(&pod.metadata)).and_then(|owner| sets.by_uid(&owner.uid));
    let Some(set) = set else { return vec![] };
    let deployment = owners::controller(&set.metadata).filter(|owner| owner.kind == "Deployment");
    let key = |name: &String| ObjectKey { namespace: set.namespace(), name: name.clone() };
    deployment.map(|owner| key(&owner.name)).into_iter().collect()
}
