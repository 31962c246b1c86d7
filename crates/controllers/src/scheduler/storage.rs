//! The claims of a Pod: where their volumes can be used, and the choice of a node for those that wait for one.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::Patch;
use serde_json::json;
use windlass_runtime::{Error, Informer, Manager, ObjectKey};

use super::affinity;
use crate::actor::Actor;
use crate::volume::{self, SELECTED_NODE};

/// Claims, volumes and classes.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) classes: Informer<StorageClass>,
}

/// What one claim of a Pod asks of its node.
pub(crate) enum Need {
    /// The node where its volume is.
    Bound(Arc<PersistentVolume>),
    /// One where a volume is free for it or can be made.
    Delayed { claim: Arc<PersistentVolumeClaim>, class: Arc<StorageClass>, free: Vec<Arc<PersistentVolume>> },
}

impl Storage {
    /// Looks at the objects that there are.
    pub(crate) fn new(manager: &Manager) -> Self {
        let informers = manager.informers();
        Self { claims: informers.all(), volumes: informers.all(), classes: informers.all() }
    }

    /// What the claims of the Pod ask of its node.
    ///
    /// # Errors
    /// Why no node will do, in words.
    pub(crate) fn needs(&self, pod: &Pod) -> Result<Vec<Need>, String> {
        volume::claims_of(pod).map(|name| self.need(pod, &name)).collect()
    }

    fn need(&self, pod: &Pod, name: &str) -> Result<Need, String> {
        let key = ObjectKey { namespace: pod.namespace(), name: name.to_owned() };
        let claim = self.claims.get(&key).ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if volume::is_bound(&claim) {
            let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
            let found = self.volumes.get(&ObjectKey::cluster(volume));
            return found.map(Need::Bound).ok_or_else(|| format!("persistentvolume {volume:?} not found"));
        }
        let class = volume::claim_class(&claim).and_then(|name| self.classes.get(&ObjectKey::cluster(name)));
        match class.filter(|class| volume::is_delayed(Some(class))) {
            Some(class) => Ok(Need::Delayed { claim, class, free: self.volumes.all() }),
            None => Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
        }
    }

    /// Tells the claims that wait which node it is. `true` if there are any: the Pod waits for them.
    pub(crate) async fn choose(&self, actor: &Actor, pod: &Pod, node: &str) -> Result<bool, Error> {
        let needs = self.needs(pod).unwrap_or_default();
        let mut waits = false;
        for need in needs {
            let Need::Delayed { claim, .. } = need else { continue };
            waits = true;
            if claim.annotations().get(SELECTED_NODE).map(String::as_str) == Some(node) {
                continue;
            }
            let patch = json!({"metadata": {
                "uid": claim.uid(), "resourceVersion": claim.resource_version(), "annotations": {SELECTED_NODE: node},
            }});
            let api = actor.api::<PersistentVolumeClaim>(claim.namespace().as_deref());
            api.patch(&claim.name_any(), &actor.patch(), &Patch::Merge(patch)).await?;
        }
        Ok(waits)
    }
}

impl Need {
    /// Why the node is not for the Pod, if it is not.
    pub(crate) fn refusal(&self, node: &Node, nodes: &[&Node]) -> Option<&'static str> {
        match self {
            Need::Bound(volume) => (!volume::reaches(volume, Some(node)))
                .then_some("node(s) didn't match PersistentVolume's node affinity"),
            Need::Delayed { claim, class, free } => {
                let chosen = claim.annotations().get(SELECTED_NODE);
                // A node that is gone was no choice.
                let chosen = chosen.filter(|name| nodes.iter().any(|node| node.name_any() == **name));
                if chosen.is_some_and(|name| *name != node.name_any()) {
                    return Some("node(s) are not where the claims of the Pod are made");
                }
                let is_found = volume::best(claim, free.iter().map(|volume| &**volume), Some(node)).is_some();
                let can_be_made = class.provisioner != "kubernetes.io/no-provisioner" && is_allowed(class, node);
                (!is_found && !can_be_made).then_some("node(s) didn't find available persistent volumes to bind")
            }
        }
    }
}

/// Whether the class makes volumes for the node.
fn is_allowed(class: &StorageClass, node: &Node) -> bool {
    let Some(terms) = class.allowed_topologies.as_ref().filter(|terms| !terms.is_empty()) else { return true };
    terms.iter().any(|term| affinity::has_labels(term, node))
}
