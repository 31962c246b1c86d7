//! Claims that Pods use, and volumes that claims have, outlive their deletion until that is over.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::Patch;
use serde_json::json;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, is_gone};
use crate::pods;

const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";

/// Adds the controllers to the manager.
pub(super) fn add(manager: &mut Manager) {
    let claims = manager.informers().all::<PersistentVolumeClaim>();
    let volumes = manager.informers().all::<PersistentVolume>();
    let pods = manager.informers().all::<Pod>();
    let process =
        Claims { actor: Actor::new(manager, "pvc-protection-controller"), claims: claims.clone(), pods: pods.clone() };
    let controller = Controller::keyed(manager, "pvc-protection", process)
        .on(&claims, |change| Some(change.key()).filter(|_| change.new.as_deref().is_some_and(leaves)))
        .on(&pods, freed);
    manager.add(controller);
    let process = Volumes { actor: Actor::new(manager, "pv-protection-controller"), volumes: volumes.clone() };
    let controller = Controller::keyed(manager, "pv-protection", process)
        .on(&volumes, |change| Some(change.key().name).filter(|_| change.new.as_deref().is_some_and(leaves)));
    manager.add(controller);
}

fn leaves<K: ResourceExt>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// The names of the claims of a Pod.
pub(crate) fn claims_of(pod: &Pod) -> impl Iterator<Item = String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| {
        let ephemeral = volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name));
        volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone()).or(ephemeral)
    })
}

/// Whether the Pod may have the claim mounted: not before it has a node, not after its end.
fn uses(pod: &Pod) -> bool {
    pods::node(pod).is_some() && !pods::is_finished(pod)
}

/// The claims that a Pod has let go.
fn freed(change: &Change<Pod>) -> Vec<ObjectKey> {
    let used = |pod: Option<&Pod>| pod.is_some_and(uses);
    if !used(change.old.as_deref()) || used(change.new.as_deref()) {
        return vec![];
    }
    let namespace = change.key().namespace;
    claims_of(change.object()).map(|name| ObjectKey { namespace: namespace.clone(), name }).collect()
}

struct Claims {
    actor: Actor,
    claims: Informer<PersistentVolumeClaim>,
    pods: Informer<Pod>,
}

impl Process for Claims {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(claim) = self.claims.get(key).filter(|claim| leaves(&**claim)) else { return Ok(Action::Await) };
        if !claim.finalizers().iter().any(|finalizer| finalizer == OF_CLAIMS) {
            return Ok(Action::Await);
        }
        let namespace = key.namespace.clone().unwrap_or_default();
        let is_used = |pod: &Pod| uses(pod) && claims_of(pod).any(|name| name == key.name);
        if !self.pods.in_namespace(&namespace).iter().any(|pod| is_used(pod)) {
            self.actor.remove_finalizer(&*claim, OF_CLAIMS).await?;
        }
        Ok(Action::Await)
    }
}

struct Volumes {
    actor: Actor,
    volumes: Informer<PersistentVolume>,
}

impl Process for Volumes {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        let volume = self.volumes.get(&ObjectKey::cluster(name)).filter(|volume| leaves(&**volume));
        let Some(volume) = volume else { return Ok(Action::Await) };
        let is_bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        if is_bound || !volume.finalizers().iter().any(|finalizer| finalizer == OF_VOLUMES) {
            return Ok(Action::Await);
        }
        let kept: Vec<&String> = volume.finalizers().iter().filter(|known| *known != OF_VOLUMES).collect();
        let patch = json!({"metadata": {"uid": volume.uid(), "resourceVersion": volume.resource_version(), "finalizers": kept}});
        match super::volumes(&self.actor).patch(name, &self.actor.patch(), &Patch::Merge(patch)).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(Action::Await),
        }
    }
}
